"""The closed set of events that a journal may hold, and the evidence that they carry.

An event is something that happened, in the past tense, with a time (seconds since the epoch). The
set is versioned as a whole: FORMAT stands in the first line of every journal.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

FORMAT = 1


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


class FileRecord(Struct, frozen=True, array_like=True):
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


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a finished task left to compare with next time.

    `identity` is the digest of the command's identity and `identity_format` the version of its recipe;
    `text` the command (token form, cut at 4 kB) for showing what changed. `inputs` as they were before
    the attempt, `outputs` after it. `stale`: an input changed while the attempt ran.
    `foreign`: files in output folders that stood there before the task ever ran, and that it left alone.
    `note`: `adopted` or `touched` when nothing was run. `env`, `hooks` and `shell` (name and value) are for
    showing what changed, as `text` is.
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
    it. `resumable`: what it makes is kept for the next one.
    """

    task: str
    attempt: int
    n: int
    name: str
    backend: str
    outputs: tuple[str, ...] = ()
    before: tuple[FileRecord, ...] = ()
    resumable: bool = False


class AttemptStarted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="attempt_started"):
    """A backend holds the attempt as `job`; locally a process group with its kernel start time (ticks)."""

    task: str
    n: int
    job: str
    started: int = 0


class AttemptEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="attempt_ended"):
    """An attempt ended badly and another follows; the last one is told by TaskSettled."""

    task: str
    attempt: int
    n: int
    outcome: Outcome
    retry_in: float = 0.0


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


AnyEvent = (
    RunStarted
    | PlanEntered
    | AttemptSubmitted
    | AttemptStarted
    | AttemptEnded
    | TaskSettled
    | OutputEvicted
    | Noticed
    | RunEnded
)


def evidence_key(workflow: str, task: str, outputs: tuple[str, ...]) -> str:
    """The key of a task's evidence: its first output path, or workflow and task id without outputs.

    A step's id tells by itself what it is, whatever plan it stands in. Paths cannot hold NUL, so the kinds
    cannot collide.
    """
    if task.startswith("@"):
        return f"\0{task}"
    return outputs[0] if outputs else f"\0{workflow}\0{task}"
