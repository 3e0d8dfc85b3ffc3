"""What `plan` and `why` say to a person who has not seen the workflow before."""

from __future__ import annotations

import re

import pytest

FLOW = """
[[values]]
name = "part"
values = ["a", "b"]

[[rules]]
name = "zip"
input = ["in/{part}.txt"]
output = ["z/{part}.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "count"
input = ["z/{part}.txt"]
output = ["all.txt"]
resources = { threads = 2, memory = "1G" }
shell = "cat {input} > {output}"

[[rules]]
name = "also"
input = ["in/a.txt"]
output = ["also.txt"]
shell = "cat {input} > {output}"
"""


@pytest.fixture
def done(folder):
    """The workflow, run once."""
    folder.flow(FLOW)
    for part in "ab":
        folder.write(f"in/{part}.txt", f"{part}\n")
    folder.treadle("run")
    return folder


def took(folder, seconds: dict[str, float]) -> None:
    """Let the records say that tasks took longer than they did."""
    records = folder / ".treadle" / "checkpoint.jsonl"
    text = records.read_text()
    for task, number in seconds.items():
        pattern = rf'("{re.escape(task)}","[^"]*",\d+,\d+,"succeeded","ok",0,)[0-9.e-]+,'
        text, found = re.subn(pattern, rf"\g<1>{number},", text)
        assert found == 1, task
    records.write_text(text)


def test_rules_come_in_the_order_of_the_file(folder):
    folder.flow(FLOW)
    for part in "ab":
        folder.write(f"in/{part}.txt", part)
    done = folder.treadle("plan")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["zip", "count", "also"]
    assert "count  1 will run: never ran  [gathers 2 inputs]" in done.stdout
    assert done.stderr == "4 tasks of 4 will run\nthe largest asks for 2 threads, 1G of memory\n"


def test_hours_at_stake_and_the_critical_path(done):
    took(done, {"zip/part=a": 600.0, "zip/part=b": 7200.0, "count": 1800.0, "also": 60.0})
    said = done.treadle("plan", "--force").stderr.splitlines()
    assert "last time they took 2h41m of work" in said
    assert "at least 2h30m of it is one after the other: zip/part=b, count" in said
    said = done.treadle("plan", "--force", "also").stderr.splitlines()
    assert "last time it took 1m of work" in said
    assert not any("one after the other" in line for line in said)
    done.flow(FLOW.replace('["a", "b"]', '["a", "b", "c"]'))
    done.write("in/c.txt", "c\n")
    said = done.treadle("plan").stderr.splitlines()
    assert said[0] == "2 tasks of 5 will run"
    assert "last time 1 of them took 30m of work" in said


def test_short_times_are_not_worth_a_word(done):
    assert "last time" not in done.treadle("plan", "--force").stderr


def test_a_gather_with_other_inputs_says_inputs_not_command(done):
    done.flow(FLOW.replace('["a", "b"]', '["a"]'))
    assert "count  1 will run: inputs changed" in done.treadle("plan").stdout
    why = done.treadle("why", "count").stdout
    assert "its command changed" in why
    assert "input z/b.txt is no longer one of its inputs" in why


def test_several_reasons_of_a_rule_are_counted(done):
    done.write("in/a.txt", "other\n")
    (done / "z" / "b.txt").unlink()
    line = done.treadle("plan").stdout.splitlines()[0]
    assert line.startswith("zip    2 will run: ")
    assert "inputs changed (1)" in line
    assert "output missing (1)" in line


def test_why_says_on_what_up_to_date_stands(done):
    assert "as its last success left them\n" in done.treadle("why", "also").stdout
    done.treadle("touch", "also")
    assert "as they were when treadle touch recorded them" in done.treadle("why", "also").stdout


def test_adopted_outputs_are_told(folder):
    folder.flow(FLOW)
    for name in ("in/a.txt", "in/b.txt", "z/a.txt", "z/b.txt", "all.txt", "also.txt"):
        folder.write(name, "x\n")
    assert "4 tasks of these have outputs that nobody here recorded: --adopt" in folder.treadle("plan").stderr
    folder.treadle("run", "--adopt")
    assert "when --adopt took them over" in folder.treadle("why", "also").stdout


def test_large_files_that_were_not_read_are_told(folder):
    folder.flow(FLOW, head='[workflow]\nname = "x"\nstrict_shell = true\n[defaults]\ndigest_limit = "1K"\n')
    for part in "ab":
        folder.write(f"in/{part}.txt", part * 5000)
    folder.treadle("run")
    assert "up to date by size and time alone: too large to be read" in folder.treadle("plan").stderr
    assert "large files by size and time" in folder.treadle("why", "also").stdout
    (task,) = (one for one in folder.plan()["tasks"] if one["id"] == "also")
    assert task["note"] == "unread"


def test_a_quiet_plan_says_only_what_was_asked_for(done):
    quiet = done.treadle("plan", "-q")
    assert quiet.stderr == ""
    assert len(quiet.stdout.splitlines()) == 3
