"""Every way in which a task works on a set to which a checkpoint may add: it waits, and sees all, once."""

from __future__ import annotations

import pytest
from story_discovered import made

FIND = """
[[rules]]
name = "find"
input = ["names.toml"]
output = ["found.toml"]
checkpoint = true
checkpoint_manifest = "found.toml"
EXTENDS
shell = "cp {input} {output}"

[[rules]]
name = "make"
output = ["parts/{sample}.txt"]
shell = "echo {sample} | tee -a made > {output}"
"""
GROUPS = '[[sample_groups]]\nname = "first"\nsamples = ["A"]\n'
ALL = """
[[rules]]
name = "all"
INPUT
output = ["all.txt"]
shell = "echo all >> made && TEXT > {output}"
"""
WAYS = {
    "a wildcard": ('input = ["parts/{sample}.txt"]', "cat {input}"),
    "a glob": ('input = ["parts/*.txt"]', "cat {input}"),
    "a folder and a pattern": ('input = [{ path = "parts", pattern = "*.txt" }]', "cat {input}"),
    "a folder": ('input = ["parts"]', "cat {input}/*.txt"),
    "a fan-in over a list of the engine": (
        'expand_inputs = [{ pattern = "parts/{s}.txt", variables = { s = "config.samples_list" } }]',
        "cat {input}",
    ),
    "a list of the engine in its text": ('input = ["parts/{sample}.txt"]', "echo {config.samples_list}"),
    "the tasks of a rule": ('depends_on = ["make"]', "cat parts/*.txt"),
    "a list of inputs": ('input = ["parts/{sample}.txt"]', "xargs cat < {input.list}"),
}


def found(folder, *names: str) -> None:
    listed = ", ".join(f'"{name}"' for name in names)
    folder.write("names.toml", f'[reentry]\ngroup = "found"\nsample = [{listed}]\n')


def flow(
    folder, more: str, *, extends: str = 'checkpoint_extends = ["sample"]', groups: str = GROUPS
) -> None:
    folder.flow(groups + FIND.replace("EXTENDS", extends) + more)


@pytest.mark.parametrize("extends", ['checkpoint_extends = ["sample"]', ""], ids=["said", "anything"])
@pytest.mark.parametrize("way", WAYS)
def test_who_works_on_a_set_waits_for_what_is_found(folder, way, extends):
    inputs, text = WAYS[way]
    flow(folder, ALL.replace("INPUT", inputs).replace("TEXT", text), extends=extends)
    found(folder, "B", "C")
    plan = {task["id"]: task for task in folder.plan()["tasks"]}
    assert plan["all"]["awaits"] == ["find"]
    folder.treadle("run")
    assert made(folder) == ["A", "B", "C", "all"]
    assert "".join(folder.read("all.txt").split()).replace(",", "") == "ABC"
    assert folder.will_run() == set()
    found(folder, "B")
    folder.treadle("run")
    # What was withdrawn stays on the disk, so a folder is as it was; of depends_on no content is compared.
    wanted = [] if way in ("the tasks of a rule", "a folder") else ["all"]
    assert made(folder) == wanted
    assert folder.will_run() == set()


@pytest.mark.parametrize("way", ["a wildcard", "a glob", "a folder and a pattern"])
def test_a_set_that_only_a_checkpoint_gives_may_stay_empty(folder, way):
    inputs, text = WAYS[way]
    flow(folder, ALL.replace("INPUT", inputs).replace("TEXT", text), groups="")
    found(folder)
    folder.write("parts/ghost.txt", "ghost\n")
    folder.treadle("run")
    assert made(folder) == []
    assert folder.will_run() == set()
    found(folder, "B")
    folder.treadle("run")
    assert made(folder) == ["B", "all"]
    assert folder.read("all.txt") == "B\n"


def test_samples_on_the_disk_and_those_that_are_found_go_together(folder):
    head = '[workflow]\nname = "story"\nstrict_shell = true\nsample_pattern = "raw/{sample}.fq"\n'
    rules = FIND.replace("EXTENDS", 'checkpoint_extends = ["sample"]') + ALL.replace(
        "INPUT", 'input = ["parts/{sample}.txt"]'
    ).replace("TEXT", "cat {input}")
    folder.flow(rules, head=head)
    folder.write("raw/A.fq", "")
    found(folder, "B")
    folder.treadle("run")
    assert made(folder) == ["A", "B", "all"]
    assert folder.read("all.txt") == "A\nB\n"
    assert folder.will_run() == set()


def test_values_that_would_take_started_tasks_away_fail_the_checkpoint_in_words(folder):
    more = """
[[rules]]
name = "copy"
input = ["raw/{sample}.fq"]
output = ["copy/{sample}"]
shell = "echo copy >> made && cp {input} {output}"

[[rules]]
name = "late"
input = ["copy/A"]
output = ["late.toml"]
checkpoint = true
checkpoint_manifest = "late.toml"
shell = "cp names.toml {output}"
"""
    folder.flow(more)
    folder.write("raw/A.fq", "")
    folder.write("raw/B.fq", "")
    found(folder, "Z")
    ended = folder.treadle("run", exits=1)
    assert "late" in ended.stderr


def test_a_checkpoint_whose_condition_is_false_finds_nothing(folder):
    flow(
        folder,
        ALL.replace("INPUT", 'input = ["parts/{sample}.txt"]').replace("TEXT", "cat {input}"),
        extends='checkpoint_extends = ["sample"]\nwhen = "config.look"',
        groups="[config]\nlook = false\n" + GROUPS,
    )
    found(folder, "B")
    folder.treadle("run")
    assert made(folder) == ["A", "all"]
    folder.treadle("run", "--config", "look=true")
    assert made(folder) == ["B", "all"]
    folder.treadle("run")
    assert made(folder) == ["all"]
    assert folder.read("all.txt") == "A\n"


def test_a_selection_of_samples_cuts_what_is_found(folder):
    flow(folder, ALL.replace("INPUT", 'input = ["parts/{sample}.txt"]').replace("TEXT", "cat {input}"))
    found(folder, "B")
    folder.treadle("run", "--samples", "A")
    assert made(folder) == ["A", "all"]
    folder.treadle("run")
    assert made(folder) == ["B", "all"]
    assert folder.read("all.txt") == "A\nB\n"


def test_a_task_that_was_found_fails_and_the_rest_goes_on(folder):
    flow(
        folder,
        ALL.replace("INPUT", 'input = ["parts/{sample}.txt"]').replace("TEXT", "cat {input}"),
    )
    text = folder.read("main.oxoflow")
    folder.write(
        "main.oxoflow", text.replace("echo {sample} | tee", "test {sample} != B && echo {sample} | tee")
    )
    found(folder, "B", "C")
    ended = folder.treadle("run", "--keep-going", exits=1)
    assert made(folder) == ["A", "C"]
    assert "1 failed, 1 blocked" in ended.stderr
    assert folder.will_run() == {"make/sample=B", "all"}
    found(folder, "C")
    folder.treadle("run")
    assert made(folder) == ["all"]


def test_groups_of_what_is_found_have_lists_of_their_own(folder):
    flow(folder, ALL.replace("INPUT", "").replace("TEXT", "echo {config.samples_list}"), extends="")
    found(folder, "B", "C")
    folder.treadle("run")
    assert folder.read("all.txt") == "A,B,C\n"
