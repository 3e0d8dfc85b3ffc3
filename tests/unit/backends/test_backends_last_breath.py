"""Workers end with their driver: by the kernel, or by a thread where the kernel does not do it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from treadle.backends.last_breath import Lifeline

CHILD = """
import fcntl, os, sys, time
if sys.argv[1] == "thread":
    del fcntl.F_SETSIG
os.setpgid(0, 0)
if sys.argv[1] == "late":
    print("ready", flush=True)
    time.sleep(0.2)
from treadle.backends.last_breath import end_with_driver
end_with_driver()
print("ready" if sys.stdin.read() == "" else "not empty", flush=True)
time.sleep(60)
"""


@pytest.fixture
def child(request):
    started = []

    def start(how: str, stdin: str) -> subprocess.Popen[str]:
        with open(stdin) as given:
            argv = [sys.executable, "-c", CHILD, how]
            started.append(subprocess.Popen(argv, stdin=given, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "ready\n"
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.parametrize("how", ["kernel", "thread", "late"])
def test_the_end_of_the_driver_is_the_end_of_the_worker(child, how):
    line = Lifeline()
    process = child(how, line.stdin)
    line.close()
    assert process.wait(30) == -signal.SIGKILL


def test_a_worker_without_a_driver_lives(child):
    process = child("kernel", os.devnull)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
