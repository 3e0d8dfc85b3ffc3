"""`ctx`: what a step's function may ask while it runs. And which functions want one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from treadle.base.disk import disk_error
from treadle.base.errors import StepError
from treadle.base.layout import ArtifactPlaces
from treadle.base.names import did_you_mean
from treadle.steps.paths import is_url
from treadle.steps.record import ArtifactRecord, Dep, Result
from treadle.steps.result import kept, value_of

if TYPE_CHECKING:
    from treadle.steps.spec import Identified
    from treadle.steps.store import ArtifactStore

T = TypeVar("T")
_DEEPEST_WRAPPING = 20
_TAKES_ANY_KEYWORD = 0x08  # CO_VARKEYWORDS of a code object


class Found:
    """An artifact that a step reads: the dep that it is for, its record, the store in which it stands."""

    __slots__ = ("dep", "record", "store")

    def __init__(self, dep: Dep, record: ArtifactRecord, store: ArtifactStore) -> None:
        self.dep = dep
        self.record = record
        self.store = store


class StepContext:
    """What the engine knows of the step that is running. A dep is named by its step, or by its name.

    `attrs` are the step's hash_attrs, `attempt` counts from 1, `resources` are what it asked for (None:
    nothing). Every method raises `StepError` for what is not a dep of this step.
    """

    def __init__(
        self,
        *,
        name: str,
        path: str,
        attrs: Mapping[str, Any],
        attempt: int,
        resources: Any,
        out_url: str,
        writes_record: bool,
        found: Sequence[Found],
        cancelled: Callable[[], bool],
    ) -> None:
        self.attrs = attrs
        self.attempt = attempt
        self.resources = resources
        self.out_url = out_url
        self._name = name
        self._path = path
        self._writes_record = writes_record
        self._found = found
        self._cancelled = cancelled
        self._written: Result | None = None

    def path(self, dep: Identified | str) -> str:
        """A local path where the dep's artifact can be read; from an object store it is fetched once."""
        found = self._find(dep)
        return found.store.fetch(found.record)

    def url(self, dep: Identified | str) -> str:
        """Where the dep's artifact stands: a local path, or a URL."""
        found = self._find(dep)
        return found.store.url(found.record)

    @overload
    def load(self, dep: Identified | str) -> Any: ...
    @overload
    def load(self, dep: Identified | str, type: type[T]) -> T: ...
    def load(self, dep: Identified | str, type: type[Any] | None = None) -> Any:
        """The value that the dep's function returned, built as `type` where one is given."""
        return value_of(self._find(dep).record, type)

    @property
    def cancelled(self) -> bool:
        """Whether the step is to end: the run was interrupted, its time is over, or its lease was lost.

        A function that looks at it is trusted to end soon by itself; any other one is ended.
        """
        return self._cancelled()

    @property
    def checkpoint_dir(self) -> str:
        """A folder (below a URL prefix: its URL) for checkpoints, kept over attempts until one succeeds."""
        place = ArtifactPlaces(self._path).checkpoints
        if not is_url(place):
            try:
                os.makedirs(place, exist_ok=True)
            except OSError as error:
                raise disk_error("make the folder", place, error) from error
        return place

    def write_record(self, value: Any) -> None:
        """Keep `value` as the step's result; needs `writes_record=True`. Written again, the last one counts.

        Raises `StepError` for a value that is neither JSON nor a dataclass.
        """
        if not self._writes_record:
            raise StepError(
                f"step '{self._name}' calls ctx.write_record, but does not say that it does",
                hint="make it with writes_record=True, or return the value",
                code="record-not-announced",
            )
        self._written = kept(value, name=self._name)

    @property
    def written(self) -> Result | None:
        """What `write_record` was given."""
        return self._written

    def _find(self, dep: Identified | str) -> Found:
        named = dep if isinstance(dep, str) else getattr(dep, "identity", None)
        if not isinstance(named, str):
            raise StepError(
                f"step '{self._name}' asks for a dep by a value of type {type(dep).__name__}",
                hint="give the step, or its name",
                code="unknown-dep",
            )
        by_text = dep is named
        found = (self._by_name if by_text else self._by_identity).get(named, ())
        if len(found) == 1:
            return found[0]
        shown = named if by_text else repr(dep)
        raise _ambiguous(self._name, shown) if found else _unknown(self._name, shown, self._found)

    @cached_property
    def _by_identity(self) -> dict[str, list[Found]]:
        return _indexed(self._found, lambda dep: (dep.identity,))

    @cached_property
    def _by_name(self) -> dict[str, list[Found]]:
        return _indexed(self._found, lambda dep: {dep.name, f"{dep.name}_{dep.identity[:12]}", dep.identity})


def _indexed(found: Sequence[Found], names: Callable[[Dep], Iterable[str]]) -> dict[str, list[Found]]:
    """By names: a step may build on thousands, and read each."""
    index: dict[str, list[Found]] = {}
    for one in found:
        for name in names(one.dep):
            index.setdefault(name, []).append(one)
    return index


def _unknown(name: str, dep: str, found: Sequence[Found]) -> StepError:
    names = sorted({one.dep.name for one in found})
    has = f"its deps are {', '.join(names)}." if names else "it has no deps."
    near = did_you_mean(dep, names) or has
    return StepError(
        f"step '{name}' reads '{dep}', which is not among its deps",
        hint=f"{near} What it reads belongs into deps=: then it is made before, and bears the identity",
        code="unknown-dep",
    )


def _ambiguous(name: str, dep: str) -> StepError:
    return StepError(
        f"step '{name}' has several deps named '{dep}'",
        hint="give the step itself, or its name with its hash",
        code="ambiguous-dep",
    )


def wants_context(fn: Callable[..., Any]) -> bool:
    """Whether a function has a parameter named `ctx` that can be given by keyword.

    Raises `StepError` where that is its first one, which gets the path.
    """
    skipped = 0
    for _ in range(_DEEPEST_WRAPPING):
        code = getattr(fn, "__code__", None)
        if isinstance(fn, partial):
            if "ctx" in fn.keywords:
                return False
            skipped, fn = skipped + len(fn.args), fn.func
        elif isinstance(fn, MethodType):
            skipped, fn = skipped + 1, fn.__func__
        elif isinstance(code, CodeType):
            wrapped = getattr(fn, "__wrapped__", None)
            found = _in_code(code, skipped, fn)
            if found or wrapped is None or not code.co_flags & _TAKES_ANY_KEYWORD:
                return found
            fn = wrapped
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif isinstance(inner := getattr(type(fn), "__call__", None), FunctionType):  # noqa: B004
            skipped, fn = skipped + 1, inner
        else:
            break  # written in C, or a class
    return False


def _in_code(code: CodeType, skipped: int, fn: object) -> bool:
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "ctx" not in names:
        return False
    at = names.index("ctx")
    if at < code.co_posonlyargcount:
        return False
    if at == skipped and at < code.co_argcount:
        raise StepError(
            f"the first parameter of {getattr(fn, '__qualname__', fn)} is named ctx, but it gets the path",
            hint="give it the path first: def make(out, ctx)",
            code="context-first",
        )
    return at >= skipped
