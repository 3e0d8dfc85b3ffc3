"""What a plan may hold but its author should know: logs in the way, paths that are nearly the same."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.plan.edges import Edges, Made
from treadle.plan.findings import Findings
from treadle.plan.nodes import Nodes


def note_logs(nodes: Nodes, made: Made, sources: frozenset[str], findings: Findings) -> None:
    """Warn of logs and benchmark files that two tasks write, that are outputs of others, or that are read."""
    if _are_apart(
        [path for _, draft in nodes.live() for path in (draft.log, draft.benchmark) if path], made, sources
    ):
        return
    written: dict[str, int] = {}
    for number, draft in nodes.live():
        if not draft.log and not draft.benchmark:
            continue
        for kind, path in (("log", draft.log), ("benchmark", draft.benchmark)):
            if not path:
                continue
            first = written.setdefault(path, number)
            if first != number:
                _note_shared(nodes, kind, path, first, number, findings)
            output = path if path in made.maker else made.index.nearest(path)
            if output and made.maker[output] != number:
                _note_in_output(nodes, kind, path, number, output, made.maker[output], findings)
    for path in sorted(written.keys() & sources):
        _note_read(nodes, path, written[path], findings)


def _are_apart(paths: list[str], made: Made, sources: frozenset[str]) -> bool:
    """No two of the paths are one, and none is an input, an output, or in one: nearly always so."""
    unique = set(paths)
    if len(unique) < len(paths) or not unique.isdisjoint(made.maker) or not unique.isdisjoint(sources):
        return False
    folders = {path.rpartition("/")[0] for path in unique}
    return not any(made.index.nearest(f"{folder}/file") for folder in folders if folder)


def _note_shared(nodes: Nodes, kind: str, path: str, first: int, second: int, findings: Findings) -> None:
    one, other = nodes.drafts[first], nodes.drafts[second]
    findings.note(
        f"shared-{kind}",
        f"{nodes.ids[first]} and {nodes.ids[second]} both write {path}: each overwrites what the other said",
        other.place,
        f"name a wildcard of the rule in its {kind}",
        alike=(one.rule, other.rule),
    )


def _note_in_output(
    nodes: Nodes, kind: str, path: str, number: int, output: str, maker: int, findings: Findings
) -> None:
    what = "is an output of" if output == path else f"lies in {output}, an output of"
    findings.note(
        f"{kind}-in-output",
        f"the {kind} of {nodes.ids[number]}, {path}, {what} {nodes.ids[maker]}",
        nodes.drafts[number].place,
        "it is lost when that task runs again: write it elsewhere",
        alike=(nodes.drafts[number].rule, nodes.drafts[maker].rule),
    )


def _note_read(nodes: Nodes, path: str, writer: int, findings: Findings) -> None:
    draft = nodes.drafts[writer]
    findings.note(
        "log-is-input",
        f"{path} is an input, but only the log or benchmark file of {nodes.ids[writer]}: nobody waits for it",
        draft.place,
        f"name it among the outputs of {draft.rule} if others need it",
        alike=(draft.rule,),
    )


def note_missing(nodes: Nodes, edges: Edges, findings: Findings) -> None:
    """Warn of rules that may lack some of what they gather, and gather nothing from several tasks."""
    asking: dict[str, int] = {}
    gathering: set[str] = set()
    for number, draft in nodes.live():
        if draft.policy.allow_missing or draft.policy.allow_missing_part:
            asking.setdefault(draft.rule, number)
            if len(edges.needs[number]) - len(edges.ordered.get(number, ())) > 1:
                gathering.add(draft.rule)
    for rule in sorted(asking.keys() - gathering):
        findings.note(
            "no-effect",
            f"'allow_missing' has no effect here: no task of rule {rule} gathers from several tasks",
            nodes.drafts[asking[rule]].place,
            "take it out, or name a wildcard in its inputs that is not in its outputs",
            alike=(rule,),
        )


def note_likeness(nodes: Nodes, made: Made, sources: Iterable[str], findings: Findings) -> None:
    """Warn of paths that differ only in case or in their Unicode form, where one of them is made.

    Linux keeps them apart; the file systems of other machines may not.
    """
    paths = [*made.maker, *sources]
    spelt = map(str.lower if all(map(str.isascii, paths)) else _alike, paths)
    if len(set(spelt)) == len(paths):
        return
    first: dict[str, str] = {}
    for path in (*made.maker, *sorted(sources)):
        other = first.setdefault(_alike(path), path)
        if other == path or other not in made.maker:
            continue
        draft = nodes.drafts[made.maker[other]]
        findings.note(
            "paths-alike",
            f"{other!a} and {path!a} differ only in case or Unicode form"
            if not path.isascii() or not other.isascii()
            else f"{other} and {path} differ only in case",
            draft.place,
            "on this machine they are two files, on others one: spell them alike if one is meant",
            alike=(draft.rule,),
        )


def _alike(path: str) -> str:
    if path.isascii():
        return path.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", path).casefold())
