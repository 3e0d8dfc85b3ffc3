"""What LSF prints: columns of `bjobs -o`, long texts of `bacct -l` and `bhist -l`.

The words are those of IBM's public manuals of 9.1 and 10.1 (bjobs, bacct, bhist, "Termination reasons
displayed by bacct, bhist, and bjobs") and of what other open projects read; none of it was recorded here.
"""

from __future__ import annotations

import re

from treadle.backends.cluster.amounts import read_seconds, read_size
from treadle.backends.cluster.dialect import Account, Phase, Row
from treadle.backends.cluster.words import Signs, number
from treadle.records.event import EndReason

COLUMNS = (
    *("jobid", "jobindex", "stat", "exit_code", "exit_reason"),
    *("cpu_used", "max_mem", "exec_host", "job_name"),
)
"""The columns asked for; the name stands last, as it could hold the separator."""

_JOB = re.compile(r"([0-9]{1,18})(?:\[([0-9]{1,18})\])?\Z")
_PHASES = {
    **dict.fromkeys(("PEND", "PSUSP", "WAIT", "PROV"), Phase.PENDING),
    **dict.fromkeys(("RUN", "USUSP", "SSUSP"), Phase.RUNNING),
    **dict.fromkeys(("DONE", "EXIT", "POST_DONE", "POST_ERR"), Phase.ENDED),
}
_REASON = re.compile(r"TERM_\w+")
_ENDS = {
    **dict.fromkeys(("TERM_RUNLIMIT", "TERM_CPULIMIT", "TERM_DEADLINE"), EndReason.TIME),
    **dict.fromkeys(("TERM_MEMLIMIT", "TERM_SWAP"), EndReason.OOM),
    **dict.fromkeys(
        ("TERM_OWNER", "TERM_ADMIN", "TERM_FORCE_OWNER", "TERM_FORCE_ADMIN"), EndReason.CANCELLED
    ),
    **dict.fromkeys(("TERM_BUCKET_KILL", "TERM_ORPHAN_SYSTEM"), EndReason.CANCELLED),
    **dict.fromkeys(("TERM_PREEMPT", "TERM_LOAD", "TERM_WINDOW", "TERM_RC"), EndReason.PREEMPTED),
    **dict.fromkeys(("TERM_CWD_NOTEXIST", "TERM_PRE_EXEC_FAIL", "TERM_DATA"), EndReason.NEVER_STARTED),
    **dict.fromkeys(("TERM_ZOMBIE", "TERM_REMOVE_HUNG_JOB", "TERM_RMS"), EndReason.NODE),
    **dict.fromkeys(("TERM_CSM_ALLOC", "TERM_KUBE", "TERM_SLURM"), EndReason.NODE),
}
# A text of `-l` is folded: it goes on in lines that are indented far.
_FOLD = re.compile(r"\r?\n[ \t]{15,}")
_BLOCK = re.compile(r"^Job <", re.MULTILINE)
_HEAD = re.compile(r"([0-9]{1,18}(?:\[[0-9]{1,18}\])?)>")
_NAMED = re.compile(r"Job Name <([^>]*)>")
_EXITED = re.compile(r"Exited with exit code ([0-9]{1,9})")
_SIGNALLED = re.compile(r"Exited by signal ([0-9]{1,9})")
_USAGE = re.compile(r"^\s*CPU_T\s.*\n\s*([0-9.]+)\s+\S+\s+\S+\s+\S+\s+\S+\s+([0-9.]+[KMGT]?)\b", re.MULTILINE)

SIGNS = Signs(
    unclear=re.compile(r"communication time ?out|connection reset|broken pipe|timed? ?out", re.IGNORECASE),
    limit=re.compile(
        r"pending job|job slot limit|job limit|job threshold|MAX_PEND|too many (?:pending )?jobs"
        r"|limit .* has been reached|number of jobs",
        re.IGNORECASE,
    ),
    transient=re.compile(
        r"cannot connect to LSF|LSF is down|LIM is down|batch (?:daemon|system) (?:is )?not responding"
        r"|batch daemon not|please wait|still trying|failed in an LSF library call|connection refused"
        r"|communication (?:error|fail)|try again|temporar|no route to host|cannot allocate memory",
        re.IGNORECASE,
    ),
)
NOT_KNOWN = re.compile(
    r"job <[^>]*> is not found|no (?:unfinished |matching )?jobs? found|no matching job", re.IGNORECASE
)


def read_columns(line: str) -> dict[str, str] | None:
    """One line of `bjobs`; None: it is no job."""
    parts = line.split("|")
    last = len(COLUMNS) - 1
    if len(parts) <= last or not _JOB.match(parts[0].strip()):
        return None
    values = [part.strip() for part in (*parts[:last], "|".join(parts[last:]))]
    return dict(zip(COLUMNS, ("" if value == "-" else value for value in values), strict=True))


def row_of(values: dict[str, str]) -> Row:
    """A job as the queue shows it. `UNKWN` and `ZOMBI` are hosts that went silent: nobody knows."""
    phase = _PHASES.get(values["stat"], Phase.UNKNOWN)
    return Row(
        job=_job_of(values),
        phase=phase,
        state=values["stat"],
        reason=values["exit_reason"],
        name=_name_of(values["job_name"]),
        ended=_end_of(values["stat"], values["exit_reason"]),
        requeued=phase is Phase.PENDING and "REQUEUE" in values["exit_reason"],
        host=_host_of(values["exec_host"]),
    )


def account_of(values: dict[str, str]) -> Account:
    """The same line for its figures. Times are left out: they are printed without a year."""
    phase = _PHASES.get(values["stat"], Phase.UNKNOWN)
    ended = phase is Phase.ENDED
    code = number(values["exit_code"])
    return Account(
        job=_job_of(values),
        phase=phase,
        state=values["stat"],
        settled=ended,
        ended=_end_of(values["stat"], values["exit_reason"]),
        exit_code=_code_of(values["stat"], code) if ended else None,
        signal=code - 128 if ended and 128 < code < 193 else 0,
        name=_name_of(values["job_name"]),
        host=_host_of(values["exec_host"]),
        cpu=read_seconds(values["cpu_used"]),
        memory=read_size(values["max_mem"]) or None,
    )


def read_long(out: str) -> list[Account]:
    """Of `bacct -l` and `bhist -l`: the state, and what else stands in the text; the last block counts."""
    accounts: dict[str, Account] = {}
    for block in _BLOCK.split(_FOLD.sub("", out))[1:]:
        head = _HEAD.match(block)
        if head and (account := _long_account(head[1], block)):
            accounts[account.job] = account
    return list(accounts.values())


def _long_account(job: str, block: str) -> Account | None:
    done = "Completed <done>" in block or "Done successfully" in block
    exited, signalled = _EXITED.search(block), _SIGNALLED.search(block)
    if not (done or exited or signalled or "Completed <exit>" in block):
        return None  # it has not ended
    reason = _REASON.search(block)
    usage, name = _USAGE.search(block), _NAMED.search(block)
    signal = int(signalled[1]) if signalled else 0
    return Account(
        job=job,
        phase=Phase.ENDED,
        state="DONE" if done else "EXIT",
        settled=True,
        ended=None if done else _end_of("EXIT", reason[0] if reason else ""),
        exit_code=0 if done else int(exited[1]) if exited else 128 + signal if signal else None,
        signal=signal,
        name=_name_of(name[1]) if name else "",
        cpu=read_seconds(usage[1]) if usage else None,
        memory=read_size(usage[2]) or None if usage else None,
    )


def _end_of(state: str, reason: str) -> EndReason | None:
    if state != "EXIT":
        return None
    found = _REASON.search(reason)
    return _ENDS.get(found[0], EndReason.APP) if found else EndReason.APP


def _code_of(state: str, code: int) -> int | None:
    """An empty exit code stands for 0; that of a job that was ended before it ran is none."""
    return code if state != "EXIT" or code else None


def _job_of(values: dict[str, str]) -> str:
    """The index comes in a column of its own, 0 where there is no array."""
    job, index = values["jobid"], values["jobindex"]
    return f"{job}[{index}]" if "[" not in job and number(index) else job


def _name_of(text: str) -> str:
    """Elements are called `name[3]`."""
    return re.sub(r"\[[0-9]+\]\Z", "", text)


def _host_of(text: str) -> str:
    """The first of `4*node1:node2`."""
    return re.sub(r"^[0-9]+\*", "", text.split(":")[0])
