"""Who presses Ctrl-C twice is let go at once, whatever the scheduler says; nothing is lost by that."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import Place, fake_site
from treadle.testing.schedulers import FakeCluster
from waiting import until

Cluster = Callable[..., FakeCluster]
CANCEL = {"slurm": "scancel", "pbs": "qdel", "torque": "qdel", "sge": "qdel", "lsf": "bkill"}
KINDS = tuple(CANCEL)


def at_work(place: Place) -> subprocess.Popen[str]:
    """A run of two tasks, of which one has ended and one goes on until there is `go`."""
    place.write(
        "main.oxoflow",
        "[workflow]\nname = 'left'\nstrict_shell = true\n"
        "[[rules]]\nname = 'first'\noutput = ['first.txt']\nshell = 'echo first >> starts; touch {output}'\n"
        "[[rules]]\nname = 'second'\ninput = ['first.txt']\noutput = ['second.txt']\n"
        "shell = \"trap '' TERM; echo second >> starts; until test -e go; do sleep 0.05; done; "
        'touch {output}"\n',
    )
    run = place.start("run")
    until(lambda: (place / "starts").exists() and "second" in place.read("starts"), "the second is at work")
    return run


def press_twice(run: subprocess.Popen[str], between: Callable[[], object]) -> tuple[int, str]:
    """Ctrl-C, and once more when `between` is true; how the run ended, and what it said."""
    run.send_signal(signal.SIGINT)
    until(between, "the first was heard")
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert "Traceback" not in err, err
    return run.returncode, out + err


def shown(place: Place) -> list[tuple[str, str]]:
    return [
        (event["state"], event.get("reason", "")) for event in place.events() if event["event"] == "job_seen"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scheduler_that_is_gone_holds_nobody_back(kind: str, fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster(kind, slots=2)
    place = Place(tmp_path, fake_site(cluster))
    run = at_work(place)
    cluster.down()
    code, said = press_twice(run, lambda: cluster.calls().get(CANCEL[kind]))
    assert code == 130, said
    assert "1 of its jobs could not be told to end" in said
    assert shown(place)[-1][0] == "ending"
    assert shown(place)[-1][1].startswith("not heard: ")
    cluster.up()
    place.write("go", "")
    place.treadle("run")
    assert sorted(place.read("starts").split()) == ["first", "second"]


def test_a_command_that_hangs_holds_nobody_back(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", slots=2, kill_wait=600.0)
    place = Place(tmp_path, fake_site(cluster))
    run = at_work(place)
    cluster.script("hang", command="scancel", seconds=600)
    code, said = press_twice(run, lambda: cluster.calls().get("scancel"))
    assert code == 130, said
    assert "1 of its jobs could not be told to end" in said
    place.write("go", "")
    place.treadle("run")
    assert place.read("starts").count("first") == 1


def test_jobs_that_take_long_to_end_hold_nobody_back(fake_cluster: Cluster, tmp_path: Path) -> None:
    cluster = fake_cluster("slurm", slots=2, kill_wait=600.0)
    place = Place(tmp_path, fake_site(cluster))
    run = at_work(place)
    code, said = press_twice(run, lambda: cluster.calls().get("scancel"))
    assert code == 130, said
    assert "1 of its jobs was told to end, which was not seen yet" in said
    assert shown(place)[-1] == ("ending", "")
    place.write("go", "")
    place.treadle("run")
    assert place.read("starts").count("first") == 1
