"""The user's choices that bear on what must run."""

from __future__ import annotations

from collections.abc import Set

from msgspec import Struct


class Options(Struct, frozen=True, kw_only=True):
    """What a decision is asked with.

    `selected` are ids of tasks (None: all). `forced` run whatever the evidence says. `narrowed` are the
    first output paths of gathers over a selection of samples. Without `rerun_failed` a step that failed
    before is skipped, with what builds on it; `fallen` are those of earlier batches, and `running`
    steps of earlier batches that run, on whose artifacts evidence hangs. When a plan grows in the middle of a
    run, `made` are the tasks that ran in it, and `pending` those that it is still to end. `workdir` and
    `flowdir` (the folder of the main workflow file) are absolute.
    """

    selected: frozenset[str] | None = None
    forced: frozenset[str] = frozenset()
    force_all: bool = False
    cutoff: bool = True
    adopt: bool = False
    narrowed: frozenset[str] = frozenset()
    overwrite_cohort: bool = False
    rerun_failed: bool = True
    fallen: frozenset[str] = frozenset()
    running: Set[str] = frozenset()
    made: Set[str] = frozenset()
    pending: Set[str] = frozenset()
    workdir: str = "."
    flowdir: str = "."
