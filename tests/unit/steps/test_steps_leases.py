"""Leases on plain file systems: the files, and who takes them from whom in odd cases."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.base.errors import DiskError
from treadle.base.layout import ArtifactPlaces
from treadle.steps import lease_file
from treadle.steps.heartbeats import BEAT, Heartbeats, uptime
from treadle.steps.lease import LocalLease
from treadle.steps.lease_file import NOBODY, read_lease
from treadle.steps.leases import PATIENCE, Leases
from treadle.steps.owner import this_owner
from treadle.steps.record import Owner
from treadle.steps.store import LeaseLost


class Clock:
    def __init__(self) -> None:
        self.shows = 50.0

    def __call__(self) -> float:
        return self.shows


class World:
    """One artifact, one clock, and as many observers as a test wants."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.places = ArtifactPlaces(str(folder / "train"))

    def leases(self) -> Leases:
        return Leases(self.clock, Heartbeats(self.clock, threaded=False))

    def claim(self, attempt: str, leases: Leases | None = None) -> LocalLease | Owner:
        return (leases or self.leases()).claim(self.places, far(attempt))

    def held(self, attempt: str, leases: Leases | None = None) -> LocalLease:
        lease = self.claim(attempt, leases)
        assert isinstance(lease, LocalLease)
        return lease

    def patient(self) -> Leases:
        """An observer who has seen the lease not move for long enough."""
        leases = self.leases()
        leases.holder(self.places)
        self.clock.shows += PATIENCE
        return leases

    def files(self) -> list[str]:
        return sorted(os.listdir(self.places.folder))


def at_making(monkeypatch: pytest.MonkeyPatch, path: str, act: Callable[[], None]) -> None:
    """Let `act` happen once, at the moment before the file `path` is made, in whatever way."""
    create, link = os.open, os.link

    def opened(where: str, flags: int, *rest: int) -> int:
        if where == path and flags & os.O_CREAT:
            monkeypatch.undo()
            act()
        return create(where, flags, *rest)

    def linked(one: str, other: str, **known: Any) -> None:
        if other == path:
            monkeypatch.undo()
            act()
        link(one, other, **known)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "link", linked)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def far(attempt: str) -> Owner:
    return Owner(host="far", boot="b", pid=1, attempt=attempt)


def test_the_first_is_lease_1_and_a_takeover_makes_the_next_one(world: World) -> None:
    numbers = [world.held(f"r.{n}", world.patient()).number for n in range(4)]
    assert numbers == [1, 2, 3, 4]
    assert world.files() == [f"train.lease.{n}" for n in numbers]


def test_a_lease_tells_its_owner_in_its_file(world: World) -> None:
    world.held("r.1")
    found = read_lease(world.places.lease(1))
    assert found is not None
    assert (found.owner, found.counter, found.free) == (far("r.1"), 0, False)


def test_a_beat_is_due_every_30_seconds_and_moves_the_counter_in_place(world: World) -> None:
    lease = world.held("r.1")
    inode = os.stat(world.places.lease(1)).st_ino
    seen = []
    for _ in range(8):
        world.clock.shows += BEAT / 2
        lease.beat(world.clock())
        found = read_lease(world.places.lease(1))
        assert found is not None
        seen.append(found.counter)
    assert seen == [0, 1, 1, 2, 2, 3, 3, 4]
    assert os.stat(world.places.lease(1)).st_ino == inode


def test_where_files_cannot_be_linked_into_being_leases_work_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_file, "_TMPFILE", 0)
    lease = world.held("r.1")
    assert world.claim("r.2") == far("r.1")
    other = world.held("r.2", world.patient())
    assert (lease.number, other.number) == (1, 2)
    other.release()
    assert world.files() == []


def test_a_lease_that_is_not_written_yet_has_an_unknown_owner_for_90_seconds(world: World) -> None:
    os.makedirs(world.places.folder)
    Path(world.places.lease(1)).write_text("")
    waiter = world.leases()
    assert world.claim("r.1", waiter) == NOBODY
    world.clock.shows += PATIENCE - 1
    assert world.claim("r.1", waiter) == NOBODY
    world.clock.shows += 1
    world.held("r.1", waiter).release()
    assert world.files() == []


def test_what_is_left_of_a_chain_without_a_beginning_is_in_nobodys_way(world: World) -> None:
    """Its holder was killed while removing it, from the first on."""
    for n in range(4):
        world.held(f"r.{n}", world.patient())
    os.unlink(world.places.lease(1))
    os.unlink(world.places.lease(2))
    first = world.held("r.4")
    first.check()
    assert (first.number, world.claim("r.5")) == (1, far("r.4"))
    second = world.held("r.5", world.patient())
    assert second.number == 2
    with pytest.raises(LeaseLost):
        first.check()
    third = world.held("r.6", world.patient())
    assert third.number == 5  # 3 and 4 are there, of the old chain
    assert world.claim("r.7") == far("r.6")
    with pytest.raises(LeaseLost):
        second.check()
    third.release()
    assert world.files() == []


def test_who_comes_too_late_robs_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It saw a silent lease, which was taken over, given back and made anew before it made its own."""
    world.held("r.1")
    late, other = world.leases(), world.leases()
    late.holder(world.places)
    other.holder(world.places)
    world.clock.shows += PATIENCE
    held: list[LocalLease] = []

    def meanwhile() -> None:
        world.held("r.2", other).release()
        held.append(world.held("r.3"))

    at_making(monkeypatch, world.places.lease(2), meanwhile)
    assert world.claim("r.4", late) == far("r.3")
    held[0].check()
    assert world.files() == ["train.lease.1", "train.lease.2"]
    assert world.claim("r.5") == far("r.3")
    held[0].release()
    assert world.files() == []


def test_of_a_beat_and_a_takeover_the_takeover_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = world.held("r.1")
    thief = world.patient()

    def beat() -> None:
        lease.beat(world.clock())  # the thief has looked, and has not made its file yet
        assert lease.lost is None

    at_making(monkeypatch, world.places.lease(2), beat)
    other = world.held("r.2", thief)
    other.check()
    with pytest.raises(LeaseLost):
        lease.check()


def test_a_release_after_a_long_silence_removes_nothing_that_may_be_taken(world: World) -> None:
    lease = world.held("r.1")
    thief = world.patient()
    lease.release()
    assert world.files() == ["train.lease.1"]
    other = world.held("r.2", thief)
    assert other.number == 2
    other.check()
    other.release()
    assert world.files() == []


def test_a_chain_that_is_being_removed_has_no_successors(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    us = this_owner("r.1")
    dead = Owner(
        host=us.host, boot=us.boot, pid_namespace=us.pid_namespace, pid=us.pid, started=us.started - 1
    )
    world.leases().claim(world.places, dead)
    lease = world.held("r.2")
    assert lease.number == 2
    unlink = os.unlink
    between: list[LocalLease | Owner] = []

    def slow(path: str) -> None:
        unlink(path)
        if not between:
            monkeypatch.undo()
            between.append(world.claim("r.3"))

    monkeypatch.setattr(os, "unlink", slow)
    lease.release()
    holders = [one for one in (*between, world.claim("r.4")) if isinstance(one, LocalLease)]
    assert len(holders) == 1
    holders[0].check()


def test_a_holder_whose_clock_is_slow_leaves_the_lease_to_who_took_it(world: World) -> None:
    lease = world.held("r.1")
    fast = Clock()
    thief = Leases(fast, Heartbeats(fast, threaded=False))
    thief.holder(world.places)
    fast.shows += PATIENCE
    other = world.held("r.2", thief)
    lease.release()
    other.check()
    assert world.files() == ["train.lease.1", "train.lease.2"]


def test_a_lease_that_took_too_long_to_make_is_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have seen a torn one in its place, and taken it for dead."""

    def sleep() -> None:
        world.clock.shows += PATIENCE

    at_making(monkeypatch, world.places.lease(1), sleep)
    lease = world.held("r.1")
    assert lease.number == 2
    lease.check()
    lease.release()
    assert world.files() == []


def test_a_lease_that_was_lost_is_left_alone_by_its_release(world: World) -> None:
    lease = world.held("r.1")
    other = world.held("r.2", world.patient())
    lease.beat(world.clock())
    assert lease.lost == far("r.2")
    lease.release()
    other.check()
    assert world.files() == ["train.lease.1", "train.lease.2"]


def test_a_late_release_does_not_take_the_lease_of_another(world: World) -> None:
    """It does not know yet that it was robbed."""
    lease = world.held("r.1")
    other = world.held("r.2", world.patient())
    lease.release()
    other.check()
    other.release()
    third = world.held("r.3")
    assert third.number == 1
    lease.release()
    other.release()
    third.check()


def test_who_was_robbed_by_one_who_is_done_by_now_has_lost_to_nobody(world: World) -> None:
    lease = world.held("r.1")
    world.held("r.2", world.patient()).release()
    with pytest.raises(LeaseLost) as raised:
        lease.check()
    assert raised.value.owner is None
    assert lease.lost is not None


def test_who_was_robbed_sees_who_has_it_now(world: World) -> None:
    lease = world.held("r.1")
    world.held("r.2", world.patient()).release()
    world.held("r.3")
    with pytest.raises(LeaseLost) as raised:
        lease.check()
    assert raised.value.owner in (far("r.3"), None)


def test_a_lease_that_cannot_be_removed_is_said_to_be_free(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = world.held("r.1")

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "unlink", refuse)
    lease.release()
    monkeypatch.undo()
    assert world.files() == ["train.lease.1"]
    assert world.leases().holder(world.places) is None
    world.held("r.2").release()
    assert world.files() == []


def hammer(folder: Path, seed: int, rounds: int) -> None:
    """Take the lease and give it back, again and again; now and then die holding it, or while removing it."""
    dice = random.Random(seed)
    places = ArtifactPlaces(str(folder / "train"))
    leases = Leases(uptime, Heartbeats(threaded=False))
    inside = folder / "inside"
    for _ in range(rounds):
        lease = leases.claim(places, this_owner(f"r.{seed}"))
        if isinstance(lease, Owner):
            continue
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where another is inside
        if dice.random() < 0.3:
            time.sleep(0)
        lease.check()
        os.unlink(inside)
        fate = dice.random()
        if fate < 0.02:
            os._exit(0)
        if fate < 0.04 and lease.number > 1:
            os.unlink(places.lease(1))  # killed after the first step of its release
            os._exit(0)
        lease.release()


def test_processes_that_die_and_take_over_are_never_two_at_a_time(tmp_path: Path) -> None:
    running = set()
    for seed in range(24):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                hammer(tmp_path, seed, 400)
                code = 0
            finally:
                os._exit(code)
        running.add(child)
        if len(running) >= 4:
            ended, status = os.wait()
            running.discard(ended)
            assert status == 0
    assert [os.waitpid(child, 0)[1] for child in sorted(running)] == [0] * len(running)
    lease = Leases(uptime, Heartbeats(threaded=False)).claim(
        ArtifactPlaces(str(tmp_path / "train")), this_owner("r.last")
    )
    assert isinstance(lease, LocalLease)


def test_something_odd_in_its_place_is_said(world: World) -> None:
    os.makedirs(world.places.folder)
    os.symlink("nowhere", world.places.lease(1))
    with pytest.raises(DiskError, match="neither be read nor made"):
        world.claim("r.1")
    os.unlink(world.places.lease(1))
    os.mkdir(world.places.lease(1))
    with pytest.raises(DiskError, match="read the lease"):
        world.claim("r.1")


def test_the_first_lease_starts_the_thread_and_there_is_one_for_all(world: World) -> None:
    heart = Heartbeats()
    leases = Leases(uptime, heart)
    assert heart._thread is None
    first = leases.claim(world.places, far("r.1"))
    thread = heart._thread
    assert thread is not None
    assert thread.daemon
    second = leases.claim(ArtifactPlaces(f"{world.places.path}-2"), far("r.1"))
    assert heart._thread is thread
    for lease in (first, second):
        assert isinstance(lease, LocalLease)
        lease.release()
    assert heart._held == {}


def test_a_forked_child_does_not_beat_for_its_parent(world: World) -> None:
    heart = Heartbeats(world.clock, threaded=False)
    lease = Leases(world.clock, heart).claim(world.places, far("r.1"))
    assert heart._held
    heart.begin_anew()  # what a fork calls
    world.clock.shows += BEAT
    heart.beat()
    found = read_lease(world.places.lease(1))
    assert found is not None
    assert found.counter == 0
    assert isinstance(lease, LocalLease)


def test_uptime_only_grows() -> None:
    assert 0 < uptime() <= uptime()
