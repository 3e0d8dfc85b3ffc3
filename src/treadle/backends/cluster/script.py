"""`render_job`: the one wrapper of commands for schedulers, for single jobs, arrays, packs and groups.

The text is whole: a node needs sh and GNU coreutils (bash and findutils for digests of folders), and nothing
of Treadle. What does not fit into it, and what must not stand in it, are the files of `files_of`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from treadle.backends.cluster.dialect import Request
from treadle.backends.cluster.script_task import (
    JobElement,
    bodies,
    holds_secrets,
    interpreter,
    one_line,
    secrets_text,
    shell_name,
)
from treadle.backends.cluster.script_text import END, NO_RECORD, RUNTIME
from treadle.base.digest import DIGEST_FOLDER_SH
from treadle.base.layout import JobFolder

__all__ = ["JobElement", "JobFile", "Words", "files_of", "render_job"]

_TOLD = 5


class Words(Protocol):
    """What the wrapper needs of a `Dialect`."""

    @property
    def index_variable(self) -> str: ...

    @property
    def id_variable(self) -> str: ...

    def directives(self, request: Request) -> list[str]: ...


class JobFile(Struct, frozen=True):
    """A file that must be there before the job begins; `mode` is 0600 where it holds secrets."""

    path: str
    text: str
    mode: int = 0o666


def render_job(
    elements: Sequence[JobElement],
    dialect: Words,
    request: Request | None,
    folder: JobFolder,
    *,
    root: str = "",
) -> str:
    """The script of a job: of a single one, or of an array when `request.size` is not 0.

    Elements of an array have the indices 1, 2, ... in their order. Without a `request` there are no
    directives (somewhere that is no scheduler). `root` is where proc/ and sys/ are looked for.
    """
    array = request is not None and request.size > 0
    if len(elements) != (request.size if request is not None and array else 1):
        raise ValueError(f"{len(elements)} elements do not make this job")
    texts = [
        _by_file(folder.part(element.n)) if apart else text
        for element, text, apart in bodies(elements, folder)
    ]
    parts = [
        interpreter(),
        *(dialect.directives(request) if request is not None else []),
        *_about(elements),
        f"treadle_root={shlex.quote(root)}",
        f"treadle_id=${{{shell_name(dialect.id_variable)}-}}" if dialect.id_variable else "treadle_id=",
        f"treadle_digest_text={shlex.quote(_DIGEST)}",
        RUNTIME,
    ]
    parts.append(_chosen(texts, shell_name(dialect.index_variable)) if array else texts[0])
    return "\n".join([*parts, END.strip()]) + "\n"


def files_of(elements: Sequence[JobElement], folder: JobFolder) -> list[JobFile]:
    """The files that a job reads, beside its script: long texts of elements, and secrets (0600)."""
    files = [JobFile(folder.part(one.n), text) for one, text, apart in bodies(elements, folder) if apart]
    for element in elements:
        files += [
            JobFile(folder.secrets(one.n), secrets_text(one), 0o600)
            for one in element.submissions
            if holds_secrets(one)
        ]
    return files


_DIGEST = DIGEST_FOLDER_SH.strip() + '\ntreadle_digest_folder "$@"'


def _about(elements: Sequence[JobElement]) -> list[str]:
    """Comments for whoever reads the script: what it runs."""
    attempts = [one for element in elements for one in element.submissions]
    told = [f"# {one_line(one.task.id)}, attempt {one.attempt}" for one in attempts[:_TOLD]]
    return told + ([f"# and {len(attempts) - _TOLD} more"] if len(attempts) > _TOLD else [])


def _by_file(path: str) -> str:
    quoted = shlex.quote(path)
    complaint = f"treadle_say 'cannot read what to do: '{quoted}; exit {NO_RECORD}"
    return f"[ -r {quoted} ] || {{ {complaint}; }}\n. {quoted}\n"


def _chosen(texts: Sequence[str], variable: str) -> str:
    """The elements of an array, one of which the index chooses."""
    lines = [f"case ${{{variable}-}} in"]
    for index, text in enumerate(texts, 1):
        lines.append(f"{index})\n{text};;")
    lines += [
        f"*) treadle_say \"no element has the index '${{{variable}-}}'\"; exit {NO_RECORD} ;;",
        "esac",
    ]
    return "\n".join(lines)
