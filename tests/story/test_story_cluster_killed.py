"""kill -9 of the driver while its jobs are with a scheduler: they go on, and the next run takes them over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from story_trouble import Host, host

from cluster_runs import Place, Site, fake_site
from treadle.testing.schedulers import FakeCluster

# Each task tells that it was begun: an array of two, one that is tried twice, one that fails, one that waits.
FLOW = """
[workflow]
name = "killed"
strict_shell = true

[[rules]]
name = "first"
input = ["in/{sample}.txt"]
output = ["first/{sample}.txt"]
temporary = true
shell = "echo first.{sample} >> starts; sleep 0.1; cat {input} > {output}"

[[rules]]
name = "flaky"
input = ["in/a.txt"]
output = ["flaky.txt"]
retries = 1
retry_delay = "0s"
shell = "echo flaky >> starts; test -e tried || { touch tried; exit 7; }; cp {input} {output}"

[[rules]]
name = "broken"
input = ["in/b.txt"]
output = ["broken.txt"]
required = false
shell = "echo broken >> starts; echo half > {output}; exit 9"

[[rules]]
name = "all"
input = ["first/{sample}.txt", "flaky.txt"]
output = ["all.txt"]
shell = "echo all >> starts; cat {input} > {output}"
"""
ONCE = {"first.a": 1, "first.b": 1, "flaky": 2, "broken": 1, "all": 1}
ALL = "a\nb\na\n"

STRIDE = 5  # of the changes to the disk every so many is tried
AT_ONCE = 6


def fresh(path: Path, site: Site) -> Place:
    place = Place(path, site)
    place.write("main.oxoflow", FLOW)
    place.write("in/a.txt", "a\n")
    place.write("in/b.txt", "b\n")
    return place


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Host]]:
    """Several, for most of the time is waiting."""
    with ExitStack() as ends:
        yield [ends.enter_context(host(tmp_path_factory.mktemp("host"))) for _ in range(AT_ONCE)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    with FakeCluster("slurm", tmp_path_factory.mktemp("cluster"), slots=32) as it:
        yield it


def kills(hosts: list[Host], cluster: FakeCluster, folder: Path, when: str, stride: int) -> int:
    """Kill a run at every such place, go on after each; how many places a run has, about."""
    numbers = iter(range(1, 400, stride))
    last, lock = 0, threading.Lock()

    def work(hosted: Host) -> None:
        nonlocal last
        while True:
            with lock:
                number = next(numbers)
            place = fresh(folder / str(number), fake_site(cluster))
            killed = hosted.treadle(place, "run", "--profile", "there", when=when, number=number)
            if killed.code == 0:
                return
            assert killed.code == -9, killed.err
            goes_on(place, hosted)
            last = max(last, number)

    with ThreadPoolExecutor(len(hosts)) as pool:
        for done in [pool.submit(work, hosted) for hosted in hosts]:
            done.result()
    return last


def goes_on(place: Place, hosted: Host) -> None:
    """After a kill: what was settled stays, jobs are taken over, each task runs once; all comes out whole."""
    failed = _has_failed(place)
    ended = hosted.treadle(place, "run", "--profile", "there")
    assert ended.code == 0, ended.err
    assert place.read("all.txt") == ALL
    # A task that failed, and was settled so before the kill, is tried again: that is what another run is for.
    assert place.starts() == {**ONCE, "broken": 2 if failed else 1}, "none is lost, none runs twice"
    assert not (place / "first/a.txt").exists(), "a temporary output that nobody needs any longer"
    assert not (place / "broken.txt").exists(), "what a failed attempt made is set aside"
    assert place.events()[-1]["event"] == "run_ended"


def _has_failed(place: Place) -> bool:
    events = [event for run in place.runs() for event in place.events(run)]
    return any(event["event"] == "task_settled" and event["task"] == "broken" for event in events)


def test_killed_after_any_event_every_task_runs_once(
    hosts: list[Host], cluster: FakeCluster, tmp_path: Path
) -> None:
    assert kills(hosts, cluster, tmp_path, "after", 1) > 20, "a run of five tasks has more events than that"


def test_killed_before_changes_to_the_disk_and_commands_every_task_runs_once(
    hosts: list[Host], cluster: FakeCluster, tmp_path: Path
) -> None:
    """Between the folder of a submission, its command, and its id written down; while accounts are asked."""
    assert kills(hosts, cluster, tmp_path, "move", STRIDE) > 60, "it changes the disk more often than that"
