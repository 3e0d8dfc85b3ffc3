"""The closed set of events that a journal may hold, and the evidence that they carry.

An event is something that happened, in the past tense, with a time (seconds since the epoch). The
set is versioned as a whole: FORMAT stands in the first line of every journal.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from treadle.base.layout import StateFolder
from treadle.plan.discovered import Discovered
from treadle.plan.task import Resources, ScheduledTask

FORMAT = 1
_DEFAULT_PREFIX = StateFolder("").artifacts + "/"


class EndReason(StrEnum):
    """Why an attempt ended badly: one closed set for every backend (`OK`: it did not)."""

    OK = "ok"
    APP = "app"
    OOM = "oom"
    TIME = "time"
    DISK = "disk"
    PREEMPTED = "preempted"
    NODE = "node"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    NEVER_STARTED = "never_started"
    LOST = "lost"


class End(StrEnum):
    """How a task of a run ended."""

    SUCCEEDED = "succeeded"
    UP_TO_DATE = "up_to_date"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


class FileRecord(Struct, frozen=True, array_like=True, gc=False):
    """A file or folder as it was when looked at.

    `size` in bytes (-1: it was not there), `mtime` in nanoseconds, `digest` BLAKE2b-256 in hex (empty:
    above the digest limit, its content was not read). `recent`: it was changed less than 2 s before it
    was looked at, so equal stat next time proves nothing. `folder`: the digest is that of its list.
    """

    path: str
    size: int
    mtime: int
    inode: int
    digest: str = ""
    recent: bool = False
    folder: bool = False


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a finished task left to compare with next time.

    `identity` is the digest of the command's identity and `identity_format` the version of its recipe;
    `text` the command (token form, cut at 4 kB) for showing what changed. `inputs` as they were before
    the attempt, `outputs` after it. `stale`: an input changed while the attempt ran.
    `foreign`: files in output folders that stood there before the task ever ran, and that it left alone.
    `partial`: what its upstream could not make, and the result was made without.
    `note`: `adopted` or `touched` when nothing was run. `env`, `hooks`, `shell` and `environment` (name and
    value) are for showing what changed, as `text` is. `discovered` is what a checkpoint task found: its
    manifest is not read again. `checksums` are what the rule asked for (file and `sha256:...`), and decide
    nothing.
    """

    identity: str
    identity_format: int = 1
    text: str = ""
    inputs: tuple[FileRecord, ...] = ()
    outputs: tuple[FileRecord, ...] = ()
    stale: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    note: str = ""
    env: tuple[tuple[str, str], ...] = ()
    script: FileRecord | None = None
    hooks: tuple[tuple[str, str], ...] = ()
    shell: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    partial: tuple[str, ...] = ()
    discovered: Discovered | None = None
    checksums: tuple[tuple[str, str], ...] = ()


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt took: seconds of wall and CPU time, peak memory in bytes (None: unknown)."""

    wall: float | None = None
    cpu: float | None = None
    memory: int | None = None


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one attempt ended; `signal` is the number of the signal that ended it (0: none).

    `message` is for people: what was missing, what the scheduler said.
    """

    reason: EndReason = EndReason.OK
    exit_code: int | None = None
    signal: int = 0
    message: str = ""
    start: float | None = None
    end: float | None = None
    host: str = ""
    usage: Usage = Usage()


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """Root of all events."""

    time: float


class RunStarted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="run_started"):
    """First line of a journal."""

    format: int
    run: str
    treadle: str
    workflow: str
    argv: tuple[str, ...] = ()
    host: str = ""
    boot: str = ""
    pid: int = 0
    user: str = ""


class PlanEntered(Event, frozen=True, kw_only=True, omit_defaults=True, tag="plan_entered"):
    """A plan was decided and entered the engine; counts by verdict."""

    round: int
    digest: str
    tasks: int
    will_run: int
    up_to_date: int = 0
    skipped: int = 0


class AttemptSubmitted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="attempt_submitted"):
    """The intent: written before the backend is called. `n` counts attempts of the run, from 1.

    `before` are declared outputs that stood there when the attempt began, and with a folder what was in
    it. `artifact` is where that of a step is to stand, if not below the default prefix. `resumable`: what it
    makes is kept for the next one. `identity` is that of its command, where jobs of the backend outlive their
    driver; else it is empty. `grown`: what it asks for, where that is not what the task does. `run`: the
    earlier run that submitted it, under this `n`, and from which this one took it over (empty: this run, as
    in all events of attempts).
    """

    task: str
    attempt: int
    n: int
    name: str
    backend: str
    outputs: tuple[str, ...] = ()
    artifact: str = ""
    before: tuple[FileRecord, ...] = ()
    resumable: bool = False
    identity: str = ""
    grown: Resources | None = None
    run: str = ""


class AttemptStarted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="attempt_started"):
    """A backend holds the attempt as `job`; locally a process group with its kernel start time (ticks).

    `waiting`: it stands in the backend's own queue; `JobSeen` tells when it begins.
    """

    task: str
    n: int
    job: str
    started: int = 0
    waiting: bool = False
    run: str = ""


ENDING = "ending"


class JobSeen(Event, frozen=True, kw_only=True, omit_defaults=True, tag="job_seen"):
    """News of a job in a backend's queue; the latest counts.

    `state` is `pending`, `running`, `unknown` or `ending`; `job` the scheduler's own id, once that is known;
    `reason` why it waits, in the scheduler's words. `ending`: the run gave the backend up, and asked for the
    end of the job; `reason` tells why that was not heard (empty: it was).
    """

    task: str
    n: int
    state: str
    job: str = ""
    reason: str = ""
    run: str = ""


class AttemptHandedOver(Event, frozen=True, kw_only=True, omit_defaults=True, tag="attempt_handed_over"):
    """In the journal of a run that is gone: run `by` has taken this attempt over, and tells its end.

    `by` empty: nobody will, since its task is no more and no scheduler knows its job.
    """

    task: str
    n: int
    by: str = ""
    run: str = ""


class AttemptEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="attempt_ended"):
    """An attempt ended badly and another follows; the last one is told by TaskSettled."""

    task: str
    attempt: int
    n: int
    outcome: Outcome
    retry_in: float = 0.0
    run: str = ""


class TaskSettled(Event, frozen=True, kw_only=True, omit_defaults=True, tag="task_settled"):
    """A task reached its end. The one truth about it: its whole evidence is here.

    `attempt` is 0 when nothing was tried. `cause` is, for blocked tasks, the failed task at the root.
    """

    task: str
    key: str
    state: End
    attempt: int = 0
    n: int = 0
    outcome: Outcome | None = None
    evidence: Evidence | None = None
    cause: str = ""
    run: str = ""


class EvidenceWithdrawn(Event, frozen=True, kw_only=True, omit_defaults=True, tag="evidence_withdrawn"):
    """Later news took back a success that was told: what it left is no evidence any more.

    `outcome` is how the attempt ended after all. `again`: the task is tried again in this run, else it has
    failed.
    """

    task: str
    key: str
    attempt: int
    n: int
    outcome: Outcome
    again: bool = False
    run: str = ""


class OutcomeConfirmed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="outcome_confirmed"):
    """A success that could have been taken back stands, with the figures that are known by now."""

    task: str
    n: int
    outcome: Outcome
    run: str = ""


class OutputEvicted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="output_evicted"):
    """A tombstone: written before the file is removed on purpose."""

    task: str
    key: str
    record: FileRecord


class Noticed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="noticed"):
    """Something a person should be able to read later: a warning, by its code, with its values."""

    code: str
    task: str = ""
    values: dict[str, str] = {}


class RunEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="run_ended"):
    """Last line of a journal; `mended` when a later run wrote it for one that was killed."""

    exit_code: int
    counts: dict[str, int] = {}
    mended: bool = False


class RunDetached(Event, frozen=True, kw_only=True, omit_defaults=True, tag="run_detached"):
    """The driver went, or was killed, and left `jobs` jobs where they are. It is no end: the next run takes
    them over. `copied`: the journal stays open for them alone, and the copy of all else that it tells is
    complete. `mended` when a later run wrote it.
    """

    exit_code: int
    jobs: int
    counts: dict[str, int] = {}
    copied: bool = False
    mended: bool = False


AnyEvent = (
    RunStarted
    | PlanEntered
    | AttemptSubmitted
    | AttemptStarted
    | JobSeen
    | AttemptHandedOver
    | AttemptEnded
    | TaskSettled
    | EvidenceWithdrawn
    | OutcomeConfirmed
    | OutputEvicted
    | Noticed
    | RunEnded
    | RunDetached
)


def evidence_key(workflow: str, task: str, outputs: tuple[str, ...], artifact: str = "") -> str:
    """The key of a task's evidence: its first output path, or workflow and task id without outputs.

    A step's id tells by itself what it is, whatever plan it stands in; below another prefix than the default
    one the path of its `artifact` counts, too: each artifact was made of inputs as they were then. Paths
    cannot hold NUL, so the kinds cannot collide.
    """
    if task.startswith("@"):
        return f"\0{task}\0{artifact}" if artifact else f"\0{task}"
    return outputs[0] if outputs else f"\0{workflow}\0{task}"


def key_of_task(workflow: str, task: ScheduledTask) -> str:
    """The key of the evidence of a task of the plan of that name."""
    return evidence_key(workflow, task.id, task.outputs, artifact_elsewhere(task))


def artifact_elsewhere(task: ScheduledTask) -> str:
    """Where the artifact of a step stands, if not below the default prefix."""
    path = task.call.path if task.call is not None else ""
    return "" if path.startswith(_DEFAULT_PREFIX) else path
