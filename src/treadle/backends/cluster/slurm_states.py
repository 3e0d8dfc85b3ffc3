"""SLURM's words: states in all their spellings, reasons that cannot heal, failures and what they mean."""

from __future__ import annotations

import re

from treadle.backends.cluster.dialect import Phase
from treadle.backends.cluster.words import Signs
from treadle.records.event import EndReason

_ENDS: dict[str, EndReason | None] = {
    "COMPLETED": None,
    "FAILED": EndReason.APP,
    "CANCELLED": EndReason.CANCELLED,
    "TIMEOUT": EndReason.TIME,
    "DEADLINE": EndReason.TIME,
    "OUT_OF_MEMORY": EndReason.OOM,
    "NODE_FAIL": EndReason.NODE,
    "BOOT_FAIL": EndReason.NODE,
    "LAUNCH_FAILED": EndReason.NEVER_STARTED,
    "RECONFIG_FAIL": EndReason.NODE,
    "PREEMPTED": EndReason.PREEMPTED,
    "REVOKED": EndReason.LOST,  # a federation: another cluster took it, this one knows no more
}
_PENDING = (
    *("PENDING", "CONFIGURING", "POWER_UP_NODE", "EXPEDITING"),
    *("REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"),
)
_RUNNING = (
    *("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"),
    "UPDATE_DB",
)
_SHORT = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}
_PHASES = (
    dict.fromkeys(_ENDS, Phase.ENDED)
    | dict.fromkeys(_PENDING, Phase.PENDING)
    | dict.fromkeys(_RUNNING, Phase.RUNNING)
)
_REQUEUED_STATES = {"REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
# No job of ours asks for a begin time, so waiting for one is what a requeued job does.
_REQUEUED_REASONS = {
    "BeginTime",
    "job requeued in held state",
    "launch failed requeued held",
    "JobHoldMaxRequeue",
}

# Only reasons that no node and no other job can take away. Not among them, though often as lasting:
# PartitionConfig (a fallback for any limit of the partition), PartitionNodeLimit (told of nodes that are
# down, too), ReservationDeleted (the job is held, and can be released), limits of a QOS or an association
# per user (https://slurm.schedmd.com/job_reason_codes.html).
_HOPELESS = re.compile(
    r"""(?: DependencyNeverSatisfied | BadConstraints | AccountNotAllowed | QOSNotAllowed | InvalidAccount
        | InvalidQOS | PartitionTimeLimit | DeadLine
        | (?:QOS|Assoc)(?:Max|Min)\w*(?:PerJob|PerNode|NotSatisfied)\w* | QOSMin\w+ | AssocMaxWall\w*
        | MaxMemPerLimit )\b""",
    re.VERBOSE,
)

SIGNS = Signs(
    # The request may have arrived although its answer did not.
    unclear=re.compile(
        r"socket timed out|zero bytes were transmitted|unexpected message received|message receive failure"
        r"|communications? shutdown|connection reset|broken pipe|header lengths|incomplete",
        re.IGNORECASE,
    ),
    limit=re.compile(
        r"(?:QOS|Assoc)\w*(?:Jobs|Submit)|inactive or drain"
        r"|^(?!.*\b(?:QOS|Assoc)(?:Max|Min|Grp)).*violates accounting/QOS policy",
    ),
    transient=re.compile(
        r"unable to contact slurm|connection refused|connection timed out|connect failure|transport endpoint"
        r"|unable to resolve|name or service not known|munge|authentication (?:error|credential)"
        r"|in standby mode|temporarily unable|try again|temporary failure"
        r"|temporarily unavailable|cannot allocate memory|I/O error writing|talking to the database"
        r"|persistent connection|no route to host|network is unreachable",
        re.IGNORECASE,
    ),
)
NO_ACCOUNTING = re.compile(r"accounting storage is disabled", re.IGNORECASE)
UNKNOWN_JOB = re.compile(r"invalid job id specified", re.IGNORECASE)


def state_of(text: str) -> str:
    """The long name of a state: of `CG`, of `CANCELLED by 1000`, of `OUT_OF_ME+`; else its first word."""
    first = (text.split() or [""])[0]
    word = first.rstrip("+").upper()
    if word in _PHASES:
        return word
    if word in _SHORT:
        return _SHORT[word]
    if len(word) >= 8:  # cut: columns are ten characters wide
        whole = [state for state in _PHASES if state.startswith(word)]
        if len(whole) == 1:
            return whole[0]
    return first


def phase_of(state: str) -> Phase:
    """Of a long name; `UNKNOWN` for one that is not in the list."""
    return _PHASES.get(state, Phase.UNKNOWN)


def end_of(state: str) -> EndReason | None:
    """Why a job in this state ended badly, where the state tells it."""
    return _ENDS.get(state)


def is_hopeless(reason: str) -> bool:
    """A job that waits for this reason will never start."""
    return bool(_HOPELESS.match(reason.strip("() ")))


def is_requeued(state: str, reason: str) -> bool:
    """A pending job that ran before."""
    return state in _REQUEUED_STATES or reason.strip("()") in _REQUEUED_REASONS
