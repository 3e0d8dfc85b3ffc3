"""`Bound`: a plain function with the arguments that a step was made with, called as steps are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from treadle.steps.by_name import Address, address_of, at


class Slot(Struct, frozen=True):
    """The place of an argument that only the call has: `out` or `ctx`."""

    name: str


DEEPEST = 100  # levels of lists and mappings in an argument
PATH = Slot("out")
CONTEXT = Slot("ctx")


class Bound(Struct, frozen=True, eq=False):
    """Calls `fn` with the arguments of its step, with the working path and `ctx` in their slots.

    Lists and mappings are handed over as copies, so that no call changes them for the next one.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}

    def __call__(self, out: str, ctx: Any) -> Any:
        args = [_fill(one, out, ctx) for one in self.args]
        return self.fn(*args, **{name: _fill(one, out, ctx) for name, one in self.kwargs.items()})

    @property
    def __name__(self) -> str:
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))

    def __reduce__(self) -> tuple[Any, ...]:
        address = address_of(self.fn, self.fn)
        return _again, (address or self.fn, self.args, dict(self.kwargs))


def _again(fn: Callable[..., Any] | Address, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
    return Bound(at(fn) if isinstance(fn, Address) else fn, args, kwargs)


def _fill(value: Any, out: str, ctx: Any) -> Any:
    if isinstance(value, Slot):
        return out if value == PATH else ctx
    return copied(value)


def copied(value: Any, depth: int = 0) -> Any:
    """A copy down to what cannot change; steps stay what they are."""
    if depth > DEEPEST:
        return value  # refused as a value of the step
    if isinstance(value, dict):
        return {key: copied(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [copied(one, depth + 1) for one in value]
    return value
