"""Where artifacts stand: the prefix, and how a name or an override joins it. And what names may be."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from treadle.base.digest import ARTIFACT_STATE
from treadle.base.layout import StateFolder
from treadle.plan.paths import is_url as is_url
from treadle.plan.paths import normal
from treadle.steps.stores import local_path

if TYPE_CHECKING:
    from treadle.steps.spec import StepSpec

_UNFIT = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_PART = 180  # bytes of one part of a name: hash, attempt and endings still fit in 255


def default_prefix(workdir: str) -> str:
    """The prefix of steps that name none: `TREADLE_PREFIX`, else a folder of our own in the work folder."""
    return os.environ.get("TREADLE_PREFIX", "") or StateFolder(workdir).artifacts


def join(prefix: str, path: str) -> str:
    """`path` under `prefix`, with exactly one slash between them (after the scheme of a bare URL two)."""
    bare = prefix.rstrip("/")
    if bare.endswith(":") and is_url(prefix):
        bare += "/"
    return f"{bare}/{path.lstrip('/')}"


def unfit_name(name: object) -> str:
    """What is wrong with a step's name; empty: nothing."""
    if not isinstance(name, str):
        return f"a name is a text, not of type {type(name).__name__}"
    if name.isidentifier() and name.isascii() and len(name) < _LONGEST_PART:  # nearly always so
        return ""
    if not name.strip():
        return "a step needs a name"
    if "://" in name:
        return "a name has no scheme: where artifacts stand is said by output_path_prefix"
    if name.startswith("/") or name.endswith("/"):
        return "a name neither begins nor ends with '/'"
    return unfit_path(name)


def unfit_override(path: str) -> str:
    """What is wrong with an output path that a person chose; empty: nothing."""
    if not path.strip("/ "):
        return "the path is empty"
    _, scheme, rest = path.partition("://") if is_url(path) else ("", "", path)
    if scheme and not rest.strip("/").partition("/")[2] and not path.startswith(("file://", "memory://")):
        return "the URL names no place below its bucket"
    return unfit_path(rest.strip("/"))


def unfit_path(path: str) -> str:
    """What is wrong with the parts of a path; empty: nothing."""
    if ".." in path:
        return "'..' may not stand in it"
    if _UNFIT.search(path):
        return "it holds a control character"
    parts = path.split("/")
    if "" in parts or "." in parts:
        return "it has an empty part ('//'), or '.' as one"
    if ARTIFACT_STATE in parts:
        return f"{ARTIFACT_STATE} is where the records of artifacts stand"
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    return f"a part of it is longer than {_LONGEST_PART} bytes" if longest > _LONGEST_PART else ""


class Places:
    """Where the artifacts of one plan stand: the prefix and the work folder, as they were read once."""

    def __init__(self, prefix: str, workdir: str) -> None:
        self.prefix = prefix
        self._workdir = workdir

    def of(self, spec: StepSpec) -> str:
        """The output path of a step: absolute, in one spelling; or a URL."""
        path = spec.path_under(self.prefix)
        if is_url(path):
            return local_path(path) if path.startswith("file:") else path
        if not path.startswith("/"):
            path = join(self._workdir, path)
        return normal(path) if "/." in path or "//" in path else path
