"""Runs of steps over a server that speaks S3: in threads and processes, side by side, killed, cut off."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from s3_artifacts import ID, Clock, a_store, make

from s3_world import Line
from treadle.base.layout import ArtifactPlaces
from treadle.steps.object_url import spot
from treadle.steps.record import ArtifactState

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("staged"),
    pytest.mark.skipif(
        importlib.util.find_spec("obstore") is None, reason="needs obstore: pip install 'treadle[remote]'"
    ),
]
PIPELINE = """
import sys
import threading
from treadle import ResourceConfig, StepRunner, StepSpec

def tokens(out):
    with open(out, "w") as file:
        file.write("a b c")

def counted(out, ctx):
    with open(ctx.path("tokens")) as file:
        words = file.read().split()
    with open(out, "w") as file:
        file.write(str(len(words)))
    return len(words)

first = StepSpec(name="tokens", fn=tokens)
second = StepSpec(name="count/of words", fn=counted, deps=[first], resources=ResourceConfig(cpu=1))
if __name__ == "__main__":
    print(StepRunner(prefix=sys.argv[1]).run([second]))
"""


def test_steps_in_threads_and_in_processes_build_on_each_other_in_s3(
    s3: str, path: str, tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "pipeline.py"
    script.write_text(PIPELINE)
    prefix = ArtifactPlaces(path).parent

    def run() -> str:
        command = [sys.executable, str(script), prefix]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run() == "2 succeeded\n"
    assert run() == "1 up to date\n"
    records = list(a_store(Clock()).records(prefix))
    assert [(one.name, one.result and one.result.value) for one in records] == [
        ("count/of words", 3),
        ("tokens", None),
    ]
    assert os.listdir(tmp_path / "staging") == ["resume"]


GRAPH = """
import sys
from treadle import StepRunner, StepSpec

def noted(name, *deps):
    def work(out):
        with open("calls", "a") as log:
            log.write(f"{sys.argv[1]} {name}\\n")
        with open(out, "w") as file:
            file.write(name)
    return StepSpec(name, fn=work, deps=deps)

parts = [noted(f"part{i}") for i in range(6)]
top = noted("top", *parts)
print("ready", flush=True)
sys.stdin.readline()
assert StepRunner(prefix=sys.argv[1]).run([top]).ok
"""


@pytest.mark.parametrize("prefixes", [1, 2], ids=["one prefix", "two prefixes"])
def test_two_runners_on_one_graph_make_each_artifact_once_below_each_prefix(
    s3: str, path: str, tmp_path: pathlib.Path, prefixes: int
) -> None:
    places = [f"{ArtifactPlaces(path).parent}/{number % prefixes}" for number in range(2)]
    (tmp_path / "graph.py").write_text(GRAPH)
    runners = [
        subprocess.Popen(
            [sys.executable, "graph.py", place],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for place in places
    ]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write("go\n")
        runner.stdin.flush()
    for runner in runners:
        _, err = runner.communicate(timeout=60)
        assert runner.returncode == 0, err
    names = [*(f"part{number}" for number in range(6)), "top"]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sorted(calls) == sorted(f"{place} {name}" for place in set(places) for name in names)
    for place in places:
        assert {one.name for one in a_store(Clock()).records(place)} == set(names)


MAKER = """
import pathlib, sys
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, Provenance
from treadle.steps.stores import store_for
path, identity, attempt = sys.argv[1:]
store = store_for(path)
old = store.look(path, identity).record
lease = store.claim(path, this_owner(attempt))
work = pathlib.Path(store.work(path, attempt))
work.mkdir()
(work / "a").write_text(attempt)
(work / "b").write_text(attempt)
made = ArtifactRecord(identity=identity, name="n", path=path, provenance=Provenance(attempt=attempt))
store.publish(lease, str(work), made, replaces=old)
lease.release()
"""


@pytest.mark.parametrize("rebuild", [False, True], ids=["first", "rebuild"])
def test_a_maker_that_is_killed_at_any_request_leaves_the_old_one_or_the_new_one(
    line: Line, path: str, rebuild: bool
) -> None:
    ended = False
    for number in range(1, 30):
        own = f"{path}-{number}"
        store = a_store(Clock())
        old = make(store, own, b"old", "old.1") if rebuild else None
        ended = killed_at(line, number, own)
        seen = store.look(own, ID)
        if seen.record != old:
            assert seen.record is not None
            assert seen.state is ArtifactState.COMPLETE
            local = pathlib.Path(store.fetch(seen.record))
            assert {(local / name).read_text() for name in "ab"} == {"killed.1"}
        again = make(store, own, b"again", "again.1", replaces=seen.record)
        last = make(store, own, b"last", "last.1", replaces=again)
        assert pathlib.Path(store.fetch(last)).read_bytes() == b"last"
        below = {one.key.split("/")[-2] for one in store._bucket.entries(spot(own).key)}
        assert below == {"again.1", "last.1"}, f"killed at request {number}"
        if ended:
            break
    assert ended
    assert number > 6


def killed_at(line: Line, number: int, path: str) -> bool:
    """Run the maker and kill it at its `number`-th changing request; whether it came to its end."""
    maker = subprocess.Popen([sys.executable, "-c", MAKER, path, ID, "killed.1"])
    left = number

    def count_down(request: bytes) -> bool:
        nonlocal left
        if request.split(b" ", 1)[0] in (b"PUT", b"POST", b"DELETE"):
            left -= 1
            if left == 0:
                maker.kill()
                maker.wait()
        return left > 0

    line.passes = count_down
    try:
        return maker.wait(60) == 0
    finally:
        line.passes = lambda request: True


def test_a_step_whose_storage_goes_away_while_it_runs_is_published_when_it_is_back(
    line: Line, path: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treadle import StepRunner, StepSpec

    monkeypatch.chdir(tmp_path)
    ran = []

    def fn(out: str) -> int:
        ran.append(out)
        line.cut()
        back.start()
        pathlib.Path(out).write_text("kept")
        return 7

    back = threading.Timer(2.0, line.mend)
    prefix = ArtifactPlaces(path).parent
    step = StepSpec(name="train", fn=fn, output_path_prefix=prefix)
    assert str(StepRunner().run([step])) == "1 succeeded"
    back.join()
    assert len(ran) == 1
    assert step.load() == 7
