"""`extends`: fields of another rule, field by field, with their places; templates; circles."""

from __future__ import annotations

import pytest
from rules_world import error, errors, tasks

from treadle.rules.file.read import ReadOptions, read_again, read_text
from treadle.rules.schema import Rule

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
BASE = """
[[rules]]
name = "base"
shell = "run --level {params.level} --mode {params.mode} > {output}"
retries = 2
tags = ["a", "b"]
[rules.params]
level = 1
mode = "fast"
[rules.resources]
threads = 4
memory = "8G"
[rules.envvars]
A = "1"
"""


def rules(text: str) -> dict[str, Rule]:
    return {rule.name: rule for rule in read_text(HEAD + text).rules}


def child(more: str = "", name: str = "child", parent: str = "base") -> str:
    return f'[[rules]]\nname = "{name}"\nextends = "{parent}"\noutput = ["{name}.txt"]\n{more}\n'


def test_a_rule_takes_over_what_it_does_not_say_itself():
    found = rules(BASE + child("retries = 5"))["child"]
    assert found.shell.startswith("run --level")
    assert (found.policy.retries, found.policy.tags) == (5, ("a", "b"))
    assert (found.resources.threads, found.memory_text) == (4, "8G")
    assert found.extends == "base"


def test_tables_inside_are_taken_over_key_by_key():
    more = "params = { level = 2 }\nresources = { memory = '2G' }\nenvvars = { B = '2' }"
    found = rules(BASE + child(more))["child"]
    assert found.params == {"mode": "fast", "level": 2}
    assert (found.resources.threads, found.memory_text) == (4, "2G")
    assert found.envvars == {"A": "1", "B": "2"}


def test_the_parent_may_stand_below_and_extend_another_one():
    text = child("", "c", "b") + child("retries = 3\nparams = { mode = 'slow' }", "b", "base") + BASE
    found = rules(text)["c"]
    assert (found.policy.retries, found.params) == (3, {"level": 1, "mode": "slow"})
    assert found.resources.threads == 4


def test_a_rule_without_a_command_that_is_extended_is_a_template_and_makes_no_tasks():
    template = '[[rules]]\nname = "base"\noutput = ["x"]\nthreads = 3\n'
    assert list(tasks(template + child('shell = "touch {output}"'))) == ["child"]
    assert tasks(BASE.replace('"base"', '"base"\noutput = ["b"]') + child()).keys() == {"base", "child"}


def test_a_template_may_have_nothing_but_resources():
    template = '[[rules]]\nname = "big"\n[rules.resources]\nthreads = 8\n'
    found = rules(template + child('shell = "touch {output}"', parent="big"))
    assert list(found) == ["child"]
    assert found["child"].resources.threads == 8


def test_a_rule_that_cannot_do_without_a_command_still_needs_one():
    template = '[[rules]]\nname = "base"\noutput = ["x"]\n'
    assert error(template + child()).code == "no-command"


def test_nobody_can_depend_on_a_template():
    template = '[[rules]]\nname = "base"\nthreads = 3\n'
    found = error(template + child('shell = "true"\ndepends_on = ["base"]'))
    assert found.code == "unknown-rule"
    assert "makes no tasks" in found.message


def test_a_command_is_one_thing():
    scripted = '[[rules]]\nname = "base"\noutput = ["b"]\nscript = "s.x"\ninterpreter = "sh"\n'
    found = rules(scripted + child('shell = "true"'))["child"]
    assert (found.shell, found.script, found.interpreter) == ("true", "", "")
    again = rules(scripted + child('script = "t.x"'))["child"]
    assert (again.script, again.interpreter) == ("t.x", "sh")


@pytest.mark.parametrize(
    ("parent", "own"),
    [
        ("threads = 4", "resources = { threads = 2 }"),
        ("[rules.resources]\nthreads = 4", "threads = 2"),
        ("[rules.resources]\nthreads = 4", "resources = { threads = 2 }"),
    ],
)
def test_both_spellings_of_a_resource_are_one(parent, own):
    base = f'[[rules]]\nname = "base"\nshell = "true"\n{parent}\n'
    assert rules(base + child(own))["child"].resources.threads == 2


def test_the_gpus_of_a_parent_give_way_to_those_of_the_rule():
    base = '[[rules]]\nname = "base"\nshell = "true"\nresources = { gpu = 1 }\n'
    found = rules(base + child("resources = { gpu_spec = { count = 2, model = 'x' } }"))["child"]
    assert (found.resources.gpus, found.resources.gpu_model) == (2, "x")


def test_an_error_in_a_field_is_told_once_where_it_stands():
    found = error(BASE.replace("{output}", "{outptu}").replace('"base"', '"base"\noutput = ["b"]') + child())
    assert str(found.place) == "main.oxoflow:8 [rules.base.shell]"
    inside = error(BASE.replace("threads = 4", "threads = 0") + child("resources = { memory = '1G' }"))
    assert str(inside.place) == "main.oxoflow:14 [rules.base.resources.threads]"


def test_a_rule_that_does_not_exist_cannot_be_extended():
    base = '[[rules]]\nname = "base"\noutput = ["b"]\nshell = "true"\n'
    found = error(base + child(parent="bas"))
    assert (found.code, found.hint) == ("unknown-rule", "did you mean 'base'?")
    assert str(found.place) == "main.oxoflow:10 [rules.child.extends]"


def test_rules_that_extend_each_other_in_a_circle_are_an_error_that_draws_it():
    text = child('shell = "true"', "a", "b") + child("", "b", "c") + child("", "c", "a")
    found = [one for one in errors(text) if one.code == "extends-cycle"]
    assert [one.message for one in found] == ["rules extend each other in a circle: a -> b -> c -> a"]
    assert errors(child('shell = "true"', "a", "a"))[0].code == "extends-cycle"


def test_a_long_chain_is_no_trouble():
    text = BASE + "".join(child("", f"r{n}", f"r{n + 1}" if n < 1999 else "base") for n in range(2000))
    assert rules(text)["r0"].params == {"level": 1, "mode": "fast"}


def test_the_same_outputs_as_the_parent_s_are_refused_as_of_any_two_rules(tmp_path):
    from treadle.api.pipe import Request, plan_of
    from treadle.base.errors import PlanError

    (tmp_path / "main.oxoflow").write_text(
        HEAD + '[[rules]]\nname = "a"\noutput = ["o"]\nshell = "true"\n[[rules]]\nname = "b"\nextends = "a"\n'
    )
    with pytest.raises(PlanError) as caught:
        plan_of(Request(file=str(tmp_path / "main.oxoflow")))
    assert caught.value.diagnostics[0].code == "two-producers"


def test_what_extends_a_wrong_rule_is_left_out_when_the_others_are_looked_at(tmp_path):
    file = tmp_path / "main.oxoflow"
    file.write_text(
        HEAD
        + BASE.replace("threads = 4", "threads = 0")
        + child()
        + child(name="x", parent="child")
        + '[[rules]]\nname = "other"\noutput = ["o"]\nshell = "true"\n'
    )
    sound = read_again(str(file), ReadOptions()).sound
    assert sound is not None
    assert [rule.name for rule in sound.rules] == ["other"]
