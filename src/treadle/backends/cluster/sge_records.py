"""What Grid Engine prints: jobs of `qstat -xml`, records of `qacct`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from treadle.backends.cluster.amounts import read_seconds, read_size, read_time
from treadle.backends.cluster.dialect import Account, Phase, Row
from treadle.backends.cluster.words import Signs, indices, number
from treadle.records.event import EndReason

_JOB_LIST = re.compile(r"<job_list\b[^>]*>(.*?)</job_list>", re.DOTALL)
_TAG = re.compile(r"<(\w+)(?:\s[^>]*)?>([^<]*)</\1>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
_LIMIT = re.compile(r"\b(h_rt|h_vmem)=([\w.:]+)")
_RESCHEDULED = (24, 25)
_LIMIT_ENFORCED = 37
# Before the job itself ran, by the table of sge_status(5); 100 is "ran, but ended by a signal".
_BEFORE_START = frozenset((*range(1, 12), 17, 19, 20, 21, 26, 27, 28, 29, 30, 31, 32))
_HOST_FAILED = frozenset((18, 22, 23, 36))

SIGNS = Signs(
    unclear=re.compile(
        r"failed receiving gdi request|error reading answer list|receive timeout|timed? ?out", re.IGNORECASE
    ),
    limit=re.compile(
        r"jobs? (?:are|is) allowed per|job limit|maximum number of (?:active )?jobs", re.IGNORECASE
    ),
    transient=re.compile(
        r"commlib error|unable to send message to qmaster|got send error|connection refused|can't connect"
        r"|cannot connect|could not connect|unable to contact qmaster|no route to host|try again|temporar"
        r"|qmaster is (?:not|shutting)|can't resolve|cannot allocate memory|spool",
        re.IGNORECASE,
    ),
)
NOT_KNOWN = re.compile(r"job id \S+ not found|job name \S+ not found|tasks? \S+ not found", re.IGNORECASE)
NO_ACCOUNTING = re.compile(r"accounting: no such file", re.IGNORECASE)


def read_rows(out: str) -> list[Row]:
    """One row for each job, or element: those that wait come as a range."""
    rows: list[Row] = []
    for block in _JOB_LIST.findall(out):
        values = {name: _unescaped(value) for name, value in _TAG.findall(block)}
        job, state = values.get("JB_job_number", ""), values.get("state", "")
        if number(job):
            elements = [f"{job}.{index}" for index in indices(values.get("tasks", ""))] or [job]
            rows.extend(_row(one, state, values) for one in elements)
    return rows


def _row(job: str, state: str, values: dict[str, str]) -> Row:
    phase = phase_of(state)
    error, held = "E" in state, "h" in state and phase is Phase.PENDING
    queue = values.get("queue_name", "")
    return Row(
        job=job,
        phase=phase,
        state=state,
        reason="in error state: qstat -j tells why" if error else "held" if held else "",
        name=values.get("JB_name", ""),
        hopeless=error and phase is Phase.PENDING,
        requeued="R" in state and phase is Phase.PENDING,
        host=queue.partition("@")[2],
    )


def phase_of(state: str) -> Phase:
    """Of the letters, whatever their order: any job with `q` or `w` waits, even in an error state."""
    letters = set(state)
    if not letters or letters - set("qwhrtRsSTdEzPNn"):
        return Phase.UNKNOWN
    if letters & set("qw"):
        return Phase.PENDING
    if "z" in letters:
        return Phase.ENDED
    return Phase.RUNNING if letters & set("rtsSTdRP") else Phase.UNKNOWN


def read_accounts(out: str) -> list[Account]:
    """The last record of each job or element: one that was rescheduled has several."""
    accounts: dict[str, Account] = {}
    for record in _records(out):
        job, task = record.get("jobnumber", ""), record.get("taskid", "")
        if number(job) and record.get("failed"):
            job = f"{job}.{task}" if number(task) else job
            accounts[job] = _account(job, record)
    return list(accounts.values())


def _records(out: str) -> Iterator[dict[str, str]]:
    """Records begin with a line of `=`; where the lines were filtered, with a name that comes again."""
    record: dict[str, str] = {}
    for line in out.splitlines():
        key, _, value = line.partition(" ")
        if line.startswith("=====") or key in record:
            yield record
            record = {}
        if value:
            record[key] = value.strip()
    yield record


def _account(job: str, record: dict[str, str]) -> Account:
    failed, status = _leading_number(record["failed"]), _leading_number(record.get("exit_status", ""))
    again = failed in _RESCHEDULED
    settled = not again and failed is not None and status is not None
    signal = status - 128 if settled and status is not None and 128 < status < 193 else 0
    return Account(
        job=job,
        phase=Phase.PENDING if again else Phase.ENDED,
        state=record["failed"] if failed else "0",
        settled=settled,
        ended=_end_of(failed, status, record) if settled else None,
        exit_code=status if settled and failed not in _BEFORE_START else None,
        signal=signal,
        name=record.get("jobname", ""),
        submit=read_time(record.get("qsub_time", "")),
        start=read_time(record.get("start_time", "")),
        end=read_time(record.get("end_time", "")),
        host=record.get("hostname", ""),
        cpu=read_seconds(record.get("cpu", "")),
        memory=read_size(record.get("maxvmem", "")) or None,
    )


def _end_of(failed: int | None, status: int | None, record: dict[str, str]) -> EndReason | None:
    if record.get("deleted_by", "NONE") not in ("NONE", "undefined"):
        return EndReason.CANCELLED
    if failed == _LIMIT_ENFORCED:
        return _which_limit(record)
    if failed in _BEFORE_START:
        return EndReason.NEVER_STARTED
    if failed in _HOST_FAILED:
        return EndReason.NODE
    return EndReason.APP if failed or status else None


def _which_limit(record: dict[str, str]) -> EndReason:
    """One code stands for time and memory: the time was up, or it was the memory."""
    limits = dict(_LIMIT.findall(record.get("category", "")))
    ran, peak = read_seconds(record.get("ru_wallclock", "")), read_size(record.get("maxvmem", ""))
    allowed, size = read_seconds(limits.get("h_rt", "")), read_size(limits.get("h_vmem", ""))
    if ran is not None and allowed is not None:
        return EndReason.TIME if ran >= allowed else EndReason.OOM
    slots = _leading_number(record.get("slots", "")) or 1
    if peak and size:
        return EndReason.OOM if peak >= size * slots else EndReason.TIME
    return EndReason.OOM if size else EndReason.TIME


def _leading_number(text: str) -> int | None:
    found = re.match(r"[0-9]{1,9}\b", text)
    return int(found[0]) if found else None


def _unescaped(text: str) -> str:
    for entity, letter in _ENTITIES:
        text = text.replace(entity, letter)
    return text
