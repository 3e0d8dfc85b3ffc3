"""The contract of `ArtifactStore`: what every kind of storage promises of leases, also while it is out."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from artifact_stores import Clock, Storage, claimed, forked, made, owner, record_of

from treadle.base.errors import DiskError
from treadle.base.proc import start_time
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactState, Owner
from treadle.steps.store import ArtifactStore, Lease, LeaseLost

SAME = "a" * 32
PATIENCE = 90.0


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
