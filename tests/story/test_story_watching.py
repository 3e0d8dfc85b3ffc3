"""A person at a terminal sees how a run goes; a pipe gets plain lines; with --quiet there is nothing."""

from __future__ import annotations

import re

import pexpect
import pytest
from story_folder import TREADLE

FLOW = """
    [[values]]
    name = "n"
    values = ["1", "2", "3"]
    [[rules]]
    name = "good"
    output = ["{n}.txt"]
    shell = "test {n} != 2 || { touch began; until test -e go; do sleep 0.05; done; }; echo > {output}"
    [[rules]]
    name = "bad"
    output = ["bad.txt"]
    priority = 1
    required = false
    shell = "echo what is wrong; exit 3"
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def watched(folder, *args: str, **env: str) -> str:
    """What a run shows at a terminal, while a task is held and until its end."""
    plain = {key: value for key, value in folder.env().items() if key != "NO_COLOR"}
    child = pexpect.spawn(
        TREADLE, ["run", "-j", "2", *args], cwd=folder.path, env={**plain, "TERM": "xterm", **env}, timeout=60
    )
    folder.until("began")
    try:
        child.expect("good/n=2  [0-9]+s")
    except pexpect.TIMEOUT:
        pytest.fail(child.before.decode())
    shown = child.before + child.after
    folder.write("go", "")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    return (shown + child.before).decode()


def test_a_terminal_has_a_bar_with_counts_and_what_runs(folder):
    folder.flow(FLOW)
    shown = watched(folder)
    assert re.search(r"━+─+ [0-9]/4", shown)
    assert "1 running" in shown
    assert "failed bad: failed with exit code 3" in COLOUR.sub("", shown)
    assert "what is wrong" in shown
    assert "more: treadle logs bad" in shown
    assert COLOUR.search(shown)
    assert "done good/n=1" not in shown, "successes are counted, not listed"


def test_without_colour_the_bar_is_there_all_the_same(folder):
    folder.flow(FLOW)
    shown = watched(folder, NO_COLOR="1")
    assert re.search(r"━+─+ [0-9]/4", shown)
    assert not COLOUR.search(shown)


@pytest.mark.parametrize("args", [(), ("--quiet",)], ids=["plain", "quiet"])
def test_a_dumb_terminal_and_a_quiet_run_have_none(folder, args):
    folder.flow(FLOW)
    folder.write("go", "")
    said, code = pexpect.run(
        f"{TREADLE} run {' '.join(args)}",
        cwd=folder.path,
        env={**folder.env(), "TERM": "xterm" if args else "dumb"},
        timeout=60,
        withexitstatus=True,
    )
    assert code == 0
    assert b"\x1b" not in said
    assert (said == b"") is bool(args)
