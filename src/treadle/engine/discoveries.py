"""Checkpoint tasks at their end: what they found is read, and the plan that it makes enters with their end.

A checkpoint task is not told to be done before it is known that its values make a plan: where they do not,
it has failed, in words, and nothing of it counts. All that have ended since the last look are one round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.decide.reason import Decision, NothingFound
from treadle.engine.attempt import Attempt
from treadle.engine.clock import Clock, Timers
from treadle.engine.inbox import Inbox
from treadle.engine.news import Ended, Examined, Grew, Vacated
from treadle.engine.node import Fewer
from treadle.engine.state import Machine
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import EndReason, Event, Evidence, FileRecord, Outcome

_PAUSE = 4.0  # how much longer than a round the pause after it is
_LONGEST = 10.0  # seconds


class Reached(Struct, frozen=True):
    """A checkpoint task at its end. `ran`: it was tried, and its manifest is to be read; else its evidence
    tells already what it found. Of a step that grows others its artifact tells it."""

    task: ScheduledTask
    evidence: Evidence | None
    ran: bool = True


class Growth(Struct, frozen=True, kw_only=True):
    """What comes of checkpoint tasks that ended: the evidence of each with what it found in it, or why it
    failed after all, by its id; and the plan with all that was found (None: nothing was).

    `fewer` as in `BackendDriver`. `records` are of files whose contents were read on the way.
    """

    evidence: Mapping[str, Evidence | None] = {}
    refused: Mapping[str, str] = {}
    plan: ScheduledPlan | None = None
    decision: Decision | None = None
    digest: str = ""
    fewer: Fewer | None = None
    records: Mapping[str, FileRecord | None] = {}


class Grower(Protocol):
    """Where larger plans come from. Everything happens on the loop's own thread."""

    def grow(
        self,
        reached: Sequence[Reached],
        made: frozenset[str],
        pending: frozenset[str],
        check: Callable[[ScheduledPlan], None],
    ) -> Growth:
        """The plan with what these tasks found.

        `made` are the tasks that ran in this run, and `pending` those that are still to end. `check` raises
        PlanError for a plan that cannot take the place of this one.
        """
        ...

    def heard(self, events: Sequence[Event]) -> None:
        """What just happened, after it was written."""
        ...


class _Parked(Struct):
    """The end of one, until it is known what comes of it."""

    reached: Reached
    attempt: Attempt | None = None
    outcome: Outcome = Outcome()
    doubted: bool = False
    examined: Examined | None = None
    vacated: bool = False

    def vacate(self, inbox: Inbox) -> None:
        """Others may have what its attempt took."""
        if self.attempt is not None and not self.vacated:
            self.vacated = True
            inbox.tell(Vacated(self.reached.task.id, self.attempt.n))


class Discoveries:
    """The checkpoint tasks of one run that have come to their end."""

    def __init__(
        self,
        grower: Grower,
        machine: Machine,
        inbox: Inbox,
        learn: Callable[[Iterable[FileRecord]], None],
        beat: Callable[[], None],
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._next = 0.0  # when the next round may begin while others are still to come
        self._grower = grower
        self._machine = machine
        self._inbox = inbox
        self._learn = learn
        self._beat = beat
        self._parked: list[_Parked] = []
        self.fail: Callable[[Attempt, Outcome], None] = lambda attempt, outcome: None

    def ended(self, attempt: Attempt, outcome: Outcome, evidence: Evidence | None, doubted: bool) -> None:
        """An attempt succeeded."""
        reached = Reached(attempt.task, evidence)
        self._parked.append(_Parked(reached, attempt, outcome, doubted))

    def examined(self, task: ScheduledTask, evidence: Evidence, news: Examined) -> None:
        """Nothing speaks for running it: what it found last time stands."""
        self._parked.append(_Parked(Reached(task, evidence, ran=False), examined=news))

    def settle(self) -> None:
        """Tell the machine of their ends, and of the larger plan, in one go.

        While further checkpoint tasks are ready or run, a round waits four times as long as the one before it
        took, but no more than 10 s: so many of them make few rounds.
        """
        begun = self._clock.monotonic()
        if not self._parked:
            return
        early = begun < self._next and not self._machine.stopping
        if early and self._machine.checkpoints_left > len(self._parked):
            for one in self._parked:
                one.vacate(self._inbox)
            return
        parked, self._parked = self._parked, []
        late = [one.examined for one in parked if one.examined and one.examined.round != self._machine.round]
        for news in late:
            self._inbox.tell(news)  # it was asked of an earlier plan, and does not count any more
        parked = [one for one in parked if one.examined is None or one.examined.round == self._machine.round]
        if not parked:
            return
        self._beat()
        here = frozenset(one.reached.task.id for one in parked)
        ran = frozenset(one.reached.task.id for one in parked if one.reached.ran)
        made, pending = self._machine.standing()
        growth = self._grower.grow(
            [one.reached for one in parked], made | ran, pending - here, self._machine.check
        )
        for one in parked:
            self._tell(one, growth)
        if growth.plan is not None and growth.decision is not None and not self._machine.stopping:
            self._learn(record for record in growth.records.values() if record is not None)
            found = tuple(growth.evidence)
            self._inbox.tell(Grew(growth.plan, growth.decision, growth.digest, found, growth.fewer))
        self._beat()
        ended = self._clock.monotonic()
        self._next = ended + min(_PAUSE * (ended - begun), _LONGEST)
        self._timers.add(self._next, self.settle)

    def heard(self, events: Sequence[Event]) -> None:
        """What just happened."""
        self._grower.heard(events)

    def _tell(self, one: _Parked, growth: Growth) -> None:
        task = one.reached.task.id
        words = growth.refused.get(task)
        if one.examined is not None:
            self._inbox.tell(replace(one.examined, reasons=(NothingFound(),)) if words else one.examined)
        elif one.attempt is not None and words is not None:
            self.fail(one.attempt, replace(one.outcome, reason=EndReason.APP, message=words))
        elif one.attempt is not None:
            evidence = growth.evidence.get(task, one.reached.evidence)
            self._inbox.tell(Ended(task, one.attempt.n, one.outcome, evidence, one.doubted))
