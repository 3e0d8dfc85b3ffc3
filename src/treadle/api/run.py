"""Running: down the same pipe as the preview, under the lock, and then the driver."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle import __version__
from treadle.api.alone import alone, needs_lock, pulse
from treadle.api.backend_of import backend_of
from treadle.api.cluster import beyond_backend, local_rules, scratch_dir
from treadle.api.session import Recovered, Session, hold, record
from treadle.api.view import Request, View, decided, mask_of, secrets_of, view_of
from treadle.base.errors import PlanError
from treadle.base.files import write_whole
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import gpus_here, usable_cpus, usable_memory
from treadle.base.mask import Mask
from treadle.base.place import Diagnostic, Severity
from treadle.engine.budget import impossible
from treadle.engine.discoveries import Grower
from treadle.engine.loop import drive
from treadle.engine.news import Interrupt
from treadle.engine.options import DriveOptions, DriveResult, Records
from treadle.engine.source import Source
from treadle.plan.show import plan_head, plan_texts
from treadle.plan.task import ScheduledPlan
from treadle.records.compact import Checkpoint
from treadle.records.event import FORMAT, Event, RunStarted
from treadle.records.journal import Journal
from treadle.records.lock import LockNews
from treadle.records.past import Past, load_past
from treadle.records.recorder import Recorder
from treadle.records.runs import new_run, prune

if TYPE_CHECKING:
    from treadle.api.adoption import Taken


class RunOptions(Struct, frozen=True, kw_only=True):
    """How to run; None: what this machine has. `memory` in bytes, `grace` in seconds between SIGTERM and
    SIGKILL; `max_concurrent` steps run here at a time (None: as many as `jobs`), and `max_remote` jobs of the
    client are in flight (None: as many as those). `forget`: of what has ended only how it ended is kept.
    `unsafe_locks` as in `StepRunner`; `argv` goes into the journal. `on_interrupt` and `until` as in
    `DriveOptions`."""

    jobs: int | None = None
    memory: int | None = None
    keep_going: bool = False
    fail_fast: bool = False
    max_failures: int | None = None
    keep_temporary: bool = False
    grace: float = 10.0
    wait: bool = False
    assume_dead: bool = False
    patient: bool = False
    max_concurrent: int | None = None
    max_remote: int | None = None
    forget: bool = False
    unsafe_locks: bool = False
    on_interrupt: Interrupt | None = None
    until: float | None = None
    argv: tuple[str, ...] = ()


class RunReport(Struct, frozen=True, kw_only=True):
    """What came of it; `result` and `folder` are None when nothing had to run, or when that was `declined`.

    `removed` are paths of temporary outputs that an earlier run had kept, and `errors` what went wrong with
    steps that were still to come (streams, growth).
    """

    exit_code: int
    view: View
    result: DriveResult | None = None
    folder: RunFolder | None = None
    errors: tuple[BaseException, ...] = ()
    declined: bool = False
    removed: tuple[str, ...] = ()


class Front(Protocol):
    """Whoever asked for the run."""

    def say(self, news: LockNews | Recovered) -> None:
        """Something happened before anything could start."""
        ...

    def agree(self, view: View, mask: Mask) -> bool:
        """This is what will run; False: do not."""
        ...

    def open(self, folder: RunFolder) -> None:
        """The run has begun."""
        ...

    def feed(self, events: Sequence[Event]) -> None:
        """What just happened, after it was written."""
        ...

    def close(self) -> None:
        """Nothing more will happen."""
        ...


def run(request: Request, options: RunOptions, front: Front) -> RunReport:
    """Run what must run.

    The workflow is read before the lock is taken: a wrong one touches nothing, and in a folder without
    records nor do inputs that are missing. It is expanded again when attempts of a killed run had to be
    cleaned up, since the listing may have changed by that.
    """
    from treadle.api.pipe import plan_of  # runs of steps alone start without all that reads workflow files

    planned = plan_of(request)
    first = None if os.path.lexists(StateFolder(planned.workdir).root) else view_of(planned, request, Past())
    mask = mask_of(planned.workflow)
    if not needs_lock(planned.plan):
        with alone(planned.workdir, mask=mask, assume_dead=options.assume_dead, say=front.say) as session:
            view = view_of(planned, request, session.past)
            from treadle.api.pipeline_run import mixed_run

            return mixed_run(session, view, request, options, front)
    with hold(
        planned.workdir, mask=mask, wait=options.wait, assume_dead=options.assume_dead, say=front.say
    ) as session:
        if session.outdated:
            planned = plan_of(request)
        view = view_of(planned, request, session.past) if first is None or session.past.size else first
        if session.past.flights:
            view = _without_dead(session, view, request, options)
            if view.planned is not None:
                from treadle.api.reentry import at_work  # workflows without checkpoint rules do not need it

                if (first_of_all := at_work(view)) is not None:
                    report = carry_out(session, decided(first_of_all, request, session.past), options, front)
                    detached = report.result is not None and report.result.detached
                    if report.exit_code > 1 or report.declined or detached:
                        return report
                    session = msgspec.structs.replace(session, past=load_past(session.state))
                    view = view_of(plan_of(request), request, session.past)
        if view.book is None:
            return carry_out(session, view, options, front)
        from treadle.api.pipeline_run import mixed_run  # workflows without steps do not need it

        return mixed_run(session, view, request, options, front)


def _without_dead(session: Session, view: View, request: Request, options: RunOptions) -> View:
    """The view, jobs in flight that cannot be reached from here refused, or given up where that is wished."""
    from treadle.api.adoption import elsewhere, give_up, refuse_elsewhere
    from treadle.api.pipe import plan_of

    lost = elsewhere(view, session.past)
    if not (lost and options.assume_dead):
        refuse_elsewhere(lost)
        return view
    give_up(session, lost)
    return view_of(plan_of(request), request, session.past)


def carry_out(
    session: Session, view: View, options: RunOptions, front: Front, source: Source | None = None
) -> RunReport:
    """Run what a view says, once it is agreed to; `source` brings more while it runs."""
    if session.lock is not None:
        # What was adopted, or looked at anew and found unchanged, need not be asked again.
        record(session, view.plan, {**view.decision.refreshed, **view.decision.adopted}, time.time())
    running = view.decision.to_run()
    if not running and source is None and not view.decision.in_flight():
        front.agree(view, session.mask)
        return RunReport(exit_code=0, view=view, removed=_kept_back(session, view, options))
    driving = _drive_options(options, view)
    tasks = (view.plan.tasks[task] for task in running)
    if refused := [
        *impossible(driving.budget(view.plan), tasks),
        *beyond_backend(view),
        *lacking_here(view),
        *_protected(view),
    ]:
        raise PlanError(refused)
    if view.book is not None:
        from treadle.backends.sendable import refuse_unsendable

        refuse_unsendable(view.book, (view.plan.tasks[task] for task in running))
    if not front.agree(view, session.mask):
        return RunReport(exit_code=1, view=view, declined=True)
    return _drive(session, view, options, driving, front, source)


def _kept_back(session: Session, view: View, options: RunOptions) -> tuple[str, ...]:
    """Let go what an earlier run kept and nobody needs."""
    passed_on = any(task.temporary for task in view.plan.tasks.values())
    if options.keep_temporary or session.lock is None or not passed_on:
        return ()
    from treadle.api.kept_back import let_go  # few workflows have some

    return let_go(session, view)


def lacking_here(view: View) -> list[Diagnostic]:
    """What environments want and this machine does not have: errors, where a preview warns."""
    if not view.beyond:
        return []
    from treadle.api.environments import errors

    return errors(view.beyond)


def _protected(view: View) -> list[Diagnostic]:
    """Outputs that are protected and would be overwritten: errors, where a preview warns."""
    found = (one for one in view.beyond if one.code == "protected-output")
    return [replace(one, severity=Severity.ERROR) for one in found]


def _drive(
    session: Session,
    view: View,
    options: RunOptions,
    driving: DriveOptions,
    front: Front,
    source: Source | None,
) -> RunReport:
    """Open the records of a run, drive it, close them."""
    now, mask = time.time(), session.mask
    folder = new_run(session.state, session.owner, now=now)
    head = {"round": 1, **plan_head(view.plan)}
    write_whole(folder.plan, _plan_json(head, view.plan, mask))
    backend = backend_of(
        view,
        mask=mask,
        unsafe_locks=options.unsafe_locks,
        more=source is not None or view.planned is not None,
        run=folder,
    )
    recorder = Recorder(
        Journal.create(folder.events, _first_event(session, view, options, folder, now, mask), mask),
        session.late or Checkpoint.open(session.state, folder.run, mask),
        session.late or session.lock,
    )
    if session.late is not None:
        session.late.begin(folder.run)
    front.open(folder)
    grower = _grower(view, folder, mask)
    records, jobs = _with_jobs(session, view, recorder, folder, front)
    try:
        with nullcontext() if session.lock is not None else pulse(folder, session.owner):
            result = drive(
                view.plan,
                view.decision,
                session.past,
                backend,
                records,
                driving,
                run=folder,
                workdir=view.workdir,
                flowdir=view.workflow.folder,
                secrets=secrets_of(view.workflow),
                mask=mask,
                lock=session.lock,
                listener=front.feed,
                known=view.facts.records,
                digest=head["digest"],
                source=source,
                fewer=view.expansion.fewer,
                grower=grower,
                adopted=jobs.jobs if jobs is not None else None,
                after=jobs.after if jobs is not None else 0,
            )
    except Exception:
        from treadle.api.log import engine_log  # `logging` takes 3 ms to import, and few runs log anything

        with engine_log(folder, mask):
            raise
    finally:
        front.close()
        backend.close()
        recorder.close()
    if view.workflow.on_end and not result.detached:
        from treadle.api.log import engine_log
        from treadle.api.on_end import on_end

        with engine_log(folder, mask) as log:
            on_end(view.workflow, folder, view.workdir, result, log)
    if session.lock is not None:
        prune(session.state)
    return RunReport(exit_code=result.exit_code, view=view, result=result, folder=folder)


def _with_jobs(
    session: Session, view: View, recorder: Recorder, folder: RunFolder, front: Front
) -> tuple[Records, Taken | None]:
    """What becomes of jobs of earlier runs, and the records of a run that takes some of them over."""
    if not session.past.flights:
        return recorder, None
    from treadle.api.adoption import taken, watched_notes
    from treadle.records.handover import Handover

    jobs = taken(view.plan, view.decision, session.past)
    if notes := watched_notes(jobs):
        recorder.write(notes)
        front.feed(notes)
    return Handover(recorder, session.state, jobs.flights, folder.run, session.mask), jobs


def _grower(view: View, folder: RunFolder, mask: Mask) -> Grower | None:
    """Where larger plans come from; None: no checkpoint task runs."""
    if view.planned is None:
        return None
    from treadle.api.reentry import open_checkpoints  # workflows without checkpoint rules do not need it
    from treadle.api.regrowth import Regrowth, append_plan

    def note(head: dict[str, Any], plan: ScheduledPlan) -> None:
        append_plan(folder.plan, _plan_json(head, plan, mask))

    return Regrowth(view, folder.run, note) if open_checkpoints(view) else None


def _plan_json(head: dict[str, Any], plan: ScheduledPlan, mask: Mask) -> Iterable[bytes]:
    """The text of a plan, in pieces."""
    pieces = (piece.encode() for piece in plan_texts(head, plan))
    if not mask:
        return pieces
    return (msgspec.json.encode(mask.within(msgspec.json.decode(b"".join(pieces)))), b"\n")


def _drive_options(options: RunOptions, view: View) -> DriveOptions:
    """How to drive: a scheduler counts what runs on it, and keeps jobs within its bounds."""
    jobs = options.jobs or usable_cpus()
    cluster = view.workflow.cluster
    scheduler = cluster is not None and cluster.is_scheduler
    return DriveOptions(
        jobs=jobs,
        max_concurrent=options.max_concurrent or jobs,
        max_remote=None if scheduler else options.max_remote or options.max_concurrent or jobs,
        local_rules=local_rules(view.workflow),
        forget=options.forget,
        memory=options.memory or usable_memory(),
        gpus=len(gpus_here()),
        keep_going=options.keep_going,
        fail_fast=options.fail_fast,
        max_failures=options.max_failures or 0,
        keep_temporary=options.keep_temporary,
        grace=options.grace,
        on_interrupt=options.on_interrupt,
        until=options.until,
        patient=options.patient,
        scratch_dir=scratch_dir(view.workflow),
    )


def _first_event(
    session: Session, view: View, options: RunOptions, folder: RunFolder, now: float, mask: Mask
) -> RunStarted:
    owner = session.owner
    return RunStarted(
        time=now,
        format=FORMAT,
        run=folder.run,
        treadle=__version__,
        workflow=view.plan.name,
        argv=tuple(mask.text(word) for word in options.argv),
        host=owner.host,
        boot=owner.boot,
        pid=os.getpid(),
        user=owner.user,
    )
