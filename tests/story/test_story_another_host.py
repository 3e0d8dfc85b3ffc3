"""What another host or another user left behind: taken over only where nobody can be at work any longer."""

from __future__ import annotations

import json
import os
import signal

import pytest

SLOW = """
    [[rules]]
    name = "slow"
    output = ["slow.txt"]
    shell = "echo half > {output}; touch began; test -e go || sleep 60"
"""


@pytest.fixture
def killed(folder):
    """A folder whose last run was killed, as it looks from another host."""
    folder.flow(SLOW)
    run = folder.start("run")
    folder.until("began")
    run.kill()
    run.communicate()
    (task,) = (int(one["job"]) for one in folder.events() if one["event"] == "attempt_started")
    os.killpg(task, signal.SIGKILL)
    here = os.uname().nodename
    for file in (".treadle/lock", ".treadle/runs/latest/owner", ".treadle/runs/latest/events.jsonl"):
        folder.write(file, folder.read(file).replace(f'"host":"{here}"', '"host":"far-away"'))
    folder.write("go", "")
    return folder


def test_its_lock_is_taken_away_and_its_tasks_taken_as_dead_only_when_a_person_says_so(killed):
    assert "far-away" in killed.treadle("unlock").stderr
    before = killed.snapshot()
    done = killed.treadle("run", exits=3)
    assert "was killed on far-away, where slow may still be at work" in done.stderr
    assert "--assume-dead" in done.stderr
    assert (killed / "slow.txt").exists()
    assert killed.runs() == [one.split("/")[1] for one in before if one.endswith("/owner")]
    done = killed.treadle("run", "--assume-dead")
    assert "1 attempt of it counted as interrupted" in done.stderr
    assert killed.read("slow.txt.failed") == killed.read("slow.txt") == "half\n"
    assert killed.will_run() == set()


def test_whoever_only_looks_needs_not_wait_for_it(killed):
    assert killed.will_run() == {"slow"}
    assert "was interrupted" in killed.treadle("why", "slow").stdout
    assert "slow" in killed.treadle("status").stdout


def test_a_lock_that_another_user_left_is_taken_away_by_unlock_alone(folder):
    folder.flow(
        '[[rules]]\nname = "r"\noutput = ["r.txt"]\nshell = "touch began; sleep 60; echo > {output}"\n'
    )
    run = folder.start("run")
    folder.until("began")
    run.kill()
    run.communicate()
    lock = json.loads(folder.read(".treadle/lock"))
    folder.write(".treadle/lock", json.dumps({**lock, "uid": os.getuid() + 1, "user": "somebody"}))
    for args in (("run",), ("run", "--wait"), ("touch",), ("clean", "-y")):
        done = folder.treadle(*args, exits=3)
        assert "was left behind by somebody on" in done.stderr
        assert "treadle unlock" in done.stderr
    assert folder.will_run() == {"r"}
    assert "removed the lock of somebody" in folder.treadle("unlock").stderr
    folder.flow('[[rules]]\nname = "r"\noutput = ["r.txt"]\nshell = "echo > {output}"\n')
    assert "was killed" in folder.treadle("run").stderr
