"""`StepSpec`: what a step is. An immutable value, named by a hash of all that bears its identity."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, TypeVar, overload

from treadle.base.names import step_id
from treadle.steps import given
from treadle.steps.canon import NO_ATTRS, identify
from treadle.steps.faults import Fault, refuse, see_unknown
from treadle.steps.paths import default_prefix, is_url, join
from treadle.steps.resources import ResourceConfig

if TYPE_CHECKING:
    from datetime import timedelta

_HASH_DIGITS = 12
ISOLATION = ("", "process")
DRIFT = ("error", "warn")
POLICY = ("warn", "error", "ignore")
T = TypeVar("T")
_set = object.__setattr__


class Identified:
    """What is known by an identity: a step, or a reference to one. Equal where the identities are."""

    __slots__ = ("identity", "name", "version")

    identity: str
    name: str
    version: str
    output_path: Any  # where the artifact stands: a path or a URL

    @property
    def hash_id(self) -> str:
        """The first 12 hex digits of the identity."""
        return self.identity[:_HASH_DIGITS]

    @property
    def name_with_hash(self) -> str:
        """`train_0a1b2c3d4e5f`: how the step is called in paths and in what is shown."""
        return f"{self.name}_{self.identity[:_HASH_DIGITS]}"

    @property
    def name_hash(self) -> str:
        """The same as `name_with_hash`."""
        return self.name_with_hash

    @property
    def task_id(self) -> str:
        """The id of the step's task in a plan."""
        return step_id(self.name, self.identity)

    @property
    def mutable(self) -> bool:
        """A development version: it is made anew in every run."""
        return self.version == "dev" or self.version.endswith("-dev")

    @overload
    def load(self, type: None = None, prefix: str | os.PathLike[str] | None = None) -> Any: ...
    @overload
    def load(self, type: type[T], prefix: str | os.PathLike[str] | None = None) -> T: ...
    def load(self, type: type[Any] | None = None, prefix: str | os.PathLike[str] | None = None) -> Any:
        """The value that the step's function returned, built as `type` where one is given.

        Without it, a dataclass is built only if its module was imported already. `prefix` is the one that it
        was made with (default: as `output_path` says). Raises `StepError` where the artifact is not complete,
        or its value was not kept, and `DiskError`.
        """
        from treadle.steps.load import load

        return load(self, type, "" if prefix is None else os.fspath(prefix))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identified):
            return NotImplemented
        return self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name_with_hash})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is frozen: {name} cannot be set; make another step")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} is frozen: {name} cannot be deleted")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self


class StepRef(Identified):
    """A step as another process knows it: who it is and where its artifact stands, not how it is made."""

    __slots__ = ("output_path",)

    output_path: str

    def __init__(self, identity: str, name: str, version: str, output_path: str) -> None:
        _set(self, "identity", identity)
        _set(self, "name", name)
        _set(self, "version", version)
        _set(self, "output_path", output_path)

    def __reduce__(self) -> tuple[Any, ...]:
        return StepRef, (self.identity, self.name, self.version, self.output_path)


class StepSpec(Identified):
    """A step: a name, parameters that bear identity, the steps it builds on, and a function that makes it.

    `fn` gets the path to write to as its one positional argument, and `ctx` by keyword where it has a
    parameter of that name; `fn=None` is a step that must already exist. Name, `hash_attrs`, `version`, the
    path text of `inputs` and the identities of `deps` make the identity; nothing else does. `timeout` in
    seconds, or a text such as `90m`. None in any place means that it was not said. Everything is checked at
    once: raises `StepError` with all that is wrong.

    `bears_inputs`: the step or one below it has `inputs`; `bears_pins` and `bears_growth` likewise with
    `expected_identity` and `grow`.
    """

    __slots__ = (
        "_code",
        "bears_growth",
        "bears_inputs",
        "bears_pins",
        "code_policy",
        "deps",
        "drift",
        "env_vars",
        "expected_identity",
        "fn",
        "grow",
        "hash_attrs",
        "inputs",
        "isolation",
        "output_path_prefix",
        "override_output_path",
        "resources",
        "resumable",
        "retries",
        "timeout",
        "writes_record",
    )

    fn: Callable[..., Any] | None
    hash_attrs: dict[str, Any]
    deps: tuple[StepSpec, ...]
    resources: ResourceConfig | None
    writes_record: bool
    output_path_prefix: str | None
    override_output_path: str | None
    inputs: tuple[str, ...]
    resumable: bool
    grow: Callable[[Any], Iterable[StepSpec]] | None
    env_vars: dict[str, str]
    timeout: float | None
    retries: int
    isolation: str
    expected_identity: str
    drift: str
    code_policy: str
    bears_growth: bool
    bears_inputs: bool
    bears_pins: bool
    _code: str | None

    def __init__(
        self,
        name: str,
        *,
        fn: Callable[..., Any] | None = None,
        hash_attrs: Mapping[str, Any] | None = None,
        deps: Iterable[StepSpec] | None = (),
        resources: ResourceConfig | None = None,
        writes_record: bool | None = False,
        output_path_prefix: str | os.PathLike[str] | None = None,
        override_output_path: str | os.PathLike[str] | None = None,
        version: str | None = "",
        inputs: Iterable[str | os.PathLike[str]] | None = (),
        resumable: bool | None = False,
        grow: Callable[[Any], Iterable[StepSpec]] | None = None,
        env_vars: Mapping[str, str] | None = None,
        timeout: float | str | timedelta | None = None,
        retries: int | None = 0,
        isolation: Literal["process"] | None = None,
        expected_identity: str | None = "",
        drift: Literal["error", "warn"] | None = "error",
        code_policy: Literal["warn", "error", "ignore"] | None = "warn",
        **unknown: Never,
    ) -> None:
        faults: list[Fault] = []
        if unknown:
            see_unknown(unknown, ("name", *(StepSpec.__init__.__kwdefaults__ or ())), faults)
        found_deps = () if deps is None or deps == () else given.deps_of(deps, StepSpec, faults)
        attrs = given.attrs_of(hash_attrs, faults)
        paths = given.inputs_of(inputs, faults) if inputs else ()
        text = given.text_of("version", version, faults) if version else ""
        _set(self, "name", given.name_of(name, faults))
        _set(self, "version", text)
        _set(self, "hash_attrs", attrs)
        _set(self, "deps", found_deps)
        _set(self, "inputs", paths)
        _set(self, "fn", given.function_of("fn", fn, faults))

        _set(self, "grow", None if grow is None else given.function_of("grow", grow, faults))
        _set(self, "resources", None if resources is None else given.resources_of(resources, faults))
        prefix, override = output_path_prefix, override_output_path
        _set(self, "output_path_prefix", None if prefix is None else given.prefix_of(prefix, faults))
        _set(self, "override_output_path", None if override is None else given.override_of(override, faults))
        _set(self, "env_vars", NO_ATTRS if env_vars is None else given.env_of(env_vars, faults))
        _set(self, "timeout", None if timeout is None else given.seconds_of("timeout", timeout, faults))
        _set(self, "retries", given.count_of("retries", retries, 0, faults) if retries else 0)
        _set(self, "isolation", given.one_of("isolation", isolation, ISOLATION, faults) if isolation else "")
        _set(self, "drift", drift if drift == "error" else given.one_of("drift", drift, DRIFT, faults))
        _set(
            self,
            "code_policy",
            code_policy
            if code_policy == "warn"
            else given.one_of("code_policy", code_policy, POLICY, faults),
        )
        _set(self, "expected_identity", given.pin_of(expected_identity, faults) if expected_identity else "")
        _set(self, "writes_record", bool(writes_record))
        _set(self, "resumable", bool(resumable))
        _set(self, "_code", None)
        if faults:
            raise refuse(f"step {name!a}", faults)
        # Deps are made before what builds on them: what holds for all below is known here without a walk.
        below, input_bearing, pinned = [], bool(paths), bool(expected_identity)
        growing = grow is not None
        for dep in found_deps:
            below.append(dep.identity)
            input_bearing = input_bearing or dep.bears_inputs
            pinned = pinned or dep.bears_pins
            growing = growing or dep.bears_growth
        _set(self, "bears_inputs", input_bearing)
        _set(self, "bears_pins", pinned)
        _set(self, "bears_growth", growing)
        _set(self, "identity", identify(name, attrs, text, paths, below))

    def path_under(self, prefix: str) -> str:
        """Where the artifact stands when steps that name no prefix have `prefix`."""
        override = self.override_output_path
        if override is not None and (override.startswith("/") or is_url(override)):
            return override
        return join(self.output_path_prefix or prefix, override or self.name_with_hash)

    @property
    def output_path(self) -> str:
        """Where the artifact stands by the prefix as it is now; a run reads that once, when it plans."""
        return self.path_under(self.output_path_prefix or default_prefix(os.getcwd()))

    @property
    def code(self) -> str:
        """A digest of what the function does, to see that it changed; empty: unknown."""
        if self._code is None:
            from treadle.steps.code import digest

            _set(self, "_code", digest(self.fn))
        return self._code or ""

    def __reduce__(self) -> tuple[Any, ...]:
        return StepRef, (self.identity, self.name, self.version, self.output_path)
