"""Cut-off: whether a task whose upstream has ended may settle without running, by its own evidence."""

from __future__ import annotations

from functools import partial
from typing import Any

from treadle.base.errors import DiskError
from treadle.decide.evidence import examine
from treadle.decide.reason import InputChanged, InputVanished, NeverRan
from treadle.engine.aside import Aside
from treadle.engine.check import SMALL, Eyes
from treadle.engine.discoveries import Discoveries
from treadle.engine.inbox import Inbox
from treadle.engine.news import Examine, Examined
from treadle.engine.unneeded import Undertaker
from treadle.records.event import Evidence, key_of_task
from treadle.records.past import Past


class Examiner:
    """Answers `Examine` by `Examined`: at once, or once large contents have been read aside."""

    def __init__(
        self,
        *,
        plan: str,
        past: Past,
        eyes: Eyes,
        undertaker: Undertaker,
        aside: Aside[Any],
        inbox: Inbox,
        discoveries: Discoveries | None = None,
    ) -> None:
        self._discoveries = discoveries
        self._plan = plan
        self._past = past
        self._eyes = eyes
        self._undertaker = undertaker
        self._aside = aside
        self._inbox = inbox

    def begin(self, command: Examine) -> None:
        task = command.task
        evidence = self._past.evidence(key_of_task(self._plan, task))
        if evidence is None:
            self._inbox.tell(Examined(task.id, command.round, (NeverRan(),)))
            return
        if command.lost and command.lost != evidence.partial:
            self._inbox.tell(Examined(task.id, command.round, (InputVanished(path=command.lost[0]),)))
            return
        work = partial(
            examine,
            task,
            evidence,
            self._eyes.workdir,
            self._eyes.flowdir,
            known=self._eyes.known,
            tombstone=self._undertaker.tombstone,
            without=command.lost,
        )
        then = partial(self._end, command, evidence)
        try:
            if self._eyes.unread_bytes(task) > SMALL:
                self._aside.begin(work, then)
            else:
                then(work())
        except DiskError as error:
            then(error)

    def _end(self, command: Examine, old: Evidence, found: Any) -> None:
        task = command.task.id
        if isinstance(found, DiskError):
            # What cannot be read cannot be shown to be unchanged; the attempt will tell what is wrong.
            self._inbox.tell(Examined(task, command.round, (InputChanged(path="", how="stat"),)))
            return
        if isinstance(found, BaseException):
            raise found
        reasons, evidence = found
        self._eyes.learn((*evidence.inputs, *evidence.outputs))
        fresh = None if evidence is old else evidence
        news = Examined(task, command.round, reasons, fresh)
        if command.task.finds and not reasons and self._discoveries is not None:
            self._discoveries.examined(command.task, evidence, news)
        else:
            self._inbox.tell(news)
