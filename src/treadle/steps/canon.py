"""The canonical encoding of a step's values, and the identity that is a digest of it.

JSON text with sorted keys and no spaces: it keeps apart what JSON keeps apart (1, 1.0, true and "1"), and
two values have one text only when they are equal in type and value. Floats are written as `float.__repr__`
writes them: the shortest text that reads back as the same number, which the language has promised since 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import JSONEncoder
from math import isfinite
from typing import Any, NoReturn

from treadle.base.digest import blake2b
from treadle.steps.faults import Fault

IDENTITY_FORMAT = 1
_DEEPEST = 100  # levels of lists and mappings in one value: also what ends a value that holds itself
_LONGEST_NUMBER = 4096  # bits of an integer: far below where Python refuses to write one
_AS_THEY_ARE = frozenset((bool, type(None)))

canonical = JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False, allow_nan=False).encode


class FrozenDict(dict[str, Any]):
    """A plain dict to its readers that nobody can change; copies and pickles of it are plain dicts."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the values of a step cannot be changed: take a copy with dict(...)")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)


class FrozenList(list[Any]):
    """A plain list to its readers that nobody can change; copies and pickles of it are plain lists."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the values of a step cannot be changed: take a copy with list(...)")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)


NO_ATTRS = FrozenDict()
_Spot = tuple[Any, Any]  # (the spot of the value around it, the key or number in that)


def freeze(value: object, where: str, faults: list[Fault]) -> Any:
    """A frozen copy of a JSON value, in the types of JSON alone; what is none of these is told in `faults`.

    Tuples become lists. Subclasses of `str`, `int` and `float` (members of enums, NumPy's `float64`) become
    what they are a kind of.
    """
    return _freeze(value, (None, where), 0, faults)


def _freeze(value: Any, spot: _Spot, depth: int, faults: list[Fault]) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if issubclass(kind, str):
        return value if kind is str and value.isascii() else _text(value, spot, faults)
    if issubclass(kind, int):
        return _whole(value, spot, faults)
    if issubclass(kind, float):
        return _number(value, spot, faults)
    if depth > _DEEPEST:
        return _tell(faults, "nested-too-deep", spot, f"more than {_DEEPEST} levels deep, or it holds itself")
    if issubclass(kind, dict):
        return _freeze_dict(value, spot, depth, faults)
    if issubclass(kind, list | tuple):
        return FrozenList(
            [_freeze(one, (spot, number), depth + 1, faults) for number, one in enumerate(value)]
        )
    return _tell(faults, "not-json", spot, f"a value of type {_called(kind)} is not JSON", _way_out(value))


def _freeze_dict(value: dict[Any, Any], spot: _Spot, depth: int, faults: list[Fault]) -> FrozenDict:
    made = {}
    for key, one in value.items():
        if type(key) is not str or not key.isascii():
            key = _key(key, spot, faults)
        made[key] = one if one is None else _freeze(one, (spot, key), depth + 1, faults)
    return FrozenDict(made)


def _key(key: Any, spot: _Spot, faults: list[Fault]) -> str:
    if isinstance(key, str):
        return str(_text(key, (spot, key), faults))
    what = f"the key {key!r} is of type {_called(type(key))}, not a text"
    _tell(faults, "key-not-text", spot, what, "JSON knows texts as keys alone")
    return repr(key)


def _text(value: str, spot: _Spot, faults: list[Fault]) -> Any:
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return _tell(faults, "not-unicode", spot, f"{plain!a} holds half a character (a lone surrogate)")
    return plain


def _whole(value: int, spot: _Spot, faults: list[Fault]) -> Any:
    plain = int.__int__(value)
    if plain.bit_length() > _LONGEST_NUMBER:
        return _tell(faults, "number-too-large", spot, f"an integer of more than {_LONGEST_NUMBER} bits")
    return plain


def _number(value: float, spot: _Spot, faults: list[Fault]) -> Any:
    plain = float.__float__(value)
    if isfinite(plain):
        return plain
    named = "NaN" if plain != plain else "infinity"
    return _tell(faults, "not-a-number", spot, f"{named} is not JSON", "write None or a text for it")


def _tell(faults: list[Fault], code: str, spot: _Spot, what: str, hint: str = "") -> None:
    faults.append(Fault(code, _spell(spot), what, hint))


def _spell(spot: _Spot) -> str:
    """`hash_attrs.lr[2]`, `hash_attrs['a b']`."""
    parts: list[str] = []
    while spot[0] is not None:
        spot, key = spot
        named = isinstance(key, str) and key.isidentifier()
        parts.append(f".{key}" if named else f"[{key!a}]")
    return str(spot[1]) + "".join(reversed(parts))


def _called(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _way_out(value: object) -> str:
    if isinstance(value, set | frozenset):
        return "a set has no order: give sorted(...) of it"
    if hasattr(value, "identity") and hasattr(value, "name_with_hash"):
        return "a step that this one builds on belongs into deps"
    if callable(value):
        return "a function bears no identity: give its name as a text, or a version"
    if hasattr(value, "__fspath__"):
        return "give str(...) of a path"
    return "give texts, numbers, True, False, None, and lists and mappings of these"


def identify(
    name: str, attrs: dict[str, Any], version: str, inputs: Iterable[str], deps: Iterable[str]
) -> str:
    """The identity of a step, 32 hex digits: all that bears it, and the format of this encoding.

    `inputs` are path texts and `deps` identities; neither order nor repetition of them matters.
    """
    whole = [IDENTITY_FORMAT, name, attrs, version, sorted(set(inputs)), sorted(set(deps))]
    return blake2b(canonical(whole).encode(), digest_size=16, person=b"treadle step").hexdigest()
