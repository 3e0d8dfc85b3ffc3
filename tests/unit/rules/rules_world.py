"""A small world for tests of expansion: a workflow as text, a disk as a list of paths."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from treadle.base.errors import UserError, WorkflowError
from treadle.base.names import task_id
from treadle.base.place import Diagnostic, Place
from treadle.plan.task import Draft
from treadle.rules.expand.expand import Expansion, expand
from treadle.rules.file.read import ReadOptions, read_text
from treadle.rules.pattern.constraint import constraint
from treadle.rules.pattern.listing import PathListing
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.text import PathText
from treadle.rules.selection import parse_selection

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
PAIRS = """
[[pairs]]
pair_id = "P1"
experiment = "T1"
control = "N1"
[[pairs]]
pair_id = "P2"
experiment = "T2"
control = "N1"
[[pairs]]
pair_id = "P3"
experiment = "T3"
"""
SAMPLES = '[[sample_groups]]\nname = "all"\nsamples = ["S1", "S2", "S3"]\n'


def path_text(**constraints: str) -> PathText:
    """A reader of paths; what it finds wrong is in its `problems`."""
    config = {"dir": "out", "names": ("a", "b"), "key": "hush"}
    return PathText(config, frozenset(["key"]), {k: constraint(v) for k, v in constraints.items()}, [])


def pattern(text: str, **constraints: str) -> Pattern:
    """A pattern that must be right, with constraints on its wildcards."""
    reader = path_text(**constraints)
    parsed = reader.pattern(text, Place(), globs=True)
    assert parsed is not None, reader.problems
    return parsed


def expanded(
    text: str,
    disk: Sequence[str] = (),
    *,
    samples: Sequence[str] = (),
    config: Sequence[tuple[str, str]] = (),
    head: str = HEAD,
) -> Expansion:
    """Read and expand a workflow whose folder is `/flow`."""
    options = ReadOptions(config=tuple(config))
    workflow = read_text(head + text, folder="/flow", options=options)
    return expand(workflow, PathListing(disk), parse_selection(samples))


def tasks(text: str, disk: Sequence[str] = (), **options: Sequence[str]) -> dict[str, Draft]:
    """The drafts of a workflow by their ids."""
    drafts = expanded(text, disk, **options).drafts  # type: ignore[arg-type]
    found = {task_id(draft.rule, draft.wildcards): draft for draft in drafts}
    assert len(found) == len(drafts)
    return found


def errors(text: str, disk: Sequence[str] = (), **options: str) -> list[Diagnostic]:
    """What is wrong with a workflow that cannot be expanded."""
    with pytest.raises(WorkflowError) as caught:
        expanded(text, disk, **options)  # type: ignore[arg-type]
    return list(caught.value.diagnostics)


def error(text: str, disk: Sequence[str] = (), **options: str) -> Diagnostic:
    """The one thing that is wrong with a workflow."""
    (found,) = errors(text, disk, **options)
    return found


def refusal(text: str, samples: Sequence[str], disk: Sequence[str] = ()) -> Diagnostic:
    """The one thing that is wrong with a selection of samples."""
    with pytest.raises(UserError) as caught:
        expanded(text, disk, samples=samples)
    (found,) = caught.value.diagnostics
    return found


def notes(text: str, disk: Sequence[str] = (), **options: Sequence[str]) -> list[str]:
    """The codes of the warnings that expanding gives."""
    return [note.code for note in expanded(text, disk, **options).notes]  # type: ignore[arg-type]
