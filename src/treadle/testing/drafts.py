"""Drafts written by hand, for tests of plans and of what is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.base.digest import blake2b
from treadle.base.names import step_id
from treadle.plan.task import Call, Command, Draft, Where


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


def step(
    name: str,
    below: Iterable[Draft | str] = (),
    *,
    path: str = "",
    attrs: str = "{}",
    where: Where = Where.THREAD,
    version: str = "",
    mutable: bool = False,
    grows: bool = False,
    **more: Any,
) -> Draft:
    """A draft of a step that builds on those `below` (drafts of steps, or task ids).

    Its identity is made of its name, attrs, version and what it builds on; its artifact stands at `path`, or
    in `.treadle/artifacts`; `more` are other fields of `Draft`.
    """
    needs = tuple([one if isinstance(one, str) else task_of(one) for one in below])
    text = "\n".join((name, attrs, version, *sorted(needs)))
    identity = blake2b(text.encode(), digest_size=16).hexdigest()
    call = Call(
        step=name,
        identity=identity,
        path=path or f".treadle/artifacts/{name}_{identity[:12]}",
        where=where,
        version=version,
        attrs=attrs,
        mutable=mutable,
        grows=grows,
    )
    return Draft(rule=f"@{name}", call=call, steps=needs, **more)


def task_of(draft: Draft) -> str:
    """The task id that the draft of a step will have."""
    assert draft.call is not None
    return step_id(draft.call.step, draft.call.identity)


def _paths(paths: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(paths.split() if isinstance(paths, str) else paths)
