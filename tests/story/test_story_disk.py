"""Disks that refuse: read-only, full, failing at any one moment, or gone; what was recorded is not lost."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import subprocess
from contextlib import suppress

import pytest
from story_folder import TREADLE
from story_trouble import mortal, none_left

from mounts import Mount, small_disk
from waiting import until

FLOW = """
[[rules]]
name = "first"
input = ["in.txt"]
output = ["first.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "second"
input = ["first.txt"]
output = ["second.txt"]
shell = "touch begun; until test -e go; do sleep 0.02; done; cat {input} > {output}"
"""


@pytest.fixture
def flow(folder):
    folder.flow(FLOW)
    folder.write("in.txt", "in\n")
    return folder


def fill(folder) -> pathlib.Path:
    """Take all the space that is left."""
    hog = folder / "hog"
    with open(hog, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while file.write(b"x" * size):
                    pass
    assert os.statvfs(hog).f_bavail == 0
    return hog


# Read-only


def test_a_read_only_folder_is_refused_by_name_and_can_still_be_looked_at(flow):
    os.chmod(flow.path, 0o555)
    try:
        said = flow.treadle("run", exits=3, preexec_fn=mortal).stderr
        assert str(flow.path) in said
        assert "Permission denied" in said
        plan = flow.treadle("plan", preexec_fn=mortal)
        assert "2 tasks of 2 will run" in plan.stderr
    finally:
        os.chmod(flow.path, 0o755)
    assert not (flow / ".treadle").exists()


def test_records_that_may_not_be_written_are_refused_by_name(flow):
    flow.write("go", "")
    flow.treadle("run")
    os.chmod(flow / ".treadle", 0o555)
    try:
        said = flow.treadle("run", exits=3, preexec_fn=mortal).stderr
        assert str(flow / ".treadle") in said
        assert "nothing to do" in flow.treadle("plan", preexec_fn=mortal).stderr
    finally:
        os.chmod(flow / ".treadle", 0o755)
    assert flow.run_as_previewed() == set()


def test_a_read_only_file_system_is_refused_by_name(flow, mount):
    there = mount("readonly", "--bind", str(flow.path))
    subprocess.run(["mount", "-o", "remount,bind,ro", str(there)], check=True)
    said = flow.treadle("run", "readonly/main.oxoflow", exits=3).stderr
    assert str(there) in said
    assert "Read-only file system" in said
    assert "2 tasks of 2 will run" in flow.treadle("plan", "readonly/main.oxoflow").stderr


def test_an_output_folder_that_may_not_be_written_fails_its_task_alone(flow):
    flow.write("go", "")
    flow.flow(FLOW.replace('output = ["second.txt"]', 'output = ["locked/inner/second.txt"]'))
    (flow / "locked").mkdir(mode=0o555)
    said = flow.treadle("run", exits=1, preexec_fn=mortal).stderr
    assert "locked" in said
    assert "Permission denied" in said
    os.chmod(flow / "locked", 0o755)
    assert flow.run_as_previewed() == {"second"}


# Full


def test_a_disk_that_is_full_from_the_start_is_told_and_nothing_stays_behind(folder, mount):
    disk = type(folder)(small_disk(mount, "disk", "1m"))
    disk.flow(FLOW)
    disk.write("in.txt", "in\n")
    disk.write("go", "")
    hog = fill(disk)
    said = disk.treadle("run", exits=3).stderr
    assert "No space left on device" in said
    assert str(disk.path) in said
    disk.plan()
    hog.unlink()
    assert disk.run_as_previewed() == {"first", "second"}


def test_a_task_that_fills_the_disk_waits_for_space_and_goes_on(folder, mount):
    """One look at the disk, which comes after ten seconds."""
    disk = type(folder)(small_disk(mount, "disk", "40m"))
    disk.flow(
        """
        [[rules]]
        name = "large"
        output = ["large.txt"]
        shell = "echo try >> tries; head -c 15000000 /dev/zero > {output}"
        """
    )
    fill_rest = disk / "hog"
    with open(fill_rest, "wb") as file:
        file.write(bytes(28_000_000))
    run = disk.start("run")
    disk.until("large.txt.failed")
    assert run.poll() is None
    fill_rest.unlink()
    (disk / "large.txt.failed").unlink()
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert "full" in err
    assert f"hardly anything is free on the file system of '{disk.path}" in err
    ends = [event["outcome"]["reason"] for event in disk.events() if event["event"] == "attempt_ended"]
    assert ends == ["disk"], "it burns no retry"
    assert (disk / "large.txt").stat().st_size == 15_000_000
    assert disk.run_as_previewed() == set()


def test_what_could_not_be_recorded_on_a_full_disk_is_run_again(folder, mount):
    """The journal cannot be written: nothing new starts. Whoever ends the run need not wait for space."""
    disk = type(folder)(small_disk(mount, "disk", "20m"))
    text = "cat {input} > {output}; cat /dev/zero > hog || true; touch full #" + 5000 * "x"
    disk.flow(FLOW.replace('shell = "cat {input} > {output}"', f'shell = "{text}"'))
    disk.write("in.txt", "in\n")
    disk.write("go", "")
    run = disk.start("run")
    until(lambda: "disk is full" in run.stderr.readline(), "a word about the disk")
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert run.returncode == 143, err
    none_left(disk.path)
    assert "killed" in disk.treadle("status").stdout
    disk.plan()
    assert "No space left" in disk.treadle("run", exits=3).stderr
    (disk / "hog").unlink()
    disk.flow(FLOW)
    assert disk.run_as_previewed() == {"first", "second"}
    assert disk.run_as_previewed() == set()


@pytest.mark.parametrize(("number", "first"), [(errno.ENOSPC, 1), (errno.EIO, 2)])
def test_a_disk_that_refuses_once_is_told_and_the_next_run_goes_on(folder, hosted, number, first):
    """At every second change that a run makes to the disk, up to its end."""
    words = os.strerror(number)
    for at in range(first, 200, 2):
        inner = folder.below(str(at))
        inner.flow(FLOW)
        inner.write("in.txt", "in\n")
        inner.write("go", "")
        ended = hosted.treadle(inner, "run", when="move", number=at, error=number)
        if not hosted.met:
            break  # it came to its end before
        assert ended.code in (0, 1, 3)
        assert ended.code != 3 or words in ended.err
        again = hosted.treadle(inner, "run")
        assert again.code == 0, again.err
        assert inner.read("second.txt") == "in\n"
    assert at > 30, "a run of two tasks changes the disk more often than that"


# Gone


@pytest.mark.parametrize("loss", ["records", "folder", "moved"])
def test_a_folder_that_goes_away_under_a_run_ends_it_in_words(flow, loss):
    inner = type(flow)(flow.path / "inner")
    inner.flow(FLOW)
    inner.write("in.txt", "in\n")
    run = inner.start("run")
    inner.until("begun")
    inner.write("go.later", "")
    match loss:
        case "records":
            shutil.rmtree(inner / ".treadle")
            (inner / "go.later").rename(inner / "go")
        case "folder":
            shutil.rmtree(inner.path, ignore_errors=True)
            run.terminate()
        case "moved":
            inner.path.rename(flow / "elsewhere")
            (flow / "elsewhere/go.later").rename(flow / "elsewhere/go")
    _, err = run.communicate(timeout=60)
    assert "Traceback" not in err
    assert run.returncode == 3, err
    assert "went away" in err
    none_left(inner.path)
    if loss == "records":
        assert inner.run_as_previewed() == {"first", "second"}
    elif loss == "moved":
        assert not inner.path.exists()
        moved = type(flow)(flow / "elsewhere")
        assert moved.run_as_previewed() == {"second"}
    else:
        assert not inner.path.exists()


@pytest.mark.parametrize("words", ["run main.oxoflow", "status", "plan"])
def test_a_current_folder_that_was_removed_is_told(folder, words):
    (folder / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", f"rmdir ../gone; exec '{TREADLE}' {words}"],
        cwd=folder / "gone",
        env=folder.env(),
        capture_output=True,
        text=True,
    )
    assert done.returncode in (2, 3)
    assert "Traceback" not in done.stderr
    assert done.stderr


# A full disk of private folders


def test_a_private_folder_that_fills_its_disk_is_told_of_and_makes_room(folder, mount: Mount):
    disk = small_disk(mount, "node", "24m")
    folder.flow("""
        [[rules]]
        name = "r"
        output = ["r.txt"]
        scratch = true
        shell = "head -c {config.size} /dev/zero > big; echo made > {output}"
        [config]
        size = 30000000
    """)
    folder.write("profiles/node.toml", f'[cluster]\nbackend = "local"\nscratch_dir = "{disk}"\n')
    folder.treadle("run", "--profile", "node", exits=1)
    said = folder.treadle("logs", "r").stdout
    assert f"hardly anything is free on the file system of '{disk}/treadle-" in said
    assert "removed, to make room" in said
    assert list(disk.iterdir()) == []
    folder.treadle("run", "--profile", "node", "size=1000")
    assert folder.read("r.txt") == "made\n"
