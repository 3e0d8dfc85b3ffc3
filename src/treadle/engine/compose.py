"""The one wrapper: a task's command, its shell and an attempt's values become an argv.

The plain case, a text and no hooks, is the text itself. Hooks and a script after a text need more:

    traps           hooks run however the command ends, but not after SIGKILL; a `pre_exec` that ends the
                    shell with exit code 0 is a failure, for the command was never reached
    strictness, prelude, pre_exec   in the wrapper's own shell, so that what they set holds for all
    ( text )        in a subshell: its `exit`, `exec` and traps cannot take the hooks along
    script          only after exit 0 of the text

Texts go through `eval` there, quoted: a stray `)` in one of them is its own error and not the wrapper's.

What stands around all that is one list, `AROUND`, from the inside out:

    environment     the software environment: its entry becomes the command, with all of the above in there
    private folder  made before the environment is entered, and left after it: the text that moves outputs
                    needs the programs of the node, not those of a container
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.layout import environments, pins_folder
from treadle.engine.backend import Submission
from treadle.plan.task import Command, Resources, ScheduledTask, Shell
from treadle.plan.tokens import INPUT_LIST, MARK, bind

if TYPE_CHECKING:
    from treadle.engine.scratch import Scratch

# `bash -c TEXT`: one argument may have 128 KiB on Linux (MAX_ARG_STRLEN).
LONGEST_ARGUMENT = 100_000
ATTEMPT = "TREADLE_ATTEMPT"


class Place(Struct, frozen=True):
    """Where a run works: both folders absolute; `memory` in bytes is what a task gets that asks for none.
    `scratch_dir` is where private folders are made (empty: in the work folder); it may hold `$NAME`."""

    workdir: str
    flowdir: str
    memory: int
    scratch_dir: str = ""


class Composed(Struct, frozen=True):
    """What to execute; nothing where `argv` is empty. `text` is set when it must stand in the file
    `text_file`, being too long; `inputs` are the lines of the file `input_list`, where the command reads
    one. `scratch_text` is set when the text around the command must stand in the file `scratch_file`."""

    argv: tuple[str, ...]
    text_file: str = ""
    text: str = ""
    input_list: str = ""
    scratch_file: str = ""
    scratch_text: str = ""


def compose(
    task: ScheduledTask,
    resources: Resources,
    place: Place,
    *,
    text_file: str,
    input_list: str,
    scratch: Scratch | None = None,
) -> Composed:
    """The argv of one attempt; `resources` are those it gets, `scratch` where it has a private folder.

    `text_file` and `input_list` are paths that may be used where they are needed. That of `input_list`
    goes into texts as it is, whatever quotes it meets there: it must be of plain characters.
    """
    if task.starts_nothing:
        return Composed(())
    made = _composed(task, resources, place, text_file, input_list)
    asked = _Asked(task, resources, place, scratch)
    for wrapped in AROUND:
        made = wrapped(made, asked)
    return made


class _Asked(Struct, frozen=True):
    """What a wrapper is chosen and filled in by."""

    task: ScheduledTask
    resources: Resources
    place: Place
    scratch: Scratch | None


def _in_environment(made: Composed, asked: _Asked) -> Composed:
    """The command with its environment around it."""
    task, place = asked.task, asked.place
    environment = task.policy.environment
    if environment is None:
        return made
    from treadle.engine.containers import container_words  # few rules need it

    files = (made.text_file, made.input_list)
    seen = container_words(task, environment, place.workdir, place.flowdir, files)
    words = {**_values(task, asked.resources, place, ""), **seen, **_quoted(place)}
    return replace(made, argv=("bash", "-c", bind(environment.entry, words), "treadle", *made.argv))


def _in_private_folder(made: Composed, asked: _Asked) -> Composed:
    """The command with what makes its private folder, and puts outputs in place, around it."""
    scratch = asked.scratch
    if scratch is None:
        return made
    from treadle.engine.scratch import scratch_text  # few rules ask for it

    text = scratch_text(asked.task, asked.place.workdir, scratch, (made.input_list,))
    if len(text.encode()) <= LONGEST_ARGUMENT:
        return replace(made, argv=("sh", "-c", text, "sh", *made.argv))
    argv = ("sh", scratch.file, *made.argv)
    return replace(made, argv=argv, scratch_file=scratch.file, scratch_text=text)


# The innermost first. Each gets the command as its arguments and does nothing to the text of it.
AROUND: tuple[Callable[[Composed, _Asked], Composed], ...] = (_in_environment, _in_private_folder)


def _composed(
    task: ScheduledTask, resources: Resources, place: Place, text_file: str, input_list: str
) -> Composed:
    command, shell = task.command, task.policy.shell
    if _is_plain(command, shell) and MARK not in command.text and len(command.text) < LONGEST_ARGUMENT // 4:
        return Composed((shell.executable, "-c", command.text))
    words = _values(task, resources, place, input_list)
    listed = input_list if _reads_list(command) else ""
    script = tuple(bind(word, words) for word in command.script)
    if script and not (command.text or shell.prelude or _has_hooks(command)):
        return Composed(script, input_list=listed)
    quoted = {**words, **_quoted(place)}
    text = _text(command, shell, script, quoted)
    if len(text.encode()) > LONGEST_ARGUMENT:
        return Composed((shell.executable, text_file), text_file, text, listed)
    return Composed((shell.executable, "-c", text), input_list=listed)


def by_hand(submission: Submission) -> str:
    """What stands for the script of a step, which is a call of Python and has no command: how to make it."""
    task = submission.task
    assert task.call is not None
    file = shlex.quote(task.place.file) if task.place.file else "PIPELINE.py"
    return (
        "#!/bin/sh\n"
        f"# {task.id}, attempt {submission.attempt}: a call of Python. To call it in front of you:\n"
        f"cd -- {shlex.quote(submission.cwd)} || exit 1\n"
        f"exec treadle exec {file} {shlex.quote(task.id)}\n"
    )


def environment(
    task: ScheduledTask, resources: Resources, place: Place, *, run: str, n: int, secrets: Mapping[str, str]
) -> dict[str, str]:
    """What an attempt's environment has beyond ours. `secrets` are values by their variable's name."""
    env = {ATTEMPT: f"{run}.{n}"}
    command = task.command
    if command.env:
        words = {**_values(task, resources, place, ""), **secrets}
        for name, value in command.env:
            env[name] = bind(value, words)
    for variable in command.secrets:
        env[variable] = secrets[variable]
    return env


def _is_plain(command: Command, shell: Shell) -> bool:
    return not (shell.strict or shell.prelude or command.script or _has_hooks(command))


def _has_hooks(command: Command) -> bool:
    return bool(command.pre_exec or command.on_success or command.on_failure)


def _reads_list(command: Command) -> bool:
    texts = (command.text, command.pre_exec, command.on_success, command.on_failure, *command.script)
    return any(INPUT_LIST in text for text in texts)


def _values(task: ScheduledTask, resources: Resources, place: Place, input_list: str) -> dict[str, str]:
    memory = place.memory if resources.memory is None else resources.memory
    return {
        "workdir": place.workdir,
        "flowdir": place.flowdir,
        "pins": pins_folder(),
        "threads": str(task.resources.threads),
        "memory": _as_written(task.resources.memory),
        "effective_threads": str(resources.threads),
        "effective_memory_mb": str(memory // (1024 * 1024)),
        "input_list": input_list,
    }


def _quoted(place: Place) -> dict[str, str]:
    """The folders that stand in shell text."""
    folders = {
        "workdir": place.workdir,
        "flowdir": place.flowdir,
        "pins": pins_folder(),
        "environments": environments(place.workdir),
    }
    return {name: shlex.quote(folder) for name, folder in folders.items()}


def _as_written(memory: int | None) -> str:
    from treadle.base.units import format_size

    return "" if memory is None else format_size(memory)


def _text(command: Command, shell: Shell, script: tuple[str, ...], quoted: Mapping[str, str]) -> str:
    head = [_strictness(shell)] if shell.strict else []
    if shell.prelude:
        head.append(bind(shell.prelude, quoted))
    last = " ".join(map(shlex.quote, script))
    text = bind(command.text, quoted)
    if not _has_hooks(command) and not (text and script):
        return "\n".join([*head, text or f"exec {last}"])
    lines = _hooks(command, quoted) + head
    if command.pre_exec:
        first = _evaluated(bind(command.pre_exec, quoted))
        lines += ["treadle_reached=no", first, *_LEAVE_IF_BAD, "treadle_reached=yes"]
    if text:
        lines += [f"( {_evaluated(text)} )", *_LEAVE_IF_BAD]
    if script:
        lines.append(last)
    return "\n".join(lines)


def _strictness(shell: Shell) -> str:
    """`pipefail` came into POSIX in 2024 only: `sh` may not know it."""
    name = os.path.basename(shell.executable)
    return "set -euo pipefail" if name in ("bash", "zsh", "ksh") else "set -eu"


def _evaluated(text: str) -> str:
    return f"eval {shlex.quote(text)}"


# Not `|| exit`: a command on the left of `||` runs without `set -e`.
_LEAVE_IF_BAD = ("treadle_status=$?", '[ "$treadle_status" -eq 0 ] || exit "$treadle_status"')

# A prelude may end the shell with exit code 0 as well: it is a part of the command. `pre_exec` is not.
_UNLESS_REACHED = (
    'if [ "$treadle_status" -eq 0 ] && [ "${treadle_reached-}" = no ]; then',
    "echo 'treadle: pre_exec ended the shell (exit), so the command did not run' >&2",
    "treadle_status=1",
    "fi",
)


def _hooks(command: Command, quoted: Mapping[str, str]) -> list[str]:
    """The trap that runs a hook at the end. A signal ends the shell by `exit`, so that the trap sees it."""
    success, failure = (
        f"( {_evaluated(bind(hook, quoted))} ) || echo 'treadle: {name} failed with exit code '\"$?\" >&2"
        if hook
        else ":"
        for name, hook in (("on_success", command.on_success), ("on_failure", command.on_failure))
    )
    return [
        "treadle_end() {",
        "treadle_status=$?",
        "trap - EXIT",
        "set +e",
        *(_UNLESS_REACHED if command.pre_exec else ()),
        'if [ "$treadle_status" -eq 0 ]; then',
        success,
        "else",
        failure,
        "fi",
        'exit "$treadle_status"',
        "}",
        "trap treadle_end EXIT",
        "trap 'exit 129' HUP",
        "trap 'exit 130' INT",
        "trap 'exit 143' TERM",
    ]
