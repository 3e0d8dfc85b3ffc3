"""Config of included files: which value counts, params, and secrets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from include_world import World, include, rule

from treadle.base.errors import WorkflowError
from treadle.rules.expand.expand import expand
from treadle.rules.pattern.listing import PathListing


def seen(
    world: World, main: str, params: str = "", config: str = "", given: Sequence[tuple[str, str]] = ()
) -> str:
    """What an included rule sees of two keys."""
    text = '[[rules]]\nname = "r"\noutput = ["o"]\nshell = "echo {config.key} {config.deep}"\n'
    files = {
        "main.oxoflow": main + include("m.oxoflow", f"params = {{ {params} }}"),
        "m.oxoflow": f'[config]\n{config}\ndeep = "<{{config.key}}>"\n' + text,
    }
    workflow = world.read(files, given)
    return expand(workflow, PathListing([])).drafts[0].command.text


def test_the_host_s_config_counts_before_params_and_these_before_the_file_s_own(world):
    assert seen(world, "", config="key = 'own'") == "echo own <own>"
    assert seen(world, "", "key = 'param'", "key = 'own'") == "echo param <param>"
    assert seen(world, "[config]\nkey = 'host'\n", "key = 'param'", "key = 'own'") == "echo host <host>"
    said = seen(world, "[config]\nkey = 'host'\n", "key = 'param'", given=[("key", "said")])
    assert said == "echo said <said>"


def test_a_key_of_an_included_file_can_be_set_from_outside_and_keeps_its_type(world):
    assert seen(world, "", config="key = { default = 3, type = 'int' }") == "echo 3 <3>"
    with pytest.raises(WorkflowError) as caught:
        world.read(
            {
                "main.oxoflow": include("m.oxoflow"),
                "m.oxoflow": "[config]\nk = 3\n" + rule("r", "{config.k}"),
            },
            [("k", "three")],
        )
    assert [one.code for one in caught.value.diagnostics] == ["config-type"]


def test_two_files_may_have_one_key_with_two_values(world):
    text = rule("r", "{config.ns}.{config.level}")
    tasks = world.tasks(
        {
            "main.oxoflow": include("a.oxoflow", 'namespace = "a"\nparams = { ns = "a" }')
            + include("b.oxoflow", 'namespace = "b"\nparams = { ns = "b" }')
            + rule("m", "m.{config.level}"),
            "a.oxoflow": "[config]\nlevel = 1\n" + text,
            "b.oxoflow": "[config]\nlevel = 2\n" + text,
        }
    )
    assert [one.outputs for one in tasks.values()] == [("m.1",), ("a.1",), ("b.2",)]


def test_a_required_key_of_an_included_file_is_told_at_its_place(world):
    found = world.error(
        {
            "main.oxoflow": include("m.oxoflow"),
            "m.oxoflow": "[config]\nk = { required = true }\n" + rule("r", "o"),
        }
    )
    assert (found.code, world.where(found)) == ("config-required", "m.oxoflow:2 [config.k]")


def test_two_values_of_one_secret_are_refused(world):
    files = {
        "main.oxoflow": include("a.oxoflow", 'namespace = "a"') + include("b.oxoflow", 'namespace = "b"'),
        "a.oxoflow": "[config]\nkey = { default = 'one', sensitive = true }\n" + rule("a"),
        "b.oxoflow": "[config]\nkey = { default = 'two', sensitive = true }\n" + rule("b"),
    }
    assert world.error(files).code == "config-differs"
    files["main.oxoflow"] += "[config]\nkey = 'three'\n"
    assert sorted(world.tasks(files)) == ["a::a", "b::b"]


def test_what_one_file_calls_a_secret_is_one_for_all(world):
    key = "[config]\ntoken = { default = 'open' }\n"
    secret = "[config]\ntoken = { default = 'hush', sensitive = true }\n"
    include = "[[include]]\npath = 'a.oxoflow'\n"
    rule = "[[rules]]\nname = 'r'\noutput = ['o']\nshell = 'echo {config.token} > o'\n"
    read = world.read({"main.oxoflow": key + include, "a.oxoflow": secret + rule})
    assert "token" in read.sensitive
    assert read.config["token"] == "open"


def test_a_config_value_that_no_file_has_is_guessed_over_all_files(world):
    with pytest.raises(WorkflowError) as caught:
        world.read(
            {"main.oxoflow": include("m.oxoflow"), "m.oxoflow": "[config]\nlevel = 3\n" + rule("r", "o")},
            [("levle", "4")],
        )
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint) == ("unknown-config", "did you mean 'level'?")


def test_what_check_says_of_a_config_path_is_said_with_the_file_s_own_value(world):
    from treadle.api.check import check
    from treadle.api.pipe import Request

    made = '[[rules]]\nname = "r"\noutput = ["{config.ns}"]\ninput = ["a.fa"]\n'
    made += 'shell = "use {config.ref} > {output}"\n'
    file = world.put(
        {
            "main.oxoflow": include("m.oxoflow", 'namespace = "a"\nparams = { ref = "a.fa", ns = "a" }')
            + include("m.oxoflow", 'namespace = "b"\nparams = { ref = "b.fa", ns = "b" }'),
            "m.oxoflow": "[config]\nref = { type = 'path' }\n" + made,
        }
    )
    (world.root / "a.fa").write_text("")
    found = [one for one in check(Request(file=file)).warnings if one.code == "config-path-not-input"]
    assert ["rule b::r" in one.message for one in found] == [True]


def test_params_may_refer_to_the_host_s_keys_and_to_the_file_s_own(world):
    tasks = world.tasks(
        {
            "main.oxoflow": "[config]\nresults = 'res'\n"
            + include("m.oxoflow", 'params = { out = "{config.results}/{config.kind}" }'),
            "m.oxoflow": "[config]\nkind = 'qc'\n" + rule("r", "{config.out}/x"),
        }
    )
    assert tasks["r"].outputs == ("res/qc/x",)
