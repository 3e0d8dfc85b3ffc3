"""How a local attempt ended: the status of its process and what we did to it, as an `Outcome`."""

from __future__ import annotations

import os
import signal

from treadle.backends.local_attempt import Attempt
from treadle.backends.local_usage import OomWatch
from treadle.base.proc import host
from treadle.base.units import format_duration
from treadle.records.event import EndReason, Outcome, Usage

_SHELLS_KILLED = 128 + signal.SIGKILL  # how a shell tells that what it ran was killed


def outcome_of(attempt: Attempt, ended_at: float, oom: OomWatch) -> Outcome:
    """The outcome of an attempt that is over (`ended_at` on the monotonic clock)."""
    wall = ended_at - attempt.begun_at
    used = attempt.usage
    code, number = _status(attempt.status)
    reason, message = _reason(attempt, code, number, oom)
    if attempt.hung:
        message = _joined(message, "killed processes of it hang in the kernel and may still hold files")
    return Outcome(
        reason=reason,
        exit_code=code,
        signal=number,
        message=message,
        start=attempt.begun_on,
        end=attempt.begun_on + wall,
        host=host(),
        usage=Usage(
            wall=wall,
            cpu=used.ru_utime + used.ru_stime if used is not None else None,
            memory=attempt.peak or None,
        ),
    )


def _status(status: int | None) -> tuple[int | None, int]:
    """(exit code or None, signal or 0) of a wait status."""
    if status is None:
        return None, 0
    code = os.waitstatus_to_exitcode(status)
    return (code, 0) if code >= 0 else (None, -code)


def _reason(attempt: Attempt, code: int | None, number: int, oom: OomWatch) -> tuple[EndReason, str]:
    if attempt.status is None:
        return EndReason.LOST, "something else in this process took its exit status (a wait for any child)"
    if attempt.why is EndReason.CANCELLED:
        return EndReason.CANCELLED, ""
    if attempt.why is EndReason.TIME:
        return EndReason.TIME, f"its {_limit(attempt)} was over"
    if attempt.warned and code != 0:
        return EndReason.TIME, f"it was asked to end shortly before its {_limit(attempt)}"
    if code == 0:
        return EndReason.OK, ""
    if number == signal.SIGKILL or code == _SHELLS_KILLED:
        evidence = oom.grown(attempt.oom_seen)
        if evidence:
            return EndReason.OOM, _oom_words(evidence)
    return EndReason.APP, f"ended by {_name(number)}" if number else ""


def _limit(attempt: Attempt) -> str:
    return f"time limit of {format_duration(attempt.time_limit or 0)}"


def _oom_words(evidence: str) -> str:
    if evidence == "cgroup":
        return "killed for lack of memory: the cgroup counts an out-of-memory kill since it began"
    return (
        "killed, most likely for lack of memory: the kernel ended a process of this machine for that reason "
        "since it began, and does not tell whose"
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _joined(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second
