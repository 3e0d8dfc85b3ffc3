"""`Dialect`: what differs from one scheduler to another, as text in and text out. It starts nothing.

    Request -> directives, submit argv -> (exit code, stdout, stderr) -> Answer
    job ids -> poll argv               -> (exit code, stdout, stderr) -> Rows | Silence
    job ids -> accounting argv         -> (exit code, stdout, stderr) -> Accounts | Silence

A job id is what this element is called in every later question: `25_3` (SLURM), `123[4]` (PBS, without
the server, whose name comes in several spellings), `123.4` (SGE), `123[4]` (LSF) for elements of arrays,
the plain id for single jobs; `25_3;name` where SLURM was told a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from treadle.plan.task import Resources
from treadle.records.event import EndReason


class Phase(StrEnum):
    """Where a job is; a state that nobody knows is `UNKNOWN`, shown as it is, and in flight."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Sort(StrEnum):
    """What the answer to a command means."""

    DONE = "done"
    TRANSIENT = "transient"  # try again: a timeout, the controller is down
    LIMIT = "limit"  # wait: too many jobs of this user, of this QOS
    REFUSED = "refused"  # this request will never be taken
    UNCLEAR = "unclear"  # perhaps it was taken: look for the name before trying again


class Request(Struct, frozen=True, kw_only=True):
    """One submission: a single job, or an array of `size` elements (0: no array) with indices from 1.

    `script` and `log` are absolute; in the log of an array the dialect puts its own word for the index.
    `running` bounds the elements that run at once (0: no bound). `time_limit` in seconds and memory in
    bytes stand in `resources`; `comment` names run, task and attempt. `exclude` are nodes to be avoided.
    `signal_before`: SIGTERM so many seconds before the time limit, where the scheduler can (0: not).
    """

    name: str
    script: str
    log: str
    workdir: str
    resources: Resources
    size: int = 0
    running: int = 0
    comment: str = ""
    exclude: tuple[str, ...] = ()
    requeue: bool = False
    signal_before: int = 0


class Answer(Struct, frozen=True):
    """What came of a submission: the id (of the array, the whole) when it was taken, else words."""

    sort: Sort
    job: str = ""
    message: str = ""


class Silence(Struct, frozen=True):
    """A question without an answer: no evidence of anything. `down`: the system itself cannot be reached."""

    message: str
    down: bool = True


class Row(Struct, frozen=True):
    """One job or element, as the queue shows it; `state` and `reason` are the scheduler's own words.

    `ended` is why, where the state alone tells it badly ended. `hopeless`: it will never start for this
    reason. `requeued`: it ran before and waits again.
    """

    job: str
    phase: Phase
    state: str
    reason: str = ""
    name: str = ""
    ended: EndReason | None = None
    hopeless: bool = False
    requeued: bool = False
    host: str = ""


class Account(Struct, frozen=True, kw_only=True):
    """One job or element, as accounting tells it, the last of its runs.

    `settled`: the figures are final (SLURM: End is a time). `exit_code` and `signal` count only then.
    Times are seconds since the epoch; `cpu` in seconds, `memory` the peak in bytes, over all its steps.
    """

    job: str
    phase: Phase
    state: str
    settled: bool
    ended: EndReason | None = None
    exit_code: int | None = None
    signal: int = 0
    name: str = ""
    submit: float | None = None
    start: float | None = None
    end: float | None = None
    host: str = ""
    cpu: float | None = None
    memory: int | None = None


class Limits(Struct, frozen=True):
    """What the site allows (None: not said)."""

    array_size: int | None = None
    submitted: int | None = None


class Said(Struct, frozen=True):
    """What a command of the scheduler printed; `code` None: it did not answer in time."""

    code: int | None
    out: str = ""
    err: str = ""


class Dialect(Protocol):
    """The words of one scheduler. All commands are argv lists without their folder."""

    @property
    def name(self) -> str: ...

    @property
    def index_variable(self) -> str:
        """The environment variable that holds an element's index in a job."""
        ...

    @property
    def id_variable(self) -> str:
        """The environment variable that holds the scheduler's id in a job."""
        ...

    @property
    def scrubbed(self) -> tuple[str, ...]:
        """Prefixes of variables that must not leak from an allocation into a submission."""
        ...

    @property
    def kept(self) -> tuple[str, ...]:
        """Variables below those prefixes that say where the configuration is."""
        ...

    @property
    def environment(self) -> dict[str, str]:
        """Variables to be set for its commands, after the scrubbing; answers are read without them too."""
        ...

    @property
    def name_length(self) -> int:
        """The longest job name that comes back whole."""
        ...

    @property
    def throttles(self) -> bool:
        """Whether it keeps `Request.running` itself."""
        ...

    def owned(self, options: Sequence[str]) -> list[str]:
        """Those of the user's `extra_args` that belong to the engine, as they were written."""
        ...

    def directives(self, request: Request) -> list[str]:
        """The lines at the top of the script that ask for everything."""
        ...

    def submit(self, request: Request) -> tuple[list[str], str]:
        """The command, and the file that is its standard input (empty: none)."""
        ...

    def submitted(self, said: Said) -> Answer: ...

    def log_of(self, log: str, index: int) -> str:
        """Where the output of one element goes, whose array was told `log` (0: a single job)."""
        ...

    def element(self, array: str, index: int) -> str:
        """The id of one element of an array."""
        ...

    def poll(self, jobs: Sequence[str], user: str) -> list[list[str]]:
        """The commands that ask for all these jobs at once: one, or a handful for thousands of ids."""
        ...

    def polled(self, said: Said) -> list[Row] | Silence:
        """Rows of any jobs, others' too. A job that is not among them is not known to the queue."""
        ...

    def accounting(self, jobs: Sequence[str], since: float) -> list[list[str]]: ...

    def accounted(self, said: Said) -> list[Account] | Silence: ...

    def cancel(self, jobs: Sequence[str]) -> list[list[str]]: ...

    def find(self, names: Sequence[str], user: str, since: float) -> list[list[str]]:
        """The commands that show own jobs by name: in the queue first, then in accounting."""
        ...

    def found(self, argv: Sequence[str], said: Said) -> dict[str, str] | Silence:
        """Job ids (of arrays, the whole) by name, others' too. A source that the site has not is empty."""
        ...

    def limits(self) -> list[str]:
        """The command that tells the site's limits (empty: there is none)."""
        ...

    def limits_of(self, said: Said) -> Limits: ...

    def ping(self) -> list[str]:
        """A quick command that tells whether the system can be reached (empty: there is none)."""
        ...
