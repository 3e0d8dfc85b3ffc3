"""`allow_missing`: a gather goes ahead when few of its upstream tasks failed, and is whole again later."""

from __future__ import annotations

import json

import pytest

from cluster_runs import fake_site

FLOW = """
    [[values]]
    name = "s"
    values = ["a", "b", "c", "d"]

    [[rules]]
    name = "one"
    input = ["in/{s}.txt"]
    output = ["one/{s}.txt"]
    shell = "grep -v bad {input} > {output}"

    [[rules]]
    name = "two"
    input = ["one/{s}.txt"]
    output = ["two/{s}.txt"]
    shell = "cp {input} {output}"

    [[rules]]
    name = "all"
    input = ["two/{s}.txt"]
    output = ["all.txt"]
    allow_missing = {allowed}
    {more}
    shell = '''echo ran >> ran; cat {input} > {output}; echo {input:each=-I } "{input:sep=,}" >> {output}'''

    [[rules]]
    name = "report"
    input = ["all.txt"]
    output = ["report.txt"]
    shell = "cp {input} {output}"
"""


def lay_out(folder, *, bad: str, allowed: object = 1, more: str = "") -> None:
    for name in "abcd":
        folder.write(f"in/{name}.txt", "bad\n" if name in bad else f"{name}\n")
    folder.flow(FLOW.replace("{allowed}", json.dumps(allowed)).replace("{more}", more))


def words(*names: str) -> str:
    paths = [f"two/{name}.txt" for name in names]
    text = "".join(f"{name}\n" for name in names)
    return f"{text}{' '.join(f'-I {path}' for path in paths)} {','.join(paths)}\n"


@pytest.mark.parametrize("allowed", [1, "25%", "30 %"])
def test_a_gather_goes_ahead_without_what_failed(folder, allowed):
    lay_out(folder, bad="a", allowed=allowed)
    told = folder.treadle("run", exits=1).stderr
    assert folder.read("all.txt") == words("b", "c", "d")
    assert folder.read("report.txt") == words("b", "c", "d")
    assert "all is partial: it was made without two/a.txt" in told
    assert "all is partial: it was made without two/a.txt" in folder.treadle("status").stdout
    assert json.loads(folder.treadle("status", "--json").stdout)["partial"] == ["all"]
    (settled,) = [one for one in folder.events() if one["event"] == "task_settled" and one["task"] == "all"]
    assert settled["evidence"]["partial"] == ["two/a.txt"]


def test_more_failures_than_are_allowed_block_it(folder):
    lay_out(folder, bad="ab")
    folder.treadle("run", "-k", exits=1)
    assert not (folder / "all.txt").exists()
    ends = {one["task"]: one["state"] for one in folder.events() if one["event"] == "task_settled"}
    assert ends["all"] == ends["report"] == "blocked"


def test_nothing_is_made_of_nothing(folder):
    lay_out(folder, bad="abcd", allowed="100%")
    folder.treadle("run", "-k", exits=1)
    assert not (folder / "all.txt").exists()


def test_it_is_made_again_when_the_missing_are_there(folder):
    lay_out(folder, bad="a")
    folder.treadle("run", exits=1)
    folder.write("in/a.txt", "a\n")
    why = folder.treadle("why", "all").stdout
    assert "its last result is partial: it was made without two/a.txt" in why
    assert folder.run_as_previewed() == {"one/s=a", "two/s=a", "all", "report"}
    assert folder.read("all.txt") == words("a", "b", "c", "d")
    assert folder.will_run() == set()


def test_the_same_failure_again_makes_nothing_of_it_again(folder):
    lay_out(folder, bad="a")
    folder.treadle("run", exits=1)
    folder.treadle("run", exits=1)
    assert folder.attempted() == {"one/s=a"}
    assert folder.read("ran") == "ran\n"
    ends = {one["task"]: one["state"] for one in folder.events() if one["event"] == "task_settled"}
    assert ends["all"] == ends["report"] == "unchanged"


def test_another_failure_makes_it_of_what_is_left_then(folder):
    lay_out(folder, bad="a")
    folder.treadle("run", exits=1)
    folder.write("in/a.txt", "a\n")
    folder.write("in/c.txt", "bad\n")
    folder.treadle("run", exits=1)
    assert folder.read("all.txt") == words("a", "b", "d")


def test_a_whole_result_becomes_partial_when_something_fails_later(folder):
    lay_out(folder, bad="")
    folder.treadle("run")
    folder.write("in/b.txt", "bad\n")
    folder.treadle("run", exits=1)
    assert folder.read("all.txt") == words("a", "c", "d")
    folder.write("in/b.txt", "b\n")
    folder.treadle("run")
    assert folder.read("all.txt") == words("a", "b", "c", "d")


def test_a_failure_that_is_not_required_lets_the_run_pass(folder):
    lay_out(folder, bad="a")
    text = folder.read("main.oxoflow").replace('name = "one"', 'name = "one"\nrequired = false')
    folder.write("main.oxoflow", text)
    folder.treadle("run")
    assert folder.read("report.txt") == words("b", "c", "d")


def test_another_required_failure_still_stops_the_run(folder):
    lay_out(folder, bad="a")
    text = folder.read("main.oxoflow")
    folder.write(
        "main.oxoflow", f"{text}\n[[rules]]\nname = 'other'\noutput = ['o']\npriority = 9\nshell = 'false'\n"
    )
    folder.treadle("run", "-j", "1", exits=1)
    assert not (folder / "all.txt").exists()


def test_fail_fast_means_it(folder):
    lay_out(folder, bad="a")
    folder.treadle("run", "--fail-fast", exits=1)
    assert not (folder / "all.txt").exists()


def test_a_fixed_input_cannot_be_missing(folder):
    lay_out(folder, bad="")
    text = folder.read("main.oxoflow").replace(
        'input = ["two/{s}.txt"]', 'input = ["two/{s}.txt", "fixed.txt"]'
    )
    fixed = "[[rules]]\nname = 'fixed'\noutput = ['fixed.txt']\nshell = 'false'\n"
    folder.write("main.oxoflow", f"{text}\n{fixed}")
    folder.treadle("run", "-k", exits=1)
    assert not (folder / "all.txt").exists()


def test_a_script_and_the_list_of_inputs_get_what_is_left(folder):
    folder.write(
        "count.py",
        "import os, sys\nopen(sys.argv[1], 'w').write(' '.join(sys.argv[2:]) + os.environ['ALL'])\n",
    )
    lay_out(folder, bad="b", more="script = 'count.py list.txt {input}'\nenvvars = { ALL = '{input}' }")
    text = folder.read("main.oxoflow").replace("'''echo ran", "'''cat {input.list} > lines.txt; echo ran")
    folder.write("main.oxoflow", text)
    folder.treadle("run", exits=1)
    left = ["two/a.txt", "two/c.txt", "two/d.txt"]
    assert folder.read("lines.txt").split() == left
    assert folder.read("list.txt") == " ".join(left) * 2


@pytest.mark.parametrize("value", ["'ten'", "'120%'", "-1", "1.5", "true"])
def test_what_is_no_number_of_tasks_is_refused(folder, value):
    folder.flow(f"[[rules]]\nname = 'r'\noutput = ['a']\nshell = 'echo > a'\nallow_missing = {value}\n")
    assert "is wanted" in folder.treadle("run", exits=2).stderr


def test_on_a_scheduler_the_job_is_sent_for_what_is_left(folder, fake_cluster):
    folder.write("profiles/there.toml", fake_site(fake_cluster("slurm", slots=4)).profile())
    lay_out(folder, bad="c")
    told = folder.treadle("run", "--profile", "there", exits=1).stderr
    assert "all is partial: it was made without two/c.txt" in told
    assert folder.read("report.txt") == words("a", "b", "d")
    folder.write("in/c.txt", "c\n")
    folder.treadle("run", "--profile", "there")
    assert folder.read("report.txt") == words("a", "b", "c", "d")


def test_where_nothing_is_gathered_it_has_no_effect_and_that_is_said(folder):
    folder.write("in.txt", "in\n")
    rule = "[[rules]]\nname = 'r'\ninput = ['in.txt']\noutput = ['a']\nshell = 'cp in.txt a'\n"
    folder.flow(f"{rule}allow_missing = 1\n")
    assert "'allow_missing' has no effect here: no task of rule r" in folder.treadle("plan").stderr
    folder.treadle("run", "--strict", exits=2)
    lay_out(folder, bad="")
    assert "no effect" not in folder.treadle("plan").stderr
