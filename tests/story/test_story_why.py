"""`treadle why`: the decision on one task, told with old and new values, a cascade at its root."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

FLOW = """
[config]
word = "hello"
gate = true

[[rules]]
name = "first"
input = ["in.txt"]
output = ["first.txt"]
shell = '''
cat {input} > {output}
echo {config.word} >> {output}
'''

[[rules]]
name = "second"
input = ["first.txt"]
output = ["second.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "third"
input = ["second.txt"]
output = ["third.txt"]
when = "config.gate"
shell = "cat {input} > {output}"
"""


@pytest.fixture
def done(folder):
    folder.flow(FLOW)
    folder.write("in.txt", "in\n")
    folder.treadle("run")
    return folder


def test_why_of_a_task_that_never_ran(folder):
    folder.flow(FLOW)
    folder.write("in.txt", "in\n")
    assert folder.treadle("why", "first").stdout == "first: will run\n  it never ran here\n"


def test_why_of_a_task_that_is_up_to_date(done):
    assert done.treadle("why", "first").stdout.splitlines()[0] == "first: up to date"


def test_a_changed_command_is_shown_line_by_line_with_old_and_new(done):
    lines = done.treadle("why", "first", "word=moin").stdout.splitlines()
    assert lines[:2] == ["first: will run", "  its command changed"]
    assert "    -echo hello >> first.txt" in lines
    assert "    +echo moin >> first.txt" in lines
    assert not any("--- " in line or "@@" in line for line in lines)


def test_a_changed_input_and_an_edited_output_are_shown_with_old_and_new(done):
    done.write("in.txt", "another\n")
    done.write("first.txt", "x\n")
    lines = done.treadle("why", "first").stdout.splitlines()
    assert [line for line in lines if not line.startswith("    ")] == [
        "first: will run",
        "  input in.txt changed",
        "  output first.txt was changed by someone else",
    ]
    shown = [re.sub(r"of [-0-9: .]{23}", "of ...", line) for line in lines if line.startswith("    ")]
    digests = [hashlib.blake2b(text, digest_size=32).hexdigest()[:12] for text in (b"in\n", b"in\nhello\n")]
    assert shown == [
        f"    -3 bytes, of ..., BLAKE2b {digests[0]}",
        "    +8 bytes, of ...",
        f"    -9 bytes, of ..., BLAKE2b {digests[1]}",
        "    +2 bytes, of ...",
    ]


def test_changed_hooks_shell_and_variables_are_shown_with_old_and_new(folder):
    rule = """
    [defaults]
    shell_prelude = "umask {mask}"
    [[rules]]
    name = "first"
    output = ["first.txt"]
    shell = "echo > {output}"
    pre_exec = "echo {mask}"
    envvars = { MASK = "{mask}" }
    """
    folder.flow(rule.replace("{mask}", "22"))
    folder.treadle("run")
    folder.flow(rule.replace("{mask}", "27"))
    assert folder.treadle("why", "first").stdout.splitlines() == [
        "first: will run",
        "  its exported variables changed",
        "    -MASK=22",
        "    +MASK=27",
        "  a hook changed",
        "    -pre_exec=echo 22",
        "    +pre_exec=echo 27",
        "  its shell or prelude changed",
        "     strict_shell=true",
        "    -shell_prelude=umask 22",
        "    +shell_prelude=umask 27",
    ]


def test_a_changed_script_is_shown_by_its_digests(folder):
    folder.flow('[[rules]]\nname = "first"\noutput = ["first.txt"]\nscript = "make.sh {output}"\n')
    folder.write("make.sh", "echo > $1\n")
    folder.treadle("run")
    folder.write("make.sh", "echo another > $1\n")
    lines = folder.treadle("why", "first").stdout.splitlines()
    assert lines[1] == "  its script changed"
    assert [re.sub("[0-9a-f]{12}$", "...", line) for line in lines[2:]] == [
        "    -BLAKE2b ...",
        "    +BLAKE2b ...",
    ]


def test_a_cascade_is_told_at_its_root(done):
    done.write("in.txt", "another text\n")
    lines = done.treadle("why", "third").stdout.splitlines()
    assert lines[0].startswith("third: will run, unless")
    assert lines[1] == "  second will run (it begins at first)"
    assert lines[2] == "  first: input in.txt changed"


def test_a_missing_output_is_named(done):
    (done / "second.txt").unlink()
    assert "output second.txt is missing" in done.treadle("why", "second").stdout


def test_an_output_path_names_its_task(done):
    assert done.treadle("why", "third.txt").stdout.startswith("third: up to date")


def test_a_false_condition_is_told(done):
    shown = done.treadle("why", "third", "gate=false").stdout
    assert shown.startswith("third: skipped\n")
    assert "config.gate" in shown


def test_a_failure_is_told_with_its_exit_code(folder):
    folder.flow(FLOW.replace("cat {input} > {output}\necho", "exit 7\necho"))
    folder.write("in.txt", "in\n")
    folder.treadle("run", exits=1)
    assert "its last attempt failed (exit code 7)" in folder.treadle("why", "first").stdout


def test_why_needs_a_task(done):
    assert "treadle plan --tasks" in done.treadle("why", exits=2).stderr


def test_reasons_are_values_in_json(done):
    found = json.loads(done.treadle("why", "first", "word=moin", "--json").stdout)
    (task,) = found["tasks"]
    assert task["verdict"] == "will_run"
    (reason,) = task["reasons"]
    assert reason["reason"] == "command_changed"
    assert "hello" in reason["old"]
    assert "moin" in reason["new"]


def test_why_writes_nothing_and_needs_no_lock(done):
    before = done.snapshot()
    done.treadle("why", "first")
    assert done.snapshot() == before
