"""Why a job ended badly, as an `EndReason` with words, and all of its figures, as an `Outcome`."""

from __future__ import annotations

from msgspec import Struct

from treadle.backends.cluster.dialect import Account, Row
from treadle.backends.cluster.exit_file import ExitFile, Witness
from treadle.backends.cluster.script_text import NO_RECORD, NO_SPACE
from treadle.plan.task import ScheduledTask
from treadle.records.event import EndReason, Outcome, Usage

_SHOWN = 5
_PROBLEMS = {
    "workdir": "the node cannot enter the work folder: is its file system mounted there?",
    "log": "the node cannot write the log: is its file system there, and is there space?",
    "secrets": "the node cannot read the file with the secrets of the task",
}


class Reason(Struct, frozen=True):
    """Why, and in words for people."""

    reason: EndReason
    message: str = ""


def is_oom(exit: ExitFile, task: ScheduledTask) -> bool:
    """Its cgroup counts a kill for lack of memory, and that is not all right."""
    return bool(exit.oom_kills) and not (exit.exit_code == 0 and task.policy.oom_ok)


def ended_by(exit: ExitFile, task: ScheduledTask, limit: int | None, cancelled: bool) -> Reason:
    """Why a job ended, by its own word alone; `limit` is its time limit in seconds."""
    if exit.skipped and cancelled:
        return Reason(EndReason.CANCELLED)
    if exit.skipped:
        words = "not begun: its job was asked to end, or a task before it in the same job failed"
        return Reason(EndReason.INTERRUPTED, words)
    if exit.problem:
        return Reason(EndReason.NODE, _PROBLEMS.get(exit.problem, f"not begun: {exit.problem}"))
    if cancelled and exit.exit_code != 0:
        return Reason(EndReason.CANCELLED)
    if is_oom(exit, task):
        return Reason(EndReason.OOM, "killed for lack of memory: its cgroup counts an out-of-memory kill")
    if exit.exit_code == 0:
        missing = [one.index for one in exit.outputs if one.kind == "-"]
        return Reason(EndReason.APP, _missing(task, missing)) if missing else Reason(EndReason.OK)
    if exit.asked:
        return _after_a_signal(exit, task, limit)
    return Reason(EndReason.APP, f"ended by signal {exit.signal}" if exit.signal else "")


def short_of(witness: Witness, reason: EndReason, words: str, code: int | None) -> Reason:
    """Why a job ended that left no exit file, where the scheduler says `reason`."""
    if reason is not EndReason.APP:
        return Reason(reason, words)
    if witness.refused:
        return Reason(
            EndReason.NODE, f"its first start ended without a word, and it was started again; {words}"
        )
    if code == NO_SPACE:
        return Reason(EndReason.DISK, f"there was no space to write how it ended; {words}")
    if code == NO_RECORD:
        return Reason(EndReason.NODE, f"the node cannot write below the work folder; {words}")
    if not witness.starts:
        hint = "look whether the node can reach the work folder and the log's folder"
        return Reason(EndReason.NODE, f"it ended before its script began: {hint}; {words}")
    return Reason(EndReason.APP, f"it left no exit file; {words}")


def outcome(reason: Reason, exit: ExitFile | None, account: Account | None, row: Row | None) -> Outcome:
    """All that is known of an end. Accounting knows the memory better: a cgroup's peak holds cached files."""
    settled = account if account is not None and account.settled else None
    start = exit.start if exit else settled.start if settled else None
    end = exit.end if exit else settled.end if settled else None
    wall = max(0.0, end - start) if start is not None and end is not None else None
    return Outcome(
        reason=reason.reason,
        exit_code=exit.exit_code if exit else settled.exit_code if settled else None,
        signal=exit.signal if exit else settled.signal if settled else 0,
        message=reason.message,
        start=start,
        end=end,
        host=(row.host if row else "") or (account.host if account else "") or (exit.host if exit else ""),
        usage=Usage(
            wall=wall,
            cpu=exit.cpu if exit and exit.cpu is not None else settled.cpu if settled else None,
            memory=settled.memory
            if settled and settled.memory is not None
            else exit.memory
            if exit
            else None,
        ),
    )


def _after_a_signal(exit: ExitFile, task: ScheduledTask, limit: int | None) -> Reason:
    """The scheduler asked it to end. Both times are of the same node, so clocks do not matter."""
    early = task.policy.signal_before_end or 0
    ran = exit.end - exit.start
    if limit is not None and ran >= 0.9 * max(0, limit - early):
        return Reason(EndReason.TIME, "it was asked to end at, or shortly before, its time limit")
    return Reason(EndReason.APP, f"it was asked to end by signal {exit.asked}")


def _missing(task: ScheduledTask, indices: list[int]) -> str:
    paths = [task.outputs[index] for index in indices if index < len(task.outputs)]
    told = ", ".join(paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"it ended with exit code 0 but did not make {told}{more}"
