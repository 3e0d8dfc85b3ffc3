"""Artifacts on a server that speaks S3: processes race, the server goes and comes back, files are large."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from s3_world import BUCKET, Line, settings
from treadle.base.errors import DiskError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps import staging
from treadle.steps.object_url import spot
from treadle.steps.parallel import in_parallel
from treadle.steps.record import ArtifactRecord, ArtifactState, Kind, Owner, Provenance
from treadle.steps.store import LeaseLost

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        importlib.util.find_spec("obstore") is None, reason="needs obstore: pip install 'treadle[remote]'"
    ),
]
ID = "0123456789abcdef0123456789abcdef"
NAMES = count()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def staged(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    staging.STAGING.clear()
    monkeypatch.setenv("TREADLE_STAGING", str(tmp_path / "staging"))
    yield
    staging.STAGING.clear()


@pytest.fixture
def line(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """A way to the server of its own, for what this test opens."""
    line = Line(s3_port)
    for name, value in settings(line.port).items():
        monkeypatch.setenv(name, value)
    yield line
    line.cut()


@pytest.fixture
def path() -> str:
    return f"s3://{BUCKET}/runs of {os.getpid()}/t{next(NAMES)}/modèl%-0123456789ab"


def a_store(clock: Clock, **options: bool):  # type: ignore[no-untyped-def]
    from treadle.steps.object_store import ObjectStore

    return ObjectStore(f"s3://{BUCKET}", monotonic=clock, **options)


def owner(attempt: str) -> Owner:
    return Owner(host="elsewhere", pid=1, attempt=attempt)


def record(path: str, attempt: str = "run.1") -> ArtifactRecord:
    return ArtifactRecord(identity=ID, name="model", path=path, provenance=Provenance(attempt=attempt))


def make(store, path: str, text: bytes = b"made", attempt: str = "run.1", replaces=None):  # type: ignore[no-untyped-def]
    lease = store.claim(path, owner(attempt))
    assert not isinstance(lease, Owner)
    work = store.work(path, attempt)
    pathlib.Path(work).write_bytes(text)
    done = store.publish(lease, work, record(path, attempt), replaces=replaces)
    lease.release()
    return done


def test_the_server_refuses_the_second_writer(s3: str, path: str) -> None:
    from treadle.steps.object_bucket import Bucket, ChangedError

    bucket, key = Bucket(s3), spot(path).key
    first = bucket.create(key, b"1")
    with pytest.raises(ChangedError):
        bucket.create(key, b"2")
    second = bucket.replace(key, b"3", first)
    with pytest.raises(ChangedError):
        bucket.replace(key, b"4", first)
    found = bucket.get(key)
    assert found is not None
    assert (found.data, found.version) == (b"3", second)


def test_readers_resolve_through_the_attempt_that_the_record_names(s3: str, path: str) -> None:
    store = a_store(Clock())
    first = make(store, path, b"first")
    second = make(store, path, b"second", "run.2", replaces=first)
    assert store.url(second) == f"{path}/run.2/modèl%-0123456789ab"
    assert pathlib.Path(store.fetch(second)).read_bytes() == b"second"
    assert pathlib.Path(store.fetch(first)).read_bytes() == b"first"
    other = a_store(Clock())
    assert other.look(path, ID).record == second
    assert [one.path for one in other.records(ArtifactPlaces(path).parent)] == [path]
    other.remove(path)
    assert other.look(path, ID).state is ArtifactState.ABSENT
    assert list(other.records(ArtifactPlaces(path).parent)) == []


def test_a_folder_of_odd_names_comes_back(s3: str, path: str) -> None:
    store = a_store(Clock())
    lease, work = store.claim(path, owner("run.1")), store.work(path, "run.1")
    names = ["a b", "100%", "a%20b", "ü/日本.txt", "x#y?z=1&u+v", 'it\'s "so"', "[1]{2}*~", "deep/er/file"]
    for name in names:
        file = pathlib.Path(work, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    os.mkdir(f"{work}/empty")
    done = store.publish(lease, work, record(path))
    lease.release()
    assert done.kind is Kind.FOLDER
    local = pathlib.Path(store.fetch(done))
    assert {str(one.relative_to(local)): one.read_text() for one in local.rglob("*") if one.is_file()} == {
        name: name for name in names
    }
    assert (local / "empty").is_dir()
    store.remove(path)
    assert list(store._bucket.entries(spot(path).key)) == []


RACER = """
import pathlib, sys
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, Owner, Provenance
from treadle.steps.store import LeaseLost
from treadle.steps.stores import store_for
who, identity, *paths = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number, path in enumerate(paths):
    store, attempt = store_for(path), f"{who}.{number}"
    while isinstance(lease := store.claim(path, this_owner(attempt)), Owner):
        if store.look(path, identity).record is not None:
            break
    else:
        seen = store.look(path, identity)
        if seen.record is None:
            work = store.work(path, attempt)
            pathlib.Path(work).write_text(attempt)
            source = Provenance(attempt=attempt)
            made = ArtifactRecord(identity=identity, name="n", path=path, provenance=source)
            assert store.publish(lease, work, made).provenance.attempt == attempt
            print("made", path, flush=True)
        lease.release()
"""


def test_of_two_processes_one_makes_each_artifact(s3: str, path: str) -> None:
    paths = [f"{path}-{number}" for number in range(12)]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, who, ID, *order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who, order in (("a", paths), ("b", paths))
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    told = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        out, err = racer.communicate(timeout=60)
        assert racer.returncode == 0, err
        told += out.splitlines()
    assert sorted(told) == sorted(f"made {one}" for one in paths)
    store = a_store(Clock())
    for seen in [store.look(one, ID) for one in paths]:
        assert seen.record is not None
        assert pathlib.Path(store.fetch(seen.record)).read_text() == seen.record.provenance.attempt


def test_of_many_who_publish_at_a_time_one_record_counts(s3: str, path: str) -> None:
    """The leases are all held here (each on another artifact): the condition on the record alone decides."""
    store = a_store(Clock())

    def publish(number: int) -> ArtifactRecord:
        attempt = f"run.{number}"
        lease = store.claim(f"{path}-{number}", owner(attempt))
        assert not isinstance(lease, Owner)
        work = store.work(path, attempt)
        pathlib.Path(work).write_text(attempt)
        return store.publish(lease, work, record(path, attempt))

    (counts,) = {one.provenance.attempt for one in in_parallel(publish, range(8), 8)}
    seen = store.look(path, ID)
    assert seen.record is not None
    assert pathlib.Path(store.fetch(seen.record)).read_text() == counts


def test_a_store_that_does_not_look_at_conditions_is_refused(
    start_s3: Callable[..., int], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for name, value in settings(start_s3("ignore-conditions")).items():
        monkeypatch.setenv(name, value)
    store = a_store(Clock())
    with pytest.raises(StepError) as caught:
        store.claim(path, owner("run.1"))
    assert caught.value.diagnostics[0].code == "no-conditional-writes"
    assert "unsafe_locks=True" in str(caught.value)
    assert list(store._bucket.entries("")) == []
    unsafe = a_store(Clock(), unsafe_locks=True)
    done = make(unsafe, path)
    assert unsafe.look(path, ID).record == done
    assert make(unsafe, path, b"again", "run.2") == done


def test_an_outage_does_not_cancel_and_is_followed_by_a_new_claim(line: Line, path: str) -> None:
    clock = Clock()
    store = a_store(clock)
    lease = store.claim(path, owner("run.1"))
    work = store.work(path, "run.1")
    line.cut()
    clock.now += 200
    store.beat()
    assert lease.lost is None
    pathlib.Path(work).write_text("made in the dark")
    with pytest.raises(DiskError):
        store.publish(lease, work, record(path))
    with pytest.raises(DiskError):
        lease.check()
    line.mend()
    lease.check()
    done = store.publish(lease, work, record(path))
    lease.release()
    assert pathlib.Path(store.fetch(done)).read_text() == "made in the dark"


def test_who_was_overtaken_in_an_outage_does_not_publish(
    line: Line, s3_port: int, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    clock = Clock()
    store = a_store(clock)
    lease = store.claim(path, owner("run.1"))
    work = store.work(path, "run.1")
    pathlib.Path(work).write_text("late")
    for name, value in settings(s3_port).items():
        monkeypatch.setenv(name, value)
    other = a_store(clock)
    assert other.holder(path) == owner("run.1")
    line.cut()
    clock.now += 91
    store.beat()
    made = make(other, path, b"theirs", "other.1")
    line.mend()
    store.beat()
    assert lease.lost == owner("other.1")
    with pytest.raises(LeaseLost):
        store.publish(lease, work, record(path))
    assert store.look(path, ID).record == made


LARGE = """
import pathlib, resource, sys
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord
from treadle.steps.stores import store_for
path, size = sys.argv[1], int(sys.argv[2])
store = store_for(path)
lease = store.claim(path, this_owner("run.1"))
work = store.work(path, "run.1")
with open(work, "wb") as file:
    for number in range(size // 2**20):
        file.write(number.to_bytes(4, "big") * 2**18)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = store.publish(lease, work, ArtifactRecord(identity="0" * 32, name="n", path=path))
lease.release()
local = store.fetch(done)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open(local, "rb") as file:
    for number in range(size // 2**20):
        assert file.read(2**20) == number.to_bytes(4, "big") * 2**18
    assert not file.read(1)
print(done.size, (after - before) * 1024)
"""


def test_a_large_file_passes_through_little_memory(s3: str, path: str) -> None:
    size = 96 * 2**20
    command = [sys.executable, "-c", LARGE, path, str(size)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    moved, grown = map(int, out.split())
    assert moved == size
    assert grown < 64 * 2**20


def test_a_missing_bucket_and_missing_credentials_are_told(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.steps.object_store import ObjectStore

    nowhere = ObjectStore("s3://no-such-bucket")
    for deed in (
        lambda: nowhere.look("s3://no-such-bucket/a", ID),
        lambda: nowhere.claim("s3://no-such-bucket/a", owner("run.1")),
        lambda: list(nowhere.records("s3://no-such-bucket/a")),
    ):
        with pytest.raises(DiskError) as caught:
            deed()
        assert caught.value.diagnostics[0].code == "no-bucket"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(DiskError) as caught:
        ObjectStore("s3://no-such-bucket")
    assert caught.value.diagnostics[0].code == "no-credentials"


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
