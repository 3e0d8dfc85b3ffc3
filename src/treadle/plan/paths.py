"""Paths as a plan knows them: one spelling of each, and an index of those that tasks make."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from posixpath import normpath

from treadle.base.layout import ArtifactPlaces
from treadle.plan.task import Draft

_NO_NAME = ("", ".", "..")
_ELSEWHERE = ("/", "../")
_AFTER_SLASH = "0"  # the character behind "/": `a/` <= everything below `a` < `a0`


def normal(path: str) -> str:
    """The one spelling of `path`: no `./`, no `//`, `..` collapsed, no slash at the end."""
    path = normpath(path)
    return path[1:] if path.startswith("//") else path


def relative_to(path: str, workdir: str) -> str:
    """`path` as a plan spells it: relative when it is absolute and lies under `workdir` (absolute)."""
    path = normal(path)
    if not workdir or not path.startswith("/"):
        return path
    root = normal(workdir)
    inside = root if root.endswith("/") else root + "/"
    if path == root:
        return "."
    return path[len(inside) :] if path.startswith(inside) else path


def is_url(path: str) -> bool:
    """Whether a path of an artifact is the address of an object store."""
    return "://" in path


def made_by(draft: Draft) -> tuple[str, ...]:
    """The paths that a task makes: its outputs; of a step its artifact, and the record of it where others
    may read that."""
    call = draft.call
    if call is None:
        return draft.outputs
    return (call.path, record_of(call.path)) if draft.inputs and not is_url(call.path) else (call.path,)


def record_of(artifact: str) -> str:
    """The record of an artifact, as a path of a plan: what a step reads of the steps below it.

    A step may make nothing at its path and give a value; the record tells of both.
    """
    return normal(ArtifactPlaces(artifact if "/" in artifact else f"./{artifact}").record)


def normal_draft(draft: Draft) -> Draft:
    """The draft with every path in its one spelling; the same object where none looks otherwise."""
    call = draft.call
    artifact = "" if call is None or is_url(call.path) else call.path
    text = "\n".join((*draft.inputs, *draft.outputs, draft.log, draft.benchmark, artifact, ""))
    if not ("//" in text or "/." in text or "./" in text or "/\n" in text):
        return draft
    from msgspec.structs import replace

    if call is not None and artifact:
        call = replace(call, path=normal(artifact))
    return replace(
        draft,
        inputs=tuple(dict.fromkeys(path if call and is_url(path) else normal(path) for path in draft.inputs)),
        gathered=frozenset(map(normal, draft.gathered)),
        ancient=frozenset(map(normal, draft.ancient)),
        outputs=tuple(dict.fromkeys(map(normal, draft.outputs))),
        temporary=tuple(dict.fromkeys(map(normal, draft.temporary))),
        protected=tuple(dict.fromkeys(map(normal, draft.protected))),
        log=normal(draft.log) if draft.log else "",
        benchmark=normal(draft.benchmark) if draft.benchmark else "",
        call=call,
    )


class PathIndex:
    """Which of a fixed set of normal paths lie above or below a path.

    Made once in time linear in the paths; the sorted list that answers `below` only when it is asked.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = paths
        self._sorted: list[str] | None = None
        self._folders: set[str] = set()
        self._nearest: dict[str, str] = {}
        folders = self._folders
        for path in paths:
            folder = path.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]

    def nearest(self, path: str) -> str:
        """The indexed path that is the nearest folder above `path`; empty: there is none."""
        folder = path.rpartition("/")[0]
        known = self._nearest.get(folder)
        return self._climb(folder) if known is None else known

    def above(self, path: str) -> Iterator[str]:
        """The indexed paths that are folders above `path`, nearest first."""
        while path := self.nearest(path):
            yield path

    def has_below(self, folder: str) -> bool:
        """Whether an indexed path lies below `folder`."""
        return folder in self._folders or (folder in (".", "/") and bool(self.below(folder)))

    def below(self, folder: str) -> list[str]:
        """The indexed paths below `folder`, sorted."""
        if self._sorted is None:
            self._sorted = sorted(self._paths)
        if folder == ".":
            return [path for path in self._sorted if path not in _NO_NAME and not path.startswith(_ELSEWHERE)]
        stem = folder.rstrip("/")
        start = bisect_left(self._sorted, stem + "/")
        return self._sorted[start : bisect_left(self._sorted, stem + _AFTER_SLASH, start)]

    def _climb(self, folder: str) -> str:
        """The nearest indexed path that is `folder` or above it; remembered for every folder passed."""
        nearest, climbed = self._nearest, []
        found = ""
        while folder:
            known = nearest.get(folder)
            if known is not None:
                found = known
                break
            climbed.append(folder)
            if folder in self._paths:
                found = folder
                break
            folder = folder.rpartition("/")[0]
        for one in climbed:
            nearest[one] = found
        return found
