"""`shell_prelude` and `on_end`: config values are filled in, and no placeholder stays as it is."""

from __future__ import annotations

import pytest
from rules_world import tasks

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.plan.tokens import THREADS
from treadle.rules.file.read import read_text
from treadle.rules.schema import Workflow

RULE = '[[rules]]\nname = "a"\noutput = ["a.txt"]\nshell = "touch {output}"\n'
CONFIG = '[config]\nversion = "1.17"\ntoken = { default = "hush", sensitive = true }\n'


def head(prelude: str = "", on_end: str = "") -> str:
    return (
        f"[workflow]\nname = \"w\"\nstrict_shell = true\non_end = '''{on_end}'''\n"
        f"{CONFIG}[defaults]\nshell_prelude = '''{prelude}'''\n"
    )


def workflow(prelude: str = "", on_end: str = "") -> Workflow:
    return read_text(head(prelude, on_end) + RULE, folder="/flow")


def error(prelude: str = "", on_end: str = "") -> Diagnostic:
    with pytest.raises(WorkflowError) as caught:
        workflow(prelude, on_end)
    (found,) = caught.value.diagnostics
    return found


def prelude_of(text: str) -> str:
    return workflow(text).rules[0].policy.shell.prelude


def test_config_values_go_into_a_prelude_as_the_author_s_own_text() -> None:
    assert prelude_of("module load samtools/{config.version}") == "module load samtools/1.17"


def test_what_is_the_shell_s_stays() -> None:
    text = "f() { echo \"${HOME}\"; }; awk '{print $1}' /dev/null"
    assert prelude_of(text) == text


def test_a_prelude_may_name_the_resources_of_the_task() -> None:
    assert prelude_of("export OMP_NUM_THREADS={threads}") == f"export OMP_NUM_THREADS={THREADS}"


def test_a_secret_in_a_prelude_is_a_variable_that_every_task_of_the_file_gets() -> None:
    assert prelude_of("export TOKEN={config.token}") == 'export TOKEN="${TREADLE_SECRET_TOKEN}"'
    (task,) = tasks(RULE, head=head("export TOKEN={config.token}")).values()
    assert task.command.secrets == ("TREADLE_SECRET_TOKEN",)


def test_a_config_key_that_is_not_there_is_an_error_with_its_place() -> None:
    found = error(prelude="module load {config.verson}")
    assert (found.code, str(found.place)) == ("unknown-config", "main.oxoflow:9 [defaults.shell_prelude]")
    assert "version" in found.hint


@pytest.mark.parametrize("name", ["input", "output[0]", "{{output}}", "log", "params.x"])
def test_what_is_of_one_task_is_refused_in_both(name: str) -> None:
    assert error(prelude=f"echo {{{name}}}").code == "bad-placeholder"
    assert error(on_end=f"echo {{{name}}}").code == "bad-placeholder"


def test_a_word_that_nothing_is_known_for_is_an_error_in_both() -> None:
    assert error(prelude="echo {sample}").code == "unknown-placeholder"
    assert error(on_end="echo {sample}").code == "unknown-placeholder"


def test_doubled_braces_keep_the_text() -> None:
    assert prelude_of("echo '{{output}}'") == "echo '{output}'"
    assert prelude_of("echo '{{config.version}}'") == "echo '{config.version}'"


def test_config_values_go_into_on_end_and_a_secret_by_its_variable() -> None:
    read = workflow(on_end="send {config.version} {config.token}")
    assert read.on_end == 'send 1.17 "${TREADLE_SECRET_TOKEN}"'
    assert read.on_end_secrets == ("TREADLE_SECRET_TOKEN",)


@pytest.mark.parametrize(
    "table",
    [
        '[[values]]\nname = "v"\nvalues = ["{config.version}"]',
        '[[sample_groups]]\nname = "g"\nsamples = ["{config.version}"]',
        '[[tables]]\nname = "t"\nrows = [{ v = "data/{config.version}" }]',
    ],
)
def test_a_value_of_a_wildcard_is_not_filled_and_that_is_said(table: str) -> None:
    with pytest.raises(WorkflowError, match=r"holds \{config\.\.\.\}"):
        read_text(f'[workflow]\nname = "w"\n{CONFIG}{table}\n{RULE}')
