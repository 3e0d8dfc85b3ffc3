"""Fields of public files beyond the format: what has one meaning has it, the rest is told what to write."""

from __future__ import annotations

import pytest
from rules_world import error, tasks

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.rules.file.read import ReadOptions, read_text

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
RULE = '[[rules]]\nname = "r"\noutput = ["{x}"]\nshell = "touch {output}"\n'
PLAIN = '[[rules]]\nname = "r"\noutput = ["o"]\nshell = "touch {output}"\n'
FROM = '[[values]]\nname = "x"\nvalues_from = "config.xs"\n'


def test_values_come_from_a_list_or_a_text_with_commas_in_config():
    for written in ('["a", "b", 3]', '"a, b,3"'):
        assert list(tasks(f"[config]\nxs = {written}\n{FROM}{RULE}")) == ["r/x=a", "r/x=b", "r/x=3"]
    assert list(tasks(f"[config]\nxs = ['a,b']\n{FROM}{RULE}")) == ["r/x=a%2Cb"]
    assert list(tasks(f"[config]\nxs = 7\n{FROM.replace('config.', '')}{RULE}")) == ["r/x=7"]


def test_they_can_be_given_from_outside_and_refer_to_other_keys():
    text = "[config]\nxs = ['a', '{config.more}']\nmore = ['c', 'd', 'a']\n" + FROM + RULE
    assert list(tasks(text)) == ["r/x=a", "r/x=c", "r/x=d"]
    assert list(tasks(text, config=[("xs", "e,f")])) == ["r/x=e", "r/x=f"]


def test_they_multiply_in_the_place_of_their_table():
    two = '[[values]]\nname = "y"\nvalues = [1, 2]\n'
    text = "[config]\nxs = ['a', 'b']\n" + FROM + two + RULE.replace("{x}", "{x}.{y}")
    assert list(tasks(text)) == ["r/x=a,y=1", "r/x=a,y=2", "r/x=b,y=1", "r/x=b,y=2"]


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ("ys = ['a']", "unknown-config"),
        ("xs = []", "no-values"),
        ("xs = ''", "no-values"),
        ("xs = ['a/b']", "bad-value"),
        ("xs = { default = 'a', sensitive = true }", "secret-in-path"),
    ],
)
def test_a_key_that_cannot_give_values_is_an_error_at_the_table(config, code):
    found = error(f"[config]\n{config}\n{FROM}{RULE}")
    assert (found.code, found.place.line, found.place.key) == (code, 8, "values_from")


def test_of_both_the_config_key_counts_and_one_of_them_is_needed():
    both = f"[config]\nxs = ['a', 'b']\n{FROM}values = ['c']\n{RULE}"
    assert list(tasks(both)) == ["r/x=a", "r/x=b"]
    assert [one.code for one in read_text(HEAD + both).warnings] == ["no-effect"]
    assert error(FROM.replace('values_from = "config.xs"\n', "") + RULE).code == "missing-key"


def read_errors(text: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        read_text(HEAD + text)
    return list(caught.value.diagnostics)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (PLAIN + 'output_pattern = "{sample}.x"', "'output'"),
        (PLAIN + "[[rules.input_groups]]\npattern = 'a/{s}'\ngroup_by = 's'", "'input'"),
        (PLAIN + 'named_input = { a = "b" }', "input = { NAME"),
        (PLAIN + 'named_output = { a = "b" }', "output = { NAME"),
        (PLAIN + 'on_complete = "x"', "on_success"),
        (PLAIN + 'on_error = "x"', "on_failure"),
        (PLAIN + '[[pairs]]\npair_id = "p"\nexperiment = "e"\nwhen = "x"', "'when' of rules"),
        (PLAIN + '[[pairs]]\npair_id = "p"\nexperiment = "e"\nmetadata_file = "x"', "pairs_file"),
        (PLAIN + '[[sample_groups]]\nname = "g"\nsamples = ["s"]\nmetadata_file = "x"', "sample_groups_file"),
        ('metadata_file = "x"\n' + PLAIN, "wildcards"),
        ('[defaults]\ntime = "1h"\n' + PLAIN, "time_limit"),
        (PLAIN + 'environment = { docker = "a:1", gpus = true }', "resources.gpu"),
    ],
)
def test_a_field_that_says_nothing_certain_is_an_error_that_says_what_to_write(text, word):
    (found,) = read_errors(text)
    assert found.code == "write-instead"
    assert word in found.hint


def test_optional_takes_true_and_says_what_that_means():
    (found,) = read_errors(PLAIN + 'optional = "any"')
    assert (found.code, found.hint) == ("wrong-type", "true skips the task when any source input is missing")


@pytest.mark.parametrize(
    "text",
    [
        '[webhook]\nurl = "https://example.org"\n',
        'on_complete = "x"\n',
        'on_error = "x"\n',
        'sample_group_name = "cohort"\n',
        "[resource_groups]\ndb = { max = 2, wait = false }\n",
    ],
)
def test_what_changes_no_result_is_a_warning(text):
    (found,) = read_text(HEAD + text + PLAIN).warnings
    assert found.code == "no-effect"


def test_metadata_of_the_workflow_is_kept_and_a_group_may_say_that_it_waits():
    text = '[metadata]\nauthor = "me"\n[resource_groups]\ndb = { max = 2, wait = true }\n'
    workflow = read_text(HEAD + text + PLAIN, options=ReadOptions(strict=True))
    assert workflow.about["metadata"] == {"author": "me"}
    assert workflow.pools == (("db", 2),)


def test_a_time_limit_of_the_defaults_holds_for_rules_that_have_none():
    text = '[defaults]\ntime_limit = "2h"\n' + PLAIN
    own = text + 'resources = { time_limit = "30m" }\n'
    assert (tasks(text)["r"].resources.time_limit, tasks(own)["r"].resources.time_limit) == (7200, 1800)
