"""Running a pipeline from the command line: its list as one plan, or its stream as it comes.

open -> planned -> view_of -> carry_out
                                 ^
           Stream: steps that the file yields, or that others grow, while the run goes on
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from treadle.api.alone import alone, needs_lock
from treadle.api.pipe import Planned, Request, View, mask_of, view_of
from treadle.api.pipeline_plan import Opened, open_pipeline, places_of, planned_steps
from treadle.api.run import Front, RunOptions, RunReport, carry_out
from treadle.api.session import Session, hold
from treadle.api.steps_choose import chosen
from treadle.api.steps_pipe import Looker, Places
from treadle.api.steps_source import Route, growth_of, stream_of
from treadle.api.steps_stream import Stream
from treadle.base.machine import usable_cpus
from treadle.base.mask import Mask
from treadle.records.past import Past
from treadle.rules.schema import Workflow
from treadle.steps.book import StepBook


class StepFront(Front, Protocol):
    """Whoever asked for a run of steps."""

    def hear(self, view: View) -> None:
        """More steps arrived, and this is what will come of them."""
        ...


def run_pipeline(request: Request, options: RunOptions, front: StepFront) -> RunReport:
    """Run what must run of the steps that a request names.

    The folder is locked only where steps read files. What the file does wrong while it yields steps is in
    the report's `errors`; what had been yielded by then has run.
    """
    opened = open_pipeline(request)
    request = replace(request, targets=opened.targets)
    if opened.pipeline.stream:
        return _streamed(opened, request, options, front)
    steps, _ = opened.pipeline.pulled()
    planned = planned_steps(opened, steps, request)
    if not needs_lock(planned.plan) or not planned.plan.tasks:
        return _without_lock(opened, planned, request, options, front)
    mask = mask_of(planned.workflow)
    with hold(
        planned.workdir, mask=mask, wait=options.wait, assume_dead=options.assume_dead, say=front.say
    ) as session:
        if session.outdated:
            planned = planned_steps(opened, steps, request)
        view = view_of(planned, request, session.past)
        route = _route(opened.workflow, opened.places, force=_all_forced(request))
        return _carried(session, view, options, front, growth_of(view, route, session, front.hear))


def _without_lock(
    opened: Opened, planned: Planned, request: Request, options: RunOptions, front: StepFront
) -> RunReport:
    view = view_of(planned, request, Past())
    if not view.decision.to_run():  # nothing is written for it
        front.agree(view, Mask())
        return RunReport(exit_code=0, view=view)
    with alone(planned.workdir, mask=Mask(), assume_dead=options.assume_dead, say=front.say) as session:
        route = _route(opened.workflow, opened.places, force=_all_forced(request))
        return _carried(session, view, options, front, growth_of(view, route, session, front.hear))


def _all_forced(request: Request) -> bool:
    """Whether everything is made again, so that what grows is, too."""
    return request.force and not request.targets


def _streamed(opened: Opened, request: Request, options: RunOptions, front: StepFront) -> RunReport:
    """Run steps as the file yields them; targets choose among these, and what they build on comes along."""
    book = StepBook()
    route = _route(opened.workflow, opened.places, force=request.force)
    view = replace(route.start(book), stream=True)
    steps = opened.pipeline.steps
    if opened.targets:
        steps = chosen(steps, opened.targets, opened.places, opened.pipeline.file)
    room = 2 * (options.max_concurrent or options.jobs or usable_cpus())
    with alone(opened.places.workdir, mask=Mask(), wait=options.wait, say=front.say) as session:
        source = stream_of(steps, route, book, session, room=room, hear=front.hear)
        return _carried(session, view, replace(options, forget=True), front, source)


def _carried(
    session: Session, view: View, options: RunOptions, front: Front, source: Stream | None
) -> RunReport:
    """Carry it out, and hear what went wrong with what was to come."""
    try:
        report = carry_out(session, view, options, front, source)
    finally:
        if source is not None:
            source.close()
    errors = tuple(source.errors) if source is not None else ()
    return replace(report, errors=errors, exit_code=report.exit_code or (2 if errors else 0))


def mixed_run(session: Session, view: View, request: Request, options: RunOptions, front: Front) -> RunReport:
    """Carry out a plan of rules and steps, some of which may grow."""
    if view.planned is not None:  # there are checkpoint rules: what grows comes with what these find
        return carry_out(session, view, options, front)
    route = _route(view.workflow, places_of(request, view.workdir), force=_all_forced(request))
    return _carried(session, view, options, front, growth_of(view, route, session, lambda more: None))


def _route(workflow: Workflow, places: Places, *, force: bool = False) -> Route:
    """How steps that arrive go down the pipe: each batch is a plan of its own, named as the run's."""
    named = replace(workflow, rules=(), modules=())
    return Route(places=places, look=Looker(places), workflow=named, force_all=force)
