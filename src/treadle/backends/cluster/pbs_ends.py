"""What PBS says of a job: phases, exit codes and why it ended, of both dialects."""

from __future__ import annotations

import re

from treadle.backends.cluster.amounts import read_seconds, read_size, read_time
from treadle.backends.cluster.dialect import Account, Phase, Row
from treadle.backends.cluster.pbs_status import Entry
from treadle.backends.cluster.words import Signs
from treadle.records.event import EndReason

_PHASES = {
    **dict.fromkeys("QHWTM", Phase.PENDING),
    **dict.fromkeys("RSUEB", Phase.RUNNING),
    **dict.fromkeys("FXC", Phase.ENDED),
}
# Negative exit codes are the server's own: JOB_EXEC_* in the header files of each of the two.
_PRO_ENDS = {
    **dict.fromkeys((-29, -28), EndReason.TIME),
    **dict.fromkeys((-27, -26), EndReason.OOM),
    **dict.fromkeys((-25, -24), EndReason.APP),
    **dict.fromkeys((-4, -5, -6, -11, -12, -14, -15, -16, -18, -20), EndReason.NODE),
}
_TORQUE_ENDS = {
    -10: EndReason.OOM,
    **dict.fromkeys((-11, -12), EndReason.TIME),
    **dict.fromkeys((-4, -5, -6, -7), EndReason.NODE),
}
_EXCEEDED = re.compile(r"exceeded resource (\w+)")
_EXCEEDED_ENDS = {
    **dict.fromkeys(("walltime", "cput"), EndReason.TIME),
    **dict.fromkeys(("mem", "vmem", "pmem", "pvmem"), EndReason.OOM),
}
_DELETED = "91"
_FAILED = "93"
_SIGNALLED = 256

SIGNS = Signs(
    unclear=re.compile(r"end of file|connection reset|broken pipe|timed? ?out|premature end", re.IGNORECASE),
    limit=re.compile(
        r"would exceed|maximum number of jobs already|limit on (?:the )?number of jobs|job limit",
        re.IGNORECASE,
    ),
    transient=re.compile(
        r"cannot connect to server|connection refused|server shutting down|server is shutting down"
        r"|couldn't connect|communication failure|pbs_iff|unable to authenticate|munge|try again"
        r"|no route to host|temporar|errno=15\d{3}|too many submit retries|cannot allocate memory",
        re.IGNORECASE,
    ),
)
NOT_KNOWN = re.compile(r"unknown job id|job has finished|cannot (?:find|locate) job", re.IGNORECASE)
NO_HISTORY = re.compile(r"not configured to maintain job history", re.IGNORECASE)


def row_of(job: str, entry: Entry, torque: bool) -> Row:
    """A job as the queue shows it."""
    state, reason = entry.get("job_state", ""), entry.get("comment", "")
    phase = _PHASES.get(state, Phase.UNKNOWN)
    ran_before = _number(entry.get("run_count", "")) or 0
    pending = phase is Phase.PENDING
    if state == "H" and not reason:
        reason = f"held ({entry.get('hold_types', '')})".replace(" ()", "")
    return Row(
        job=job,
        phase=phase,
        state=state,
        reason=reason if pending else "",
        name=entry.get("job_name", ""),
        ended=_end_of(entry, torque) if phase is Phase.ENDED else None,
        hopeless=pending and "Can Never Run" in reason,
        requeued=pending and ran_before > 0,
        host=_host_of(entry),
    )


def account_of(job: str, entry: Entry, torque: bool) -> Account:
    """A job as its history tells it; settled when there is an exit code."""
    state = entry.get("job_state", "")
    phase = _PHASES.get(state, Phase.UNKNOWN)
    status = _status_of(entry)
    settled = phase is Phase.ENDED and status is not None
    code, signal = _code_and_signal(status) if settled else (None, 0)
    return Account(
        job=job,
        phase=phase,
        state=state,
        settled=settled,
        ended=_end_of(entry, torque) if phase is Phase.ENDED else None,
        exit_code=code,
        signal=signal,
        name=entry.get("job_name", ""),
        submit=read_time(entry.get("ctime", "")),
        start=read_time(entry.get("stime", "") or entry.get("start_time", "")),
        end=read_time(entry.get("obittime", "") or entry.get("comp_time", "")),
        host=_host_of(entry),
        cpu=read_seconds(entry.get("resources_used.cput", "")),
        memory=read_size(entry.get("resources_used.mem", "")) or None,
    )


def _end_of(entry: Entry, torque: bool) -> EndReason | None:
    """Why a job that ended did so badly; None: it did not."""
    status, substate = _status_of(entry), entry.get("substate", "")
    if substate == _DELETED:
        return EndReason.CANCELLED
    if status is None:
        return EndReason.NEVER_STARTED  # of a dependency that could not be met, for instance
    if exceeded := _EXCEEDED.search(entry.get("comment", "")):
        return _EXCEEDED_ENDS.get(exceeded[1], EndReason.APP)
    if status < 0:
        return (_TORQUE_ENDS if torque else _PRO_ENDS).get(status, EndReason.NEVER_STARTED)
    if status > 0:
        return EndReason.APP
    return EndReason.CANCELLED if substate == _FAILED else None  # an element that was deleted while waiting


def _code_and_signal(status: int | None) -> tuple[int | None, int]:
    """256 + signal where a signal ended the job; negative codes are none of the job's own."""
    if status is None or status < 0:
        return None, 0
    if status > _SIGNALLED:
        signal = (status - _SIGNALLED) & 0x7F
        return 128 + signal, signal
    return status, 0


def _status_of(entry: Entry) -> int | None:
    return _number(entry.get("exit_status", ""))


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _host_of(entry: Entry) -> str:
    return re.split(r"[/+]", entry.get("exec_host", ""), maxsplit=1)[0]
