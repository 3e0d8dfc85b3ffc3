"""The lock: held by one, told by name, taken from the dead, never from the living."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from records_story import fresh

from treadle.base.errors import DiskError, LockError
from treadle.base.layout import StateFolder
from treadle.base.proc import start_time
from treadle.records.heart import Heart
from treadle.records.lock import Lock, LockNews, Step, acquire, unlock
from treadle.records.owner import BEAT, Owner, Pulse, read_owner, this_process
from treadle.records.taker import PATIENCE


class FakeClock:
    """A clock that jumps instead of sleeping, and lets the world act after each sleep."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.acts: list[object] = []

    def now(self) -> float:
        return 1_764_413_106.0 + self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for act in self.acts:
            act()


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return fresh(tmp_path)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def left_by(state: StateFolder, **fields: object) -> Pulse:
    """A lock of a process as told: of this host and user where nothing else is said."""
    owner = msgspec.structs.replace(this_process(FakeClock(), locked=True), **fields)
    return Pulse.create(state.lock, owner, 0.0)


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leftovers(state: StateFolder) -> list[str]:
    return [name for name in os.listdir(state.root) if name.startswith("lock")]


def test_the_lock_names_its_holder_and_leaves_nothing_behind(state: StateFolder) -> None:
    lock = acquire(state)
    owner = read_owner(state.lock).owner
    assert (owner.pid, owner.uid, owner.locked) == (os.getpid(), os.getuid(), True)
    assert owner.started == start_time(os.getpid())
    assert leftovers(state) == ["lock"]
    lock.check()
    lock.release()
    lock.release()
    assert leftovers(state) == []


def test_a_live_holder_is_told_at_once_with_the_way_to_wait(state: StateFolder) -> None:
    lock = acquire(state)
    with pytest.raises(LockError) as caught:
        acquire(state)
    text = str(caught.value)
    assert caught.value.exit_code == 3
    for part in (state.workdir, lock.owner.user, lock.owner.host, str(os.getpid()), "since 20", "--wait"):
        assert part in text
    lock.check()
    assert leftovers(state) == ["lock"]


def test_waiting_lasts_until_the_holder_has_ended_and_is_said_once(
    state: StateFolder, clock: FakeClock
) -> None:
    holder, news = acquire(state), []
    clock.acts.append(lambda: clock.time > 1030 and holder.release())
    lock = acquire(state, wait=True, say=news.append, clock=clock)
    lock.check()
    assert news == [LockNews(Step.WAITING, holder.owner)]
    assert 1030 < clock.time < 1033


def test_the_lock_of_a_process_that_is_gone_is_taken_at_once_and_said(
    state: StateFolder, clock: FakeClock
) -> None:
    stale = left_by(state, pid=dead_process())
    news: list[LockNews] = []
    lock = acquire(state, say=news.append, clock=clock)
    assert news == [LockNews(Step.TAKEN, stale.owner)]
    assert clock.time == 1000.0
    lock.check()
    assert leftovers(state) == ["lock"]


def test_a_recycled_process_id_is_not_taken_for_the_holder(state: StateFolder) -> None:
    left_by(state, pid=os.getpid(), started=start_time(os.getpid()) - 1)
    acquire(state).check()


def test_a_holder_that_was_killed_and_not_waited_for_is_gone(state: StateFolder) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        left_by(state, pid=child.pid, started=start_time(child.pid))
        with pytest.raises(LockError):
            acquire(state)
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the process table
        acquire(state).check()
    finally:
        child.communicate()


ELSEWHERE = [{"host": "elsewhere"}, {"boot": "another-boot"}, {"namespace": "pid:[1]"}]


@pytest.mark.parametrize("where", ELSEWHERE)
def test_a_holder_elsewhere_is_taken_over_once_its_counter_stood_still(
    state: StateFolder, clock: FakeClock, where: dict[str, str]
) -> None:
    stale = left_by(state, pid=dead_process(), **where)
    news: list[LockNews] = []
    lock = acquire(state, say=news.append, clock=clock)
    assert PATIENCE <= clock.time - 1000 <= PATIENCE + 2
    assert [one.step for one in news] == [Step.WATCHING, Step.TAKEN]
    assert news[0] == LockNews(Step.WATCHING, stale.owner, PATIENCE)
    lock.check()


def test_a_holder_elsewhere_that_lives_is_told_as_soon_as_its_counter_moves(
    state: StateFolder, clock: FakeClock
) -> None:
    holder = left_by(state, host="elsewhere")
    clock.acts.append(lambda: holder.beat(clock.time))
    with pytest.raises(LockError, match="elsewhere"):
        acquire(state, clock=clock)
    assert clock.time - 1000 < BEAT + 2


def test_a_holder_elsewhere_that_lives_is_waited_for(state: StateFolder, clock: FakeClock) -> None:
    holder = left_by(state, host="elsewhere")
    clock.acts.append(lambda: holder.beat(clock.time) if clock.time < 1500 else None)
    acquire(state, wait=True, clock=clock).check()
    assert 1500 + PATIENCE - BEAT < clock.time < 1500 + PATIENCE + 2


def test_patience_begins_anew_with_another_holder(state: StateFolder, clock: FakeClock) -> None:
    left_by(state, host="elsewhere")

    def change() -> None:
        if clock.time == 1060:
            os.unlink(state.lock)
            left_by(state, host="elsewhere", uuid="another")

    clock.acts.append(change)
    acquire(state, clock=clock)
    assert clock.time >= 1060 + PATIENCE


@pytest.mark.parametrize("where", [{}, {"host": "elsewhere"}])
def test_the_lock_of_another_user_is_left_for_unlock(
    state: StateFolder, clock: FakeClock, where: dict[str, str]
) -> None:
    left_by(state, pid=dead_process(), uid=os.getuid() + 1, user="ann", **where)
    with pytest.raises(LockError, match=r"(?s)ann on .*treadle unlock") as caught:
        acquire(state, wait=True, clock=clock)
    assert caught.value.diagnostics[0].code == "lock-left"
    assert unlock(state, clock=clock).user == "ann"
    acquire(state).check()


@pytest.mark.parametrize("content", [b"", b"\0" * 300, b'{"counter":'])
def test_a_lock_that_cannot_be_read_is_left_for_unlock(
    state: StateFolder, clock: FakeClock, content: bytes
) -> None:
    Path(state.lock).write_bytes(content)
    with pytest.raises(LockError, match="treadle unlock"):
        acquire(state, clock=clock)
    assert unlock(state, clock=clock) is not None
    assert leftovers(state) == []


# What the holder sees


def test_the_counter_moves_every_fifteen_seconds_in_place(state: StateFolder, clock: FakeClock) -> None:
    lock = acquire(state, clock=clock)
    size, inode = os.stat(state.lock).st_size, os.stat(state.lock).st_ino
    counters = []
    for _ in range(61):
        lock.beat(clock.time)
        counters.append(read_owner(state.lock).counter)
        clock.time += 1
    assert counters[0] == counters[14] == 0
    assert counters[15] == counters[29] == 1
    assert counters[60] == 4
    assert (os.stat(state.lock).st_size, os.stat(state.lock).st_ino) == (size, inode)
    assert read_owner(state.lock).owner == lock.owner


def test_the_counter_moves_while_its_holder_is_busy_with_something_else(state: StateFolder) -> None:
    pulse = Pulse.create(state.lock, this_process(FakeClock(), locked=True), time.monotonic() - BEAT)
    heart = Heart(pulse, period=0.001)
    deadline = time.monotonic() + 20
    while read_owner(state.lock).counter == 0 and time.monotonic() < deadline:
        pass
    assert heart.stop()
    assert read_owner(state.lock).counter == 1


def test_a_lock_keeps_a_thread_beating_until_it_is_released(state: StateFolder) -> None:
    before = threading.active_count()
    lock = acquire(state)
    assert threading.active_count() == before + 1
    lock.release()
    assert threading.active_count() == before


def test_a_lock_file_that_vanished_is_no_longer_ours(state: StateFolder) -> None:
    lock = acquire(state)
    os.unlink(state.lock)
    with pytest.raises(LockError, match="somebody removed it") as caught:
        lock.check()
    assert caught.value.diagnostics[0].code == "lock-lost"
    lock.release()


def test_a_lock_that_another_holds_now_is_told_and_not_released(state: StateFolder) -> None:
    lock = acquire(state)
    assert unlock(state, force=True) == lock.owner
    other = acquire(state)
    with pytest.raises(LockError, match="has it"):
        lock.check()
    lock.beat()
    lock.release()
    other.check()


def test_after_a_long_silence_the_content_is_looked_at(state: StateFolder, clock: FakeClock) -> None:
    lock = acquire(state, clock=clock)
    clock.time += 3600
    lock.check()
    data = Path(state.lock).read_bytes()
    with open(state.lock, "r+b") as file:  # as an NFS client might see it: another lock, the old inode
        file.write(data.replace(lock.owner.uuid.encode(), b"0" * 32))
    with pytest.raises(LockError):
        lock.check()


def test_after_a_long_silence_release_leaves_the_lock_to_be_found_stale(
    state: StateFolder, clock: FakeClock
) -> None:
    lock = acquire(state, clock=clock)
    clock.time += PATIENCE
    lock.release()
    assert leftovers(state) == ["lock"]


# Unlock


def test_unlock_refuses_a_live_holder_here_unless_forced(state: StateFolder) -> None:
    lock = acquire(state)
    with pytest.raises(LockError, match="--force"):
        unlock(state)
    lock.check()
    assert unlock(state, force=True) == lock.owner
    assert leftovers(state) == []


def test_unlock_takes_away_a_lock_from_elsewhere_without_waiting(
    state: StateFolder, clock: FakeClock
) -> None:
    left_by(state, host="elsewhere")
    assert unlock(state, clock=clock).host == "elsewhere"
    assert clock.time == 1000.0


def test_unlock_finds_nothing_where_there_is_no_lock(tmp_path: Path) -> None:
    assert unlock(StateFolder(str(tmp_path))) is None


# Takers that die or are in each other's way


def claim_of(state: StateFolder, over: str, **fields: object) -> Owner:
    owner = msgspec.structs.replace(this_process(FakeClock(), locked=True), **fields)
    Pulse.create(state.lock_claim(over), owner, 0.0).close()
    return owner


def test_while_a_live_taker_holds_the_claim_nobody_else_takes_the_lock(
    state: StateFolder, clock: FakeClock
) -> None:
    stale = left_by(state, pid=dead_process())
    claim = claim_of(state, stale.owner.uuid)
    clock.acts.append(lambda: clock.time >= 1020 and os.unlink(state.lock_claim(stale.owner.uuid)))
    seen = []
    clock.acts.append(lambda: seen.append(read_owner(state.lock).owner))
    acquire(state, clock=clock).check()
    assert claim.pid == os.getpid()
    assert set(seen) == {stale.owner}
    assert clock.time >= 1020


def test_the_claims_of_takers_that_died_are_claimed_in_turn(state: StateFolder, clock: FakeClock) -> None:
    stale = left_by(state, pid=dead_process())
    first = claim_of(state, stale.owner.uuid, pid=dead_process())
    claim_of(state, first.uuid, pid=dead_process())
    acquire(state, clock=clock).check()
    assert leftovers(state) == ["lock"]
    assert clock.time == 1000.0


def test_a_taker_that_died_after_it_had_the_lock_is_itself_replaced(
    state: StateFolder, clock: FakeClock
) -> None:
    dead = left_by(state, pid=dead_process())
    claim_of(state, "the-one-before", uuid=dead.owner.uuid, pid=dead.owner.pid)
    acquire(state, clock=clock).check()
    assert leftovers(state) == ["lock"]


def test_a_lock_that_was_replaced_meanwhile_is_not_moved(state: StateFolder, clock: FakeClock) -> None:
    stale = left_by(state, pid=dead_process())
    real, calls = os.link, []

    def link(private: str, path: str) -> None:
        real(private, path)
        if not calls:
            calls.append(path)
            os.unlink(state.lock)
            left_by(state)  # a live one has it now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(LockError):
            acquire(state, clock=clock)
    assert read_owner(state.lock).owner.pid == os.getpid()
    assert calls == [state.lock_claim(stale.owner.uuid)]
    assert leftovers(state) == ["lock"]


def test_a_link_whose_answer_was_lost_counts(state: StateFolder) -> None:
    real = os.link

    def link(private: str, path: str) -> None:
        real(private, path)
        raise FileExistsError(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", link)
        lock = acquire(state)
    lock.check()


def test_a_file_system_without_links_is_told(state: StateFolder) -> None:
    def link(private: str, path: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(DiskError, match="hard link"):
            acquire(state)
    assert leftovers(state) == []


def test_a_state_folder_that_is_not_there_is_a_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        acquire(StateFolder(str(tmp_path)))


def test_two_threads_of_one_process_do_not_share_a_lock(state: StateFolder) -> None:
    lock: Lock = acquire(state)
    with pytest.raises(LockError):
        acquire(state)
    lock.release()
    acquire(state).release()
