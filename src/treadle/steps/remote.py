"""`remote`: a function that goes to the current client, though the step that calls it has no resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import force_setattr

from treadle.base.errors import StepError
from treadle.steps.by_name import address_of, at
from treadle.steps.canon import FrozenDict
from treadle.steps.resources import ResourceConfig


class RemoteCallable(Struct, frozen=True, eq=False):
    """A function and what it asks for wherever a step runs it: as a job of the current client.

    `resources` of the step beat these as a whole; `env_vars` merge, the step's winning; `name` is for the
    job's name. Calling it calls the function, here.
    """

    fn: Callable[..., Any]
    resources: ResourceConfig | None = None
    env_vars: Mapping[str, str] = {}
    name: str = ""

    def __post_init__(self) -> None:
        fn: object = self.fn
        resources: object = self.resources
        if not callable(fn):
            raise StepError(f"remote wants a function, not {fn!r}", code="not-callable")
        if resources is not None and not isinstance(resources, ResourceConfig):
            raise StepError(
                f"remote: resources: a ResourceConfig is wanted, not {resources!r}",
                hint="write ResourceConfig(cpu=4, memory_gb=16)",
                code="not-resources",
            )
        force_setattr(self, "env_vars", FrozenDict(self.env_vars or {}))
        force_setattr(self, "name", self.name or "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.fn

    @property
    def __name__(self) -> str:
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))

    def __reduce__(self) -> tuple[Any, ...]:
        if address := address_of(self, self.fn):
            return at, (address,)
        return RemoteCallable, (self.fn, self.resources, dict(self.env_vars), self.name)


@overload
def remote(fn: Callable[..., Any], /) -> RemoteCallable: ...
@overload
def remote(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    resources: ResourceConfig | None = None,
    env_vars: Mapping[str, str] | None = None,
    name: str = "",
) -> Callable[[Callable[..., Any]], RemoteCallable]: ...
def remote(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    resources: ResourceConfig | None = None,
    env_vars: Mapping[str, str] | None = None,
    name: str = "",
) -> Any:
    """Mark a function as one for the current client: `remote(fn)`, `@remote`, `@remote(resources=...)`."""

    def wrap(fn: Callable[..., Any]) -> RemoteCallable:
        return RemoteCallable(fn, resources, env_vars or {}, name)

    return wrap if fn is None else wrap(fn)
