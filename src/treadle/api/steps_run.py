"""One run of steps: a list as one plan, any other iterable as a stream.

steps -> steps_planned -> view_of -> carry_out -> RunReport, or StepRunError
                                        ^
              Stream: steps that arrive while the run goes on
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import Struct

from treadle.api.alone import alone, needs_lock
from treadle.api.run import RunOptions, carry_out
from treadle.api.session import Session, hold
from treadle.api.steps_choose import chosen
from treadle.api.steps_grown import named_steps
from treadle.api.steps_pipe import PREVIEWED, Looker, Places
from treadle.api.steps_report import RunReport, StepWarning
from treadle.api.steps_source import Route, growth_of, stream_of
from treadle.api.steps_stream import Stream
from treadle.api.steps_tally import StepTally
from treadle.api.view import View
from treadle.base.garbage import Rest
from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.records.past import Past, load_past
from treadle.steps.book import StepBook
from treadle.steps.paths import Places as Where
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
    wait: bool = False

    @property
    def room(self) -> int:
        """How many steps of a stream may be pulled and not have ended."""
        return 2 * self.max_concurrent


class StepRun:
    """One call of `StepRunner.run`."""

    def __init__(self, places: Places, wish: Wish) -> None:
        self._places = places
        self._wish = wish
        self._rest = Rest()
        self._route = Route(
            places=places, look=Looker(places), force=wish.force, rerun_failed=wish.force_run_failed
        )

    def go(self, steps: Iterable[StepSpec]) -> RunReport:
        """Run them. Raises what `StepRunner.run` does."""
        if isinstance(steps, list | tuple):
            with self._rest:
                return self._list(steps)
        if self._wish.dry_run:
            pulled = list(islice(steps, PREVIEWED + 1))
            return self._list(pulled[:PREVIEWED], truncated=len(pulled) > PREVIEWED)
        return self._stream(steps)

    def _list(self, steps: Sequence[StepSpec], truncated: bool = False) -> RunReport:
        """One plan."""
        workdir = self._places.workdir
        if self._wish.targets is not None:
            paths = Where(self._places.prefix, workdir)
            names = named_steps(steps, paths, workdir, unsafe_locks=self._places.unsafe_locks)
            steps = names.chosen(self._wish.targets, "this run")
        planned = self._route.planned(steps)
        locked = bool(planned.plan.tasks) and needs_lock(planned.plan)
        if self._wish.dry_run:
            past = load_past(StateFolder(workdir)) if locked else Past()
            tally = self._entered(self._route.view(planned, steps, past))
            return tally.report(dry_run=True, truncated=truncated)
        if not locked:
            return self._without_lock(self._route.view(planned, steps, Past()))
        with hold(workdir, mask=Mask(), wait=self._wish.wait, say=_silent) as session:
            if session.outdated:
                planned = self._route.planned(steps)
            view = self._route.view(planned, steps, session.past)
            return self._driven(session, view, self._entered(view))

    def _without_lock(self, view: View) -> RunReport:
        tally = self._entered(view)
        if not view.decision.to_run():  # nothing is written for it
            return self._ended(tally, 0)
        with alone(self._places.workdir, mask=Mask(), wait=self._wish.wait) as session:
            return self._driven(session, view, tally)

    def _stream(self, steps: Iterable[StepSpec]) -> RunReport:
        """Batches that arrive while the run goes on."""
        book = StepBook()
        tally = StepTally(book, streamed=True, warn=self._warn)
        if self._wish.targets is not None:
            steps = chosen(steps, self._wish.targets, self._places, "this run")
        with alone(self._places.workdir, mask=Mask(), wait=self._wish.wait) as session:
            source = stream_of(
                steps,
                self._route,
                book,
                session,
                room=self._wish.room,
                hear=lambda view: self._enter(tally, view),
            )
            return self._driven(session, self._route.start(book), tally, source)

    def _entered(self, view: View) -> StepTally:
        """A tally of the view, whose warnings are told."""
        assert view.book is not None
        tally = StepTally(view.book, warn=self._warn)
        self._enter(tally, view)
        return tally

    def _enter(self, tally: StepTally, view: View) -> None:
        tally.enter(view)
        for one in view.warnings:
            self._warn(str(one))

    def _warn(self, text: str) -> None:
        import warnings

        warnings.warn_explicit(text, StepWarning, *self._wish.caller)

    def _driven(
        self,
        session: Session,
        view: View,
        tally: StepTally,
        source: Stream | None = None,
    ) -> RunReport:
        """Carry it out; the report, or what went wrong."""
        source = source or growth_of(view, self._route, session, lambda more: self._enter(tally, more))
        try:
            with self._rest.ended():
                done = carry_out(session, view, self._options(tally.streamed), tally, source)
        finally:
            if source is not None:
                source.close()
        others = list(source.errors) if source is not None else []
        return self._ended(tally, done.exit_code, others)

    def _ended(self, tally: StepTally, code: int, others: Sequence[BaseException] = ()) -> RunReport:
        report = tally.report()
        if code == 130:
            raise KeyboardInterrupt(str(report))
        if code == 143:
            _end_as_asked()
        tally.raise_failures(report, others)
        return report

    def _options(self, forget: bool) -> RunOptions:
        return RunOptions(
            keep_going=self._wish.keep_going,
            max_concurrent=self._wish.max_concurrent,
            max_remote=self._wish.max_remote,
            forget=forget,
            unsafe_locks=self._places.unsafe_locks,
        )


def _end_as_asked() -> None:
    """We were told to end, and all is recorded: now as the program would have without us."""
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit(143)


def _silent(news: object) -> None:
    """A script is not told of what happened before."""
