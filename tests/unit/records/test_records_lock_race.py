"""Real processes race for one lock, and are killed with it: never two holders at one time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from records_story import fresh

from treadle.records.lock import acquire

RACER = """
import os, random, sys, time
from treadle.base.layout import StateFolder
from treadle.records.lock import acquire

class Fast:  # real time, but the steps between two looks are short, so that the race is one
    now, monotonic = staticmethod(time.time), staticmethod(time.monotonic)
    def sleep(self, seconds): time.sleep(random.random() * 0.002)

state, log, rounds, suicidal = StateFolder(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1"
fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
guard = log + ".guard"
for _ in range(rounds):
    lock = acquire(state, wait=True, clock=Fast())
    try:
        os.close(os.open(guard, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        os.write(fd, b"two holders\\n")
    lock.check()
    os.write(fd, b"%d held\\n" % os.getpid())
    os.unlink(guard)
    if suicidal and random.random() < 0.5:
        os.kill(os.getpid(), 9)
    lock.release()
"""


def race(tmp_path: Path, racers: int, rounds: int, *, suicidal: bool) -> list[str]:
    """Let them race, one in the place of each that killed itself; what they wrote while they held it."""
    state, log = fresh(tmp_path), tmp_path / "log"
    argv = [sys.executable, "-c", RACER, state.workdir, str(log), str(rounds), "1" if suicidal else "0"]
    running = [subprocess.Popen(argv, stderr=subprocess.PIPE) for _ in range(racers)]
    substitutes = 8 if suicidal else 0
    try:
        while running:
            process = running.pop(0)
            told = process.communicate()[1]
            assert process.returncode in (0, -signal.SIGKILL), told
            if process.returncode and substitutes:
                substitutes -= 1
                running.append(subprocess.Popen(argv, stderr=subprocess.PIPE))
    finally:
        for process in running:
            process.kill()
            process.communicate()
    acquire(state).release()
    assert [name for name in os.listdir(state.root) if name.startswith("lock")] == []
    return log.read_text().splitlines()


def test_of_many_processes_exactly_one_holds_the_lock_at_a_time(tmp_path: Path) -> None:
    lines = race(tmp_path, 3, 40, suicidal=False)
    assert "two holders" not in lines
    assert len(lines) == 3 * 40


def test_of_many_takers_of_a_dead_holders_lock_exactly_one_gets_it(tmp_path: Path) -> None:
    lines = race(tmp_path, 4, 6, suicidal=True)
    assert "two holders" not in lines
    assert len(lines) >= 4
