"""The text that makes an environment, run by a real bash: its lock, its end, what it leaves alone."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from treadle.rules.environment.setup import making

TOOLS = ("bash", "cat", "env", "mkdir", "mv", "perl", "rm", "sh", "uname")


def run(place: Path, *lines: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Make `place` by these lines, as a task would."""
    made = making(
        "env::x", str(place), "probe", "digest", lines or (f"mkdir -p {shlex.quote(str(place))}/probe",)
    )
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{made.text}"],
        env={**os.environ, "PATH": path or os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "deep down" / "the place"


def test_it_is_made_and_the_second_time_found(place):
    assert run(place).returncode == 0
    again = run(place, "exit 9")
    assert again.returncode == 0
    assert "is made already" in again.stdout


def test_without_flock_perl_takes_the_lock(place, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, name
        (tools / name).symlink_to(found)
    assert run(place, path=str(tools)).returncode == 0
    assert "is made already" in run(place, path=str(tools)).stdout


def test_lines_that_fail_fail_the_making_and_leave_nothing_that_passes_as_ready(place):
    done = run(place, f"mkdir -p {shlex.quote(str(place))}/probe", "false", "true")
    assert done.returncode != 0
    assert run(place).stdout.count("making") == 1


def test_what_lacks_its_probe_is_an_error(place):
    done = run(place, f"mkdir -p {shlex.quote(str(place))}")
    assert done.returncode == 1
    assert "was made, but lacks probe" in done.stderr


def test_what_was_there_before_is_left_alone(place):
    place.mkdir(parents=True)
    (place / "letter").write_text("dear")
    assert "was not made by treadle" in run(place).stderr
    assert (place / "letter").read_text() == "dear"


def test_an_environment_that_was_moved_is_made_again(place):
    assert run(place).returncode == 0
    other = place.parent / "other"
    for suffix in ("", ".treadle-lock", ".treadle-ready"):
        (place.parent / f"{place.name}{suffix}").rename(f"{other}{suffix}")
    (other / "old").write_text("")
    assert "making" in run(other).stdout
    assert not (other / "old").exists()


def test_half_of_one_is_made_again(place):
    assert run(place).returncode == 0
    (place.parent / f"{place.name}.treadle-ready").unlink()
    (place / "old").write_text("")
    assert "making" in run(place).stdout
    assert not (place / "old").exists()
