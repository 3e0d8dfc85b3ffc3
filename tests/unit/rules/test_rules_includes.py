"""`[[include]]`: names, defaults, config, constraints and sources of included files; what can be wrong."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import pytest

from treadle.base.errors import OptionError, WorkflowError
from treadle.base.names import task_id
from treadle.base.place import Diagnostic
from treadle.plan.task import Draft
from treadle.rules.expand.expand import Expansion, expand
from treadle.rules.file.read import ReadOptions, read
from treadle.rules.pattern.listing import PathListing
from treadle.rules.schema import Workflow

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'


class World:
    """A folder with workflow files."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def put(self, files: Mapping[str, str]) -> str:
        for name, text in files.items():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((HEAD if name == "main.oxoflow" else "") + text)
        return str(self.root / "main.oxoflow")

    def read(self, files: Mapping[str, str], config: Sequence[tuple[str, str]] = ()) -> Workflow:
        return read(self.put(files), ReadOptions(config=tuple(config)))

    def expand(self, files: Mapping[str, str], disk: Sequence[str] = ()) -> Expansion:
        return expand(self.read(files), PathListing(disk))

    def tasks(self, files: Mapping[str, str], disk: Sequence[str] = ()) -> dict[str, Draft]:
        return {task_id(one.rule, one.wildcards): one for one in self.expand(files, disk).drafts}

    def errors(self, files: Mapping[str, str]) -> list[Diagnostic]:
        with pytest.raises(WorkflowError) as caught:
            self.expand(files)
        return list(caught.value.diagnostics)

    def error(self, files: Mapping[str, str]) -> Diagnostic:
        (found,) = self.errors(files)
        return found

    def where(self, found: Diagnostic) -> str:
        return str(found.place).replace(f"{self.root}/", "")


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


def include(path: str, more: str = "") -> str:
    return f'[[include]]\npath = "{path}"\n{more}\n'


def rule(name: str, output: str = "", more: str = "", shell: str = "touch {output}") -> str:
    return f'[[rules]]\nname = "{name}"\noutput = ["{output or name}"]\nshell = "{shell}"\n{more}\n'


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


def test_defaults_of_an_included_file_hold_for_its_rules_and_else_those_around_it(world):
    shown = '"echo {threads} {memory} > {output}"'
    made = f'[[rules]]\nname = "r"\noutput = ["{{config.x}}"]\nshell = {shown}\n'
    files = {
        "main.oxoflow": '[defaults]\nthreads = 2\nmemory = "4G"\nshell_prelude = "set -u"\n'
        + include("a.oxoflow", 'namespace = "a"\nparams = { x = "a" }')
        + include("b.oxoflow", 'namespace = "b"\nparams = { x = "b" }')
        + rule("m"),
        "a.oxoflow": "[defaults]\nthreads = 3\n" + made,
        "b.oxoflow": '[workflow]\nshell_executable = "sh"\nstrict_shell = false\n' + made,
    }
    tasks = world.tasks(files)
    asked = {name: (one.resources.threads, one.resources.memory) for name, one in tasks.items()}
    assert asked == {"m": (2, 4 << 30), "a::r": (3, 4 << 30), "b::r": (2, 4 << 30)}
    assert tasks["a::r"].policy.shell.strict
    assert tasks["a::r"].policy.shell.prelude == "set -u"
    assert tasks["b::r"].policy.shell.executable == "sh"
    assert not tasks["b::r"].policy.shell.strict


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


def test_constraints_of_an_included_file_hold_for_its_rules_alone(world):
    files = {
        "main.oxoflow": include("m.oxoflow") + rule("a", "a/{x}", 'input = ["in/{x}.txt"]'),
        "m.oxoflow": '[wildcard_constraints]\nx = "[0-9]+"\n' + rule("b", "b/{x}", 'input = ["in/{x}.txt"]'),
    }
    tasks = world.tasks(files, ["in/1.txt", "in/one.txt"])
    assert sorted(tasks) == ["a/x=1", "a/x=one", "b/x=1"]


def test_values_of_tables_must_match_the_constraint_of_a_file_whose_rules_name_them(world):
    files = {
        "main.oxoflow": '[[values]]\nname = "x"\nvalues = ["one"]\n'
        + include("m.oxoflow")
        + rule("a", "a/{x}"),
        "m.oxoflow": '[wildcard_constraints]\nx = "[0-9]+"\n' + rule("b", "b"),
    }
    assert sorted(world.tasks(files)) == ["a/x=one", "b"]
    files["m.oxoflow"] += rule("c", "c/{x}")
    assert world.error(files).code == "constraint-not-met"


def test_sources_of_all_files_are_one_pool(world):
    tables = '[[sample_groups]]\nname = "g"\nsamples = ["B"]\n[[values]]\nname = "v"\nvalues = [1]\n'
    files = {
        "main.oxoflow": '[[sample_groups]]\nname = "g"\nsamples = ["A"]\n'
        + include("m.oxoflow", 'namespace = "m"')
        + include("m.oxoflow", 'namespace = "n"')
        + rule("all", "all/{sample}.{v}"),
        "m.oxoflow": tables + rule("r", "{config.samples_list}"),
    }
    files["m.oxoflow"] = tables
    assert sorted(world.tasks(files)) == ["all/sample=A,v=1", "all/sample=B,v=1"]


def test_sources_that_contradict_each_other_are_an_error_with_both_places(world):
    files = {
        "main.oxoflow": '[[values]]\nname = "v"\nvalues = [1]\n' + include("m.oxoflow") + rule("r", "{v}"),
        "m.oxoflow": '[[values]]\nname = "v"\nvalues = [2]\n',
    }
    found = world.error(files)
    assert (found.code, world.where(found)) == ("duplicate-name", "m.oxoflow:1 [values.v]")
    assert "main.oxoflow:4" in found.hint


def test_a_pattern_of_discovery_of_an_included_file_finds_samples(world):
    files = {
        "main.oxoflow": include("m.oxoflow") + rule("r", "out/{sample}"),
        "m.oxoflow": '[workflow]\nsample_pattern = "raw/{sample}.fq"\n',
    }
    assert list(world.tasks(files, ["raw/A.fq"])) == ["r/sample=A"]
    files["main.oxoflow"] = 'sample_pattern = "in/{sample}.fq"\n' + files["main.oxoflow"]
    assert list(world.tasks(files, ["raw/A.fq", "in/B.fq"])) == ["r/sample=B"]
    assert [one.code for one in world.read(files).warnings] == ["no-effect"]


def test_resource_groups_of_the_host_count_and_those_of_others_must_agree(world):
    files = {
        "main.oxoflow": include("a.oxoflow") + include("b.oxoflow"),
        "a.oxoflow": "[resource_groups]\nlicence = 1\n"
        + rule("a", "a", "resources = { groups = { licence = 1 } }"),
        "b.oxoflow": "[resource_groups]\nlicence = 2\n" + rule("b"),
    }
    assert world.error(files).code == "said-twice"
    files["main.oxoflow"] += "[resource_groups]\nlicence = 3\n"
    assert world.read(files).pools == (("licence", 3),)


def test_what_only_the_main_file_can_say_is_named(world):
    files = {
        "main.oxoflow": include("m.oxoflow"),
        "m.oxoflow": '[workflow]\nname = "m"\non_end = "true"\n[cluster]\nbackend = "slurm"\n' + rule("a"),
    }
    assert [one.code for one in world.read(files).warnings] == ["no-effect", "no-effect"]


def test_interpreters_of_an_included_file_hold_for_its_scripts(world):
    made = '[[rules]]\nname = "{0}"\noutput = ["{0}"]\nscript = "s.m"\n'
    files = {
        "main.oxoflow": include("m.oxoflow")
        + '[workflow.interpreter_map]\n".m" = "octave"\n'
        + made.format("a"),
        "m.oxoflow": '[workflow.interpreter_map]\n".m" = "matlab"\n' + made.format("b"),
    }
    tasks = world.tasks(files, [str(world.root / "s.m")])
    assert [one.command.script[0] for one in tasks.values()] == ["octave", "matlab"]


CONTRACT = {
    "main.oxoflow": '[config]\nout = "res"\n[[sample_groups]]\nname = "g"\nsamples = ["A", "B"]\n'
    + rule("get", "raw/{sample}.fq"),
    "m.oxoflow": rule("trim", "t/{sample}.fq", 'input = ["raw/{sample}.fq"]')
    + rule("qc", "{config.out}/{sample}.qc", 'input = ["t/{sample}.fq"]'),
}


def with_contract(contract: str, more: str = "") -> dict[str, str]:
    return {
        **CONTRACT,
        "main.oxoflow": CONTRACT["main.oxoflow"] + include("m.oxoflow", contract) + more,
    }


def test_a_contract_that_is_kept_says_nothing(world):
    files = with_contract('inputs = ["raw/{sample}.fq"]\noutputs = ["{config.out}/{sample}.qc", "res/A.qc"]')
    assert not world.expand(files).notes


@pytest.mark.parametrize(
    ("contract", "code", "hint"),
    [
        (
            'inputs = ["raw/{sample}.fastq"]',
            "contract-input",
            "its rules read raw/{sample}.fq, t/{sample}.fq",
        ),
        ('outputs = ["qc/{sample}.qc"]', "contract-output", "its rules make t/{sample}.fq, res/{sample}.qc"),
        ('outputs = ["res/C.qc"]', "contract-output", "its rules make t/{sample}.fq, res/{sample}.qc"),
    ],
)
def test_a_contract_that_is_not_kept_is_an_error(world, contract, code, hint):
    found = world.error(with_contract(contract))
    assert (found.code, found.hint) == (code, hint)
    assert "include.m" in str(found.place) or "include[0]" in str(found.place)


def test_reading_a_file_that_a_contract_does_not_name_is_a_warning(world):
    more = rule("look", "look", 'input = ["t/A.fq"]')
    (note,) = world.expand(with_contract('outputs = ["res/{sample}.qc"]', more)).notes
    assert note.code == "contract-hidden"
    assert "t/A.fq" in note.message


def test_a_config_value_that_no_file_has_is_guessed_over_all_files(world):
    with pytest.raises(WorkflowError) as caught:
        world.read(
            {"main.oxoflow": include("m.oxoflow"), "m.oxoflow": "[config]\nlevel = 3\n" + rule("r", "o")},
            [("levle", "4")],
        )
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint) == ("unknown-config", "did you mean 'level'?")


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


def test_a_module_may_be_called_reference_beside_references_of_other_names(world):
    built = '[[references]]\nname = "{}"\noutput = "ref.x"\nbuild = "touch {{output}}"\n'
    files = {
        "main.oxoflow": include("a.oxoflow", 'namespace = "reference"') + built.format("b"),
        "a.oxoflow": rule("a"),
    }
    assert [one.name for one in world.read(files).rules] == ["reference::b", "reference::a"]
    files["main.oxoflow"] = files["main.oxoflow"].replace('name = "b"', 'name = "a"')
    assert world.error(files).code == "duplicate-rule"
