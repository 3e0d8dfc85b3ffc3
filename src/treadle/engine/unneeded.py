"""Temporary outputs that nobody needs any more: a tombstone first, then they are removed."""

from __future__ import annotations

import os

from treadle.base.errors import DiskError
from treadle.base.files import remove, remove_empty
from treadle.base.layout import CHUNKS
from treadle.engine.check import Eyes, same
from treadle.engine.news import RemoveTemporary
from treadle.engine.slate import recorded_outputs
from treadle.records.event import FileRecord, OutputEvicted, key_of_task
from treadle.records.past import Past


class Undertaker:
    """Buries outputs of one run. One that is not as its task left it stays: somebody made it his own."""

    def __init__(self, plan: str, past: Past, eyes: Eyes) -> None:
        self._plan = plan
        self._past = past
        self._eyes = eyes
        self._buried: dict[str, FileRecord] = {}

    def tombstone(self, path: str) -> FileRecord | None:
        """An output that was removed on purpose, as it was."""
        return self._buried.get(path) or self._past.tombstone(path)

    def bury(self, command: RemoveTemporary, now: float) -> OutputEvicted | None:
        """The tombstone to write before the output is removed; None: nothing is to be removed."""
        task, path = command.task, command.path
        key = key_of_task(self._plan, task)
        try:
            there = self._eyes.at(path)
        except DiskError:
            return None
        if there is None:
            return None
        before = self._past.evidence(key)
        record = self._eyes.made.get(path) or recorded_outputs(before).get(path)
        if record is None or not same(record, there):
            return None
        foreign = (*self._eyes.foreign, *(before.foreign if before is not None else ()))
        if there.folder and any(one.startswith(f"{path}/") for one in foreign):
            return None
        self._buried[path] = record
        return OutputEvicted(time=now, task=task.id, key=key, record=record)

    def remove(self, event: OutputEvicted) -> None:
        """Remove what has its tombstone; with the last piece of a rule the folders of its pieces, which
        nobody asked for. Raises `DiskError`."""
        place = self._eyes.place(event.record.path)
        remove(place)
        if event.record.path.startswith(f"{CHUNKS}/"):
            remove_empty(os.path.dirname(place), self._eyes.place(CHUNKS))
