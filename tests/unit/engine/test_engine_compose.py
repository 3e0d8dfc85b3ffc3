"""The wrapper of a command, run by real shells."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from treadle.engine.compose import Composed, Place, compose, environment
from treadle.plan.task import Command, Policy, Resources, Shell
from treadle.plan.tokens import (
    EFFECTIVE_MEMORY_MB,
    EFFECTIVE_THREADS,
    FLOWDIR,
    INPUT_LIST,
    MEMORY,
    THREADS,
    WORKDIR,
    secret,
)
from treadle.testing.plans import task

HERE = Place("/data/my work", "/flows/rna", 3 * 1024 * 1024 * 1024)
SHELLS = [name for name in ("bash", "dash", "sh") if shutil.which(name)]


def composed(
    command: Command,
    shell: Shell | None = None,
    resources: Resources | None = None,
    inputs: tuple[str, ...] = (),
) -> Composed:
    asked = resources or Resources()
    made = task("a", command=command, policy=Policy(shell=shell or Shell()), resources=asked, inputs=inputs)
    return compose(made, asked, HERE, text_file="/run/texts/1.sh", input_list="/run/texts/1.list")


def run(command: Command, shell: Shell | None = None) -> tuple[int, list[str]]:
    """Exit code and lines of output."""
    done = subprocess.run(composed(command, shell).argv, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_plain_text_is_the_argument_itself() -> None:
    assert composed(Command(text="echo hi")).argv == ("bash", "-c", "echo hi")


@pytest.mark.parametrize(("name", "first"), [("bash", "set -euo pipefail"), ("sh", "set -eu")])
def test_a_strict_shell_gets_the_preamble_that_it_knows(name: str, first: str) -> None:
    argv = composed(Command(text="echo hi"), Shell(name, strict=True)).argv
    assert argv == (name, "-c", f"{first}\necho hi")


def test_the_prelude_stands_before_the_text() -> None:
    assert run(Command(text="echo $X"), Shell(prelude="X=5")) == (0, ["5"])


def test_a_script_alone_needs_no_shell() -> None:
    made = composed(Command(script=("python3", f"{FLOWDIR}/s.py", "--out", "a b")))
    assert made.argv == ("python3", "/flows/rna/s.py", "--out", "a b")


def test_a_script_after_a_prelude_takes_the_place_of_the_shell() -> None:
    made = composed(Command(script=("printf", "%s", "a b")), Shell(prelude="X=1"))
    assert made.argv == ("bash", "-c", "X=1\nexec printf %s 'a b'")


def test_tokens_are_bound_and_quoted() -> None:
    text = f"cd {WORKDIR}; echo {THREADS} {EFFECTIVE_THREADS} {MEMORY} {EFFECTIVE_MEMORY_MB}"
    asked = Resources(threads=16, memory=8 * 1024**3)
    made = task("a", command=Command(text=text), resources=asked)
    got = compose(made, Resources(threads=2, memory=1024**3), HERE, text_file="t", input_list="l")
    assert got.argv[2] == "cd '/data/my work'; echo 16 2 8G 1024"


def test_without_a_request_the_effective_memory_is_what_there_is() -> None:
    assert composed(Command(text=EFFECTIVE_MEMORY_MB)).argv[2] == "3072"


def test_the_list_of_inputs_is_asked_for_only_where_it_is_read() -> None:
    assert composed(Command(text="cat x")).input_list == ""
    made = composed(Command(text=f"cat {INPUT_LIST}"))
    assert made.input_list == "/run/texts/1.list"
    assert made.argv[2] == "cat /run/texts/1.list"


def test_a_text_that_is_too_long_for_an_argument_goes_to_a_file() -> None:
    text = "echo " + "é" * 60_000
    made = composed(Command(text=text))
    assert made.argv == ("bash", "/run/texts/1.sh")
    assert (made.text_file, made.text) == ("/run/texts/1.sh", text)


@pytest.mark.parametrize("shell", SHELLS)
class TestHooks:
    """The same order of things in every shell."""

    def test_hooks_run_before_and_after(self, shell: str) -> None:
        command = Command(
            text="echo text", pre_exec="X=1; echo pre", on_success="echo good $X", on_failure="echo bad"
        )
        assert run(command, Shell(shell)) == (0, ["pre", "text", "good 1"])

    @pytest.mark.parametrize("strict", [False, True])
    def test_a_failure_keeps_its_exit_code(self, shell: str, strict: bool) -> None:
        command = Command(text="echo text; exit 7", on_success="echo good", on_failure="echo bad")
        assert run(command, Shell(shell, strict=strict)) == (7, ["text", "bad"])

    def test_pre_exec_failing_fails_it(self, shell: str) -> None:
        command = Command(text="echo text", pre_exec="false", on_failure="echo bad")
        assert run(command, Shell(shell)) == (1, ["bad"])

    @pytest.mark.parametrize("strict", [False, True])
    def test_a_pre_exec_that_ends_the_shell_never_passes_for_the_command(
        self, shell: str, strict: bool
    ) -> None:
        said = "treadle: pre_exec ended the shell (exit), so the command did not run"
        command = Command(text="echo text", pre_exec="exit 0", on_success="echo good", on_failure="echo bad")
        assert run(command, Shell(shell, strict=strict)) == (1, ["bad", said])
        assert run(Command(text="echo text", pre_exec="exit 0"), Shell(shell, strict=strict)) == (1, [said])
        script = Command(script=("echo", "script"), pre_exec="test -e / && exit")
        assert run(script, Shell(shell, strict=strict)) == (1, [said])
        assert run(Command(text="exit 0", pre_exec=":"), Shell(shell, strict=strict)) == (0, [])
        assert run(Command(text="echo text", pre_exec="exit 3"), Shell(shell, strict=strict)) == (3, [])

    def test_the_other_hooks_only_warn(self, shell: str) -> None:
        command = Command(text="echo text", on_success="exit 9")
        assert run(command, Shell(shell)) == (0, ["text", "treadle: on_success failed with exit code 9"])
        command = Command(text="exit 3", on_failure="exit 9")
        assert run(command, Shell(shell)) == (3, ["treadle: on_failure failed with exit code 9"])

    def test_strictness_holds_inside_the_text(self, shell: str) -> None:
        command = Command(text="false\necho unseen", on_failure="echo bad")
        assert run(command, Shell(shell, strict=True)) == (1, ["bad"])
        assert run(command, Shell(shell)) == (0, ["unseen"])

    def test_a_prelude_may_make_it_strict(self, shell: str) -> None:
        command = Command(text="false\necho unseen", on_failure="echo bad")
        assert run(command, Shell(shell, prelude="set -e")) == (1, ["bad"])

    def test_exec_and_traps_in_the_text_do_not_take_the_hooks_along(self, shell: str) -> None:
        command = Command(text="trap 'echo mine' EXIT; true", on_success="echo good")
        assert run(command, Shell(shell)) == (0, ["mine", "good"])
        command = Command(text="exec echo other", on_success="echo good")
        assert run(command, Shell(shell)) == (0, ["other", "good"])

    def test_a_text_with_broken_syntax_fails_by_itself(self, shell: str) -> None:
        code, lines = run(Command(text="echo a )\n( echo b", on_failure="echo bad"), Shell(shell))
        assert code != 0
        assert lines[0] == "bad"

    def test_here_documents_and_quotes_come_through(self, shell: str) -> None:
        text = "cat <<'X'\nit's \"$HOME\" `x`\nX"
        assert run(Command(text=text, on_success="echo good"), Shell(shell)) == (
            0,
            ['it\'s "$HOME" `x`', "good"],
        )

    def test_a_script_runs_only_after_exit_0_of_the_text(self, shell: str) -> None:
        script = ("sh", "-c", "echo script; exit 4")
        assert run(Command(text="exit 0", script=script), Shell(shell)) == (4, ["script"])
        assert run(Command(text="exit 5", script=script), Shell(shell)) == (5, [])

    def test_hooks_follow_a_script_too(self, shell: str) -> None:
        command = Command(script=("sh", "-c", "echo 'a  b'; exit 4"), pre_exec=":", on_failure="echo bad")
        assert run(command, Shell(shell)) == (4, ["a  b", "bad"])

    def test_the_hook_for_failure_runs_after_sigterm(self, shell: str, tmp_path: Path) -> None:
        command = Command(text="echo up; sleep 60", on_failure=f"echo bad > {tmp_path}/bad")
        made = composed(command, Shell(shell))
        with subprocess.Popen(made.argv, stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            began = time.monotonic()
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait() == 143
            assert time.monotonic() - began < 30
        assert (tmp_path / "bad").read_text() == "bad\n"


def test_the_environment_has_the_mark_the_rules_variables_and_its_secrets() -> None:
    env = (("REF", f"{WORKDIR}/ref"), ("URL", f"https://me:{secret('TREADLE_SECRET_KEY')}@host"))
    command = Command(text="x", env=env, secrets=("TREADLE_SECRET_KEY",))
    values = {"TREADLE_SECRET_KEY": "s3cret", "TREADLE_SECRET_OTHER": "x"}
    made = environment(task("a", command=command), Resources(), HERE, run="r1", n=7, secrets=values)
    assert made == {
        "TREADLE_ATTEMPT": "r1.7",
        "REF": "/data/my work/ref",
        "URL": "https://me:s3cret@host",
        "TREADLE_SECRET_KEY": "s3cret",
    }
