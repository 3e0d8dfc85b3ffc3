"""How SLURM calls jobs, states and reasons (recorded with 22.05.8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import iso
from treadle.testing.schedulers.options import indices, ranges
from treadle.testing.schedulers.work import Element, End, Stage

SHORT = {
    "PENDING": "PD",
    "RUNNING": "R",
    "SUSPENDED": "S",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "FAILED": "F",
    "CANCELLED": "CA",
    "TIMEOUT": "TO",
    "OUT_OF_MEMORY": "OOM",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "BOOT_FAIL": "BF",
    "DEADLINE": "DL",
    "REQUEUED": "RQ",
    "REVOKED": "RV",
}
_STAGES = {
    Stage.PENDING: "PENDING",
    Stage.RUNNING: "RUNNING",
    Stage.SUSPENDED: "SUSPENDED",
    Stage.ENDING: "COMPLETING",
}
ENDS = {
    End.COMPLETED: "COMPLETED",
    End.FAILED: "FAILED",
    End.SIGNALLED: "FAILED",
    End.LAUNCH: "FAILED",
    End.CANCELLED: "CANCELLED",
    End.TIMEOUT: "TIMEOUT",
    End.OOM: "OUT_OF_MEMORY",
    End.NODE_FAIL: "NODE_FAIL",
    End.PREEMPTED: "PREEMPTED",
    End.REQUEUED: "REQUEUED",
    End.VANISHED: "FAILED",
}
_REASONS = {
    End.FAILED: "NonZeroExitCode",
    End.SIGNALLED: "JobLaunchFailure",
    End.LAUNCH: "JobLaunchFailure",
    End.TIMEOUT: "TimeLimit",
    End.OOM: "OutOfMemory",
    End.NODE_FAIL: "NodeDown",
}


def state_of(element: Element) -> str:
    if element.shown:
        return element.shown
    return ENDS[element.end] if element.end else _STAGES[element.stage]


def reason_of(cluster: Cluster, element: Element) -> str:
    """Why it waits, or how it ended."""
    if element.end:
        return _REASONS.get(element.end, "JobHeldUser" if element.held else "None")
    if element.stage is not Stage.PENDING:
        return "None"
    return element.reason or _waiting(cluster, element)


def _waiting(cluster: Cluster, element: Element) -> str:
    job = element.job
    if element.error:
        return "launch failed requeued held" if element.runs else "JobHeldAdmin"
    if element.held:
        return "job requeued in held state" if element.restarts else "JobHeldUser"
    if cluster.waits_for_others(job):
        return "DependencyNeverSatisfied" if job.never else "Dependency"
    if hopeless := cluster.hopeless(job.wish):
        return hopeless
    if element.not_before > cluster.clock.now():
        return "BeginTime" if element.restarts or job.wish.begin else "Priority"
    if job.wish.throttle and job.running >= job.wish.throttle:
        return "JobArrayTaskLimit"
    return "Resources" if cluster.is_next(job) else "Priority"


def id_of(element: Element) -> str:
    job = element.job
    return f"{job.number}_{element.index}" if job.is_array else str(job.number)


def moment(cluster: Cluster, seconds: float, env: dict[str, str], unknown: str = "Unknown") -> str:
    """A time as SLURM_TIME_FORMAT wants it (`%s`: seconds since the epoch)."""
    if not seconds:
        return unknown
    return str(int(seconds)) if env.get("SLURM_TIME_FORMAT") == "%s" else iso(seconds)


def exit_of(element: Element) -> str:
    """As accounting tells it: 0:0 where the scheduler itself ended the job."""
    match element.end:
        case End.FAILED:
            return f"{element.code}:0"
        case End.SIGNALLED:
            return f"0:{element.signal or 9}"
        case End.LAUNCH:
            return "0:53"
        case End.OOM:
            return "0:125"
        case _:
            return "0:0"


def named(cluster: Cluster, words: Iterable[str]) -> Iterator[tuple[str, list[Element]]]:
    """The elements that `12`, `12_3`, `12_[1-3]` mean, of those that the queue knows. Raises `ValueError`."""
    for word in words:
        match = re.fullmatch(r"(\d+)(?:_(\d+)|_\[([\d,:-]+)(?:%\d+)?\])?", word.partition(";")[0])
        if not match:
            raise ValueError(word)
        job = cluster.jobs.get(int(match[1]))
        wanted = None if match[2] is None and match[3] is None else set(indices(match[2] or match[3]))
        if job is None:
            yield word, []
        else:
            yield word, [one for one in job if one.known and (wanted is None or one.index in wanted)]


def rows(elements: Iterable[Element], split: bool) -> Iterator[tuple[Element, str]]:
    """Elements, each with the index shown in its line: pending ones of an array in one, unless split."""
    together: dict[tuple[int, bool], list[Element]] = {}
    for element in elements:
        if element.job.is_array and not split and not element.started and not element.restarts:
            together.setdefault((element.job.number, element.live), []).append(element)
        else:
            yield element, str(element.index) if element.job.is_array else "N/A"
    for group in together.values():
        throttle = group[0].job.wish.throttle
        bound = f"%{throttle}" if throttle and group[0].live else ""
        yield group[0], f"[{ranges([one.index for one in group])}{bound}]"
