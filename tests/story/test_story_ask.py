"""Before much finished work is done again, a person at a terminal is asked; a script is not."""

from __future__ import annotations

import json

import pexpect
import pytest
from story_folder import TREADLE

FLOW = '[[rules]]\nname = "long"\noutput = ["long.txt"]\nshell = "echo x >> times; echo > {output}"\n'
SECONDS = 9  # where a line of the checkpoint file tells how long the last success took


@pytest.fixture
def worked(folder):
    """A folder whose one task once took two hours and a half."""
    folder.flow(FLOW)
    folder.treadle("run")
    head, line = folder.read(".treadle/checkpoint.jsonl").splitlines()
    fields = json.loads(line)
    assert isinstance(fields[SECONDS], float)
    fields[SECONDS] = 9000.0
    folder.write(".treadle/checkpoint.jsonl", f"{head}\n{json.dumps(fields)}\n")
    return folder


def times(folder) -> int:
    return len(folder.read("times").split())


def at_a_terminal(folder, *args: str, answer: str | None) -> tuple[str, int]:
    """What the command says at a terminal, and its exit code; `answer` None: it must not ask."""
    child = pexpect.spawn(TREADLE, [*args], cwd=folder.path, env=folder.env(TERM="xterm"), timeout=60)
    if answer is not None:
        child.expect(r"\[y/N\] ")
        child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    return child.before.decode(), child.exitstatus


def test_without_a_yes_nothing_is_run(worked):
    said, code = at_a_terminal(worked, "run", "--force", answer="")
    assert (times(worked), len(worked.runs())) == (1, 1)
    assert "nothing was run" in said
    assert code == 1, "0 would say that what must run has run"


def test_with_a_yes_it_is(worked):
    _, code = at_a_terminal(worked, "run", "--force", answer="y")
    assert (code, times(worked)) == (0, 2)


def test_the_option_says_yes_beforehand(worked):
    said, code = at_a_terminal(worked, "run", "--force", "-y", answer=None)
    assert (code, times(worked)) == (0, 2)
    assert "Go on?" not in said


def test_a_script_is_not_asked(worked):
    done = worked.treadle("run", "--force")
    assert times(worked) == 2
    assert "last time it took 2h30m of work" in done.stderr
    assert "Go on?" not in done.stderr


def test_little_work_needs_no_question(folder):
    folder.flow(FLOW)
    folder.treadle("run")
    said, code = at_a_terminal(folder, "run", "--force", answer=None)
    assert (code, times(folder)) == (0, 2)
    assert "Go on?" not in said
