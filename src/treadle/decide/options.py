"""What a decision is asked with: the user's choices, and the questions that are put to the past."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from treadle.records.event import End, Evidence, FileRecord, Outcome


class Options(Struct, frozen=True, kw_only=True):
    """The user's choices that bear on what must run.

    `selected` are ids of tasks (None: all). `forced` run whatever the evidence says. `narrowed` are the
    first output paths of gathers over a selection of samples. `workdir` and `flowdir` (the folder of the
    main workflow file) are absolute.
    """

    selected: frozenset[str] | None = None
    forced: frozenset[str] = frozenset()
    force_all: bool = False
    cutoff: bool = True
    adopt: bool = False
    narrowed: frozenset[str] = frozenset()
    overwrite_cohort: bool = False
    workdir: str = "."
    flowdir: str = "."


class Past(Protocol):
    """What is asked about earlier runs. Keys are those of `records.event.evidence_key`."""

    def evidence(self, key: str) -> Evidence | None:
        """What the last success left."""
        ...

    def last(self, key: str) -> tuple[End, Outcome | None] | None:
        """How the last attempt ended; one that was submitted and never settled was interrupted."""
        ...

    def maker(self, path: str) -> str | None:
        """The key under which this output path was recorded last."""
        ...

    def tombstone(self, path: str) -> FileRecord | None:
        """The output as it was when it was removed on purpose."""
        ...
