"""Putting a program in the place of this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

BECOME = """
import os, signal, sys
from treadle.base.proc import become
for number in map(int, sys.argv[2].split(",")):
    signal.signal(number, signal.SIG_IGN)
become(sys.argv[3:], env={"PATH": os.environ["PATH"], "ONLY": "this"}, cwd=sys.argv[1])
"""


def run(*argv: str, cwd: str, ignored: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BECOME, cwd, ignored, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_is_the_same_process_with_another_program_folder_and_environment(tmp_path):
    process = run("env", cwd=str(tmp_path), ignored=str(int(signal.SIGUSR1)))
    out, _ = process.communicate(timeout=30)
    assert sorted(line.partition("=")[0] for line in out.splitlines()) == ["ONLY", "PATH"]
    process = run("sh", "-c", "echo $$; pwd; exit 7", cwd=str(tmp_path), ignored=str(int(signal.SIGUSR1)))
    out, _ = process.communicate(timeout=30)
    assert out == f"{process.pid}\n{tmp_path}\n"
    assert process.returncode == 7


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_its_signals_are_as_new_but_for_those_that_a_shell_ignores_on_purpose(tmp_path):
    ignored = ",".join(
        str(int(one)) for one in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE)
    )
    out, _ = run("grep", "SigIgn", "/proc/self/status", cwd=str(tmp_path), ignored=ignored).communicate()
    mask = int(out.split()[1], 16)
    assert [number for number in range(1, 32) if mask >> (number - 1) & 1] == [signal.SIGHUP, signal.SIGINT]


def test_a_program_that_is_not_there_is_told_by_name(tmp_path):
    process = run("no-such-program", cwd=str(tmp_path), ignored="10")
    _, err = process.communicate(timeout=30)
    assert "FileNotFoundError" in err
    assert "no-such-program" in err
