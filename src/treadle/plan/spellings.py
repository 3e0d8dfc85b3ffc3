"""One file, one spelling: absolute paths, and those that begin with `..`, may lead back to the work folder.

Edges come from equal texts. A file that two rules spell in two ways would have no edge between its maker and
its reader, or two makers that nobody sees; so that is refused. Commands get each path as its author wrote it
(one may rely on an absolute path), so none is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from posixpath import join, realpath, split

from treadle.plan.edges import Made
from treadle.plan.findings import Findings
from treadle.plan.nodes import Nodes
from treadle.plan.paths import made_by, normal, relative_to
from treadle.plan.refuse import is_artifact_place, is_off_limits, refuse_place, refuse_protected

_ELSEWHERE = ("/", "..")


def place_in(path: str, roots: Sequence[str]) -> str:
    """Where a path leads: relative if that is in the work folder, whose absolute spellings are `roots` (of
    which there may be two: as it was named, then without symbolic links); else absolute. Without roots as it
    is. (Only what leads elsewhere by its text is looked at on the disk: it may come back by a link.)
    """
    if not (roots and path.startswith(_ELSEWHERE)):
        return path
    whole = [path if path.startswith("/") else normal(join(root, path)) for root in roots]
    for root, one in zip(roots, whole):
        if one.startswith(root) and one[len(root) : len(root) + 1] in ("", "/"):
            return one[len(root) + 1 :] or "."
    folder, name = split(whole[0])
    return relative_to(join(_real(folder), name), roots[-1])


@lru_cache(maxsize=1024)
def _real(folder: str) -> str:
    return realpath(folder)


def check_spellings(
    nodes: Nodes,
    made: Made,
    sources: Iterable[str],
    protected: Sequence[str],
    roots: Sequence[str],
    findings: Findings,
) -> None:
    """Refuse an output that leads to what no task may make, and a path whose file is an output, or lies in
    one, under another spelling. `protected` are paths as `place_in` gives them."""
    if not roots:
        return
    first: dict[str, str] = {}
    twice: dict[str, str] = {}
    for path in (*made.maker, *sorted(sources)):
        if not path.startswith(_ELSEWHERE):
            continue
        place = place_in(path, roots)
        if path in made.maker:
            _check_output(nodes, made.maker[path], path, place, protected, roots, findings)
        other = first.setdefault(place, path)
        if other == path:
            other = _other(path, place, made, sources)
        if other and (path in made.maker or other in made.maker):
            twice[path] = other
    if twice:
        for number, path in _users(nodes, twice):
            _refuse_two(nodes, number, path, twice[path], place_in(path, roots), findings)


def _check_output(
    nodes: Nodes,
    number: int,
    path: str,
    place: str,
    protected: Iterable[str],
    roots: Sequence[str],
    findings: Findings,
) -> None:
    if path == "/" or path.endswith(".."):
        return  # refused as it is spelled
    if place == "." or (is_off_limits(place, roots) and not is_artifact_place(nodes, number, place)):
        refuse_place(nodes, number, path, place, findings)
    for one in protected:
        if one == place or one.startswith(place + "/"):
            refuse_protected(nodes, number, path, one, findings)


def _other(path: str, place: str, made: Made, sources: Iterable[str]) -> str:
    """What stands at the place under another spelling, around it, or in it."""
    if place == path:
        return ""
    if place in made.maker or place in sources:
        return place
    if around := made.index.nearest(place):
        return around
    inside = made.index.below(place) if path in made.maker and made.index.has_below(place) else ()
    return inside[0] if inside else ""


def _users(nodes: Nodes, paths: dict[str, str]) -> Iterator[tuple[int, str]]:
    """The first task that names each path."""
    left = dict(paths)
    for number, draft in nodes.live():
        for path in (*made_by(draft), *draft.inputs):
            if left.pop(path, ""):
                yield number, path


def _refuse_two(nodes: Nodes, number: int, path: str, other: str, place: str, findings: Findings) -> None:
    if other.startswith(place + "/"):
        how = f"it holds {other}"
    else:
        how = f"it lies in {other}" if place.startswith(other + "/") else f"it is {other}"
    findings.error(
        "two-spellings",
        f"{nodes.ids[number]} names {path}, and {how}, which is spelled in another way",
        nodes.drafts[number].place,
        "spell it alike in both, best from the work folder: without / or .. before it",
        alike=(nodes.drafts[number].rule, other),
    )
