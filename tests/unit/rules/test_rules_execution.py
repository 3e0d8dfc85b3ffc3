"""`[[execution_group]]` and `[resource_budget]` as they are read, and what is wrong with them."""

from __future__ import annotations

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.plan.task import Ceilings, ExecutionGroup
from treadle.rules.file.read import read_text
from treadle.rules.schema import Workflow

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
RULES = "".join(
    f'[[rules]]\nname = "{name}"\noutput = ["{name}"]\nshell = "touch {{output}}"\n' for name in "abc"
)


def workflow(text: str) -> Workflow:
    return read_text(HEAD + text + RULES)


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        workflow(text)
    return list(caught.value.diagnostics)


def group(rules: str, more: str = 'mode = "sequential"', name: str = "g") -> str:
    return f'[[execution_group]]\nname = "{name}"\nrules = {rules}\n{more}\n'


def test_a_sequential_group_is_kept_and_a_parallel_one_says_nothing():
    found = workflow(group('["b", "a"]') + group('["a", "c"]', 'mode = "parallel"', "h"))
    assert found.sequences == (ExecutionGroup("g", ("b", "a")),)
    assert not found.warnings


def test_a_group_without_a_mode_is_named_as_having_no_effect():
    (warning,) = workflow(group('["a", "b"]', "")).warnings
    assert (warning.code, warning.place.table) == ("no-effect", "execution_group.g")


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        (group('["a", "bb"]'), "unknown-rule", "rules[1]"),
        (group('["a", "b", "a"]'), "said-twice", "rules[2]"),
        (group('["a"]', 'mode = "serial"'), "bad-value", "mode"),
        (group('["a"]', "order = 1"), "unknown-key", "order"),
        ('[[execution_group]]\nrules = ["a"]\nmode = "parallel"\n', "missing-key", ""),
        ('[[execution_group]]\nname = "g"\nmode = "parallel"\n', "missing-key", ""),
        (group('["a"]') + group('["b"]'), "duplicate-name", "name"),
    ],
)
def test_what_a_group_cannot_say_is_an_error(text, code, key):
    (found,) = errors(text)
    assert (found.code, found.place.key) == (code, key)


def test_a_mistyped_rule_of_a_group_is_guessed():
    text = '[[rules]]\nname = "align"\noutput = ["x"]\nshell = "true"\n'
    (found,) = errors(group('["aling"]') + text)
    assert found.hint == "did you mean 'align'?"


def test_the_parts_of_a_rule_stand_in_a_group_in_its_place():
    parts = (
        '[[rules]]\nname = "t"\noutput = ["t"]\n[rules.transform]\nmap = "echo {n} > {output}"\n'
        'split = { by = "n", values = [1, 2] }\ncombine = { aggregate = true }\n'
    )
    ((_, rules),) = [(one.name, one.rules) for one in workflow(group('["a", "t", "b"]') + parts).sequences]
    assert (rules[0], rules[-2], rules[-1]) == ("a", "t", "b")
    assert len(rules) > 3


def test_ceilings_are_read_by_either_name():
    wanted = Ceilings(threads=4, memory=8 << 30, jobs=2)
    assert workflow('[resource_budget]\nthreads = 4\nmemory = "8G"\njobs = 2\n').ceilings == wanted
    assert (
        workflow('[resource_budget]\nmax_threads = 4\nmax_memory = "8G"\nmax_jobs = 2\n').ceilings == wanted
    )
    assert workflow("").ceilings is None
    (found,) = errors("[resource_budget]\nthreads = 4\nmax_threads = 5\n")
    assert found.code == "said-twice"


def test_a_rule_that_asks_for_more_than_the_budget_is_an_error_at_what_it_asks():
    big = '[[rules]]\nname = "big"\noutput = ["x"]\nshell = "true"\n'
    big += 'resources = { threads = 8, memory = "9G" }\n'
    found = errors('[resource_budget]\nthreads = 4\nmemory = "8G"\n' + big)
    assert [(one.code, one.place.key) for one in found] == [
        ("beyond-budget", "resources.threads"),
        ("beyond-budget", "resources.memory"),
    ]
    assert "asks for 8 threads, but [resource_budget] allows 4" in found[0].message


def test_defaults_beyond_the_budget_are_told_for_each_rule():
    found = errors("[defaults]\nthreads = 8\n[resource_budget]\nthreads = 4\n")
    assert [(one.code, one.place.table) for one in found] == [
        ("beyond-budget", f"rules.{name}") for name in "abc"
    ]
