"""The lock of a work folder: a run at work keeps others out, and `unlock` takes that of the dead."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("args", [("touch",), ("evict", "quick", "-y"), ("clean", "-y")])
def test_a_run_at_work_keeps_others_out(folder, args):
    folder.flow("""
        [[rules]]
        name = "quick"
        output = ["quick.txt"]
        shell = "touch quick.txt"

        [[rules]]
        name = "slow"
        output = ["slow.txt"]
        depends_on = ["quick"]
        shell = "touch up; while [ ! -e go ]; do sleep 0.02; done; touch slow.txt"
        """)
    process = folder.start("run")
    try:
        folder.until("up")
        assert "in use by" in folder.treadle(*args, exits=3).stderr
        assert (folder / "quick.txt").exists()
    finally:
        folder.write("go", "")
        process.communicate(timeout=60)
    assert process.returncode == 0
    folder.treadle(*args)


def test_a_lock_of_a_living_run_is_unlocked_by_force_alone(folder):
    folder.flow("""
        [[rules]]
        name = "slow"
        output = ["slow.txt"]
        shell = "touch up; while [ ! -e go ]; do sleep 0.02; done; touch slow.txt"
        """)
    process = folder.start("run")
    try:
        folder.until("up")
        said = folder.treadle("unlock", exits=3).stderr
        assert str(process.pid) in said
        assert "--force" in said
        found = json.loads(folder.treadle("unlock", "--force", "--json").stdout)
        assert found["removed"]["pid"] == process.pid
        assert not (folder / ".treadle/lock").exists()
    finally:
        folder.write("go", "")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "no longer ours" in err


def test_unlock_reads_no_workflow_and_takes_the_lock_of_the_dead(folder):
    folder.flow("""
        [[rules]]
        name = "slow"
        output = ["slow.txt"]
        shell = "touch up; while [ ! -e go ]; do sleep 0.02; done; touch slow.txt"
        """)
    process = folder.start("run")
    folder.until("up")
    process.kill()
    process.communicate()
    folder.write("go", "")
    folder.write("main.oxoflow", "this is no workflow")
    assert "removed the lock" in folder.treadle("unlock").stderr
    assert "is not locked" in folder.treadle("unlock").stderr


def test_unlock_of_another_folder(folder):
    (folder / "there").mkdir()
    assert f"{folder / 'there'} is not locked" in folder.treadle("unlock", "--workdir", "there").stderr
    assert list((folder / "there").iterdir()) == []
    folder.treadle("unlock", "--workdir", "nowhere", exits=2)
