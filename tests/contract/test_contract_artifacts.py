"""The contract of `ArtifactStore`: what every kind of storage promises alike."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from artifact_stores import STORAGES, Clock, Storage, claimed, forked, made, owner, record_of

from treadle.base.errors import DiskError, LockError, RecordError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.base.proc import start_time
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactState, ArtifactStatus, Kind, Owner, Standing
from treadle.steps.record_file import encode_record
from treadle.steps.store import ArtifactStore, Lease, LeaseLost

SAME, OTHER = "a" * 32, "b" * 32
PATIENCE = 90.0


@pytest.fixture(params=sorted(STORAGES))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return STORAGES[request.param](tmp_path, request)


@pytest.fixture
def clock() -> Clock:
    return Clock()


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


# Leases


def test_a_lease_is_held_by_one(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    lease = claimed(storage.store(clock), path, "r.1")
    other = storage.store(clock)
    assert other.claim(path, owner("r.2")) == owner("r.1")
    assert other.holder(path) == owner("r.1")
    lease.check()
    assert lease.lost is None


def test_a_lease_that_is_given_back_can_be_taken(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    claimed(store, path, "r.1").release()
    assert store.holder(path) is None
    claimed(storage.store(clock), path, "r.2").release()
    assert storage.left() == []


def test_a_second_release_is_fine(storage: Storage, clock: Clock) -> None:
    path, store = storage.path("train"), storage.store(clock)
    lease = claimed(store, path, "r.1")
    lease.release()
    other = claimed(store, path, "r.2")
    lease.release()
    other.check()


def winners(stores: Sequence[ArtifactStore], path: str) -> list[Lease]:
    """Who gets the lease of all that claim it at once."""
    start = threading.Barrier(len(stores))
    got: list[Lease] = []

    def race(store: ArtifactStore, n: int) -> None:
        start.wait()
        lease = store.claim(path, owner(f"race.{n}"))
        if not isinstance(lease, Owner):
            got.append(lease)

    threads = [threading.Thread(target=race, args=(store, n)) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return got


def test_one_thread_of_many_gets_it(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    stores = [storage.store(clock) for _ in range(8)]
    assert len(winners(stores, path)) == 1


def test_one_thread_of_many_takes_it_over(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    claimed(storage.store(clock), path, "r.0")
    stores = [storage.store(clock) for _ in range(6)]
    for store in stores:
        assert store.holder(path) == owner("r.0")
    clock.wait(PATIENCE)
    assert len(winners(stores, path)) == 1


def test_silence_for_90_seconds_ends_a_lease_and_less_does_not(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    first = claimed(storage.store(clock), path, "r.1")
    waiter = storage.store(clock)
    assert waiter.holder(path) == owner("r.1")
    clock.wait(PATIENCE - 1)
    assert waiter.claim(path, owner("r.2")) == owner("r.1")
    clock.wait(1)
    assert waiter.holder(path) is None
    second = waiter.claim(path, owner("r.2"))
    assert not isinstance(second, Owner)
    assert second.number > first.number
    assert storage.store(clock).holder(path) == owner("r.2")


def test_silence_counts_from_the_first_look_of_who_waits(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    claimed(storage.store(clock), path, "r.1")
    clock.wait(10 * PATIENCE)
    waiter = storage.store(clock)
    assert waiter.claim(path, owner("r.2")) == owner("r.1")
    clock.wait(PATIENCE)
    assert not isinstance(waiter.claim(path, owner("r.2")), Owner)


def test_beats_keep_a_lease(storage: Storage, clock: Clock) -> None:
    path, store, waiter = storage.path("train"), storage.store(clock), storage.store(clock)
    lease = claimed(store, path, "r.1")
    for _ in range(20):
        assert waiter.holder(path) == owner("r.1")
        clock.wait(30)
        store.beat()
    lease.check()


def test_clocks_that_are_an_hour_apart_make_no_difference(storage: Storage) -> None:
    path = storage.path("train")
    for skew in (-3600.0, 3600.0):
        ours, theirs = Clock(10000.0), Clock(10000.0 + skew)
        store, waiter = storage.store(ours), storage.store(theirs)
        lease = claimed(store, path, "r.1")
        for _ in range(5):
            assert waiter.claim(path, owner("r.2")) == owner("r.1")
            for clock in (ours, theirs):
                clock.wait(40)
            store.beat()
        assert waiter.holder(path) == owner("r.1")  # the last beat
        theirs.wait(PATIENCE)
        claimed(waiter, path, "r.2").release()
        lease.release()


def test_the_lease_of_a_process_that_is_gone_is_taken_at_once(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    gone = subprocess.Popen(["sleep", "60"])
    us = this_owner("r.2")
    dead = Owner(
        host=us.host,
        boot=us.boot,
        pid_namespace=us.pid_namespace,
        pid=gone.pid,
        started=start_time(gone.pid),
        attempt="r.1",
    )
    assert not isinstance(storage.store(clock).claim(path, dead), Owner)
    assert storage.store(clock).claim(path, us) == dead
    gone.kill()
    gone.wait()
    assert storage.store(clock).holder(path) is None
    assert not isinstance(storage.store(clock).claim(path, us), Owner)


def test_another_process_of_the_same_number_does_not_hold_it(storage: Storage, clock: Clock) -> None:
    us = this_owner("r.1")
    before = Owner(
        host=us.host, boot=us.boot, pid_namespace=us.pid_namespace, pid=us.pid, started=us.started - 1
    )
    assert not isinstance(storage.store(clock).claim(storage.path("train"), before), Owner)
    assert not isinstance(storage.store(clock).claim(storage.path("train"), us), Owner)


@pytest.mark.parametrize("field", ["host", "boot", "pid_namespace"])
def test_a_process_that_cannot_be_seen_from_here_is_not_taken_for_gone(
    storage: Storage, clock: Clock, field: str
) -> None:
    us = this_owner()
    known = {name: getattr(us, name) for name in ("host", "boot", "pid_namespace")}
    far = Owner(**{**known, field: "another"}, pid=2**22 + 1, started=1, attempt="r.1")
    claimed_by = storage.store(clock).claim(storage.path("train"), far)
    assert not isinstance(claimed_by, Owner)
    assert storage.store(clock).claim(storage.path("train"), us) == far


def test_leases_that_were_taken_over_leave_nothing_behind(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    for n in range(4):
        store = storage.store(clock)
        if n:
            assert store.holder(path) == owner(f"r.{n - 1}")
            clock.wait(PATIENCE)
        lease = claimed(store, path, f"r.{n}")
    lease.release()
    assert storage.left() == []
    claimed(storage.store(clock), path, "r.9").release()


# Publishing under a lease


def test_a_stolen_lease_never_publishes(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    store, thief = storage.store(clock), storage.store(clock)
    lease = claimed(store, path, "r.1")
    work = store.work(path, "r.1")
    Path(work).write_text("of the one who was robbed")
    assert thief.holder(path) == owner("r.1")
    clock.wait(PATIENCE)
    other = claimed(thief, path, "r.2")
    with pytest.raises(LeaseLost) as raised:
        store.publish(lease, work, record_of(path, "r.1"))
    assert raised.value.owner == owner("r.2")
    assert lease.lost == owner("r.2")
    assert storage.store(clock).look(path, SAME).state is ArtifactState.ABSENT
    lease.release()
    other.check()
    theirs = thief.work(path, "r.2")
    Path(theirs).write_text("of the other")
    record = thief.publish(other, theirs, record_of(path, "r.2"))
    assert Path(thief.fetch(record)).read_text() == "of the other"


def test_a_beat_sees_who_took_the_lease(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    store, thief = storage.store(clock), storage.store(clock)
    lease = claimed(store, path, "r.1")
    thief.holder(path)
    clock.wait(PATIENCE)
    claimed(thief, path, "r.2")
    assert lease.lost is None
    store.beat()
    assert lease.lost == owner("r.2")


def test_who_was_robbed_takes_what_the_other_made(storage: Storage, clock: Clock) -> None:
    path = storage.path("train")
    store, thief = storage.store(clock), storage.store(clock)
    lease = claimed(store, path, "r.1")
    work = store.work(path, "r.1")
    Path(work).write_text("late")
    thief.holder(path)
    clock.wait(PATIENCE)
    winner = made(thief, path, "r.2", "in time")
    try:
        assert store.publish(lease, work, record_of(path, "r.1")) == winner
    except LeaseLost:
        pass
    lease.release()
    seen = storage.store(clock).look(path, SAME)
    assert seen.record == winner
    assert Path(store.fetch(winner)).read_text() == "in time"


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


# A storage that is out for a while


def test_an_outage_ends_nothing_and_the_unchanged_lease_is_ours_after_it(
    storage: Storage, clock: Clock
) -> None:
    path, store = storage.path("train"), storage.store(clock)
    made(store, storage.path("before"))
    lease = claimed(store, path, "r.1")
    with storage.out():
        for _ in range(5):
            clock.wait(40)
            store.beat()
            assert lease.lost is None
        with pytest.raises(DiskError):
            lease.check()
    lease.check()
    work = store.work(path, "r.1")
    Path(work).write_text("kept")
    record = store.publish(lease, work, record_of(path, "r.1"))
    lease.release()
    assert store.look(path, SAME).record == record


def test_after_an_outage_a_lease_that_others_took_is_lost(storage: Storage, clock: Clock) -> None:
    path, store, thief = storage.path("train"), storage.store(clock), storage.store(clock)
    made(store, storage.path("before"))
    lease = claimed(store, path, "r.1")
    thief.holder(path)
    with storage.out():
        clock.wait(100)
    other = claimed(thief, path, "r.2")
    with pytest.raises(LeaseLost):
        lease.check()
    lease.release()
    other.check()


def test_after_an_outage_the_first_beat_counts_again(storage: Storage, clock: Clock) -> None:
    path, store, waiter = storage.path("train"), storage.store(clock), storage.store(clock)
    made(store, storage.path("before"))
    lease = claimed(store, path, "r.1")
    waiter.holder(path)
    with storage.out():
        clock.wait(PATIENCE)
        store.beat()
    store.beat()
    assert waiter.claim(path, owner("r.2")) == owner("r.1")
    lease.check()


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


# Several processes


def test_of_processes_that_race_for_many_artifacts_one_makes_each(
    storage: Storage, clock: Clock, tmp_path: Path
) -> None:
    if not storage.forks:
        pytest.skip("its client does not survive a fork")
    count = 40
    log = tmp_path / "made"
    children = [forked(lambda n=n: _race(storage, count, log, n)) for n in range(3)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    lines = log.read_text().split()
    assert sorted(lines) == sorted({f"{n}" for n in range(count)})
    store = storage.store(clock)
    assert len(list(store.records(storage.path("")))) == count
    assert storage.left() == []


def _race(storage: Storage, count: int, log: Path, attempt: int) -> None:
    store = storage.store(Clock())
    waiting = [f"{n}" for n in range(count)]
    while waiting:
        name = waiting.pop(0)
        path = storage.path(name)
        lease = store.claim(path, this_owner(f"r.{attempt}"))
        if isinstance(lease, Owner):
            waiting.append(name)
            continue
        if store.look(path, SAME, mend=True).state is not ArtifactState.COMPLETE:
            work = store.work(path, f"r.{attempt}")
            Path(work).write_text(name)
            fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(fd, f"{name}\n".encode())
            os.close(fd)
            store.publish(lease, work, record_of(path, f"r.{attempt}"))
        lease.release()
