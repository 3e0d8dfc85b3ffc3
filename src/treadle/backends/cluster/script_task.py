"""What one element of a job does, in sh: its attempts one after the other, by the functions of `script_text`.

Each attempt sets its variables, defines how to look at its files and how to become its command, and calls
`treadle_attempt`. This and `script` are the only places that make shell text of a scheduler's job; every
value goes through `shlex.quote`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.json import encode

from treadle.base.layout import JobFolder
from treadle.decide.look import place_of
from treadle.engine.backend import Submission
from treadle.engine.compose import ATTEMPT
from treadle.plan.paths import is_url

LONGEST_PART = 64 * 1024  # characters of one element that may stand in the script itself
LONGEST_SCRIPT = 512 * 1024  # of all of them: SLURM takes scripts of 4 MB
_CHUNK = 200  # paths that one call of a program is given
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# qsub of SGE and bsub read their orders from anywhere in a script, also from the middle of a quoted text.
_ORDER = re.compile(r"^\s*#(?:\$|\s?(?:SBATCH|PBS|BSUB)\b)", re.MULTILINE)


class JobElement(Struct, frozen=True, kw_only=True):
    """One element of an array, or a single job: attempts that run one after the other.

    `independent`: one runs whatever became of those before it (a pack); else a failure ends the element (a
    group). Each of several is held to its time limit of `limits`, in seconds (0: none). `flowdir` is the
    folder of the workflow file.
    """

    submissions: tuple[Submission, ...]
    limits: tuple[int, ...] = ()
    independent: bool = False
    flowdir: str = ""

    @property
    def n(self) -> int:
        """The number of its first attempt, which stands for it in names of files."""
        return self.submissions[0].n


def body_of(element: JobElement, folder: JobFolder) -> str:
    """The whole text of an element; it holds no secret."""
    alone = len(element.submissions) == 1
    head = [
        f"treadle_alone={int(alone)} treadle_independent={int(element.independent)}",
    ]
    limits = (*element.limits, *[0] * len(element.submissions)) if not alone else (0,)
    each = zip(element.submissions, limits, strict=False)
    return "\n".join([*head, *(_attempt(one, element, folder, limit) for one, limit in each)]) + "\n"


def bodies(elements: Sequence[JobElement], folder: JobFolder) -> Iterator[tuple[JobElement, str, bool]]:
    """(element, its text, whether that has to stand in a file of its own)."""
    texts = [body_of(element, folder) for element in elements]
    long = sum(map(len, texts)) > LONGEST_SCRIPT
    for element, text in zip(elements, texts, strict=True):
        yield element, text, long or len(text) > LONGEST_PART or _ORDER.search(text) is not None


def secrets_text(submission: Submission) -> str:
    """What the 0600 file of an attempt that holds secrets says: its whole environment."""
    return "".join(f"{line}\n" for line in _exports(submission.env))


def holds_secrets(submission: Submission) -> bool:
    """Whether the environment of an attempt must not stand in the script."""
    return bool(submission.private_log or submission.task.command.secrets)


def _attempt(one: Submission, element: JobElement, folder: JobFolder, limit: int) -> str:
    quote = shlex.quote
    secrets = folder.secrets(one.n) if holds_secrets(one) else ""
    policy = one.task.policy
    name = encode(one.env.get(ATTEMPT, one.name)).decode()
    digests = "" if policy.digest_limit is None else str(policy.digest_limit)
    most = max(1, limit - (policy.signal_before_end or 0)) if limit else 0
    return "\n".join([
        f"treadle_attempt_name={quote(name)}",
        f"treadle_stem={quote(folder.start_stem(one.n))}",
        f"treadle_refused={quote(folder.refused(one.n))}",
        f"treadle_workdir={quote(one.cwd)}",
        f"treadle_log={quote(one.log)}",
        f"treadle_secrets={quote(secrets)}",
        f"treadle_private={int(one.private_log)} treadle_restartable={int(policy.restartable)}",
        f"treadle_n={one.n} treadle_after={quote(' '.join(map(str, one.after)))}",
        f"treadle_unwanted={quote(folder.unwanted(one.n))} treadle_most={most}",
        f"treadle_limit={digests} treadle_grace={max(0, round(one.grace * 10))}",
        f"treadle_checksum={policy.checksum}",
        _function("treadle_see", _calls("treadle_look", _read_paths(one, element.flowdir))),
        _function("treadle_made", _calls("treadle_check", enumerate(one.task.outputs))),
        _function("treadle_task", _command(one, element, secrets)),
        "treadle_attempt",
    ])  # fmt: skip


def _function(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{name}() {{", *(lines or [":"]), "}"])


def _read_paths(one: Submission, flowdir: str) -> Iterator[tuple[int, str]]:
    """The inputs and the script with their indices; what stands in an object store is left out."""
    task = one.task
    for index, path in enumerate(task.inputs):
        if not is_url(path):
            yield index, path
    if task.command.script_file:
        yield len(task.inputs), place_of(task.command.script_file, one.cwd, flowdir)


def _calls(name: str, paths: Iterator[tuple[int, str]] | enumerate[str]) -> list[str]:
    """Calls with a first index and the paths from there on, each of some paths without a gap."""
    calls: list[str] = []
    words: list[str] = []
    after = -1
    for index, path in paths:
        if index != after or len(words) >= _CHUNK + 2:
            if words:
                calls.append(" ".join(words))
            words = [name, str(index)]
        words.append(shlex.quote(path if path.startswith("/") else f"./{path}"))  # `-` would be stdin
        after = index + 1
    if words:
        calls.append(" ".join(words))
    return calls


def _command(one: Submission, element: JobElement, secrets: str) -> list[str]:
    """The environment, and `exec` of the command in it."""
    lines = [f". {shlex.quote(secrets)}"] if secrets else list(_exports(one.env))
    odd = [f"{name}={value}" for name, value in one.env.items() if not _NAME.match(name)]
    words = (["env", "--", *odd] if odd else []) + list(one.argv)
    return [*lines, f"treadle_become {shlex.join(words)}"]


def _exports(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(env.items()):
        if _NAME.match(name):
            yield f"export {name}={shlex.quote(value)}"


def shell_name(name: str) -> str:
    """A variable's name for use in the script. Raises ValueError when it is none."""
    if not _NAME.match(name):
        raise ValueError(f"not the name of a variable: {name!r}")
    return name


def one_line(text: str) -> str:
    """A text for a comment."""
    return " ".join(text.split())


def interpreter(path: str = "/bin/sh") -> str:
    """The first line. Relative interpreters would depend on the folder that the scheduler starts in."""
    assert os.path.isabs(path)
    return f"#!{path}"
