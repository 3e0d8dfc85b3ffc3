"""Where the further steps of a run come from: an iterable, or steps that grow when they succeed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.alone import needs_lock
from treadle.api.pipe import Planned, Request, View, view_of
from treadle.api.steps_pipe import Looker, Places, steps_planned
from treadle.api.steps_stream import Stream
from treadle.base.errors import StepError
from treadle.records.past import Past
from treadle.rules.schema import Workflow
from treadle.steps.book import StepBook
from treadle.steps.spec import StepSpec

Hear = Callable[[View], None]


class Route(Struct, frozen=True, kw_only=True):
    """How batches of steps go down the pipe. `force`: what is asked for is made again."""

    places: Places
    look: Looker
    workflow: Workflow | None = None
    force: bool = False
    rerun_failed: bool = True

    def planned(self, steps: Sequence[StepSpec], known: Container[str] = frozenset()) -> Planned:
        """The plan of the steps and of all below them that must be looked at."""
        forced = frozenset([step.task_id for step in steps]) if self.force else frozenset()
        return steps_planned(
            steps, self.places, workflow=self.workflow, forced=forced, known=known, look=self.look
        )

    def view(
        self,
        planned: Planned,
        steps: Sequence[StepSpec],
        past: Past,
        fallen: frozenset[str] = frozenset(),
    ) -> View:
        """What is to be done about it."""
        tasks = planned.plan.tasks
        forced = [step.task_id for step in steps if step.task_id in tasks] if self.force else []
        request = Request(force=bool(forced), targets=tuple(forced), rerun_failed=self.rerun_failed)
        return view_of(planned, request, past, fallen=fallen)

    def batch(self, steps: list[StepSpec], known: Container[str], fallen: frozenset[str]) -> View:
        """The whole way for steps that arrive in the middle of a run."""
        planned = self.planned(steps, known)
        if planned.plan.tasks and needs_lock(planned.plan):
            raise StepError(
                "a step that arrived in the middle of the run reads files (inputs): what they held is "
                "evidence, for which the run would have to hold the folder from its start",
                hint="give the runner a list of steps",
                code="inputs-in-stream",
            )
        return self.view(planned, steps, Past(), fallen)

    def start(self, book: StepBook) -> View:
        """The empty view that the run of a stream begins with."""
        return self.view(replace(self.planned(()), book=book), (), Past())


def stream_of(
    steps: Iterable[StepSpec],
    route: Route,
    book: StepBook,
    *,
    room: int,
    hear: Hear,
    wanted: Callable[[StepSpec], bool] = lambda step: True,
) -> Stream:
    """The steps of an iterable, as they are wanted: no more than `room` that have not ended."""
    return Stream(steps, plan=route.batch, book=book, room=room, hear=hear, wanted=wanted)


def growth_of(view: View, route: Route, hear: Hear) -> Stream | None:
    """The steps that those of a view grow when they succeed; None: nothing that will run grows."""
    tasks = view.plan.tasks
    if view.book is None or not any(
        (call := tasks[task].call) is not None and call.grows for task in view.decision.to_run()
    ):
        return None
    stream = Stream(None, plan=route.batch, book=view.book, room=1, hear=hear)
    stream.begin(view)
    return stream
