"""Artifacts at `memory://`: published whole, found from their path alone; losers leave nothing behind."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from itertools import count

import pytest

from treadle.base.errors import DiskError, LockError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps import staging
from treadle.steps.object_bucket import Bucket
from treadle.steps.object_store import ObjectStore
from treadle.steps.object_url import spot
from treadle.steps.parallel import in_parallel
from treadle.steps.record import (
    ArtifactRecord,
    ArtifactState,
    ArtifactStatus,
    Kind,
    Owner,
    Provenance,
    Standing,
)
from treadle.steps.store import Lease
from treadle.steps.stores import local_path, refuse_elsewhere, store_for

pytest.importorskip("obstore", reason="needs obstore: pip install 'treadle[remote]'")
NAMES = count()
ID = "0123456789abcdef0123456789abcdef"


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def staged(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The staging folder of this test."""
    staging.STAGING.clear()
    monkeypatch.setenv("TREADLE_STAGING", str(tmp_path / "staging"))
    yield tmp_path / "staging"
    staging.STAGING.clear()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> ObjectStore:
    return a_store(clock)


@pytest.fixture
def path() -> str:
    return f"memory://t{next(NAMES)}/model-0123456789ab"


def a_store(clock: Clock) -> ObjectStore:
    """A store as another machine would have it, which beats when it is told to."""
    return ObjectStore("memory://", monotonic=clock)


def owner(attempt: str, host: str = "elsewhere") -> Owner:
    return Owner(host=host, pid=1, user="u", attempt=attempt)


def taken(store: ObjectStore, path: str, attempt: str = "run.1") -> Lease:
    lease = store.claim(path, owner(attempt))
    assert not isinstance(lease, Owner)
    return lease


def record(path: str, attempt: str = "run.1", identity: str = ID) -> ArtifactRecord:
    return ArtifactRecord(identity=identity, name="model", path=path, provenance=Provenance(attempt=attempt))


def write(work: str, text: str | dict[str, str]) -> None:
    files = {work: text} if isinstance(text, str) else {f"{work}/{name}": one for name, one in text.items()}
    if not isinstance(text, str):
        os.mkdir(work)
    for name, one in files.items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(one)


def make(
    store: ObjectStore,
    path: str,
    text: str | dict[str, str] = "made",
    attempt: str = "run.1",
    replaces: ArtifactRecord | None = None,
) -> ArtifactRecord:
    """One whole attempt."""
    lease = taken(store, path, attempt)
    work = store.work(path, attempt)
    write(work, text)
    done = store.publish(lease, work, record(path, attempt), replaces=replaces)
    lease.release()
    return done


def keys(below: str) -> list[str]:
    start = spot(below).key + "/"
    return sorted(one.key.removeprefix(start) for one in Bucket("memory://").entries(spot(below).key))


def parent(path: str) -> str:
    return ArtifactPlaces(path).parent


def test_a_file_is_published_found_and_fetched(store: ObjectStore, path: str) -> None:
    done = make(store, path, "made")
    assert (done.kind, done.size, done.at) == (Kind.FILE, 4, f"{path}/run.1/model-0123456789ab")
    seen = store.look(path, ID)
    assert (seen.state, seen.record) == (ArtifactState.COMPLETE, done)
    assert store.url(done) == done.at
    local = store.fetch(done)
    assert pathlib.Path(local).read_text() == "made"
    assert os.path.basename(local) == "model-0123456789ab"
    os.truncate(local, 0)
    assert store.fetch(done) == local  # brought once, and not again


def test_a_folder_comes_back_as_it_was(store: ObjectStore, path: str) -> None:
    lease, work = taken(store, path), store.work(path, "run.1")
    write(work, {"a b/ü%20ñ.txt": "1", "a b/x#?&+=.txt": "22", "deep/er/~file": ""})
    os.makedirs(f"{work}/nothing/in it")
    os.symlink("a b/ü%20ñ.txt", f"{work}/link")
    done = store.publish(lease, work, record(path))
    assert (done.kind, done.size) == (Kind.FOLDER, 4)
    local = pathlib.Path(store.fetch(done))
    found = {str(one.relative_to(local)) for one in local.rglob("*") if one.is_file()}
    assert found == {"a b/ü%20ñ.txt", "a b/x#?&+=.txt", "deep/er/~file", "link"}
    assert (local / "link").read_text() == "1"
    assert (local / "nothing/in it").is_dir()
    assert store.look(path, ID).state is ArtifactState.COMPLETE


def test_an_empty_folder_is_an_artifact_too(store: ObjectStore, path: str) -> None:
    done = make(store, path, {})
    assert done.kind is Kind.FOLDER
    assert store.look(path, ID).state is ArtifactState.COMPLETE
    assert os.listdir(store.fetch(done)) == []


def test_a_step_that_made_nothing_is_complete_and_not_to_be_fetched(store: ObjectStore, path: str) -> None:
    lease, work = taken(store, path), store.work(path, "run.1")
    done = store.publish(lease, work, record(path))
    assert (done.kind, done.at) == (Kind.NOTHING, "")
    assert store.look(path, ID).state is ArtifactState.COMPLETE
    with pytest.raises(StepError, match="nothing to read"):
        store.fetch(done)


def test_what_a_function_wrote_to_the_store_itself_is_its_artifact(store: ObjectStore, path: str) -> None:
    lease, work = taken(store, path), store.work(path, "run.1")
    Bucket("memory://").put(spot(f"{path}/run.1/part 1").key, b"12345")
    done = store.publish(lease, work, record(path))
    assert (done.kind, done.size, done.at) == (Kind.FOLDER, 5, f"{path}/run.1")
    assert pathlib.Path(store.fetch(done), "part 1").read_bytes() == b"12345"


@pytest.mark.parametrize("name", ["a b", "100%", "a%20b", "naïve-日本", "x#y?z=1&u", "[glob]*{}", "..a", "~"])
def test_names_are_taken_as_they_are(store: ObjectStore, path: str, name: str) -> None:
    own = f"{parent(path)}/{name}/{name}"
    done = make(store, own, "text")
    assert store.look(own, ID).record == done
    assert [one.path for one in store.records(parent(path))] == [own]
    assert pathlib.Path(store.fetch(done)).read_text() == "text"
    store.remove(own)
    assert keys(parent(path)) == []


@pytest.mark.parametrize("bad", ["memory://a/../b", "memory://a/./b", "memory://a//b", "memory://a\nb"])
def test_parts_that_lead_elsewhere_are_refused(store: ObjectStore, bad: str) -> None:
    for deed in (lambda: store.look(bad, ID), lambda: store.work(bad, "run.1"), lambda: store.remove(bad)):
        with pytest.raises(StepError) as caught:
            deed()
        assert caught.value.diagnostics[0].code == "bad-url"


def test_the_memory_of_a_process_is_one(store: ObjectStore, path: str) -> None:
    done = make(store, path)
    assert store_for("memory:///somewhere").look(path, ID).record == done
    assert store_for("memory://a") is store_for("memory:///b/c")


def test_a_second_writer_of_the_same_identity_takes_what_is_there(store: ObjectStore, path: str) -> None:
    first = make(store, path, "first", "run.1")
    second = make(store, path, "second", "run.2")
    assert second == first
    assert keys(path) == ["run.1/model-0123456789ab"]


def test_a_reader_of_a_superseded_artifact_finds_it_until_the_next_one(store: ObjectStore, path: str) -> None:
    first = make(store, path, "first", "run.1")
    second = make(store, path, "second", "run.2", replaces=first)
    assert pathlib.Path(store.fetch(first)).read_text() == "first"
    make(store, path, "third", "run.3", replaces=second)
    assert {one.partition("/")[0] for one in keys(path)} == {"run.2", "run.3"}


def test_what_a_crashed_attempt_brought_is_removed_by_the_next(
    store: ObjectStore, clock: Clock, path: str
) -> None:
    taken(store, path, "dead.1")
    Bucket("memory://").put(spot(f"{path}/dead.1/part").key, b"half")
    other = a_store(clock)
    assert isinstance(other.claim(path, owner("run.1")), Owner)
    clock.now += 91
    make(other, path)
    assert keys(path) == ["run.1/model-0123456789ab"]


def test_discarding_removes_what_was_staged_and_what_was_brought(store: ObjectStore, path: str) -> None:
    lease, work = taken(store, path), store.work(path, "run.1")
    write(work, "half")
    Bucket("memory://").put(spot(f"{path}/run.1/part").key, b"half")
    store.discard(work)
    lease.release()
    assert not os.path.lexists(work)
    assert keys(path) == []


def test_removing_an_artifact_leaves_nothing_and_its_neighbours_alone(store: ObjectStore, path: str) -> None:
    below = f"{path}/inner-0123456789ab"
    make(store, path)
    make(store, below)
    store.tell(path, ArtifactStatus(identity=ID, state=Standing.FAILED))
    store.remove(path)
    assert store.look(path, ID).state is ArtifactState.ABSENT
    assert store.look(below, ID).state is ArtifactState.COMPLETE
    assert keys(f"{parent(path)}/.treadle-artifacts") == []
    store.remove(below)
    assert keys(parent(path)) == []


def test_a_released_lease_is_free_and_its_number_goes_on(store: ObjectStore, path: str) -> None:
    first = taken(store, path)
    first.release()
    assert store.holder(path) is None
    assert taken(store, path, "run.2").number == first.number + 1


def test_a_lease_whose_object_was_removed_is_claimed_again(store: ObjectStore, path: str) -> None:
    lease = taken(store, path)
    Bucket("memory://").delete([spot(ArtifactPlaces(path).lease_object).key])
    lease.check()
    assert store.holder(path) == owner("run.1")
    lease.release()


def test_what_is_being_made_is_not_removed(store: ObjectStore, path: str) -> None:
    lease = taken(store, path)
    with pytest.raises(LockError, match=r"is being made by .*run\.1"):
        store.remove(path)
    lease.release()
    store.remove(path)
    assert keys(parent(path)) == []


def test_a_torn_artifact_is_told_and_made_anew(store: ObjectStore, path: str) -> None:
    first = make(store, path, {"a": "1", "b": "2"})
    Bucket("memory://").delete([spot(f"{first.at}/a").key])
    seen = store.look(path, ID)
    assert seen.state is ArtifactState.TORN
    assert "holds 1 bytes, not 2" in seen.problem
    with pytest.raises(DiskError, match="torn"):
        store.fetch(first)
    again = make(store, path, {"a": "1", "b": "2"}, "run.2")
    assert store.look(path, ID).record == again


def test_content_that_is_not_what_the_record_tells_is_not_served(store: ObjectStore, path: str) -> None:
    done = make(store, path, "made")
    Bucket("memory://").put(spot(done.at).key, b"fake")
    with pytest.raises(DiskError, match="its content is not"):
        store.fetch(done)


def test_a_record_that_cannot_be_read_is_torn_and_replaced(store: ObjectStore, path: str) -> None:
    Bucket("memory://").put(spot(ArtifactPlaces(path).record).key, b"{")
    assert store.look(path, ID).state is ArtifactState.TORN
    make(store, path)
    assert store.look(path, ID).state is ArtifactState.COMPLETE


def test_storage_that_was_copied_elsewhere_serves_from_where_it_is(store: ObjectStore, path: str) -> None:
    make(store, path, "made")
    moved = path.replace("memory://", "memory://copy/")
    for key in keys(parent(path)):
        found = Bucket("memory://").get(f"{spot(parent(path)).key}/{key}")
        assert found is not None
        Bucket("memory://").put(f"{spot(parent(moved)).key}/{key}", found.data)
    store.remove(path)
    seen = store.look(moved, ID)
    assert seen.state is ArtifactState.COMPLETE
    assert seen.record is not None
    assert pathlib.Path(store.fetch(seen.record)).read_text() == "made"


def test_many_are_looked_at_in_order(store: ObjectStore, path: str) -> None:
    wanted = [(f"{parent(path)}/n{n}", ID) for n in range(200)]
    for one, _ in wanted[::2]:
        make(store, one)
    states = [seen.state for seen in in_parallel(lambda one: store.look(*one), wanted, 16)]
    assert states == [ArtifactState.COMPLETE, ArtifactState.ABSENT] * 100
    assert [one.path for one in store.records(parent(path))] == sorted(one for one, _ in wanted[::2])


@pytest.mark.parametrize(("name", "code"), [(b"a\nb", "bad-name"), (b"a\xffb", "unfit-output")])
def test_file_names_that_no_store_takes_are_refused(
    store: ObjectStore, path: str, name: bytes, code: str
) -> None:
    lease, work = taken(store, path), store.work(path, "run.1")
    os.mkdir(work)
    pathlib.Path(os.fsdecode(os.fsencode(work) + b"/" + name)).write_text("1")
    with pytest.raises(DiskError) as caught:
        store.publish(lease, work, record(path))
    assert caught.value.diagnostics[0].code == code
    assert store.look(path, ID).state is ArtifactState.ABSENT


@pytest.mark.parametrize("unfit", ["dangling", "folder", "pipe"])
def test_what_has_no_place_in_an_object_store_is_refused_by_name(
    store: ObjectStore, path: str, tmp_path: pathlib.Path, unfit: str
) -> None:
    lease, work = taken(store, path), store.work(path, "run.1")
    os.mkdir(work)
    if unfit == "pipe":
        os.mkfifo(f"{work}/it")
    else:
        os.symlink(tmp_path if unfit == "folder" else "nowhere", f"{work}/it")
    with pytest.raises(DiskError) as caught:
        store.publish(lease, work, record(path))
    assert caught.value.diagnostics[0].code == "unfit-output"
    assert "/it" in str(caught.value)


def test_the_staging_folder_is_private_and_cleared(
    store: ObjectStore, path: str, staged: pathlib.Path
) -> None:
    done = make(store, path)
    store.fetch(done)
    (own,) = [one for one in staged.iterdir() if one.name != "resume"]
    assert own.stat().st_mode & 0o777 == 0o700
    staging.STAGING.clear()
    assert not own.exists()


def test_what_a_dead_process_staged_is_swept(store: ObjectStore, path: str, staged: pathlib.Path) -> None:
    from treadle.base.proc import host

    dead, other = staged / f"{host()}.4194305.1", staged / "elsewhere.1.1"
    for one in (dead, other):
        one.mkdir(parents=True)
    staged.chmod(0o700)
    store.work(path, "run.1")
    assert not dead.exists()
    assert other.exists()


def test_a_staging_folder_that_others_may_write_to_is_refused(
    store: ObjectStore, path: str, staged: pathlib.Path
) -> None:
    staged.mkdir()
    staged.chmod(0o777)
    with pytest.raises(StepError, match="TREADLE_STAGING"):
        store.work(path, "run.1")


def test_schemes_that_are_not_supported_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StepError) as caught:
        store_for("sftp://host/path")
    assert "s3://" in str(caught.value)
    assert caught.value.diagnostics[0].code == "unknown-scheme"
    with pytest.raises(StepError, match="AWS_ENDPOINT_URL"):
        store_for("https://host/path")
    with pytest.raises(StepError, match="names no bucket"):
        store_for("s3:///path")


def test_a_file_url_is_a_path() -> None:
    assert local_path("file:///data/x y") == "/data/x y"
    assert local_path("/data") == "/data"
    with pytest.raises(StepError):
        local_path("file://other/data")


def test_without_obstore_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(StepError, match=r"pip install 'treadle\[remote\]'"):
        ObjectStore("memory://")


def test_of_many_who_publish_at_a_time_one_record_counts(store: ObjectStore, path: str) -> None:
    """The leases are all held here (each on another artifact): the condition on the record alone decides."""

    def publish(number: int) -> ArtifactRecord:
        attempt = f"run.{number}"
        lease = taken(store, f"{path}-{number}", attempt)
        work = store.work(path, attempt)
        write(work, attempt)
        return store.publish(lease, work, record(path, attempt))

    first = set_of(in_parallel(publish, range(16), 8))
    assert len(first) == 1
    assert {one.partition("/")[0] for one in keys(path)} == first


def set_of(records: Iterator[ArtifactRecord]) -> set[str]:
    return {one.provenance.attempt for one in records}


def test_the_memory_of_a_process_is_not_for_steps_in_another() -> None:
    with pytest.raises(StepError, match="memory of this process alone") as caught:
        refuse_elsewhere("train", ["s3://bucket/a", "memory://a"])
    assert caught.value.diagnostics[0].code == "memory-elsewhere"
    refuse_elsewhere("train", ["s3://bucket/a", "/data/a"])
