"""The short slice: asked for by one thread, and not passed on to what it starts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SLICE = re.compile(r"^se\.slice\s*:\s*(\d+)", re.MULTILINE)

TELL = """
import os, re, subprocess, sys
from pathlib import Path
from treadle.base.waking import wake_soon

def show():
    print(re.search(r"^se\\.slice\\s*:\\s*(\\d+)", Path("/proc/self/sched").read_text(), re.M)[1])

show()
if sys.argv[1] != "0":
    os.nice(int(sys.argv[1]))
print(wake_soon())
show()
sys.stdout.flush()
subprocess.run(["grep", "^se.slice", "/proc/self/sched"])
print(os.getpriority(os.PRIO_PROCESS, 0))
"""


def asked(nice: int = 0) -> list[str]:
    done = subprocess.run([sys.executable, "-c", TELL, str(nice)], capture_output=True, text=True, check=True)
    return [line.split(":")[-1].strip() for line in done.stdout.splitlines()]


@pytest.fixture(autouse=True)
def slices() -> None:
    """Since Linux 6.12 a thread may ask for a slice, and can be seen to have it."""
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    shown = Path("/proc/self/sched")
    if release < (6, 12) or not shown.exists() or not SLICE.search(shown.read_text()):
        pytest.skip("this system shows no slices")


def test_what_is_started_has_the_usual_slice_again() -> None:
    usual, took, own, child, nice = asked()
    assert took == "True"
    assert int(own) == 400_000 < int(usual)
    assert child == usual
    assert nice == "0"


def test_one_that_gives_way_to_others_still_does() -> None:
    _, took, own, _, nice = asked(5)
    assert (took, own, nice) == ("True", "400000", "5")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root goes before others")
def test_one_that_goes_before_others_is_left_alone_for_its_children_would_not() -> None:
    usual, took, own, child, nice = asked(-5)
    assert (took, nice) == ("False", "-5")
    assert own == child == usual
