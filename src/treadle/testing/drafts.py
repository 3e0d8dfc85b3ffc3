"""Drafts written by hand, for tests of plans and of what is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.plan.task import Command, Draft


def draft(
    name: str,
    inputs: str | Iterable[str] = (),
    outputs: str | Iterable[str] = (),
    *,
    text: str = "true",
    **more: Any,
) -> Draft:
    """A draft named as its task will be: `draft("align/sample=S1", "S1.fq refs/hg38.fa", "S1.bam")`.

    Paths are a text, split at blanks, or a sequence; `text` is the shell command; `more` are other fields
    of `Draft`. Values of wildcards stand as they are, not encoded.
    """
    rule, _, pairs = name.partition("/")
    wildcards = tuple(tuple(pair.split("=", 1)) for pair in pairs.split(",")) if pairs else ()
    fields: dict[str, Any] = {"command": Command(text=text), "wildcards": wildcards, **more}
    return Draft(rule=rule, inputs=_paths(inputs), outputs=_paths(outputs), **fields)


def _paths(paths: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(paths.split() if isinstance(paths, str) else paths)
