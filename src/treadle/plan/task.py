"""The nouns of a plan: a task, what it does, what it may use, and how it is treated.

Values only: frozen, holding tuples, so that they can be shared, compared and sent anywhere.
(`msgspec.Struct` and not `dataclass`: half the memory, a fifth of the time to make, and importing
`dataclasses` alone costs 17 ms of start-up. `gc=False`: values that hold only values can make no
circle, and the collector would walk over all 100,000 of them again and again.)
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from treadle.base.place import Diagnostic, Place
from treadle.plan.environment import Environment, Making


class Resources(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one attempt asks for. Nothing here bears identity: changing it re-runs nothing.

    `memory`, `disk`, `gpu_memory` in bytes and `time_limit` in whole seconds (None: not said);
    `groups` are (name of a counted resource, how many of it), sorted by name.
    """

    threads: int = 1
    memory: int | None = None
    gpus: int = 0
    gpu_model: str = ""
    gpu_memory: int | None = None
    disk: int | None = None
    time_limit: int | None = None
    groups: tuple[tuple[str, int], ...] = ()
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    nodes: int | None = None
    tasks_per_node: int | None = None
    extra_args: tuple[str, ...] = ()


class Growth(Struct, frozen=True, gc=False):
    """How a resource grows on a retry: `x2` (factor) or `+8G` (add, in the resource's unit)."""

    factor: float = 1.0
    add: int = 0


class Shell(Struct, frozen=True, gc=False):
    """How command text is run: which shell, how strictly, after which prelude."""

    executable: str = "bash"
    strict: bool = False
    prelude: str = ""


CHECKSUMS = ("md5", "sha256")


class Policy(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How the tasks of one rule are treated: one object, shared by all tasks of the rule.

    `retries` attempts after the first; `retry_delay` in seconds, doubling; `required` False: a failure
    blocks dependents but not the run's verdict; `optional`: skipped when a source input is missing.
    `digest_limit` in bytes (None: files of any size are digested). `checksum`: one of `CHECKSUMS` that is
    recorded of each output (empty: none). `localrule`: on this machine, whatever the
    backend. Tasks of one `group` that are connected make one job. `pack`: so many short tasks make one job,
    or as many as take `pack_time` seconds (0: they are not packed). `scratch`: in a private folder, where of
    the work folder its inputs alone are seen (`minimal`), the top, too (`shallow`), or all (`full`).
    `environment`: what all of a command runs in, its shell, its hooks and its script.
    `allow_missing`: a gather goes ahead when so many of its upstream tasks failed, or `allow_missing_part`
    (0 to 1) of them.
    """

    shell: Shell = Shell()
    environment: Environment | None = None
    retries: int = 0
    retry_delay: float = 0.0
    retry_memory: Growth | None = None
    retry_time: Growth | None = None
    priority: int = 0
    required: bool = True
    optional: bool = False
    target: bool = False
    resumable: bool = False
    restartable: bool = False
    signal_before_end: int | None = None
    oom_ok: bool = False
    localrule: bool = False
    group: str = ""
    pack: int = 0
    pack_time: int = 0
    scratch: str = ""
    allow_missing: int = 0
    allow_missing_part: float = 0.0
    digest_limit: int | None = 64 * 1024 * 1024
    checksum: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()

    def bearable(self, upstream: int) -> int:
        """How many of so many upstream tasks may fail."""
        return self.allow_missing or int(upstream * self.allow_missing_part + 1e-9)


class Command(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a rule's task runs: `text` in the shell, then `script` (an argv) only after exit 0 of it.

    All texts may hold tokens (see `plan.tokens`): what only an attempt knows, or what must not bear
    identity. `hooks` run in the same shell environment: before, after success, after failure.
    `script_file` is the script's path (token form), whose content is part of the identity.
    `env` are exported variables; `secrets` names the sensitive config values that the text reads from
    the environment.
    """

    text: str = ""
    script: tuple[str, ...] = ()
    script_file: str = ""
    pre_exec: str = ""
    on_success: str = ""
    on_failure: str = ""
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()


class Where(StrEnum):
    """Where a step's function is called."""

    THREAD = "thread"  # a thread of the driver: nothing to start, but it cannot be killed
    PROCESS = "process"  # a worker process of this machine
    CLIENT = "client"  # a job of the backend that the current client stands for


class Call(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a step's task does: call a Python function, which the run's `StepBook` has under the task's id.

    `identity` is the step's, 32 hex digits. `path` is where its artifact stands: as paths of a plan are
    (relative to the work folder where it lies below it), or a URL. `attrs` are its hash_attrs as canonical
    JSON text and `code` the digest of its function (empty: unknown), both for showing alone. `mutable`: a
    development version, made anew in every run. `grows`: its result makes further steps. `drift` (`error`,
    `warn`) and `code_policy` (`warn`, `error`, `ignore`) say how an artifact of another identity at its path
    is met, and one that other code made.
    """

    step: str
    identity: str
    path: str
    where: Where = Where.THREAD
    version: str = ""
    attrs: str = "{}"
    code: str = ""
    mutable: bool = False
    grows: bool = False
    drift: str = "error"
    code_policy: str = "warn"


class Skip(Struct, frozen=True, gc=False):
    """Why a task of the plan will not run and produces nothing.

    `why` is `when` (its condition is false), `upstream` (all producers of a fixed input are skipped)
    or `empty` (a gather that has nothing left to gather); `what` is the condition or the path.
    """

    why: str
    what: str = ""


class Draft(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A task as a front door hands it in: everything but its edges.

    Paths are relative to the work folder (normalised, no `./`), or absolute as the author wrote them.
    `inputs` are in the order in which the author named them, each once. `gathered` are those of them
    that came from a glob, a folder pattern or a fan-in: they may be fewer when their producers are
    skipped; the others are fixed. `depends_on` are names of rules. A step has a `call` and no command,
    declares no outputs (its artifact stands at `call.path`), and `steps` are the task ids of its deps.
    A task that is there to make an environment has its `making`.
    `manifest` is what a checkpoint task writes, `born` the checkpoint tasks that found its values, `awaits`
    those that may still add to what it works on: its builder leaves out those that build on it, and where
    several wait for each other, the one with the lowest `turn` goes first.
    """

    rule: str
    wildcards: tuple[tuple[str, str], ...] = ()
    command: Command = Command()
    call: Call | None = None
    steps: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    gathered: frozenset[str] = frozenset()
    ancient: frozenset[str] = frozenset()
    outputs: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    resources: Resources = Resources()
    policy: Policy = Policy()
    log: str = ""
    log_named: bool = False
    benchmark: str = ""
    manifest: str = ""
    born: tuple[str, ...] = ()
    awaits: tuple[str, ...] = ()
    turn: int = 0
    skip: Skip | None = None
    making: Making | None = None
    place: Place = Place()


class ScheduledTask(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A node of the plan. Everything is final but for the tokens in its command.

    `needs` are ids of tasks, sorted; `ordered` those of them that come from `depends_on` alone.
    `temporary` are outputs removed once every dependent is done, `protected` those made read-only;
    `log_named` says that the command itself writes `log` (else the engine does). A task does its `command`,
    or its `call` when it has one: it is a step then, and its artifact (`call.path`) is not among its outputs.
    A task with a `making` is there to make an environment: it runs when that is not there and a task that
    will run needs it. `manifest` is that of a checkpoint task. `born` are those of its needs that only order:
    checkpoint tasks that found its values, and those that it `awaits`, since they may still add to what it
    works on. It is not final before these have ended, and then another plan has it as it is.
    """

    id: str
    rule: str
    wildcards: tuple[tuple[str, str], ...] = ()
    command: Command = Command()
    call: Call | None = None
    inputs: tuple[str, ...] = ()
    ancient: frozenset[str] = frozenset()
    outputs: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ordered: frozenset[str] = frozenset()
    resources: Resources = Resources()
    policy: Policy = Policy()
    log: str = ""
    log_named: bool = False
    benchmark: str = ""
    manifest: str = ""
    born: frozenset[str] = frozenset()
    awaits: tuple[str, ...] = ()
    skip: Skip | None = None
    making: Making | None = None
    place: Place = Place()

    @property
    def finds(self) -> bool:
        """Whether there may be further tasks once it has succeeded."""
        return bool(self.manifest) or (self.call is not None and self.call.grows)

    @property
    def starts_nothing(self) -> bool:
        """Whether it is a name for its inputs: a rule without a command and hooks, which no process carries
        out and which takes none of what it asks for, wherever the others run."""
        command = self.command
        words = command.text or command.script or command.pre_exec or command.on_success or command.on_failure
        return not words and self.call is None and self.making is None


class ExecutionGroup(Struct, frozen=True, gc=False):
    """Rules whose tasks run one rule after the other, whatever becomes of them: an order, and no needs."""

    name: str
    rules: tuple[str, ...]


class Ceilings(Struct, frozen=True, kw_only=True, gc=False):
    """The most that attempts may ask for that are under way at a time, here and elsewhere: threads, memory in
    bytes, and how many there are; None: any."""

    threads: int | None = None
    memory: int | None = None
    jobs: int | None = None


class ScheduledPlan(Struct, frozen=True, kw_only=True):
    """All tasks, checked. A value: the same workflow, config and listing give the same bytes.

    `order` is topological (ties by priority, then id), `groups` are its parallel levels.
    `producer` tells which task makes a path. `pools` are the named resource groups and how many there are.
    `sequences` and `ceilings` say what may run at a time; they bear no identity.
    `sources` are the inputs that no task makes. `notes` are warnings that were found while it was built:
    they are not part of its digest.
    """

    name: str
    order: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    tasks: dict[str, ScheduledTask]
    producer: dict[str, str]
    pools: tuple[tuple[str, int], ...] = ()
    sequences: tuple[ExecutionGroup, ...] = ()
    ceilings: Ceilings | None = None
    sources: frozenset[str] = frozenset()
    notes: tuple[Diagnostic, ...] = ()
