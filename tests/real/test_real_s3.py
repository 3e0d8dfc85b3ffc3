"""Artifacts on a server that speaks S3: writers race, the server goes and comes back, files are large."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from s3_artifacts import ID, Clock, a_store, make, owner, record

from s3_world import Line, settings
from treadle.base.errors import DiskError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.object_url import spot
from treadle.steps.parallel import in_parallel
from treadle.steps.record import ArtifactRecord, ArtifactState, Kind, Owner
from treadle.steps.store import LeaseLost

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("staged"),
    pytest.mark.skipif(
        importlib.util.find_spec("obstore") is None, reason="needs obstore: pip install 'treadle[remote]'"
    ),
]


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
