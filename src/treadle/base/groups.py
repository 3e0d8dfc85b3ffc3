"""Processes of attempts as the kernel shows them: who lives, and how to end them without hitting others.

Everything is read from /proc (proc(5)); where there is none (macOS) nothing is known and nothing is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

MARK = "TREADLE_ATTEMPT"
_HARD = 5.0  # seconds that a killed process gets to be gone


class Process(Struct, frozen=True, gc=False):
    """One line of /proc/<pid>/stat: its parent, group, start time in ticks, resident memory in bytes."""

    pid: int
    state: str
    parent: int
    group: int
    started: int
    resident: int

    @property
    def alive(self) -> bool:
        """Not merely an entry that nobody has waited for yet."""
        return self.state not in "ZX"


def read_process(pid: int) -> Process | None:
    """What the kernel tells of a process; None when it is gone (or there is no /proc)."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            line = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:  # gone, or gone between opening and reading (ESRCH)
        return None
    words = line[line.rindex(b")") + 2 :].split()  # the name, in brackets, may hold anything
    parent, group, started, pages = (int(words[at]) for at in (1, 2, 19, 21))
    return Process(pid, chr(words[0][0]), parent, group, started, pages * _PAGE)


_PAGE = os.sysconf("SC_PAGE_SIZE")


def start_time(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 when unknown."""
    found = read_process(pid)
    return found.started if found else 0


def process_gone(pid: int, started: int) -> bool:
    """Whether the process that started then has ended (another may have its number now).

    Without a known start time any living process of that number counts as this one.
    """
    if not os.path.isdir("/proc/self"):
        return _no_such(pid)
    found = read_process(pid)
    return found is None or not found.alive or (started != 0 and found.started != started)


def _no_such(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def all_processes() -> Iterator[Process]:
    """Every process of our pid namespace, in the order of their numbers."""
    for pid in sorted(int(name) for name in _listed() if name.isdigit()):
        found = read_process(pid)
        if found:
            yield found


def _listed() -> list[str]:
    try:
        return os.listdir("/proc")
    except OSError:
        return []


def live_members(group: int) -> list[Process]:
    """The living processes of a process group."""
    return [one for one in all_processes() if one.group == group and one.alive]


def attempts_alive(run: str | None) -> list[tuple[int, int, int, str]]:
    """Living processes of attempts of a run (None: of any run), found by their environment.

    Each as (pid, process group, start time, value of TREADLE_ATTEMPT). What other users own cannot be
    read and is left out; so is this process itself, and what stands above it.
    """
    wanted = f"{MARK}=" if run is None else f"{MARK}={run}."
    above = _ancestors()
    found = []
    for one in all_processes():
        if one.alive and one.pid not in above:
            value = _mark_of(one.pid)
            if value.startswith(wanted):
                found.append((one.pid, one.group, one.started, value[len(MARK) + 1 :]))
    return found


def _ancestors() -> set[int]:
    """We ourselves and the processes that we came from: a run inside of an attempt is no orphan."""
    pid = os.getpid()
    found = {pid}
    while (one := read_process(pid)) and one.parent not in found:
        pid = one.parent
        found.add(pid)
    return found


def _mark_of(pid: int) -> str:
    """`TREADLE_ATTEMPT=...` from the environment that a process was started with, or an empty text."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = b"\0" + file.read()
    except OSError:
        return ""
    at = environ.rfind(f"\0{MARK}=".encode())
    if at < 0:
        return ""
    end = environ.find(b"\0", at + 1)
    return environ[at + 1 : end if end >= 0 else None].decode(errors="replace")


def kill_groups(groups: Sequence[tuple[int, int, str]], grace: float) -> list[int]:
    """End process groups of attempts: SIGTERM, at most `grace` seconds, SIGKILL; returns once they are gone.

    Each group as (process group, start time of its leader or 0, value of TREADLE_ATTEMPT or empty). A
    process is touched only if it is proven to be of the attempt: its environment says so, or the leader
    of its group is the one that started then. Returns the groups that are still there after all (hung
    in the kernel), or could not be seen.
    """
    if not os.path.isdir("/proc/self"):
        return [group for group, _, _ in groups if not _no_such(group)]
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, _HARD)):
        deadline = time.monotonic() + patience
        told: set[tuple[int, int]] = set()
        pause = 0.002
        while members := _proven(groups):
            for one in members:  # again and again: they may start others meanwhile
                if (one.pid, one.started) not in told:
                    told.add((one.pid, one.started))
                    _send(one, number)
            if time.monotonic() >= deadline:
                break
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        else:
            return []
    return sorted({one.group for one in members})


def _proven(groups: Sequence[tuple[int, int, str]]) -> list[Process]:
    """The living processes that belong to these groups beyond doubt."""
    processes = list(all_processes())
    leaders = {one.pid: one.started for one in processes}
    sure = {group for group, started, _ in groups if started and leaders.get(group) == started}
    values = {f"{MARK}={value}" for _, _, value in groups if value}
    above = _ancestors()
    return [
        one
        for one in processes
        if one.alive
        and one.pid not in above
        and (one.group in sure or (values and _mark_of(one.pid) in values))
    ]


def _send(target: Process, number: int) -> None:
    """Signal exactly this process: through a descriptor, so that its number cannot pass to another."""
    try:
        if not hasattr(os, "pidfd_open"):
            if start_time(target.pid) == target.started:
                os.kill(target.pid, number)
            return
        fd = os.pidfd_open(target.pid)
    except OSError:
        return
    try:
        if start_time(target.pid) == target.started:
            signal.pidfd_send_signal(fd, number)
            if number == signal.SIGTERM:
                signal.pidfd_send_signal(fd, signal.SIGCONT)  # a stopped one would not hear it
    except OSError:
        pass
    finally:
        os.close(fd)


def end_stragglers(value: str) -> None:
    """SIGKILL what an attempt left in other process groups (TREADLE_ATTEMPT is `value`); does not wait."""
    for one in _proven([(0, 0, value)]):
        _send(one, signal.SIGKILL)
