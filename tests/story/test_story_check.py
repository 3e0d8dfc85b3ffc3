"""`treadle check`: everything that is wrong or smells, at once, for people and for editors."""

from __future__ import annotations

import json
import os

import pytest

GOOD = """
[[rules]]
name = "make"
output = ["made.txt"]
shell = "echo > {output}"

[[rules]]
name = "end"
input = ["made.txt"]
output = ["end.txt"]
target = true
shell = "cat {input} > {output}"
"""


def checked(folder, *args: str, exits: int = 0):
    return json.loads(folder.treadle("check", "--json", *args, exits=exits).stdout)


def codes(found, kind: str = "warnings") -> list[str]:
    return [one["code"] for one in found[kind]]


def test_a_good_workflow_has_nothing_to_complain_about(folder):
    folder.flow(GOOD)
    done = folder.treadle("check")
    assert done.stdout == ""
    assert done.stderr == "nothing to complain about: 2 rules, 2 tasks\n"
    assert checked(folder) == {"schema": 1, "errors": [], "warnings": []}
    assert not (folder / ".treadle").exists()
    assert not (folder / "made.txt").exists()


def test_all_errors_are_told_at_once_with_place_and_hint(folder):
    folder.flow("""
        [[rules]]
        name = "one"
        outptu = ["a.txt"]
        shell = "true"

        [[rules]]
        name = "two"
        output = ["b.txt"]
        resources = { memory = "lots" }
        shell = "true"
        """)
    done = folder.treadle("check", exits=2)
    lines = done.stdout.splitlines()
    assert sum(line.startswith("error: main.oxoflow:") for line in lines) >= 2
    assert "  did you mean 'output'?" in lines
    assert "errors, 0 warnings" in done.stderr
    assert "treadle check --explain CODE tells more: bad-measure, unknown-key" in done.stderr
    found = checked(folder, exits=2)
    (error,) = (one for one in found["errors"] if one["code"] == "unknown-key")
    assert error == {
        "code": "unknown-key",
        "message": error["message"],
        "place": {"file": "main.oxoflow", "line": 7, "table": "rules.one", "key": "outptu"},
        "hint": "did you mean 'output'?",
        "severity": "error",
    }


def test_an_error_of_the_syntax_is_told_with_its_line(folder):
    folder.write("main.oxoflow", '[workflow]\nname = "x\n')
    (error,) = checked(folder, exits=2)["errors"]
    assert error["place"]["line"] == 2


def test_errors_of_the_plan_are_told_as_well(folder):
    folder.flow(GOOD.replace('output = ["end.txt"]', 'output = ["made.txt"]'))
    assert checked(folder, exits=2)["errors"]


def test_a_missing_file_is_an_error(folder):
    assert "nowhere.oxoflow" in folder.treadle("check", "nowhere.oxoflow", exits=2).stdout


def test_source_files_that_are_not_there_are_warnings_or_errors_on_wish(folder):
    folder.flow(GOOD.replace('output = ["made.txt"]', 'output = ["made.txt"]\ninput = ["data/raw.txt"]'))
    found = checked(folder)
    (warning,) = found["warnings"]
    assert warning["code"] == "missing-input"
    assert warning["severity"] == "warning"
    assert "data/raw.txt" in warning["message"]
    found = checked(folder, "--inputs", exits=2)
    assert codes(found, "errors") == ["missing-input"]
    assert codes(found) == []
    folder.write("data/raw.txt", "")
    assert checked(folder, "--inputs") == {"schema": 1, "errors": [], "warnings": []}


def test_a_folder_that_is_an_input_is_not_walked(folder):
    folder.flow(GOOD.replace('output = ["made.txt"]', 'output = ["made.txt"]\ninput = ["data", "/proc"]'))
    folder.write("data/secret/raw.txt", "")
    os.mkfifo(folder / "data/pipe")
    assert checked(folder) == {"schema": 1, "errors": [], "warnings": []}


def test_warnings_are_no_failure_unless_strict(folder):
    folder.flow(GOOD.replace('output = ["made.txt"]', 'output = ["made.txt"]\ninput = ["data/raw.txt"]'))
    assert folder.treadle("check").stdout.startswith("warning: ")
    assert folder.treadle("check", "--strict", exits=2).stdout.startswith("warning: ")
    assert folder.treadle("check", "--quiet").stdout == ""


def test_an_output_that_nobody_reads_and_no_target_names(folder):
    folder.flow(GOOD.replace('output = ["made.txt"]', 'output = ["made.txt", "made.idx"]'))
    (warning,) = checked(folder)["warnings"]
    assert warning["code"] == "unread-output"
    assert "made.idx" in warning["message"]
    assert warning["place"]["key"] == "output[1]"


def test_without_targets_every_output_is_wanted(folder):
    folder.flow(GOOD.replace("target = true\n", ""))
    assert codes(checked(folder)) == []


def test_a_rule_whose_condition_is_never_true(folder):
    folder.flow(GOOD + '\n[[rules]]\nname = "never"\noutput = ["n"]\nwhen = "1 > 2"\nshell = "touch n"\n')
    (warning,) = checked(folder)["warnings"]
    assert warning["code"] == "unreachable-rule"
    assert warning["place"]["key"] == "when"
    assert "rule never never runs" in warning["message"]


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ("{ threads = 9999 }", "9999 threads"),
        ('{ memory = "900T" }', "900T of memory"),
        ("{ gpu = 99 }", "99 GPUs"),
    ],
)
def test_a_request_that_is_larger_than_this_machine(folder, resources, words):
    folder.flow(GOOD.replace("target = true", f"target = true\nresources = {resources}"))
    (warning,) = checked(folder)["warnings"]
    assert warning["code"] == "too-large"
    assert words in warning["message"]
    assert warning["place"]["line"] > 0


PATHS = """
[config.genome]
type = "path"
default = "refs/genome.fa"

[config.label]
type = "string"
default = "x"

[[rules]]
name = "use"
input = INPUT
output = ["used.txt"]
shell = "cat {input} {config.genome} > {output}; : {config.label}"
"""


def test_a_path_of_the_config_in_a_command_that_is_no_input(folder):
    folder.flow(PATHS.replace("INPUT", '["in.txt"]'))
    folder.write("in.txt", "")
    (warning,) = checked(folder)["warnings"]
    assert warning["code"] == "config-path-not-input"
    assert "{config.genome}" in warning["message"]
    assert warning["place"]["key"] == "shell"


@pytest.mark.parametrize(
    "entry", ['["{config.genome}"]', '["refs/genome.fa"]', '["refs/genome.fa.fai"]', '["refs"]']
)
def test_a_path_of_the_config_that_is_read_as_an_input_is_fine(folder, entry):
    folder.flow(PATHS.replace("INPUT", entry))
    folder.write("refs/genome.fa", "")
    folder.write("refs/genome.fa.fai", "")
    assert codes(checked(folder)) == []


def test_a_word_that_looks_like_a_placeholder(folder):
    folder.flow(GOOD.replace("echo > {output}", "echo '{outptu}' > {output}"))
    assert codes(checked(folder)) == ["looks-like-placeholder"]


def test_config_values_of_the_command_line_count(folder):
    folder.flow(
        GOOD + '\n[config]\nat = "b"\n[[rules]]\nname = "g"\ninput = ["{config.at}.txt"]\noutput = ["g"]\n'
        'target = true\nshell = "touch g"\n'
    )
    folder.write("b.txt", "")
    assert codes(checked(folder)) == []
    assert codes(checked(folder, "at=nowhere")) == ["missing-input"]


def test_a_rule_that_the_config_turns_off_does_not_smell(folder):
    folder.flow(
        GOOD + '\n[config]\ngate = false\n[[rules]]\nname = "g"\noutput = ["g"]\nwhen = "config.gate"\n'
        'target = true\nshell = "touch g"\n'
    )
    assert codes(checked(folder)) == []


ALIKE = """
[[rules]]
name = "one"
output = ["a.txt"]
shell = "touch {output}"

[[rules]]
name = "two"
output = ["A.txt"]
shell = "touch {output}"
"""


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_strict_takes_warnings_of_the_plan_as_errors_whatever_the_command(folder, command):
    folder.flow(ALIKE)
    done = folder.treadle(command, "--strict", exits=2)
    assert "differ only in case" in done.stdout + done.stderr
    assert not (folder / "a.txt").exists()
    folder.treadle(command)


def test_what_this_machine_does_not_have_is_a_warning_in_plan_and_an_error_with_strict(folder):
    folder.flow(GOOD.replace("target = true", "target = true\nresources = { threads = 9999 }"))
    assert "this rule asks for 9999 threads" in folder.treadle("plan").stderr
    assert [one["code"] for one in folder.plan()["warnings"]] == ["too-large"]
    for command in ("plan", "run"):
        assert "error: main.oxoflow:" in folder.treadle(command, "--strict", exits=2).stderr
    assert not (folder / ".treadle").exists()
    folder.treadle("run")
    assert folder.treadle("plan", "--strict").stderr == "nothing to do: 2 tasks up to date\n"
