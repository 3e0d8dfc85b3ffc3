"""Tasks with a job of an earlier run that still lives: taken over, or ended before they run anew."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.base.errors import DiskError
from treadle.decide.identity import identity
from treadle.decide.look import Look, look_at
from treadle.decide.reason import Answer, AnyReason, JobInFlight, Upstream, Verdict
from treadle.plan.task import ScheduledPlan, ScheduledTask
from treadle.records.event import FileRecord
from treadle.records.flight import Interrupted


def sent_identity(task: ScheduledTask, look: Look, workdir: str, flowdir: str = "") -> str:
    """The identity of a command as it is sent off, its script file read where `look` has no digest of it.

    Raises `DiskError` when the script file cannot be read.
    """
    path = task.command.script_file
    return identity(task, _read(path, look(path), workdir, flowdir) if path else None)


def sent_step(task: ScheduledTask) -> str:
    """The same of a step with inputs, whose success needs a driver that saw what was read: what it makes, and
    by which code. Empty for all others: who comes later waits for the lease of their artifact."""
    call = task.call
    return "" if call is None or call.mutable or not task.inputs else f"{call.identity}.{call.code}"


def _read(path: str, seen: FileRecord | None, workdir: str, flowdir: str) -> FileRecord | None:
    return seen if seen is not None and seen.digest else look_at(path, None, None, workdir, flowdir=flowdir)


def answer_in_flight(
    task: ScheduledTask, flight: Interrupted, look: Look, workdir: str, flowdir: str, *, forced: bool
) -> Answer:
    """Adopted where its job does what the task would do; else the job is ended, and the task runs anew."""
    try:
        own = sent_step(task) if task.call is not None else sent_identity(task, look, workdir, flowdir)
        same = not forced and flight.identity == own
    except DiskError:
        same = False
    why = JobInFlight(run=flight.run, job=flight.job, backend=flight.backend, other=not same)
    return Answer(Verdict.IN_FLIGHT if same else Verdict.WILL_RUN, (why,))


def ground(plan: ScheduledPlan, answers: dict[str, Answer], flying: list[str]) -> None:
    """A job reads what is there now: where something upstream runs, it is not what is wanted any more."""
    for task in flying:
        if answers[task].verdict is Verdict.IN_FLIGHT:
            for need in plan.tasks[task].needs:
                above = answers.get(need)
                if above is not None and above.verdict is Verdict.WILL_RUN:
                    answers[task] = Answer(Verdict.WILL_RUN, (*map(_other, answers[task].reasons), _up(need)))
                    break


def _other(reason: AnyReason) -> AnyReason:
    return replace(reason, other=True) if isinstance(reason, JobInFlight) else reason


def _up(need: str) -> Upstream:
    return Upstream(task=need, root=need)
