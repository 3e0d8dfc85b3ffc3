"""Steps that arrive while a run goes on: pulled from an iterable, or grown by steps that succeeded.

    iterable --pull--> pulled --.
                                 >--plan--> batches --take--> the engine
    results ---------> grown ---'

Two threads of our own do it, so that neither a slow generator nor a slow disk holds the run up: one pulls,
never more ahead than there is room; one plans all that has arrived as one batch. What has ended is known by
its id alone, so an endless stream runs in bounded memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.api.steps_standing import Standing
from treadle.api.view import View
from treadle.base.errors import StepError
from treadle.engine.source import Batch
from treadle.plan.show import plan_head
from treadle.records.event import End
from treadle.steps.grow import grown_by
from treadle.steps.spec import StepSpec
from treadle.steps.twins import differing, twice

if TYPE_CHECKING:
    from treadle.steps.book import StepBook
    from treadle.steps.record import ArtifactRecord


# A batch of steps, and the prefix of their artifacts (empty: the run's) -> what is to be done about it.
Trip = Callable[[list[StepSpec], Standing, str], View]
_WELL = (End.SUCCEEDED, End.UNCHANGED)
_END = object()  # of an iterable: it may give anything, None too
_HANG = 1.0  # seconds that our threads may take to come to their end when nothing more is wanted


class _Ready(Struct, frozen=True):
    """A step that has ended well and grows now."""

    spec: StepSpec
    record: ArtifactRecord | None
    depth: int
    prefix: str


class Stream:
    """A `Source` of batches of steps.

    `rest` is what is to be pulled (None: nothing, steps only grow); `room` is how many steps may be pulled
    and not have ended; `plan` goes down the pipe with a batch, in a thread of ours. `hear` is told of each
    batch on the loop's thread.
    """

    def __init__(
        self,
        rest: Iterable[StepSpec] | None,
        *,
        plan: Trip,
        book: StepBook,
        room: int,
        hear: Callable[[View], None] = lambda view: None,
    ) -> None:
        self.errors: list[BaseException] = []
        self._rest = rest
        self._plan = plan
        self._book = book
        self._room = room
        self._hear = hear
        self._ring: Callable[[], None] = lambda: None
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        # All below is shared, and only looked at or changed with `_change` held.
        self._pulled: list[StepSpec] = []
        self._growing: deque[_Ready] = deque()
        self._views: list[View] = []
        self._standing = Standing.nothing(keep=rest is None)
        self._may_grow: set[str] = set()  # tasks that will run and grow when they succeed
        self._ahead = 0  # pulled or planned to run, and not ended
        self._pulling = rest is not None
        self._planning = False
        self._stopped = False
        self._broken = False  # something is wrong with a batch: no further one comes

    # What the loop asks

    def start(self, ring: Callable[[], None]) -> None:
        """Begin to pull; the threads see the context variables of who asks."""
        self._ring = ring
        works = [("treadle-plan", self._plan_all)]
        if self._rest is not None:
            works.append(("treadle-pull", self._pull_all))
        for name, work in works:
            context = copy_context()
            thread = threading.Thread(target=context.run, args=(work,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def take(self) -> list[Batch]:
        """The batches that were planned since."""
        with self._change:
            views, self._views = self._views, []
        return [self._batch(view) for view in views]

    def ended(self, task: str, end: End) -> None:
        """A step has ended: there is room for one more, and it may have grown."""
        with self._change:
            self._ahead -= 1
            if task in self._may_grow:
                self._may_grow.discard(task)
                if end in _WELL and task in self._book:
                    entry = self._book[task]
                    record = self._book.records.get(task) or entry.replaces
                    self._growing.append(_Ready(entry.spec, record, entry.depth, entry.prefix))
            self._change.notify_all()
        if end in _WELL:
            self._book.drop(task)

    @property
    def done(self) -> bool:
        """Nothing more will come: all is pulled, planned and taken, and nothing that runs may grow."""
        with self._change:
            idle = not (self._pulling or self._planning or self._pulled or self._growing or self._views)
            if self._broken:
                return not self._views
            return self._stopped or (idle and not self._may_grow)

    def stop(self) -> None:
        """Let the threads end."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    # What the run does

    def close(self) -> None:
        """See the threads end; one that hangs in the user's generator is left behind."""
        self.stop()
        for thread in self._threads:
            thread.join(_HANG)

    def begin(self, view: View) -> None:
        """Know the plan that the run begins with."""
        with self._change:
            self._enter(view)

    # The threads

    def _pull_all(self) -> None:
        try:
            steps = iter(self._rest or ())
            while self._has_room():
                step: object = next(steps, _END)
                if step is _END:
                    break
                self._pulled_one(step)
        except BaseException as error:
            self.errors.append(error)
        finally:
            self._rest = None
            with self._change:
                self._pulling = False
                self._change.notify_all()
            self._ring()

    def _has_room(self) -> bool:
        """Wait for room; False: nothing more is wanted."""
        with self._change:
            self._change.wait_for(lambda: self._is_cut_short() or self._ahead < self._room)
            return not self._is_cut_short()

    def _pulled_one(self, step: object) -> None:
        if not isinstance(step, StepSpec):
            raise StepError(f"the iterable of steps gave {step!r}, not a StepSpec", code="no-step")
        self._see_twin(step)
        with self._change:
            if step.task_id not in self._standing.known:
                self._pulled.append(step)
                self._ahead += 1
                self._change.notify_all()

    def _see_twin(self, step: StepSpec) -> None:
        """One that comes again must be the same, as long as the first is remembered: until it has ended,
        where steps are pulled, and always where they only grow."""
        if self._standing.met is not None:
            first = self._standing.met.setdefault(step.task_id, step)
        else:
            entry = self._book.find(step.task_id)
            first = step if entry is None else entry.spec
        if first is not step and (differ := differing(first, step)):
            raise StepError([twice(step, differ)])

    def _plan_all(self) -> None:
        while (work := self._next_work()) is not None:
            pulled, growing = work
            view: View | None = None
            try:
                prefix = growing[0].prefix if growing else ""
                view = self._plan([*pulled, *self._grown(growing)], self._standing, prefix)
            except BaseException as error:
                self.errors.append(error)
            with self._change:
                self._ahead -= len(pulled)
                self._planning = False
                if view is not None:
                    self._enter(view)
                    self._views.append(view)
                else:
                    self._broken = True
                self._change.notify_all()
            self._ring()

    def _grown(self, growing: Sequence[_Ready]) -> list[StepSpec]:
        """What grows of steps that have ended. Where one cannot, the others do; it is told at the end."""
        found: list[StepSpec] = []
        self._standing.depths.clear()
        for one in growing:
            try:
                grown = grown_by(one.spec, one.record)
            except StepError as error:
                self.errors.append(error)
                continue
            for step in grown:
                self._see_twin(step)
                self._standing.depths.setdefault(step.identity, one.depth + 1)
            found += grown
        return found

    def _next_work(self) -> tuple[list[StepSpec], list[_Ready]] | None:
        """Wait for steps, and take all that are there, of those that grow all of one prefix; None: nothing
        more is wanted."""
        with self._change:
            self._change.wait_for(
                lambda: self._is_cut_short() or self._pulled or self._growing or self._is_over()
            )
            if self._is_cut_short() or not (self._pulled or self._growing):
                return None
            pulled, self._pulled = self._pulled, []
            waiting = list(self._growing)
            growing = [one for one in waiting if one.prefix == waiting[0].prefix]
            self._growing = deque(one for one in waiting if one.prefix != waiting[0].prefix)
            self._planning = True
            return pulled, growing

    def _is_cut_short(self) -> bool:
        return self._stopped or self._broken

    def _is_over(self) -> bool:
        return not self._pulling and not self._may_grow

    def _enter(self, view: View) -> None:
        """Count what a batch brings, while `_change` is held."""
        runs, growing = self._standing.take_in(view)
        self._ahead += runs
        self._may_grow.update(growing)

    def _batch(self, view: View) -> Batch:
        """A planned batch on its way to the engine; the run's book learns of its steps."""
        if view.book is not None:
            self._book.join(view.book, view.decision.to_run())
        self._hear(view)
        return Batch(view.plan, view.decision, plan_head(view.plan)["digest"])
