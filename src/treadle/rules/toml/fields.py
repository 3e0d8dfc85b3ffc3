"""The closed table of what a workflow file may hold: every table, every field, its kind and its state.

Nothing is read that does not stand here; what stands here either works, is kept for the report, is
refused with what to write instead, or is named as having no effect. No field is ever silent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct


class State(StrEnum):
    """What happens to a field that a person wrote."""

    WORKS = "works"
    REPORT = "report"  # kept for the report; nothing that runs depends on it
    NO_EFFECT = "no-effect"  # a warning: leaving it out changes nothing here
    INSTEAD = "instead"  # an error: something else says it here
    SCHEDULER = "scheduler"  # works on a scheduler; else read and kept, with one warning a file


class Kind(StrEnum):
    """What a field holds; the value is the phrase in which an error asks for it."""

    ANY = "any value"
    TEXT = "a text in quotes"
    NAME = "a name in quotes"
    VALUE = "a text or a number"
    COMMAND = "command text in quotes"
    PATH = "a path in quotes"
    FLAG = "true or false"
    WHOLE = "a whole number"
    NATURAL = "a whole number of at least 0"
    COUNT = "a whole number of at least 1"
    SIZE = "a size such as '8G'"
    SIZE_OR_NONE = "a size such as '64M', or 'none'"
    DURATION = "a duration such as '90m' or '1h30m'"
    DELAY = "a duration such as '30s', or a number of seconds"
    SIZE_GROWTH = "a growth such as 'x2' or '+8G'"
    TIME_GROWTH = "a growth such as 'x2' or '+2h'"
    PACK = "a number of tasks, or a duration such as '30m'"
    MISSING = "a number of tasks, or a part such as '10%'"
    SCRATCH = "true, false, 'minimal', 'shallow' or 'full'"
    INTERVAL = "a duration such as '10s', or a number of seconds, above 0"
    TEXTS = "a list of texts"
    NAMES = "a list of names"
    NAMES_OR_NAME = "a name in quotes, or a list of names"
    PATHS = "a list of paths"
    VALUES = "a table of name = value"
    VARIABLES = "a table of NAME = text"
    COUNTS = "a table of name = whole number"
    TABLE = "a table"
    FILES = "a path, a list of paths, or a table of name = path"
    FAN_IN = "a list of { pattern, variables }"
    LIST = "a list"


Fields: TypeAlias = "dict[str, Field]"


class Field(Struct, frozen=True):
    """One field: its kind, its state, why it has no effect, and the fields of a table that it holds."""

    kind: Kind
    state: State = State.WORKS
    why: str = ""
    inside: Fields | None = None


_TEXT = Field(Kind.TEXT)
_NAME = Field(Kind.NAME)
_VALUE = Field(Kind.VALUE)
_COMMAND = Field(Kind.COMMAND)
_PATH = Field(Kind.PATH)
_FLAG = Field(Kind.FLAG)
_COUNT = Field(Kind.COUNT)
_SIZE = Field(Kind.SIZE)
_TABLE = Field(Kind.TABLE)
_VALUE_LIST = Field(Kind.LIST)
_FOR_SCHEDULERS = "it asks something of a scheduler, and the run is local"
_VALUES = Field(Kind.VALUES)
_SHOWN = Field(Kind.TEXT, State.REPORT)


def _instead(why: str) -> Field:
    """A field that is met in public files and means nothing certain: `why` says what to write."""
    return Field(Kind.ANY, State.INSTEAD, why)


_ON_END = "write on_end, which runs after each run and finds its exit code in TREADLE_EXIT_CODE"
_NOTHING = Field(Kind.ANY, State.NO_EFFECT, "nothing in Treadle looks at it")

WORKFLOW: Fields = {
    "name": _NAME,
    "version": _SHOWN,
    "description": _SHOWN,
    "author": _SHOWN,
    "min_version": _SHOWN,
    "format_version": _TEXT,
    "genome_build": _SHOWN,
    "interpreter_map": Field(Kind.VALUES),
    "shell_executable": _PATH,
    "strict_shell": _FLAG,
    "on_end": _COMMAND,
    "pairs_file": _PATH,
    "sample_groups_file": _PATH,
    "pairs_pattern": _PATH,
    "sample_pattern": _PATH,
    "profile_mode": _TEXT,
    "metadata_file": _instead("columns of pairs_file and sample_groups_file are wildcards"),
    "on_complete": Field(Kind.ANY, State.NO_EFFECT, _ON_END),
    "on_error": Field(Kind.ANY, State.NO_EFFECT, _ON_END),
    "sample_group_name": Field(Kind.ANY, State.NO_EFFECT, "groups have their names in [[sample_groups]]"),
}

ENVIRONMENT: Fields = {
    "conda": _PATH,
    "mamba": _PATH,
    "pixi": _PATH,
    "docker": _NAME,
    "singularity": _PATH,
    "apptainer": _PATH,
    "venv": _PATH,
    "modules": Field(Kind.NAMES_OR_NAME),
    "conda_prefix": _PATH,
    "mamba_prefix": _PATH,
    "pixi_environment": _NAME,
    "venv_requirements": _PATH,
    "args": Field(Kind.TEXTS),
    "binds": Field(Kind.PATHS),
    "gpus": _instead("ask for them in resources.gpu: a container sees those of its task"),
}

DEFAULTS: Fields = {
    "threads": _COUNT,
    "memory": _SIZE,
    "time_limit": Field(Kind.DURATION),
    "time": _instead("write time_limit"),
    "environment": Field(Kind.TABLE, inside=ENVIRONMENT),
    "container_program": _NAME,
    "shell_prelude": _COMMAND,
    "shell_executable": _PATH,
    "digest_limit": Field(Kind.SIZE_OR_NONE),
}

DECLARED: Fields = {
    "default": Field(Kind.ANY),
    "required": _FLAG,
    "help": _TEXT,
    "sensitive": _FLAG,
    "type": _TEXT,
    "choices": Field(Kind.LIST),
    "range": _TEXT,
    "must_exist": _FLAG,
}

GPU_SPEC: Fields = {
    "count": _COUNT,
    "model": _TEXT,
    "memory_gb": Field(Kind.COUNT),
    "compute_capability": Field(
        Kind.ANY, State.NO_EFFECT, "ask for a model, or on a scheduler for a constraint"
    ),
}

RESOURCES: Fields = {
    "threads": _COUNT,
    "memory": _SIZE,
    "gpu": Field(Kind.NATURAL),
    "gpu_spec": Field(Kind.TABLE, inside=GPU_SPEC),
    "disk": Field(Kind.SIZE, State.SCHEDULER, _FOR_SCHEDULERS),
    "time_limit": Field(Kind.DURATION),
    "partition": Field(Kind.TEXT, State.SCHEDULER, _FOR_SCHEDULERS),
    "groups": Field(Kind.COUNTS),
    "nodes": _COUNT,
    "tasks_per_node": Field(Kind.COUNT, State.SCHEDULER, _FOR_SCHEDULERS),
    "account": Field(Kind.TEXT, State.SCHEDULER, _FOR_SCHEDULERS),
    "qos": Field(Kind.TEXT, State.SCHEDULER, _FOR_SCHEDULERS),
    "constraint": Field(Kind.TEXT, State.SCHEDULER, _FOR_SCHEDULERS),
    "extra_args": Field(Kind.TEXTS, State.SCHEDULER, _FOR_SCHEDULERS),
}

FAN_IN: Fields = {"pattern": _PATH, "variables": _TABLE, "name": _NAME}

FOLDER: Fields = {"path": _PATH, "pattern": _PATH}

SCATTER: Fields = {"variable": _NAME, "values": _VALUE_LIST, "values_from": _NAME, "gather": _NAME}

SPLIT: Fields = {"by": _NAME, "values": _VALUE_LIST, "values_from": _NAME, "n": _VALUE, "glob": _PATH}

COMBINE: Fields = {"shell": _COMMAND, "aggregate": _FLAG, "method": _NAME, "header": _TEXT}

TRANSFORM: Fields = {
    "split": Field(Kind.TABLE, inside=SPLIT),
    "map": _COMMAND,
    "combine": Field(Kind.TABLE, inside=COMBINE),
    "cleanup": _FLAG,
}

RULE: Fields = {
    "name": _NAME,
    "input": Field(Kind.FILES, inside=FOLDER),
    "output": Field(Kind.FILES, inside=FOLDER),
    "expand_inputs": Field(Kind.FAN_IN, inside=FAN_IN),
    "allow_missing": Field(Kind.MISSING),
    "shell": _COMMAND,
    "script": Field(Kind.PATH),
    "interpreter": _TEXT,
    "resources": Field(Kind.TABLE, inside=RESOURCES),
    "threads": _COUNT,
    "memory": _SIZE,
    "environment": Field(Kind.TABLE, inside=ENVIRONMENT),
    "env_group": _NAME,
    "envvars": Field(Kind.VARIABLES),
    "params": _VALUES,
    "when": _TEXT,
    "depends_on": Field(Kind.NAMES),
    "optional": _FLAG,
    "required": _FLAG,
    "retries": Field(Kind.NATURAL),
    "retry_delay": Field(Kind.DELAY),
    "retry_memory": Field(Kind.SIZE_GROWTH),
    "retry_time": Field(Kind.TIME_GROWTH),
    "resumable": _FLAG,
    "restartable": Field(Kind.FLAG, State.SCHEDULER, _FOR_SCHEDULERS),
    "signal_before_end": Field(Kind.DURATION),
    "oom_ok": Field(Kind.FLAG, State.SCHEDULER, _FOR_SCHEDULERS),
    "pre_exec": _COMMAND,
    "on_success": _COMMAND,
    "on_failure": _COMMAND,
    "log": _PATH,
    "benchmark": _PATH,
    "temporary": _FLAG,
    "temp_output": Field(Kind.PATHS),
    "protected_output": Field(Kind.PATHS),
    "ancient": Field(Kind.PATHS),
    "scratch": Field(Kind.SCRATCH),
    "shadow": Field(Kind.SCRATCH),
    "localrule": Field(Kind.FLAG, State.SCHEDULER, _FOR_SCHEDULERS),
    "group": Field(Kind.NAME, State.SCHEDULER, _FOR_SCHEDULERS),
    "pack": Field(Kind.PACK, State.SCHEDULER, _FOR_SCHEDULERS),
    "priority": Field(Kind.WHOLE),
    "target": _FLAG,
    "tags": Field(Kind.TEXTS),
    "description": _TEXT,
    "rule_metadata": Field(Kind.TABLE, State.REPORT),
    "extends": _NAME,
    "checksum": _NAME,
    "checkpoint": _FLAG,
    "checkpoint_manifest": _PATH,
    "checkpoint_extends": Field(Kind.NAMES),
    "scatter": Field(Kind.TABLE, inside=SCATTER),
    "transform": Field(Kind.TABLE, inside=TRANSFORM),
    "cache_key": _NOTHING,
    "input_function": _NOTHING,
    "format_hint": _NOTHING,
    "pipe": _NOTHING,
    "resource_hint": _NOTHING,
    "input_groups": _instead("name the wildcards in 'input' and leave them out of 'output': that gathers"),
    "output_pattern": _instead("write the pattern in 'output'"),
    "named_input": _instead('write input = { NAME = "path" }'),
    "named_output": _instead('write output = { NAME = "path" }'),
    "on_complete": _instead("write on_success, on_failure or both"),
    "on_error": _instead("write on_failure"),
}

REFERENCE: Fields = {
    "name": _NAME,
    "source": _PATH,
    "output": _PATH,
    "build": _COMMAND,
    "threads": _COUNT,
    "memory": _SIZE,
    "environment": Field(Kind.TABLE, inside=ENVIRONMENT),
    "description": _TEXT,
}

PAIR: Fields = {
    "pair_id": _VALUE,
    "experiment": _VALUE,
    "tumor": _VALUE,
    "control": _VALUE,
    "normal": _VALUE,
    "experiment_type": _VALUE,
    "tumor_type": _VALUE,
    "metadata": _VALUES,
    "when": _instead("give the pairs a key of metadata, and name it in the 'when' of rules"),
    "metadata_file": _instead("write the pairs into pairs_file, where every column is a wildcard"),
}

SAMPLE_GROUP: Fields = {
    "name": _VALUE,
    "samples": Field(Kind.LIST),
    "metadata": _VALUES,
    "metadata_file": _instead("write the groups into sample_groups_file, where every column is a wildcard"),
}

INCLUDE: Fields = {
    "path": _PATH,
    "namespace": _NAME,
    "name": _NAME,
    "inputs": Field(Kind.PATHS),
    "outputs": Field(Kind.PATHS),
    "params": _VALUES,
    "repo": _TEXT,
    "ref": _TEXT,
}

EXECUTION_GROUP: Fields = {"name": _NAME, "rules": Field(Kind.NAMES), "mode": _TEXT}

BUDGET: Fields = {
    "threads": _COUNT,
    "memory": _SIZE,
    "jobs": _COUNT,
    "max_threads": _COUNT,
    "max_memory": _SIZE,
    "max_jobs": _COUNT,
}

VALUE_LIST: Fields = {"name": _NAME, "values": Field(Kind.LIST), "values_from": _TEXT}

FREE_TABLE: Fields = {"name": _NAME, "file": _PATH, "rows": Field(Kind.LIST)}

# What a checkpoint rule writes.
REENTRY: Fields = {
    "group": _VALUE,
    "sample": Field(Kind.LIST),
    "pairs": Field(Kind.LIST),
    "values": _TABLE,
}

STEPS: Fields = {"module": _PATH, "name": _TEXT, "prefix": _PATH, "params": _VALUES}

_NATURAL = Field(Kind.NATURAL)
_DURATION = Field(Kind.DURATION)
_DELAY = Field(Kind.DELAY)

CLUSTER: Fields = {
    "backend": _NAME,
    "partition": _NAME,
    "account": _NAME,
    "qos": _NAME,
    "constraint": _NAME,
    "walltime": _DURATION,
    "max_submitted": _COUNT,
    "max_running": _COUNT,
    "max_array_size": _COUNT,
    "poll_interval": Field(Kind.INTERVAL),
    "extra_args": Field(Kind.TEXTS),
    "latency_wait": _DELAY,
    "lost_after": Field(Kind.INTERVAL),
    "poll_timeout": Field(Kind.INTERVAL),
    "outage_limit": Field(Kind.INTERVAL),
    "command_timeout": Field(Kind.INTERVAL),
    "bin_dir": _PATH,
    "dialect": _NAME,
    "parallel_env": _NAME,
    "memory_resource": _NAME,
    "gpu_resource": _NAME,
    "memory_unit": _NAME,
    "env_setup": _NAME,
    "scratch_dir": _PATH,
    "job_prefix": _NAME,
}

PARTITION: Fields = {
    "threads": _COUNT,
    "memory": _SIZE,
    "time_limit": _DURATION,
    "gpu": _NATURAL,
    "nodes": _COUNT,
}

CEILINGS: Fields = {
    **PARTITION,
    "max_submitted": _COUNT,
    "max_running": _COUNT,
    "max_array_size": _COUNT,
}

FLOORS: Fields = {"poll_interval": Field(Kind.INTERVAL)}

OVERRIDE: Fields = {"resources": Field(Kind.TABLE, inside=RESOURCES)}


class Top(Struct, frozen=True):
    """A table at the top of the file: whether it is an array of tables, and its state."""

    fields: Fields | None = None  # None: its keys are the author's own
    array: bool = False
    state: State = State.WORKS
    why: str = ""


TOP: dict[str, Top] = {
    "workflow": Top(WORKFLOW),
    "config": Top(),
    "defaults": Top(DEFAULTS),
    "rules": Top(RULE, array=True),
    "include": Top(INCLUDE, array=True),
    "pairs": Top(PAIR, array=True),
    "sample_groups": Top(SAMPLE_GROUP, array=True),
    "values": Top(VALUE_LIST, array=True),
    "tables": Top(FREE_TABLE, array=True),
    "wildcard_constraints": Top(),
    "references": Top(REFERENCE, array=True),
    "steps": Top(STEPS, array=True),
    "env_groups": Top(),
    "resource_groups": Top(),
    "resource_budget": Top(BUDGET),
    "execution_group": Top(EXECUTION_GROUP, array=True),
    "cluster": Top(
        CLUSTER, state=State.SCHEDULER, why="it acts only with a profile or a backend; the run is local"
    ),
    "report": Top(state=State.REPORT),
    "citation": Top(state=State.REPORT),
    "reference_db": Top(array=True, state=State.REPORT),
    "metadata": Top(state=State.REPORT),
    "webhook": Top(state=State.NO_EFFECT, why="write a command in on_end of [workflow]: it can tell anybody"),
    "plugins": Top(state=State.NO_EFFECT, why="nothing in Treadle looks at it"),
    "ai": Top(state=State.NO_EFFECT, why="nothing in Treadle looks at it"),
}

_MAIN_ALONE = "it counts in the file that includes this one, and nowhere else"

# What an included file may hold, and the fields of its `[workflow]`.
INCLUDED: dict[str, Top] = {
    **TOP,
    "cluster": Top(state=State.NO_EFFECT, why=_MAIN_ALONE),
    "resource_budget": Top(state=State.NO_EFFECT, why=_MAIN_ALONE),
}
INCLUDED_WORKFLOW: Fields = {
    **WORKFLOW,
    "on_end": Field(Kind.ANY, State.NO_EFFECT, _MAIN_ALONE),
    "profile_mode": Field(Kind.ANY, State.NO_EFFECT, _MAIN_ALONE),
}

# What a profile may hold; `ceilings` and `floors` only one of the site's.
PROFILE: dict[str, Top] = {
    "config": Top(),
    "defaults": Top(DEFAULTS),
    "cluster": Top(CLUSTER),
    "rules": Top(),
    "partitions": Top(),
    "ceilings": Top(CEILINGS),
    "floors": Top(FLOORS),
}

# Tables in which fields are looked for when a key stands in the wrong one.
HOMES: dict[str, Fields] = {
    "[workflow]": WORKFLOW,
    "[[rules]]": RULE,
    "[rules.resources]": RESOURCES,
    "[rules.resources.gpu_spec]": GPU_SPEC,
    "[rules.scatter]": SCATTER,
    "[rules.transform]": TRANSFORM,
    "[rules.transform.split]": SPLIT,
    "[rules.transform.combine]": COMBINE,
    "[[references]]": REFERENCE,
    "[defaults]": DEFAULTS,
    "[rules.environment]": ENVIRONMENT,
    "[cluster]": CLUSTER,
    "[[steps]]": STEPS,
}
