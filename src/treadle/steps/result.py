"""Values that step functions return: into the record as plain JSON, and back as what the reader asks for."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from treadle.base.errors import StepError
from treadle.steps.record import ArtifactRecord, Result

T = TypeVar("T")
_DEEPEST = 200  # containers within each other; what goes deeper holds itself, or overflows readers


class _NotJsonError(Exception):
    """A value that is not JSON; the text says what, and where inside."""


def to_result(value: object) -> Result | None:
    """The value as a record holds it; None for None.

    JSON-able are None, bool, int of any size, finite float, str, list, tuple (it comes back as a list) and
    dict with str keys. A dataclass becomes a dict, and so do those inside it, and its type is noted. Of any
    other value `lost` of the result says what could not be kept, and where it stood.
    """
    if value is None:
        return None
    try:
        return Result(_plain(value, "", 0), _type_name(type(value)) if _is_dataclass(value) else "")
    except _NotJsonError as problem:
        return Result(lost=str(problem))


def kept(value: object, *, name: str) -> Result:
    """The value that step `name` handed to `ctx.write_record`. Raises `StepError` where it cannot be kept."""
    result = to_result(value) or Result()
    if result.lost:
        raise _cannot_keep(name, result.lost)
    return result


def returned(value: object, *, name: str, made: Callable[[], bool]) -> Result | None:
    """The value that the function of step `name` returned; None where it returned nothing.

    One that cannot be kept is lost where the function `made` something at its path, else a `StepError`.
    """
    result = to_result(value)
    if result is not None and result.lost and not made():
        raise _cannot_keep(name, result.lost)
    return result


def _cannot_keep(name: str, lost: str) -> StepError:
    return StepError(
        f"step '{name}': its value cannot be kept: {lost}",
        hint="return what JSON has (numbers, texts, lists, dicts with text keys) or a dataclass of such; "
        "write anything else to the path that the function is given",
        code="value-not-kept",
    )


@overload
def value_of(record: ArtifactRecord, type: type[T]) -> T: ...
@overload
def value_of(record: ArtifactRecord, type: None = None) -> Any: ...
def value_of(record: ArtifactRecord, type: type[Any] | None = None) -> Any:
    """The value in a record, as `from_result` gives it; None where there is none. Raises `StepError`."""
    if record.result is None:
        return None
    return from_result(record.result, type, name=record.name)


def from_result(result: Result, type: Any = None, *, name: str = "") -> Any:
    """The value again, built as `type`, else as the type that it had if that is imported by now.

    Nothing is imported because a record names it. Raises `StepError` for a value that was lost, a type
    that is not there, and a value that does not fit its type.
    """
    who = f"step '{name}': its value" if name else "the value"
    if result.lost:
        raise StepError(
            f"{who} was not kept: {result.lost}",
            hint="read what the step made at its path, or return a value that JSON has",
            code="value-lost",
        )
    wanted = type if type is not None else _known_type(result.type, who)
    if wanted is None:
        return result.value
    from msgspec import convert

    try:
        return convert(result.value, wanted)
    except Exception as error:  # annotations that name nothing here, a __post_init__: code of a person, too
        raise StepError(
            f"{who} does not fit {getattr(wanted, '__qualname__', wanted)}: {_told(error)}",
            hint="load it as another type, or as the plain value with type=object",
            code="value-type",
        ) from error


def _told(error: Exception) -> str:
    from msgspec import MsgspecError

    plain = isinstance(error, MsgspecError | TypeError | ValueError)
    return str(error) if plain else f"{type(error).__name__}: {error}"


def _known_type(named: str, who: str) -> Any:
    if not named:
        return None
    module, _, qualname = named.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not hasattr(found, "__dataclass_fields__"):
        raise StepError(
            f"{who} is a {qualname} of module '{module}', which is not imported here",
            hint="import it first, or name a type: load(type=...); type=object gives the plain value",
            code="value-type",
        )
    return found


def _type_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_dataclass(value: object) -> bool:
    """As `dataclasses.is_dataclass` for instances, whose module is imported where there are any."""
    return hasattr(type(value), "__dataclass_fields__")


def _plain(value: Any, place: str, depth: int) -> Any:
    """What JSON has, as its base type: a subclass (numpy's float64, an enum of texts) would not come back."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(str.__str__(value), place)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _NotJsonError(f"{float(value)!r}{_at(place)} is no number in JSON")
        return float(value)
    if depth >= _DEEPEST:
        raise _NotJsonError(f"it goes deeper than {_DEEPEST} levels, or holds itself")
    if isinstance(value, list | tuple):
        return [_plain(one, f"{place}[{n}]", depth + 1) for n, one in enumerate(value)]
    if isinstance(value, dict):
        return _mapping(value, place, depth)
    if _is_dataclass(value):
        from dataclasses import fields

        return _mapping({one.name: getattr(value, one.name) for one in fields(value)}, place, depth)
    raise _NotJsonError(f"a value of type {_shown(type(value))}{_at(place)} is not JSON")


def _mapping(value: Mapping[Any, Any], place: str, depth: int) -> dict[str, Any]:
    plain = {}
    for key, one in value.items():
        if not isinstance(key, str):
            raise _NotJsonError(
                f"a key{_at(place)} is not a text but of type {_shown(type(key))}: {key!r:.80}"
            )
        plain[_text(str.__str__(key), place)] = _plain(one, f"{place}.{key}", depth + 1)
    return plain


def _text(text: str, place: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _NotJsonError(f"a text{_at(place)} holds half a character (a lone surrogate)") from None
    return text


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _shown(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
