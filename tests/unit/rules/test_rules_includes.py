"""`[[include]]`: names, namespaces and places of included files; circles, and what an include cannot say."""

from __future__ import annotations

import pytest
from include_world import include, rule

from treadle.base.errors import OptionError, WorkflowError
from treadle.rules.expand.expand import expand
from treadle.rules.pattern.listing import PathListing


def test_rules_of_an_included_file_are_rules_of_the_workflow(world):
    tasks = world.tasks({"main.oxoflow": include("qc.oxoflow") + rule("a"), "qc.oxoflow": rule("b")})
    assert sorted(tasks) == ["a", "b"]


def test_a_namespace_stands_before_the_names_of_rules_and_in_the_ids_of_tasks(world):
    tasks = world.tasks(
        {
            "main.oxoflow": include("qc.oxoflow", 'namespace = "qc"')
            + '[[values]]\nname = "n"\nvalues = [1]\n'
            + rule("b", "b", 'depends_on = ["qc::b"]'),
            "qc.oxoflow": rule("b", "qc/{n}"),
        }
    )
    assert sorted(tasks) == ["b", "qc::b/n=1"]
    assert tasks["b"].depends_on == ("qc::b",)


def test_namespaces_of_nested_includes_join(world):
    tasks = world.tasks(
        {
            "main.oxoflow": include("a.oxoflow", 'namespace = "a"'),
            "a.oxoflow": include("sub/b.oxoflow", 'namespace = "b"'),
            "sub/b.oxoflow": rule("r"),
        }
    )
    assert list(tasks) == ["a::b::r"]


def test_a_name_means_the_rule_of_the_innermost_namespace_that_has_it(world):
    tasks = world.tasks(
        {
            "main.oxoflow": include("a.oxoflow", 'namespace = "a"') + rule("far") + rule("near", "near0"),
            "a.oxoflow": include("b.oxoflow", 'namespace = "b"') + rule("near", "near1"),
            "b.oxoflow": rule("r", "r", 'depends_on = ["near", "far", "own"]') + rule("own"),
        }
    )
    assert tasks["a::b::r"].depends_on == ("a::near", "far", "a::b::own")


def test_nested_includes_are_looked_for_from_the_main_file_s_folder(world):
    files = {
        "main.oxoflow": include("sub/a.oxoflow"),
        "sub/a.oxoflow": include("sub/b.oxoflow"),
        "sub/b.oxoflow": rule("r"),
    }
    assert list(world.tasks(files)) == ["r"]
    found = world.error({**files, "sub/a.oxoflow": include("b.oxoflow")})
    assert (found.code, world.where(found)) == (
        "no-file",
        "sub/a.oxoflow:2 [include[0].path]",
    )


def test_scripts_are_looked_for_from_the_main_file_s_folder(world):
    made = '[[rules]]\nname = "r"\noutput = ["o"]\nscript = "scripts/r.sh"\n'
    files = {"main.oxoflow": include("sub/a.oxoflow"), "sub/a.oxoflow": made}
    workflow = world.read(files)
    there = str(world.root / "scripts/r.sh")
    assert expand(workflow, PathListing([there])).drafts[0].command.script_file.endswith("/scripts/r.sh")
    with pytest.raises(WorkflowError) as caught:
        expand(workflow, PathListing([str(world.root / "sub/scripts/r.sh")]))
    assert caught.value.diagnostics[0].code == "no-script"


def test_two_rules_of_one_name_are_an_error_with_both_places(world):
    found = world.error(
        {"main.oxoflow": include("b.oxoflow") + rule("r"), "b.oxoflow": "\n" + rule("r", "o2")}
    )
    assert found.code == "duplicate-rule"
    assert world.where(found) == "b.oxoflow:3 [rules.r.name]"
    assert "main.oxoflow:" in found.hint
    assert "namespace" in found.hint


def test_a_file_that_is_included_twice_without_namespaces_is_an_error(world):
    files = {
        "main.oxoflow": include("a.oxoflow") + include("b.oxoflow"),
        "a.oxoflow": include("c.oxoflow") + rule("a"),
        "b.oxoflow": include("c.oxoflow") + rule("b"),
        "c.oxoflow": rule("c"),
    }
    assert [one.code for one in world.errors(files)] == ["duplicate-rule"]
    files["a.oxoflow"] = include("c.oxoflow", 'namespace = "one"') + rule("a")
    files["c.oxoflow"] = rule("c", "{config.c}")
    files["b.oxoflow"] = include("c.oxoflow", 'namespace = "two"\nparams = { c = "2" }') + rule("b")
    files["a.oxoflow"] = files["a.oxoflow"].replace('"one"', '"one"\nparams = { c = "1" }')
    assert {name: one.outputs for name, one in world.tasks(files).items() if "::" in name} == {
        "one::c": ("1",),
        "two::c": ("2",),
    }


def test_files_that_include_each_other_in_a_circle_are_an_error_that_draws_it(world):
    found = world.error(
        {
            "main.oxoflow": include("a.oxoflow"),
            "a.oxoflow": include("b.oxoflow", 'namespace = "n"'),
            "b.oxoflow": include("./sub/../a.oxoflow", 'namespace = "m"'),
        }
    )
    assert found.code == "include-cycle"
    assert found.message.replace(f"{world.root}/", "").endswith("a.oxoflow -> b.oxoflow -> a.oxoflow")
    again = world.error({"main.oxoflow": include("main.oxoflow") + rule("r")})
    assert again.code == "include-cycle"


def test_files_that_double_with_every_level_are_refused(world):
    twice = 'namespace = "x"\n', 'namespace = "y"\n'
    files = {f"f{n}.oxoflow": "".join(include(f"f{n + 1}.oxoflow", one) for one in twice) for n in range(12)}
    found = world.errors(
        {"main.oxoflow": include("f0.oxoflow"), **files, "f12.oxoflow": rule("r", "{config.none}")}
    )
    assert [one.code for one in found if one.code != "unknown-config"] == ["too-many-includes"]


def test_errors_of_all_files_are_told_at_once_each_with_its_file(world):
    found = world.errors(
        {
            "main.oxoflow": include("a.oxoflow") + include("b.oxoflow") + include("c.oxoflow") + rule("1"),
            "a.oxoflow": "[[rules]\n",
            "b.oxoflow": rule("r", "r", "thread = 3"),
            "c.oxoflow": '[[rules]]\nname = "c"\nshell = "cat \\t x"\nthreads = "4"\noutput = ["c"]\n',
        }
    )
    assert [(one.code, world.where(one)) for one in found] == [
        ("bad-name", "main.oxoflow:14 [rules.1.name]"),
        ("toml-syntax", "a.oxoflow:1"),
        ("unknown-key", "b.oxoflow:5 [rules.r.thread]"),
        ("wrong-type", "c.oxoflow:4 [rules.c.threads]"),
    ]


def test_an_escape_in_an_included_file_is_told_with_its_own_line(world):
    workflow = world.read(
        {
            "main.oxoflow": "# one\n# two\n" + include("c.oxoflow"),
            "c.oxoflow": '[[rules]]\nname = "c"\noutput = ["c"]\nshell = "printf \'a\\tb\' > {output}"\n',
        }
    )
    (found,) = workflow.warnings
    assert (found.code, world.where(found)) == ("escape-in-shell", "c.oxoflow:4 [rules.c.shell]")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ('namespace = "a b"', "bad-name"),
        ('namespace = "a::b"', "bad-name"),
        ('namespace = "env"', "reserved-name"),
        ('repo = "x"', "missing-key"),
        ('ref = "x"', "missing-key"),
        ('nmespace = "x"', "unknown-key"),
        ("inputs = 3", "wrong-type"),
        ("params = { x = { y = 1 } }", "wrong-type"),
    ],
)
def test_what_an_include_cannot_say_is_an_error(world, more, code):
    assert world.error({"main.oxoflow": include("a.oxoflow", more), "a.oxoflow": rule("a")}).code == code


def test_an_include_without_a_path_is_an_error(world):
    assert world.error({"main.oxoflow": '[[include]]\nnamespace = "x"\n' + rule("a")}).code == "missing-key"


def test_a_file_that_is_not_there_is_told_where_it_is_included(world):
    found = world.error({"main.oxoflow": include("qx.oxoflow") + rule("a"), "qc.oxoflow": rule("b")})
    assert (found.code, world.where(found)) == ("no-file", "main.oxoflow:5 [include[0].path]")
    assert found.hint == "did you mean 'qc.oxoflow'?"


def test_an_included_file_cannot_be_an_output(world):
    from treadle.api.pipe import Request, plan_of
    from treadle.base.errors import PlanError

    file = world.put({"main.oxoflow": include("m.oxoflow"), "m.oxoflow": rule("r", "m.oxoflow")})
    with pytest.raises(PlanError) as caught:
        plan_of(Request(file=file))
    assert "m.oxoflow" in caught.value.diagnostics[0].message


def test_a_module_that_is_not_there_is_an_error_with_the_nearest_name(world):
    from treadle.api.pipe import Request, plan_of

    file = world.put({"main.oxoflow": include("rules/qc.oxoflow") + rule("a"), "rules/qc.oxoflow": rule("b")})
    assert plan_of(Request(file=file, modules=("qc",))).selected == {"b"}
    with pytest.raises(OptionError) as caught:
        plan_of(Request(file=file, modules=("qcc",)))
    assert caught.value.diagnostics[0].hint == "did you mean 'qc'?"


def test_pieces_of_an_included_rule_go_to_a_rule_of_its_own_namespace(world):
    text = rule(
        "cut", "p/{part}", "scatter = { variable = 'part', values_from = 'config.parts', gather = 'all' }"
    ) + rule("all", "all")
    files = {
        "main.oxoflow": include("m.oxoflow", 'namespace = "m"') + rule("all", "other"),
        "m.oxoflow": "[config]\nparts = ['x', 'y']\n" + text,
    }
    assert world.tasks(files)["m::all"].inputs == ("p/x", "p/y")


def test_a_module_may_be_called_reference_beside_references_of_other_names(world):
    built = '[[references]]\nname = "{}"\noutput = "ref.x"\nbuild = "touch {{output}}"\n'
    files = {
        "main.oxoflow": include("a.oxoflow", 'namespace = "reference"') + built.format("b"),
        "a.oxoflow": rule("a"),
    }
    assert [one.name for one in world.read(files).rules] == ["reference::b", "reference::a"]
    files["main.oxoflow"] = files["main.oxoflow"].replace('name = "b"', 'name = "a"')
    assert world.error(files).code == "duplicate-rule"
