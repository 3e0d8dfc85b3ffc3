"""The step book: what the tasks of a plan cannot hold, being values: the functions, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from treadle.steps.record import ArtifactRecord, Dep
from treadle.steps.spec import StepSpec


class Entry(Struct, frozen=True, kw_only=True):
    """One step as a run sees it.

    `path` is its output path, absolute or a URL; `deps` are all its deps, those that were pruned too.
    `wanted`: it is made again though its artifact is complete (forced, changed inputs, mutable), and then
    `replaces` is the record that it replaces. `tried`: an attempt at it that failed was seen. `depth`: how
    many steps have grown out of one another down to it (0: it was asked for). `prefix` is where artifacts of
    steps stand that name no other place, it and those that it grows.
    """

    spec: StepSpec
    path: str
    deps: tuple[Dep, ...] = ()
    wanted: bool = False
    replaces: ArtifactRecord | None = None
    tried: bool = False
    depth: int = 0
    prefix: str = ""


class StepBook:
    """The steps of one run by task id. Written by the front door and the backend, on the loop's own thread.

    `errors` are the exceptions that ended attempts, as they were raised (the last of each task); `records`
    what succeeded or was found complete, until it is dropped.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.errors: dict[str, BaseException] = {}
        self.records: dict[str, ArtifactRecord] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task: str) -> bool:
        return task in self._entries

    def __getitem__(self, task: str) -> Entry:
        return self._entries[task]

    def find(self, task: str) -> Entry | None:
        """The step, where it is known (still); any thread may ask."""
        return self._entries.get(task)

    def put(self, task: str, entry: Entry) -> None:
        """Take in a step, or what is known of it by now."""
        self._entries[task] = entry

    def join(self, other: StepBook, tasks: Iterable[str]) -> None:
        """Take over what another book says of these tasks."""
        for task in tasks:
            self._entries[task] = other._entries[task]

    def drop(self, task: str) -> None:
        """Forget a step that has ended (its error and record, too)."""
        for known in (self._entries, self.errors, self.records):
            known.pop(task, None)
