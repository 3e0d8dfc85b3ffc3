"""What a killed run left: processes are ended, and what they made is set aside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from treadle.base.errors import LockError
from treadle.base.proc import boot_id, host, live_members, start_time
from treadle.engine.orphans import end_orphans
from treadle.engine.slate import Moved
from treadle.records.event import FileRecord
from treadle.records.flight import Interrupted

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
RUN = f"20260101T000000Z-{os.getpid() % 65536:04x}"


def attempt(**fields: Any) -> Interrupted:
    given = {
        "run": RUN, "task": "a", "key": "a", "attempt": 1, "n": 7, "name": "t-7", "backend": "local",
        "host": host(), "boot": boot_id(), **fields,
    }  # fmt: skip
    return Interrupted(**given)


def orphan(text: str, mark: str = f"{RUN}.7") -> subprocess.Popen[bytes]:
    """A process group of an attempt; it is up once it has written a line."""
    env = {**os.environ, "TREADLE_ATTEMPT": mark}
    process = subprocess.Popen(["sh", "-c", text], env=env, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@needs_proc
@pytest.mark.parametrize("journaled", [True, False])
def test_an_orphan_is_ended_whether_or_not_its_start_was_journaled(journaled: bool) -> None:
    process = orphan("sh -c 'echo; while :; do :; done' & wait")  # in an exec, an environment is not seen
    known = {"job": str(process.pid), "started": start_time(process.pid)} if journaled else {}
    ended = end_orphans([attempt(**known)], "/")
    assert process.wait() != 0
    assert not live_members(process.pid)
    assert (ended.attempts, ended.alive) == (1, 2)


@needs_proc
def test_an_orphan_that_ignores_sigterm_is_killed_after_the_grace() -> None:
    process = orphan("trap '' TERM; echo; while :; do sleep 1; done")
    end_orphans([attempt(job=str(process.pid), started=start_time(process.pid))], "/", grace=0.2)
    assert process.wait() == -9


@needs_proc
def test_a_process_that_only_has_the_number_of_an_orphan_is_left_alone() -> None:
    process = orphan("echo; sleep 600", mark="other.1")
    try:
        end_orphans([attempt(job=str(process.pid), started=start_time(process.pid) + 1)], "/")
        assert process.poll() is None
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_what_it_made_or_changed_is_set_aside_and_what_it_did_not_touch_stays(tmp_path: Path) -> None:
    for name in ("made", "changed", "kept"):
        (tmp_path / name).write_text(name)
    stat = (tmp_path / "kept").stat()
    before = (
        FileRecord("kept", stat.st_size, stat.st_mtime_ns, stat.st_ino),
        FileRecord("changed", 3, stat.st_mtime_ns, stat.st_ino),
    )
    one = attempt(outputs=("made", "changed", "kept"), before=before)
    ended = end_orphans([one], str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["changed.failed", "kept", "made.failed"]
    assert Moved("made", str(tmp_path / "made.failed")) in ended.moved
    assert ended.alive == 0


def test_a_resumable_attempt_keeps_what_it_made(tmp_path: Path) -> None:
    (tmp_path / "made").touch()
    end_orphans([attempt(outputs=("made",), resumable=True)], str(tmp_path))
    assert os.listdir(tmp_path) == ["made"]


@pytest.mark.parametrize("fields", [{"backend": "slurm"}, {"ended": True}])
def test_jobs_of_schedulers_and_attempts_that_had_ended_are_left_alone(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    (tmp_path / "made").touch()
    assert end_orphans([attempt(outputs=("made",), host="elsewhere", **fields)], str(tmp_path)).attempts == 0
    assert os.listdir(tmp_path) == ["made"]


def test_a_run_killed_on_another_host_stops_us_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "made").touch()
    one = attempt(outputs=("made",), host="node17")
    with pytest.raises(LockError, match="killed on node17, where a may still be at work"):
        end_orphans([one], str(tmp_path))
    assert os.listdir(tmp_path) == ["made"]
    end_orphans([one], str(tmp_path), assume_dead=True)
    assert os.listdir(tmp_path) == ["made.failed"]


@needs_proc
def test_before_the_last_boot_nothing_can_be_alive(tmp_path: Path) -> None:
    process = orphan("echo; sleep 600", mark="other.1")
    try:
        one = attempt(job=str(process.pid), started=start_time(process.pid), boot="an-earlier-boot")
        assert end_orphans([one], str(tmp_path)).alive == 0
        assert process.poll() is None
    finally:
        os.killpg(process.pid, 9)
        process.wait()
