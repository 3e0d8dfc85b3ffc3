"""One run of steps: a list as one plan, any other iterable as a stream.

steps -> steps_planned -> view_of -> carry_out -> RunReport, or StepRunError
                                        ^
              Stream: steps that arrive while the run goes on
"""

from __future__ import annotations

import os
import signal
from collections.abc import Container, Iterable, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.alone import alone, needs_lock
from treadle.api.pipe import Planned, Request, View, view_of
from treadle.api.run import RunOptions, carry_out
from treadle.api.session import Session, hold
from treadle.api.steps_choose import Chooser
from treadle.api.steps_pipe import PREVIEWED, Looker, Places, steps_planned
from treadle.api.steps_report import RunReport, StepWarning
from treadle.api.steps_stream import Stream
from treadle.api.steps_tally import StepTally
from treadle.base.errors import StepError
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.records.past import Past, load_past
from treadle.steps.book import StepBook
from treadle.steps.spec import StepSpec


class Wish(Struct, frozen=True, kw_only=True):
    """What one call of `StepRunner.run` asked for, and from where: file and line."""

    max_concurrent: int
    max_remote: int
    dry_run: bool
    force: bool
    force_run_failed: bool
    keep_going: bool
    targets: tuple[str, ...] | None
    caller: tuple[str, int] = ("", 0)

    @property
    def room(self) -> int:
        """How many steps of a stream may be pulled and not have ended."""
        return 2 * self.max_concurrent


class StepRun:
    """One call of `StepRunner.run`."""

    def __init__(self, places: Places, wish: Wish) -> None:
        self._places = places
        self._wish = wish
        self._look = Looker(places)
        self._chooser = Chooser(wish.targets) if wish.targets is not None else None

    def go(self, steps: Iterable[StepSpec]) -> RunReport:
        """Run them. Raises what `StepRunner.run` does."""
        if isinstance(steps, list | tuple):
            return self._list(steps)
        if self._wish.dry_run:
            pulled = list(islice(steps, PREVIEWED + 1))
            return self._list(pulled[:PREVIEWED], truncated=len(pulled) > PREVIEWED)
        return self._stream(steps)

    # A list: one plan

    def _list(self, steps: Sequence[StepSpec], truncated: bool = False) -> RunReport:
        if self._chooser is not None:
            steps = self._chooser.chosen(steps)
        planned = self._planned(steps)
        locked = bool(planned.plan.tasks) and needs_lock(planned.plan)
        if self._wish.dry_run:
            past = load_past(StateFolder(self._places.workdir)) if locked else Past()
            return self._entered(self._view(planned, steps, past)).report(dry_run=True, truncated=truncated)
        if not locked:
            return self._without_lock(self._view(planned, steps, Past()))
        with hold(self._places.workdir, mask=Mask(), say=_silent) as session:
            if session.recovered.interrupted:
                planned = self._planned(steps)
            view = self._view(planned, steps, session.past)
            tally = self._entered(view)
            return self._driven(session, view, tally, self._growth(view, tally))

    def _without_lock(self, view: View) -> RunReport:
        tally = self._entered(view)
        if not view.decision.to_run():  # nothing is written for it
            report = tally.report()
            tally.raise_failures(report)
            return report
        with alone(self._places.workdir, mask=Mask()) as session:
            return self._driven(session, view, tally, self._growth(view, tally))

    def _entered(self, view: View) -> StepTally:
        """A tally of the view, whose warnings are told."""
        assert view.book is not None
        tally = StepTally(view.book)
        self._enter(tally, view)
        return tally

    def _enter(self, tally: StepTally, view: View) -> None:
        tally.enter(view)
        if view.warnings:
            import warnings

            for one in view.warnings:
                warnings.warn_explicit(str(one), StepWarning, *self._wish.caller)

    def _growth(self, view: View, tally: StepTally) -> Stream | None:
        """What brings the steps that others of the plan grow (None: none does)."""
        tasks = view.plan.tasks
        if not any((call := tasks[task].call) is not None and call.grows for task in view.decision.to_run()):
            return None
        assert view.book is not None
        stream = self._source(None, view.book, tally)
        stream.begin(view)
        return stream

    # Any other iterable: a stream

    def _stream(self, steps: Iterable[StepSpec]) -> RunReport:
        book = StepBook()
        tally = StepTally(book, streamed=True)
        source = self._source(steps, book, tally)
        with alone(self._places.workdir, mask=Mask()) as session:
            planned = self._planned(())
            view = self._view(replace(planned, book=book), (), Past())
            return self._driven(session, view, tally, source)

    def _source(self, steps: Iterable[StepSpec] | None, book: StepBook, tally: StepTally) -> Stream:
        chooser = self._chooser

        def plan(batch: list[StepSpec], known: Container[str], fallen: frozenset[str]) -> View:
            planned = self._planned(batch, known)
            if planned.plan.tasks and needs_lock(planned.plan):
                raise StepError(
                    "a step that arrived in the middle of the run reads files (inputs): what they held is "
                    "evidence, for which the run would have to hold the folder from its start",
                    hint="give the runner a list of steps",
                    code="inputs-in-stream",
                )
            return self._view(planned, batch, Past(), fallen)

        return Stream(
            steps,
            plan=plan,
            book=book,
            room=self._wish.room,
            hear=lambda view: self._enter(tally, view),
            wanted=(lambda step: True) if steps is None or chooser is None else chooser.wants,
        )

    # Down the pipe, and to the end

    def _planned(self, steps: Sequence[StepSpec], known: Container[str] = frozenset()) -> Planned:
        forced = frozenset([step.task_id for step in steps]) if self._wish.force else frozenset()
        return steps_planned(steps, self._places, forced=forced, known=known, look=self._look)

    def _view(
        self,
        planned: Planned,
        steps: Sequence[StepSpec],
        past: Past,
        fallen: frozenset[str] = frozenset(),
    ) -> View:
        tasks = planned.plan.tasks
        forced = [step.task_id for step in steps if step.task_id in tasks] if self._wish.force else []
        request = Request(force=bool(forced), targets=tuple(forced), rerun_failed=self._wish.force_run_failed)
        return view_of(planned, request, past, fallen=fallen)

    def _options(self, forget: bool) -> RunOptions:
        return RunOptions(
            keep_going=self._wish.keep_going,
            max_concurrent=self._wish.max_concurrent,
            max_remote=self._wish.max_remote,
            forget=forget,
            unsafe_locks=self._places.unsafe_locks,
        )

    def _driven(self, session: Session, view: View, tally: StepTally, source: Stream | None) -> RunReport:
        """Carry it out; the report, or what went wrong."""
        try:
            done = carry_out(session, view, self._options(tally.streamed), tally, source)
        finally:
            if source is not None:
                source.stop()
        report = tally.report()
        if done.exit_code == 130:
            raise KeyboardInterrupt(str(report))
        if done.exit_code == 143:
            _end_as_asked()
        others = list(source.errors) if source is not None else []
        if self._chooser is not None and not others:
            others += self._chooser.unmet()
        tally.raise_failures(report, others)
        return report


def _end_as_asked() -> None:
    """We were told to end, and all is recorded: now as the program would have without us."""
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit(143)


def _silent(news: object) -> None:
    """A script is not told of what happened before."""
