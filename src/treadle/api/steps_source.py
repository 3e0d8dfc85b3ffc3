"""Where the further steps of a run come from: an iterable, or steps that grow when they succeed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.alone import needs_lock
from treadle.api.session import Session
from treadle.api.steps_pipe import Looker, Places, steps_planned
from treadle.api.steps_standing import RUNS, Standing
from treadle.api.steps_stream import Stream, Trip
from treadle.api.view import Planned, Request, View, view_of
from treadle.records.past import Past
from treadle.rules.schema import Workflow
from treadle.steps.book import StepBook
from treadle.steps.spec import StepSpec
from treadle.steps.within import refuse_own

Hear = Callable[[View], None]


class Route(Struct, frozen=True, kw_only=True):
    """How batches of steps go down the pipe.

    `force`: what is asked for is made again; with `force_all` everything is that is looked at.
    """

    places: Places
    look: Looker
    workflow: Workflow | None = None
    force: bool = False
    force_all: bool = False
    rerun_failed: bool = True

    def planned(self, steps: Sequence[StepSpec], standing: Standing | None = None) -> Planned:
        """The plan of the steps and of all below them that must be looked at."""
        forced: frozenset[str] | bool = self.force_all
        if self.force and not forced:
            forced = frozenset([step.task_id for step in steps])
        return steps_planned(
            steps,
            self.places,
            workflow=self.workflow,
            forced=forced,
            known=standing.known if standing is not None else (),
            made=standing.made if standing is not None else None,
            depths=standing.depths if standing is not None else None,
            taken=standing.taken if standing is not None else None,
            look=self.look,
        )

    def view(
        self, planned: Planned, steps: Sequence[StepSpec], past: Past, standing: Standing | None = None
    ) -> View:
        """What is to be done about it."""
        tasks = planned.plan.tasks
        forced: Iterable[str] = ()
        if self.force_all:
            forced = tasks
        elif self.force:
            forced = [step.task_id for step in steps if step.task_id in tasks]
        targets = tuple(forced)
        request = Request(force=bool(targets), targets=targets, rerun_failed=self.rerun_failed)
        if standing is None:
            view = view_of(planned, request, past)
        else:
            fallen = frozenset(standing.fallen)
            view = view_of(planned, request, past, fallen=fallen, running=standing.running)
        calls = (tasks[task].call for task in view.decision.to_run())
        refuse_own((call.step, call.identity) for call in calls if call is not None)
        return view

    def batches(self, evidence: Callable[[], Past]) -> Trip:
        """The whole way for steps that arrive in the middle of a run. `evidence` gives the folder's past, and
        is asked for once a step comes that reads files: the folder is locked from then on."""

        def trip(steps: list[StepSpec], standing: Standing, prefix: str) -> View:
            route = replace(self, places=replace(self.places, prefix=prefix)) if prefix else self
            planned = route.planned(steps, standing)
            locks = bool(planned.plan.tasks) and needs_lock(planned.plan)
            return route.view(planned, steps, evidence() if locks else Past(), standing)

        return trip

    def start(self, book: StepBook) -> View:
        """The empty view that the run of a stream begins with."""
        return self.view(replace(self.planned(()), book=book), (), Past())


def stream_of(
    steps: Iterable[StepSpec],
    route: Route,
    book: StepBook,
    session: Session,
    *,
    room: int,
    hear: Hear,
) -> Stream:
    """The steps of an iterable: no more than `room` that have not ended."""
    return Stream(steps, plan=route.batches(session.evidence), book=book, room=room, hear=hear)


def growth_of(view: View, route: Route, session: Session, hear: Hear) -> Stream | None:
    """The steps that those of a view grow when they succeed; None: nothing that will run grows."""
    tasks = view.plan.tasks
    if view.book is None or not any(
        answer.verdict in RUNS and (call := tasks[task].call) is not None and call.grows
        for task, answer in view.decision.answers.items()
    ):
        return None
    stream = Stream(None, plan=route.batches(session.evidence), book=view.book, room=1, hear=hear)
    stream.begin(view)
    return stream
