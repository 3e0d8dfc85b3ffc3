"""The texts of a task: command, script, hooks, variables, log."""

from __future__ import annotations

import pytest
from rules_world import SAMPLES, error, errors, expanded, tasks

from treadle.plan.tokens import FLOWDIR, THREADS


def rule(*lines: str) -> str:
    return '[[rules]]\nname = "r"\n' + "\n".join(lines) + "\n"


OUT = 'output = ["{sample}.out"]'
SCRIPTS = ["/flow/scripts/a.py", "/flow/a b.R", "/flow/run", "/opt/x.pl", "/flow/n.ipynb", "/flow/m.m"]


def test_a_command_is_rendered_for_each_task() -> None:
    text = SAMPLES + rule(
        OUT, 'shell = "x -t {threads} -s {sample} {params.flags} {output}"', 'params = { flags = "-a -b" }'
    )
    assert tasks(text)["r/sample=S2"].command.text == f"x -t {THREADS} -s S2 -a -b S2.out"


def test_hooks_variables_and_log_are_filled_in() -> None:
    lines = (
        OUT,
        'shell = "x 2> {log}"',
        'log = "logs/{sample}.log"',
        'benchmark = "bench/{sample}.tsv"',
        'pre_exec = "echo {sample}"',
        'on_success = "touch {output}"',
        'on_failure = "rm {output}"',
        'envvars = { WHO = "{sample}", N = "{config.n}" }',
    )
    draft = tasks(SAMPLES + "[config]\nn = 3\n" + rule(*lines))["r/sample=S1"]
    assert draft.command.pre_exec == "echo S1"
    assert draft.command.on_success == "touch S1.out"
    assert draft.command.on_failure == "rm S1.out"
    assert draft.command.env == (("WHO", "S1"), ("N", "3"))
    assert (draft.log, draft.log_named, draft.benchmark) == ("logs/S1.log", True, "bench/S1.tsv")


def test_a_log_that_no_text_names_is_the_engines_to_write() -> None:
    draft = tasks(SAMPLES + rule(OUT, 'shell = "x"', 'log = "{sample}.log"'))["r/sample=S1"]
    assert (draft.log, draft.log_named) == ("S1.log", False)


def test_a_script_runs_under_the_interpreter_of_its_ending() -> None:
    draft = tasks(SAMPLES + rule(OUT, 'script = "scripts/a.py --name {sample} {output}"'), SCRIPTS)[
        "r/sample=S1"
    ]
    assert draft.command.script == ("python3", f"{FLOWDIR}/scripts/a.py", "--name", "S1", "S1.out")
    assert draft.command.script_file == f"{FLOWDIR}/scripts/a.py"
    assert draft.command.text == ""


@pytest.mark.parametrize(
    ("script", "more", "argv"),
    [
        ("'a b.R'", "", ("Rscript", f"{FLOWDIR}/a b.R")),
        ("run", "", (f"{FLOWDIR}/run",)),
        ("/opt/x.pl", "", ("perl", "/opt/x.pl")),
        ("./scripts/../scripts/a.py", "", ("python3", f"{FLOWDIR}/scripts/a.py")),
        ("n.ipynb", "", ("jupyter", "execute", f"{FLOWDIR}/n.ipynb")),
        ("run", 'interpreter = "python3 -u"', ("python3", "-u", f"{FLOWDIR}/run")),
        ("scripts/a.py", 'interpreter = "{config.python}"', ("python3.12", f"{FLOWDIR}/scripts/a.py")),
    ],
)
def test_how_a_script_is_started(script: str, more: str, argv: tuple[str, ...]) -> None:
    text = '[config]\npython = "python3.12"\n' + rule('output = ["o"]', f'script = "{script}"', more)
    assert tasks(text, SCRIPTS)["r"].command.script == argv


def test_the_workflow_may_say_what_runs_an_ending() -> None:
    head = '[workflow]\nname = "w"\n[workflow.interpreter_map]\n".m" = "octave --eval"\n".py" = "pypy"\n'
    text = rule('output = ["o"]', 'script = "{config.script}"')
    for script, argv in (
        ("m.m", ("octave", "--eval", f"{FLOWDIR}/m.m")),
        ("scripts/a.py", ("pypy", f"{FLOWDIR}/scripts/a.py")),
    ):
        found = tasks(f'[config]\nscript = "{script}"\n' + text, SCRIPTS, head=head)
        assert found["r"].command.script == argv


def test_an_ending_that_nothing_is_known_for_is_an_error_told_once() -> None:
    found = error(SAMPLES + rule(OUT, 'script = "m.m"'), SCRIPTS)
    assert found.code == "no-interpreter"
    assert "interpreter_map" in found.hint


def test_a_script_that_is_not_there_is_an_error() -> None:
    found = error(rule('output = ["o"]', 'script = "scripts/b.py {output}"'), SCRIPTS)
    assert found.code == "no-script"
    assert "/flow" in found.hint


def test_a_script_named_by_a_wildcard_is_not_looked_for() -> None:
    draft = tasks(SAMPLES + rule(OUT, 'script = "scripts/{sample}.py"'))["r/sample=S1"]
    assert draft.command.script_file == f"{FLOWDIR}/scripts/S1.py"


def test_shell_and_script_go_together() -> None:
    draft = tasks(rule('output = ["o"]', 'shell = "echo a"', 'script = "run"'), SCRIPTS)["r"]
    assert (draft.command.text, draft.command.script) == ("echo a", (f"{FLOWDIR}/run",))


def test_secrets_are_named_and_never_rendered() -> None:
    text = '[config.token]\ndefault = "hush"\nsensitive = true\n'
    draft = tasks(text + rule('output = ["o"]', 'shell = "curl -H {config.token} > {output}"'))["r"]
    assert "hush" not in draft.command.text
    assert draft.command.secrets == ("TREADLE_SECRET_TOKEN",)


def test_a_secret_in_a_path_is_an_error() -> None:
    text = '[config.token]\ndefault = "hush"\nsensitive = true\n'
    assert error(text + rule('output = ["{config.token}.x"]', 'shell = "x"')).code == "secret-in-path"


def test_an_index_out_of_range_is_told_for_what_is_fixed() -> None:
    assert (
        error(rule('input = ["a"]', 'output = ["o"]', 'shell = "x {input[1]}"')).code == "index-out-of-range"
    )


def test_errors_of_texts_and_of_paths_come_together() -> None:
    text = SAMPLES + rule('output = ["{sampel}"]', 'shell = "x {config.nope} {params.nope}"')
    assert sorted(one.code for one in errors(text)) == ["no-source", "unknown-config", "unknown-param"]


def test_warnings_about_a_text_are_notes_once() -> None:
    text = SAMPLES + rule(OUT, "shell = 'echo \"{sampel}\" > {output}'")
    assert [note.code for note in expanded(text).notes] == ["looks-like-placeholder"]


def test_a_rule_with_neither_command_nor_outputs_is_a_task_that_only_gathers() -> None:
    draft = tasks(rule('input = ["a", "b"]'))["r"]
    assert (draft.inputs, draft.outputs, draft.command.text) == (("a", "b"), (), "")


def test_a_param_that_no_text_uses_is_checked_as_well() -> None:
    found = error(rule('output = ["o"]', 'shell = "x"', 'params = { a = "{config.nope}" }'))
    assert (found.code, found.place.key) == ("unknown-config", "params.a")


def test_what_is_wrong_with_a_param_is_told_once() -> None:
    found = error(rule('output = ["o"]', 'shell = "x {params.a}"', 'params = { a = "{config.nope}" }'))
    assert (found.code, found.place.key) == ("unknown-config", "shell")


def test_a_wildcard_in_a_list_of_params_counts_and_can_be_asked_for() -> None:
    lines = (
        OUT,
        'shell = "x {params.a}"',
        'params = { a = ["{sample}.x", "y"] }',
        "when = '\"S1.x\" in params.a'",
    )
    found = tasks(SAMPLES + rule(*lines))
    assert found["r/sample=S1"].command.text == "x S1.x y"
    assert [draft.skip is None for draft in found.values()] == [True, False, False]


def test_an_empty_config_value_does_not_turn_a_path_to_the_root() -> None:
    found = error('[config]\ndir = ""\n' + rule('output = ["{config.dir}/o"]', 'shell = "x"'))
    assert found.code == "empty-config"
    assert "'/o'" in found.message


def test_a_script_that_begins_with_an_empty_word_is_told_before_anything_runs() -> None:
    found = error(SAMPLES + rule(OUT, """script = "'' {output}\""""), SCRIPTS)
    assert (found.code, found.place.key) == ("no-script", "script")
