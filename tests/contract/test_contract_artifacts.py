"""The contract of `ArtifactStore`: what every kind of storage promises of artifacts and work paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from artifact_stores import Clock, Storage, claimed, made, record_of

from treadle.base.errors import LockError, RecordError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.record import ArtifactState, ArtifactStatus, Kind, Standing
from treadle.steps.record_file import encode_record

SAME = "a" * 32
OTHER = "b" * 32


# What stands there


def test_where_nothing_was_made_nothing_is_seen(storage: Storage, clock: Clock) -> None:
    seen = storage.store(clock).look(storage.path("train"), SAME)
    assert (seen.state, seen.record, seen.status) == (ArtifactState.ABSENT, None, None)


def test_a_file_is_complete_for_everybody_once_it_is_published(storage: Storage, clock: Clock) -> None:
    record = made(storage.store(clock), storage.path("train"))
    other = storage.store(clock)
    seen = other.look(storage.path("train"), SAME)
    assert (seen.state, seen.record) == (ArtifactState.COMPLETE, record)
    assert (record.kind, record.size) == (Kind.FILE, 5)
    assert Path(other.fetch(record)).read_text() == "hello"
    assert storage.left() == []


def test_a_folder_comes_with_all_that_is_in_it(storage: Storage, clock: Clock) -> None:
    store, path = storage.store(clock), storage.path("train")
    lease, work = claimed(store, path, "r.1"), Path(store.work(path, "r.1"))
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "file name").write_text("one")
    (work / "two").write_text("two")
    record = store.publish(lease, str(work), record_of(path, "r.1"))
    lease.release()
    assert (record.kind, record.size) == (Kind.FOLDER, 6)
    there = Path(storage.store(clock).fetch(record))
    assert {str(p.relative_to(there)): p.read_text() for p in there.rglob("*") if p.is_file()} == {
        "deep/er/file name": "one",
        "two": "two",
    }


def test_a_step_that_made_nothing_is_complete_by_its_record(storage: Storage, clock: Clock) -> None:
    record = made(storage.store(clock), storage.path("train"), content=None)
    assert record.kind is Kind.NOTHING
    store = storage.store(clock)
    assert store.look(storage.path("train"), SAME).state is ArtifactState.COMPLETE
    with pytest.raises(StepError, match="nothing to read"):
        store.fetch(record)


def test_another_identity_sees_that_the_artifact_is_not_its_own(storage: Storage, clock: Clock) -> None:
    record = made(storage.store(clock), storage.path("train"))
    seen = storage.store(clock).look(storage.path("train"), OTHER)
    assert (seen.state, seen.record) == (ArtifactState.OTHER, record)


def test_an_output_that_is_gone_is_seen_and_made_again(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    record = made(storage.store(clock), path)
    storage.lose(record)
    store = storage.store(clock)
    seen = store.look(path, SAME)
    assert (seen.state, seen.record) == (ArtifactState.TORN, record)
    assert seen.problem
    again = made(store, path, "r.2", replaces=seen.record)
    assert store.look(path, SAME).record == again
    assert Path(store.fetch(again)).read_text() == "hello"


def test_a_record_of_a_newer_treadle_is_refused_by_name(storage: Storage, clock: Clock) -> None:
    place = ArtifactPlaces(storage.path("train")).record
    storage.put(place, b'{"format":99,"identity":"x","name":["in","another","shape"]}')
    with pytest.raises(RecordError, match="newer Treadle") as raised:
        storage.store(clock).look(storage.path("train"), SAME)
    assert place in str(raised.value)


def test_fields_that_are_not_known_are_passed_over(storage: Storage, clock: Clock) -> None:
    record = record_of(storage.path("train"), "r.1")
    data = encode_record(record)[:-2] + b',"mood":"fine"}\n'
    storage.put(ArtifactPlaces(record.path).record, data)
    assert storage.store(clock).look(record.path, SAME).record == record


def test_the_status_of_a_failed_attempt_is_told_to_its_own_identity(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    status = ArtifactStatus(identity=SAME, state=Standing.FAILED, attempt="r.1", error="ValueError: no")
    store.tell(path, status)
    assert storage.store(clock).look(path, SAME).status == status
    assert storage.store(clock).look(path, OTHER).status is None


def test_records_below_a_prefix_come_sorted_by_path(storage: Storage, clock: Clock) -> None:
    store = storage.store(clock)
    records = [made(store, storage.path(name)) for name in ("b", "a/deep", "a-b", "c")]
    store.tell(storage.path("d"), ArtifactStatus(identity=SAME, state=Standing.FAILED))
    found = list(storage.store(clock).records(storage.path("")))
    assert found == sorted(records, key=lambda record: record.path)


@pytest.mark.parametrize("name", ["a b", "ünï-コード", "--all", "x" * 193, "a'b\"c", "per%cent", "x.status"])
def test_odd_names_do(storage: Storage, clock: Clock, name: str) -> None:
    path, store = storage.path(name), storage.store(clock)
    record = made(store, path)
    store.tell(path, ArtifactStatus(identity=SAME, state=Standing.SUCCEEDED))
    assert storage.store(clock).look(path, SAME).record == record
    assert [one.path for one in store.records(storage.path(""))] == [path]
    store.remove(path)
    assert store.look(path, SAME).state is ArtifactState.ABSENT


def test_the_status_of_one_step_is_not_the_record_of_another(storage: Storage, clock: Clock) -> None:
    store = storage.store(clock)
    record = made(store, storage.path("x.status"))
    store.tell(storage.path("x"), ArtifactStatus(identity=SAME, state=Standing.FAILED))
    assert store.look(storage.path("x.status"), SAME).record == record


# Work paths


def test_at_a_work_path_stands_nothing_and_its_folder_is_there(storage: Storage, clock: Clock) -> None:
    store, path = storage.store(clock), storage.path("deep/er/train")
    work = Path(store.work(path, "r.1"))
    assert not work.exists()
    work.mkdir()
    (work / "half").write_text("half")
    assert not Path(store.work(path, "r.1")).exists()


def test_what_a_failed_attempt_made_can_be_discarded(storage: Storage, clock: Clock) -> None:
    store, path = storage.store(clock), storage.path("train")
    work = Path(store.work(path, "r.1"))
    work.mkdir()
    (work / "half").write_text("half")
    store.discard(str(work))
    assert not work.exists()


def test_a_resumable_step_finds_what_it_left(storage: Storage, clock: Clock) -> None:
    store, path = storage.store(clock), storage.path("train")
    Path(store.work(path, "r.1", resumable=True)).write_text("epoch 3")
    work = Path(store.work(path, "r.2", resumable=True))
    assert work.read_text() == "epoch 3"
    lease = claimed(store, path, "r.2")
    record = store.publish(lease, str(work), record_of(path, "r.2"))
    lease.release()
    assert Path(store.fetch(record)).read_text() == "epoch 3"
    assert not Path(store.work(path, "r.3", resumable=True)).exists()


# Publishing under a lease


def test_who_comes_second_takes_the_record_of_the_first(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    first = made(store, path, "r.1", "one")
    assert made(storage.store(clock), path, "r.2", "two") == first
    assert Path(store.fetch(first)).read_text() == "one"
    assert storage.left() == []


def test_who_comes_second_with_nothing_made_takes_the_first_one_too(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    first = made(store, path, "r.1", None)
    assert made(storage.store(clock), path, "r.2", None) == first


@pytest.mark.parametrize("old", ["one", None])
@pytest.mark.parametrize("new", ["two", None])
def test_a_wanted_rebuild_replaces_the_record_that_it_names(
    storage: Storage, clock: Clock, old: str | None, new: str | None
) -> None:
    path, store = storage.path("train"), storage.store(clock)
    before = made(store, path, "r.1", old)
    after = made(storage.store(clock), path, "r.2", new, replaces=before)
    assert after != before
    seen = storage.store(clock).look(path, SAME)
    assert (seen.state, seen.record) == (ArtifactState.COMPLETE, after)
    assert after.kind is (Kind.NOTHING if new is None else Kind.FILE)
    if new is not None:
        assert Path(store.fetch(after)).read_text() == new
    assert storage.left() == []


def test_another_record_than_the_one_it_replaces_makes_it_the_loser(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    old = made(store, path, "r.1", "one")
    winner = made(store, path, "r.2", "two", replaces=old)
    assert made(store, path, "r.3", "three", replaces=old) == winner
    assert Path(store.fetch(winner)).read_text() == "two"


def test_the_artifact_of_another_identity_is_not_replaced_unless_named(
    storage: Storage, clock: Clock
) -> None:
    path, store = storage.path("train"), storage.store(clock)
    other = made(store, path, "r.1", "one", identity=OTHER)
    lease = claimed(store, path, "r.2")
    work = store.work(path, "r.2")
    Path(work).write_text("two")
    with pytest.raises(StepError, match="another identity"):
        store.publish(lease, work, record_of(path, "r.2"))
    assert Path(work).read_text() == "two"
    assert Path(store.fetch(other)).read_text() == "one"
    mine = store.publish(lease, work, record_of(path, "r.2"), replaces=other)
    assert store.look(path, SAME).record == mine


# Removal


def test_an_artifact_is_removed_with_all_that_stands_beside_it(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    made(store, path)
    made(store, storage.path("other"))
    store.tell(path, ArtifactStatus(identity=SAME, state=Standing.FAILED))
    store.remove(path)
    seen = store.look(path, SAME)
    assert (seen.state, seen.status) == (ArtifactState.ABSENT, None)
    assert store.look(storage.path("other"), SAME).state is ArtifactState.COMPLETE
    store.remove(path)
    store.remove(storage.path("never"))


def test_an_artifact_that_is_being_made_is_not_removed(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    made(store, path)
    claimed(store, path, "r.2")
    with pytest.raises(LockError, match=r"r\.2"):
        storage.store(clock).remove(path)
    assert store.look(path, SAME).state is ArtifactState.COMPLETE


def test_syncing_is_fine_at_any_time(storage: Storage, clock: Clock) -> None:
    store = storage.store(clock)
    store.sync()
    record = made(store, storage.path("train"))
    store.sync()
    store.remove(made(store, storage.path("gone")).path)
    store.sync()
    assert store.look(record.path, SAME).record == record
