"""What stands beside an artifact: its record, its status, and who is making it. Values and their versions."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

FORMAT = 1
STEP_MARK = "$step"  # the one key of what stands for a step among the hash_attrs: its name with hash


class Kind(StrEnum):
    """What a step made at its path."""

    FILE = "file"
    FOLDER = "folder"
    NOTHING = "nothing"


class Dep(Struct, frozen=True):
    """A step that an artifact was built on; `path` is where its artifact stands."""

    name: str
    identity: str
    path: str


class Result(Struct, frozen=True, omit_defaults=True):
    """The value that a step's function returned or wrote: plain JSON, and what type it was.

    `type` is empty for plain JSON values, `module:qualname` of a dataclass. `lost` says of what type a value
    was that could not be kept.
    """

    value: Any = None
    type: str = ""
    lost: str = ""


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an artifact came from.

    `tree` is the hash of the whole work tree with its uncommitted changes; times are seconds since the
    epoch; `attempt` is the name of the attempt that made it.
    """

    commit: str = ""
    tree: str = ""
    dirty: bool = False
    user: str = ""
    host: str = ""
    argv: tuple[str, ...] = ()
    started: float = 0.0
    ended: float = 0.0
    attempt: str = ""


class ArtifactRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a finished artifact. It alone says that the artifact is complete.

    `size` in bytes of a file (of a folder the sum) and `digest` (BLAKE2b-256 in hex, empty for large ones)
    expose a torn artifact. `at` is where the output really stands when that is not `path` (object stores:
    the folder of the attempt). `cpu` and `memory` are what the attempt used: seconds, bytes.
    """

    format: int = FORMAT
    identity: str
    name: str
    version: str = ""
    hash_attrs: dict[str, Any] = {}
    deps: tuple[Dep, ...] = ()
    path: str
    at: str = ""
    kind: Kind = Kind.NOTHING
    size: int = 0
    digest: str = ""
    result: Result | None = None
    code: str = ""
    provenance: Provenance = Provenance()
    wall: float | None = None
    cpu: float | None = None
    memory: int | None = None


class Owner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who holds a lease: enough to tell on the same host whether that process still lives.

    `attempt` names the attempt (`<run>.<n>`), `job` is the backend's id where there is one.
    """

    host: str
    boot: str = ""
    pid_namespace: str = ""
    pid: int = 0
    started: int = 0
    user: str = ""
    attempt: str = ""
    job: str = ""

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, process {self.pid}" + (f", {self.attempt}" if self.attempt else "")


class Standing(StrEnum):
    """How the last attempt at an artifact stands, in its status file."""

    RUNNING = "running"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SUCCEEDED = "succeeded"


class ArtifactStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last attempt at an artifact; times are seconds since the epoch."""

    format: int = FORMAT
    identity: str
    state: Standing
    attempt: str = ""
    owner: Owner | None = None
    started: float = 0.0
    ended: float = 0.0
    error: str = ""


class ArtifactState(StrEnum):
    """What stands at an output path, in the eyes of one identity."""

    ABSENT = "absent"
    COMPLETE = "complete"
    OTHER = "other"  # an artifact of another identity
    TORN = "torn"  # a record, but what it tells of is gone or cut


class Seen(Struct, frozen=True, omit_defaults=True):
    """One look at an output path. `status`: of the last attempt, where it failed; `problem`: what is torn."""

    state: ArtifactState
    record: ArtifactRecord | None = None
    status: ArtifactStatus | None = None
    problem: str = ""
