"""A workflow file as values: typed, checked by itself, with the place of each thing; nothing expanded."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.base.place import Diagnostic, Place
from treadle.plan.task import Ceilings, ExecutionGroup, Policy, Resources


class Spelled(float):
    """A float that remembers how its author wrote it: `1e-5` stays `1e-5`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Spelled:
        self = super().__new__(cls, text.replace("_", ""))
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text


SCHEDULERS = ("slurm", "pbs", "sge", "lsf")
BACKENDS = (*SCHEDULERS, "ray", "local")

# What a config key or a param may hold: str, int, bool, Spelled or a tuple of these.
Value = Any


class PathSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of `input` or `output`: `text` as written, `name` where the author named it.

    `pattern` is set for `{path, pattern}`: a folder `text` and the files in it that count.
    """

    text: str
    name: str = ""
    pattern: str = ""
    place: Place = Place()


class FanIn(Struct, frozen=True, kw_only=True):
    """One entry of `expand_inputs`: `pattern` over the product of `variables`.

    A variable is a literal list (tuple) or a text: `config.key`, a bare config key, or one literal.
    """

    pattern: str
    variables: tuple[tuple[str, tuple[Value, ...] | str], ...]
    name: str = ""
    place: Place = Place()


PARTS = ("map", "cut")  # what a rule with `transform` has beside itself: `RULE.map`, `RULE.cut`


class OwnValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values of a wildcard that one rule alone has: a list, or a text `config.key`."""

    variable: str
    given: tuple[Value, ...] | str
    place: Place = Place()


class Scatter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`scatter` of a rule; `gather` names the rule that gets the pieces, where one does."""

    own: OwnValues
    gather: str = ""


class Combine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`transform.combine`: the author's `shell`, or a `method` of ours, `concat` or `json_merge`."""

    shell: str = ""
    method: str = ""
    header: str = ""


class Transform(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`transform` of a rule: `map` for each value of `by`, and what becomes of the pieces.

    Of `values` (as in `OwnValues`), `count` (how many, as written) and `glob` one is given. `places` has the
    places of its keys, such as `split.by`.
    """

    by: str
    map: str
    values: tuple[Value, ...] | str = ()
    count: str = ""
    glob: str = ""
    combine: Combine | None = None
    cleanup: bool = False
    places: dict[str, Place] = {}


class Rule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One `[[rules]]` table. `places` gives the place of each key that stands in it.

    `secrets` are the variables of sensitive values that the prelude before its commands reads. `scatter` and
    `transform` are written out as further rules (`rules.parts`), which have `own` values instead; for those
    that are set apart by a profile or `--set`, `part_resources` has resources and memory as written.
    `module` is the number of the included file that it stands in (0: the workflow file), `extends` the rule
    that it takes fields of, `pin` the token of the folder in which its script lies (empty: the workflow's).
    `manifest` is set on a checkpoint rule, and `adds` is what it may add to (empty: anything).
    """

    name: str
    module: int = 0
    extends: str = ""
    pin: str = ""
    inputs: tuple[PathSpec, ...] = ()
    outputs: tuple[PathSpec, ...] = ()
    fan_in: tuple[FanIn, ...] = ()
    shell: str = ""
    script: str = ""
    interpreter: str = ""
    params: dict[str, Value] = {}
    envvars: dict[str, str] = {}
    when: str = ""
    depends_on: tuple[str, ...] = ()
    ancient: tuple[str, ...] = ()
    temporary: bool = False
    temp_output: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    log: str = ""
    benchmark: str = ""
    pre_exec: str = ""
    on_success: str = ""
    on_failure: str = ""
    resources: Resources = Resources()
    memory_text: str = ""  # memory as the author wrote it, for {memory}
    policy: Policy = Policy()
    secrets: tuple[str, ...] = ()
    manifest: str = ""
    adds: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}  # `rule_metadata`, for the report
    scatter: Scatter | None = None
    transform: Transform | None = None
    part_resources: dict[str, tuple[Resources, str]] = {}
    own: OwnValues | None = None
    place: Place = Place()
    places: dict[str, Place] = {}

    def at(self, key: str) -> Place:
        """Where `key` stands, or the rule's own place."""
        return self.places.get(key, self.place)

    @property
    def starts_nothing(self) -> bool:
        """As of its tasks: it has neither a command nor hooks, and what it asks for is not taken."""
        words = self.shell or self.script or self.pre_exec or self.on_success or self.on_failure
        return not words and self.transform is None

    @property
    def stays(self) -> bool:
        """Whether its tasks are carried out on this machine, wherever the others run."""
        return self.policy.localrule or self.starts_nothing


class Declared(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A declared config key; `range` inclusive; `type` one of string, int, float, bool, path, or empty."""

    name: str
    type: str = ""
    required: bool = False
    help: str = ""
    sensitive: bool = False
    choices: tuple[Value, ...] = ()
    range: tuple[float, float] | None = None
    must_exist: bool = False
    place: Place = Place()


class Source(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source of wildcard values as a table: `columns` (wildcard names) and `rows` (one text each).

    `kind`: `pairs`, `samples`, `values` or `table`. `label` names it in messages. A None cell: the row
    has no value there (a pair without `control`). Rows are in the author's order. `free` are columns
    whose values may be any path (columns of `[[tables]]`). `under` are columns that give no values of their
    own: the others hold under them (what a checkpoint rule with wildcards found). `awaited`: checkpoint rules
    may add rows, so that none need be there. `given` is the config key that lists the values of `[[values]]`,
    until they are filled in.
    """

    kind: str
    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    free: frozenset[str] = frozenset()
    under: frozenset[str] = frozenset()
    awaited: bool = False
    given: str = ""
    place: Place = Place()

    @property
    def gives(self) -> tuple[str, ...]:
        """The columns that it gives values to."""
        return (
            tuple([name for name in self.columns if name not in self.under]) if self.under else self.columns
        )


# Where the artifact of a step stands; of a name that several steps have, their names with hash.
StepPath = str | tuple[str, ...]


class StepModule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One `[[steps]]` table: a Python file with steps, seen from the workflow's folder.

    `name` is that of the list or function in it (empty: what the file means by itself), `prefix` where the
    artifacts stand (empty: where those of all steps do), `params` what its function is called with.
    """

    module: str
    name: str = ""
    prefix: str = ""
    params: tuple[tuple[str, str], ...] = ()
    place: Place = Place()


class Partition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The most that one task may ask for in a partition (a queue): bytes, seconds; None: any."""

    name: str
    threads: int | None = None
    memory: int | None = None
    time_limit: int | None = None
    gpu: int = 0
    nodes: int | None = None


class Cluster(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The backend of a run and how it is to be used: `[cluster]` of the workflow and of its profiles.

    `backend` is one of `BACKENDS`. `values` are typed, by the names of the fields. `ceilings` are the site's
    bounds on requests of rules. `profiles` are the files that took part, `places` where values stand.
    """

    backend: str
    values: dict[str, Any] = {}
    partitions: tuple[Partition, ...] = ()
    ceilings: Partition | None = None
    profiles: tuple[str, ...] = ()
    places: dict[str, Place] = {}

    @property
    def is_scheduler(self) -> bool:
        return self.backend in SCHEDULERS

    def at(self, key: str) -> Place:
        """Where `key` stands; else that of the backend."""
        return self.places.get(key) or self.places.get("backend") or Place()


class Module(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a workflow as its own rules see it: the workflow file, or one that is included.

    `name` is what `--module` calls it, `namespace` what its rules' names begin with (`qc`, `qc::trim`),
    `within` the number of the file that includes it. `file` is where it stands, absolute, `root` where what
    it names is looked for; of a git pin `pin` is the token of that folder, `pinned` what was asked for
    (`repo@ref`) and `commit` what that is.
    `config` are the values that differ from those of the workflow; `constraints` and `interpreters` are all
    that hold for its rules. `inputs` and `outputs` are its contract, at the places of the same numbers.
    """

    name: str = ""
    namespace: str = ""
    within: int = 0
    file: str = ""
    root: str = ""
    pin: str = ""
    pinned: str = ""
    commit: str = ""
    config: dict[str, Value] = {}
    constraints: dict[str, str] = {}
    interpreters: dict[str, str] = {}
    inputs: tuple[PathSpec, ...] = ()
    outputs: tuple[PathSpec, ...] = ()
    place: Place = Place()
    places: dict[str, Place] = {}


class Workflow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole workflow file, layers applied: what `read` returns and `expand` takes.

    `file` as typed, `folder` absolute (where scripts and sheets resolve); `config` is resolved and
    typed, with the engine's own keys (`samples_list` ...) added; `sensitive` names keys that are secret.
    `pools` are `[resource_groups]`, `sequences` the sequential ones of `[[execution_group]]` and `ceilings`
    `[resource_budget]`. `on_end_secrets` are the variables of sensitive values that `on_end`
    reads. `modules` are files of Python steps and `steps` the artifacts of these by name, empty until they
    are known. `includes` are the files that rules come from, by the numbers that rules have for them; none
    where nothing is included. `cluster` is None where the run is local because nothing else was asked for.
    `warnings` were found on the way. `places` of single tables are by `table.key`
    (`wildcard_constraints.sample`).
    """

    file: str
    folder: str
    name: str
    config: dict[str, Value] = {}
    declared: dict[str, Declared] = {}
    sensitive: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    sources: tuple[Source, ...] = ()
    constraints: dict[str, str] = {}
    sample_pattern: str = ""
    pairs_pattern: str = ""
    pools: tuple[tuple[str, int], ...] = ()
    sequences: tuple[ExecutionGroup, ...] = ()
    ceilings: Ceilings | None = None
    modules: tuple[StepModule, ...] = ()
    includes: tuple[Module, ...] = ()
    steps: dict[str, StepPath] = {}
    interpreters: dict[str, str] = {}
    cluster: Cluster | None = None
    on_end: str = ""
    on_end_secrets: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    places: dict[str, Place] = {}
    about: dict[str, Any] = {}  # for the report: description, author, [report], [citation] ...

    def config_of(self, rule: Rule) -> dict[str, Value]:
        """The config values as the file of a rule sees them."""
        own = self.includes[rule.module].config if rule.module else None
        return {**self.config, **own} if own else self.config
