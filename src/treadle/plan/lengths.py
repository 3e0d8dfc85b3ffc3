"""The refusal of paths that no file system takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treadle.plan.edges import Made
from treadle.plan.findings import Findings
from treadle.plan.nodes import Nodes
from treadle.plan.paths import is_url, made_by
from treadle.plan.task import Draft

_PATH = 4095  # bytes of a whole path (PATH_MAX of Linux, with the byte that ends it)
_NAME = 255  # bytes of one name in it (NAME_MAX of Linux and macOS)
_MADE = 240  # bytes of the name of what a task makes: `.failed.12` must fit behind it
_SHORT = 60  # characters: a path that is not longer has at most 4 bytes for each, and passes


def check_lengths(nodes: Nodes, made: Made, sources: Iterable[str], findings: Findings) -> None:
    """Refuse inputs, outputs, logs and benchmark files whose path, or a name in it, is too long."""
    beside = [path for draft in nodes.drafts if draft.log or draft.benchmark for path in _beside(draft)]
    suspects = [path for paths in (made.maker, sources, beside) for path in paths if len(path) > _SHORT]
    long = {
        path: why
        for path in suspects
        if (len(path) > _MADE or not path.isascii()) and (why := _too_long(path, _most(path, nodes, made)))
    }
    if not long:
        return
    for number, path in _users(nodes, long):
        draft = nodes.drafts[number]
        findings.error(
            "path-too-long",
            f"{nodes.ids[number]} names {long[path]}: {path[:_SHORT]}...",
            draft.place,
            "shorten it, or the values that stand in it",
            alike=(draft.rule,),
        )


def _beside(draft: Draft) -> tuple[str, str]:
    return draft.log, draft.benchmark


def _most(path: str, nodes: Nodes, made: Made) -> int:
    """How many bytes a name in the path may have; names of what stands beside artifacts are cut to fit."""
    number = made.maker.get(path)
    return _NAME if number is None or nodes.drafts[number].call is not None else _MADE


def _too_long(path: str, most: int) -> str:
    encoded = path.encode(errors="surrogatepass")
    if len(encoded) > _PATH:
        return f"a path of {len(encoded):,} bytes, where {_PATH:,} are the most"
    longest = 0 if is_url(path) else max(map(len, encoded.split(b"/")))
    return (
        f"a file or folder whose name has {longest:,} bytes, where {most} are the most"
        if longest > most
        else ""
    )


def _users(nodes: Nodes, paths: dict[str, str]) -> Iterator[tuple[int, str]]:
    for number, draft in nodes.live():
        for path in dict.fromkeys((*made_by(draft), *draft.inputs, *_beside(draft))):
            if path in paths:
                yield number, path
