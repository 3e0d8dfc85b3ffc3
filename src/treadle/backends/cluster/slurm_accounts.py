"""What `sacct` prints, as `Account`s: rows of jobs and of their steps, of all their runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from treadle.backends.cluster.amounts import read_seconds, read_size, read_time
from treadle.backends.cluster.dialect import Account, Phase
from treadle.backends.cluster.slurm_states import end_of, phase_of, state_of
from treadle.backends.cluster.words import indices
from treadle.records.event import EndReason

FIELDS = ("JobID", "State", "ExitCode", "Submit", "Start", "End", "NodeList", "TotalCPU", "MaxRSS", "JobName")
"""The columns asked for; the name stands last, as it could hold the separator."""

_JOB = re.compile(r"([0-9]{1,18})(?:_([0-9]{1,18})|_\[([^\]]*)\]?)?(\.[^|;]+)?\Z")
_EXIT = re.compile(r"([0-9]{1,9}):([0-9]{1,9})\Z")
_LAUNCH_FAILED = 53
"""What stands for a signal where the node could not start the job, mostly as it could not open its output.
That says no more than FAILED does in the queue: what the job left tells that it never began."""
_OUT_OF_MEMORY = 125
_SIGNALS = 64


class _Run(Struct):
    """One run of one job: its own row, and the peak memory of its steps."""

    row: dict[str, str]
    memory: int | None = None


def job_ids(text: str) -> list[str]:
    """The elements that `25_3`, `24_[2-4%2]` or a plain id stand for; none of a step, or of anything else."""
    found = _JOB.match(text)
    if found is None or found[4]:
        return []
    if found[3] is not None:
        return [f"{found[1]}_{index}" for index in indices(found[3])]
    return [text]


def read_accounts(rows: list[list[str]]) -> list[Account]:
    """The last run of every job among these rows, whose first column is the cluster's name or empty."""
    runs: dict[str, _Run] = {}
    for cluster, *columns in rows:
        row = dict(zip(FIELDS, columns, strict=True))
        whole, dot, _step = row["JobID"].partition(".")
        suffix = f";{cluster}" if cluster else ""
        if dot:
            _add_step(runs.get(whole + suffix), row)
            continue
        for job in job_ids(whole):
            before = runs.get(job + suffix)
            if before is None or not _is_older(row, before.row):
                runs[job + suffix] = _Run(row, read_size(row["MaxRSS"]))
    return [_account(job, run) for job, run in runs.items()]


def _is_older(row: dict[str, str], than: dict[str, str]) -> bool:
    mine, other = read_time(row["Submit"]), read_time(than["Submit"])
    return mine is not None and other is not None and mine < other


def _add_step(run: _Run | None, step: dict[str, str]) -> None:
    peak = read_size(step["MaxRSS"])
    if run is not None and peak is not None and not _is_older(step, run.row):
        run.memory = max(run.memory or 0, peak)


def _account(job: str, run: _Run) -> Account:
    row = run.row
    state = state_of(row["State"])
    phase, end = phase_of(state), read_time(row["End"])
    exits = _EXIT.match(row["ExitCode"])
    code, signal = (int(exits[1]), int(exits[2])) if exits else (None, 0)
    # A final state may come before the true exit code: with End unknown, or as a failure with code 0.
    settled = (
        phase is Phase.ENDED and end is not None and not (state == "FAILED" and (code, signal) == (0, 0))
    )
    ended = end_of(state)
    if settled and state == "FAILED" and signal == _OUT_OF_MEMORY:
        ended = EndReason.OOM
    host = row["NodeList"]
    return Account(
        job=job,
        phase=phase,
        state=row["State"].strip(),
        settled=settled,
        ended=ended,
        exit_code=code if settled else None,
        signal=signal if settled and signal <= _SIGNALS and signal != _LAUNCH_FAILED else 0,
        name=row["JobName"],
        submit=read_time(row["Submit"]),
        start=read_time(row["Start"]),
        end=end,
        host="" if host == "None assigned" else host,
        cpu=read_seconds(row["TotalCPU"]),
        memory=run.memory or None,
    )


def read_rows(lines: list[str]) -> Iterator[list[str]]:
    """The columns of each line, led by the cluster's name where it was asked for; odd lines are left out."""
    for line in lines:
        columns = line.split("|")
        if not _JOB.match(columns[0]):
            cluster, *columns = columns
        else:
            cluster = ""
        if len(columns) >= len(FIELDS) and _JOB.match(columns[0]):
            last = len(FIELDS) - 1
            yield [cluster, *columns[:last], "|".join(columns[last:])]
