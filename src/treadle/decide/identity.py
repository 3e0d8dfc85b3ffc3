"""The identity of a task's command: what must stay the same for its result to stand.

Resource values, the work folder and the workflow's folder stand in the texts as tokens, so that they bear
no identity; partition, retries, priority, time limit and an unnamed log are not in it at all.

The identity is written in five parts with dots between them, so that it can be said which one changed:
the command (text, script arguments, declared outputs), the content of the script, exported variables,
hooks, and the shell. A part that is as it is by default is empty. A sixth, of a command that runs in a
software environment, has what is said of that and the content of its file; where it is made is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import zip_longest

from treadle.base.digest import blake2b
from treadle.plan.environment import Environment
from treadle.plan.task import Command, Policy, ScheduledTask, Shell
from treadle.plan.tokens import unpinned
from treadle.records.event import Evidence, FileRecord

FORMAT = 1  # of the recipe below; evidence of another format is compared by what it shows
PARTS = ("text", "script", "env", "hooks", "shell", "environment")
SHOWN = 4096  # characters of a command that are kept for showing what changed

_PLAIN_SHELL = Shell()
_BARE = "...."  # between command and shell: no script, no variables, no hooks


def identity(task: ScheduledTask, script: FileRecord | None) -> str:
    """The identity of a task's command; `script` is its script file as it stands (None: it is not there)."""
    environment = task.policy.environment
    if environment is None:
        return _without_environment(task, script)
    return f"{_without_environment(task, script)}.{_environment_part(environment)}"


def _without_environment(task: ScheduledTask, script: FileRecord | None) -> str:
    command = task.command
    argv, outputs = command.script, task.outputs
    main = _digest((command.text, str(len(argv)), *map(unpinned, argv), *outputs))
    if _is_bare(command):
        return f"{main}{_BARE}{_shell_part(task.policy.shell)}"
    return ".".join(
        (
            main,
            _script_part(command, script),
            _digest(one for pair in command.env for one in pair) if command.env else "",
            _digest((command.pre_exec, command.on_success, command.on_failure)) if hooked(command) else "",
            _shell_part(task.policy.shell),
        )
    )


def surely_same(task: ScheduledTask, evidence: Evidence) -> bool:
    """The identity is that of `evidence`, as can be seen without computing it (False: perhaps). Only for
    evidence with the same output paths.

    A bare command is its text and its shell, and the text of the evidence is whole when it is short.
    """
    text = task.command.text
    return (
        evidence.text == text
        and len(text) < SHOWN
        and evidence.identity_format == FORMAT
        and not task.command.script
        and _is_bare(task.command)
        and evidence.identity.endswith(_bare_end(task.policy))
    )


def changed_parts(old: str, new: str) -> list[str]:
    """Which of `PARTS` differ between two identities of one format."""
    return [part for part, a, b in _pairs(old, new) if a != b]


def _pairs(old: str, new: str) -> Iterator[tuple[str, str, str]]:
    texts = zip_longest(old.split("."), new.split("."), fillvalue="")
    return ((part, a, b) for part, (a, b) in zip(PARTS, texts))


def shown_text(command: Command) -> str:
    """The command in token form, cut, for showing what changed."""
    if not command.script:
        return command.text[:SHOWN]
    return "\n".join(filter(None, (command.text, " ".join(command.script))))[:SHOWN]


def shown_hooks(command: Command) -> tuple[tuple[str, str], ...]:
    """The hooks that there are, each with its name, cut like the command."""
    hooks = (
        ("pre_exec", command.pre_exec),
        ("on_success", command.on_success),
        ("on_failure", command.on_failure),
    )
    return tuple([(name, text[:SHOWN]) for name, text in hooks if text])


@lru_cache(maxsize=256)
def shown_shell(shell: Shell) -> tuple[tuple[str, str], ...]:
    """What of the shell is not as it is by default, under the names that the author writes."""
    prelude = (("shell_prelude", shell.prelude[:SHOWN]),) if shell.prelude else ()
    strict = (("strict_shell", "true"),) if shell.strict else ()
    executable = (("shell_executable", shell.executable),) if shell.executable != "bash" else ()
    return (*executable, *strict, *prelude)


def shown_environment(environment: Environment | None) -> tuple[tuple[str, str], ...]:
    """What a command ran in, under the names that the author writes, and the content of its file."""
    if environment is None:
        return ()
    content = (("content", environment.content[:12]),) if environment.content else ()
    return (*((name, text[:SHOWN]) for name, text in environment.said), *content)


def hooked(command: Command) -> bool:
    """The command has a hook."""
    return bool(command.pre_exec or command.on_success or command.on_failure)


def _bare_end(policy: Policy) -> str:
    """What the identity of a command ends in that has nothing beside itself but its shell and environment."""
    environment = policy.environment
    end = _BARE + _shell_part(policy.shell)
    return end if environment is None else f"{end}.{_environment_part(environment)}"


def _is_bare(command: Command) -> bool:
    """There is nothing beside the command itself, but for the shell that it runs in."""
    return not (command.script_file or command.env or hooked(command))


def _script_part(command: Command, script: FileRecord | None) -> str:
    if not command.script_file:
        return ""
    return script.digest[:32] if script is not None else "absent"


@lru_cache(maxsize=256)
def _shell_part(shell: Shell) -> str:
    if shell == _PLAIN_SHELL:
        return ""
    return _digest((shell.executable, "strict" if shell.strict else "", shell.prelude))


@lru_cache(maxsize=256)
def _environment_part(environment: Environment) -> str:
    said = (one for pair in environment.said for one in pair)
    return _digest((environment.kind, *said, environment.content))


def _digest(texts: Iterable[str]) -> str:
    """128 bits over a list of texts, each with its length before it, so that no two lists look alike."""
    joined = "".join([f"{len(text)}:{text}" for text in texts])
    return blake2b(joined.encode(), digest_size=16, person=b"treadle command").hexdigest()
