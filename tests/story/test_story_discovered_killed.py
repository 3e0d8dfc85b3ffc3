"""kill -9 of a run in which checkpoints find work: at every event, and at every change of the disk."""

from __future__ import annotations

import json

import pytest
from story_discovered import FIND
from story_trouble import Host, none_left

REST = """
[[rules]]
name = "make"
output = ["parts/{part}.txt"]
temporary = true
shell = "echo {part} > {output}"

[[rules]]
name = "more"
input = ["parts/{part}.txt"]
output = ["more/{part}.toml"]
checkpoint = true
checkpoint_manifest = "more/{part}.toml"
checkpoint_extends = ["values.twig"]
shell = '''printf '[reentry.values]\\ntwig = ["%s1", "%s2"]\\n' {part} {part} > {output}'''

[[rules]]
name = "grow"
output = ["twigs/{part}.{twig}.txt"]
shell = "echo {twig} > {output}"

[[rules]]
name = "all"
input = ["parts/{part}.txt", "twigs/{part}.{twig}.txt"]
output = ["all.txt"]
shell = "echo all >> gathered && cat {input} > {output}"
"""
WHOLE = "a\nb\na1\na2\nb1\nb2\n"


def fresh(folder, name: str):
    inner = folder.below(name)
    inner.flow(FIND + REST)
    inner.write("names.toml", '[reentry.values]\npart = ["a", "b"]\n')
    return inner


def done_before(folder) -> set[str]:
    """What the journals tell was done."""
    return {task for task, end in folder.settled().items() if end == "succeeded"}


def goes_on(folder, hosted: Host) -> tuple[set[str], set[str]]:
    """The preview is what the next run begins with; nothing that was done is done again. Gives what was done
    before, and what ran."""
    done, runs = done_before(folder), folder.runs()
    plan = json.loads(hosted.treadle(folder, "plan", "--json").out)
    previewed = {task["id"] for task in plan["tasks"] if task["will_run"]}
    assert not previewed & done
    if "find" in done:
        assert {"make/part=a", "make/part=b"} <= {task["id"] for task in plan["tasks"]}
    ended = hosted.treadle(folder, "run", "-j2")
    assert ended.code == 0, ended.err
    ran = set().union(*(folder.attempted(run) for run in folder.runs() if run not in runs))
    assert not ran & done
    assert previewed <= ran
    if {"more/part=a", "more/part=b"} <= done:
        assert ran == previewed
    assert folder.read("all.txt") == WHOLE
    assert folder.read("gathered") == "all\n", "a gather runs once, and over all"
    if ran:
        assert not (folder / "parts/a.txt").exists(), "a temporary output that nobody needs any longer"
    none_left(folder.path)
    again = json.loads(hosted.treadle(folder, "plan", "--json").out)
    assert not [task["id"] for task in again["tasks"] if task["will_run"]]
    return done, ran


@pytest.mark.parametrize("first", [1, 2, 3])
def test_killed_after_any_event_the_next_run_goes_on(folder, hosted, first):
    between = []
    for number in range(first, 100, 3):
        inner = fresh(folder, str(number))
        killed = hosted.treadle(inner, "run", "-j2", when="after", number=number)
        if killed.code == 0:
            break
        assert killed.code == -9
        if (inner / "gathered").exists() and "all" not in done_before(inner):
            (inner / "gathered").unlink()
        done, ran = goes_on(inner, hosted)
        between.append("find" in done and "make/part=a" in ran and "make/part=b" in ran)
    assert number > 20
    assert any(between), "none of the deaths came between the end of the checkpoint and the first new task"


@pytest.mark.parametrize("first", [1, 2])
def test_killed_before_any_change_to_the_disk_the_next_run_goes_on(folder, hosted, first):
    for number in range(first, 300, 8):
        inner = fresh(folder, str(number))
        killed = hosted.treadle(inner, "run", "-j2", when="move", number=number)
        if killed.code == 0:
            break
        assert killed.code == -9
        if (inner / "gathered").exists() and "all" not in done_before(inner):
            (inner / "gathered").unlink()
        goes_on(inner, hosted)
    assert number > 20
