"""Tables of included files: those that hold for its own rules, for all rules, and in the main file alone."""

from __future__ import annotations

from include_world import include, rule


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
    files = {
        "main.oxoflow": '[[sample_groups]]\nname = "g"\nsamples = ["A"]\n'
        + include("m.oxoflow", 'namespace = "m"')
        + include("m.oxoflow", 'namespace = "n"')
        + rule("all", "all/{sample}.{v}"),
        "m.oxoflow": '[[sample_groups]]\nname = "g"\nsamples = ["B"]\n[[values]]\nname = "v"\nvalues = [1]\n',
    }
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
