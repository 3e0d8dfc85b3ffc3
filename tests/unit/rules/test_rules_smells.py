"""Smells: what is told about a workflow that could be run as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.base.place import Diagnostic, Severity
from treadle.plan.build import build
from treadle.rules.expand.expand import expand
from treadle.rules.file.read import read_text
from treadle.rules.pattern.listing import DiskListing
from treadle.rules.smells import Machine, smells, too_large

MACHINE = Machine(threads=8, memory=16 * 1024**3, gpus=1)
HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'


def smelled(tmp_path: Path, text: str, machine: Machine = MACHINE) -> list[Diagnostic]:
    workflow = read_text(HEAD + text, "w.oxoflow", str(tmp_path))
    plan = build("w", expand(workflow, DiskListing(str(tmp_path))).drafts)
    found = [*smells(workflow, plan), *(one for rule in workflow.rules for one in too_large(rule, machine))]
    assert all(one.severity is Severity.WARNING for one in found)
    return found


def codes(tmp_path: Path, text: str, machine: Machine = MACHINE) -> list[str]:
    return [one.code for one in smelled(tmp_path, text, machine)]


def rule(name: str, inputs: str = "", outputs: str = "", more: str = "") -> str:
    listed = ['"' + '", "'.join(paths.split()) + '"' if paths else "" for paths in (inputs, outputs)]
    shell = "" if "shell" in more else '\nshell = "touch {output}"'
    return f'[[rules]]\nname = "{name}"\ninput = [{listed[0]}]\noutput = [{listed[1]}]{shell}\n{more}\n'


END = rule("end", "a b", "end", "target = true")


def test_outputs_that_are_read_are_fine(tmp_path):
    assert codes(tmp_path, rule("a", "", "a") + rule("b", "", "b") + END) == []


def test_an_unread_output_is_told_at_its_entry(tmp_path):
    (one,) = smelled(tmp_path, rule("a", "", "a a.idx") + rule("b", "", "b") + END)
    assert (one.code, one.place.table, one.place.key) == ("unread-output", "rules.a", "output[1]")


def test_an_entry_of_which_one_path_is_read_is_fine(tmp_path):
    values = '[[values]]\nname = "x"\nvalues = ["1", "2"]\n'
    text = values + rule("a", "", "{x}.txt") + rule("end", "1.txt", "end", "target = true")
    assert codes(tmp_path, text) == []


@pytest.mark.parametrize("read", ["out", "out/sub", "out/sub/file"])
def test_an_output_in_a_folder_that_is_read_and_a_folder_of_which_a_part_is_read_are_fine(tmp_path, read):
    text = rule("a", "", "out/sub") + rule("end", read, "end", "target = true")
    assert codes(tmp_path, text) == []


def test_a_rule_that_others_wait_for_needs_no_reader(tmp_path):
    text = rule("setup", "", "setup.done") + rule("end", "", "end", 'target = true\ndepends_on = ["setup"]')
    assert codes(tmp_path, text) == []


def test_what_only_skipped_tasks_read_is_unread(tmp_path):
    text = (
        rule("a", "", "a")
        + rule("off", "a", "off", 'when = "1 > 2"')
        + rule("end", "", "end", "target = true")
    )
    assert codes(tmp_path, text) == ["unread-output", "unreachable-rule"]


def test_without_a_target_no_output_is_unread(tmp_path):
    assert codes(tmp_path, rule("a", "", "a a.idx")) == []


def test_a_condition_that_is_true_for_one_task_is_fine(tmp_path):
    values = '[[values]]\nname = "x"\nvalues = ["1", "2"]\n'
    assert codes(tmp_path, values + rule("a", "", "{x}", "when = \"x == '1'\"")) == []
    (one,) = smelled(tmp_path, values + rule("a", "", "{x}", "when = \"x == '3'\""))
    assert "all of its 2 tasks" in one.message


def test_a_rule_below_one_that_never_runs_is_not_told_again(tmp_path):
    text = rule("off", "", "off", 'when = "1 > 2"') + rule("after", "off", "after")
    (one,) = smelled(tmp_path, text)
    assert "rule off" in one.message


@pytest.mark.parametrize(
    ("field", "small"),
    [("threads = 8", True), ("threads = 9", False), ('memory = "16G"', True), ('memory = "17G"', False)],
)
def test_requests_up_to_what_there_is_fit(tmp_path, field, small):
    found = codes(tmp_path, rule("a", "", "a", f"resources = {{ {field} }}"))
    assert found == ([] if small else ["too-large"])


def test_each_resource_that_is_too_large_is_told_at_its_place(tmp_path):
    text = rule("a", "", "a", 'threads = 99\nmemory = "99G"')
    found = smelled(tmp_path, text)
    assert [one.place.key for one in found] == ["threads", "memory"]
    assert "99 threads, and this machine has 8" in found[0].message


def test_a_gpu_that_is_not_there_cannot_be_had(tmp_path):
    text = rule("a", "", "a", "resources = { gpu = 1 }")
    assert codes(tmp_path, text) == []
    (one,) = smelled(tmp_path, text, Machine(8, 16 * 1024**3, 0))
    assert "asks for a GPU" in one.message
    assert one.hint == "it cannot run here"


CONFIG = '[config.ref]\ntype = "path"\ndefault = "refs/ref.fa"\n'


@pytest.mark.parametrize(
    "more",
    [
        'shell = "x {config.ref} > {output}"',
        'shell = "x > {output}"\npre_exec = "stat {config.ref}"',
        'shell = "x {params.ref} > {output}"\nparams = { ref = "{config.ref}" }',
        'shell = "x > {output}"\nenvvars = { REF = "{config.ref}" }',
    ],
)
def test_a_config_path_in_any_text_of_the_command_is_told_once(tmp_path, more):
    found = smelled(tmp_path, CONFIG + rule("a", "in", "a", more))
    assert [one.code for one in found] == ["config-path-not-input"]
    assert '"{config.ref}"' in found[0].hint


@pytest.mark.parametrize("entry", ["{config.ref}", "refs/ref.fa", "refs/ref.fa.bwt", "refs"])
def test_a_config_path_that_is_an_input_in_any_spelling_is_fine(tmp_path, entry):
    assert codes(tmp_path, CONFIG + rule("a", entry, "a", 'shell = "x {config.ref} > {output}"')) == []


def test_a_config_path_for_outputs_is_fine(tmp_path):
    config = '[config.out]\ntype = "path"\ndefault = "results"\n'
    text = rule("a", "in", "{config.out}/a", 'shell = "x -o {config.out} && touch {output}"')
    assert codes(tmp_path, config + text) == []


def test_a_key_of_another_type_and_a_literal_placeholder_are_fine(tmp_path):
    config = '[config]\nword = "refs/x"\n' + CONFIG
    more = "shell = \"x {config.word} '{{config.ref}}' > {output}\""
    assert codes(tmp_path, config + rule("a", "in", "a", more)) == []
