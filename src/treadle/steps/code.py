"""A digest of what a function does: to see that it changed since an artifact was made, never to name one.

It covers the syntax tree (without positions, docstrings and the decorators around it), defaults and closure
values. It does not cover what the function calls, nor values that can change while a program runs (lists,
mappings, variables that the function rebinds): what a counter counts is not code. What it cannot read is
unknown, and then nothing is said of it.
"""

from __future__ import annotations

from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from treadle.base.digest import blake2b
from treadle.steps.bound import Bound
from treadle.steps.source import Source, source_of

FORMAT = "1"
_DEEPEST = 8  # functions within functions, and wrappers around wrappers
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, type(...)))
_KEPT = 20_000
_read: dict[int, tuple[CodeType, Source | None]] = {}  # the code is held: its id is not given away again


def digest(fn: Any) -> str:
    """The digest of a function, with the format's number before it; empty: unknown."""
    for _ in range(_DEEPEST):
        inner = _inside(fn)
        if inner is None:
            break
        fn = inner
    if isinstance(fn, FunctionType) and not fn.__closure__ and not fn.__defaults__ and not fn.__kwdefaults__:
        source = _source(fn)
        return f"{FORMAT}:{source.digest}" if source else ""
    parts: list[str] = []
    if not _function(fn, parts, 0):
        return ""
    text = "\0".join(parts).encode("utf-8", "backslashreplace")
    return f"{FORMAT}:{blake2b(text, digest_size=16).hexdigest()}"


def _inside(fn: Any) -> Any:
    """What an object that only passes calls on has inside; None: it does something itself."""
    if isinstance(fn, Bound):
        return fn.fn
    if isinstance(fn, FunctionType | MethodType | partial | type):
        return None
    inner = getattr(fn, "__wrapped__", None)
    return inner if callable(inner) else None


def _source(fn: FunctionType) -> Source | None:
    code = fn.__code__
    known = _read.get(id(code))
    if known is None:
        if len(_read) >= _KEPT:
            _read.clear()
        known = _read[id(code)] = (code, source_of(code, fn.__globals__))
    return known[1]


def _function(fn: Any, parts: list[str], depth: int) -> bool:
    """Write down a function; False: it cannot be read."""
    if depth > _DEEPEST:
        return False
    if isinstance(fn, partial):
        _value(fn.args, parts, depth)
        _value(tuple(sorted(fn.keywords.items(), key=lambda pair: pair[0])), parts, depth)
        return _function(fn.func, parts, depth + 1)
    if isinstance(fn, MethodType):
        return _function(fn.__func__, parts, depth + 1)
    if not isinstance(fn, FunctionType):
        inner = _inside(fn) or (None if isinstance(fn, type) else getattr(type(fn), "__call__", None))  # noqa: B004
        return isinstance(inner, FunctionType | MethodType | partial) and _function(inner, parts, depth + 1)
    source = _source(fn)
    if source is None:
        return False
    parts.append(source.digest)
    for value in fn.__defaults__ or ():
        _value(value, parts, depth)
    for name, value in sorted((fn.__kwdefaults__ or {}).items()):
        parts.append(name)
        _value(value, parts, depth)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        if name not in source.rebound:
            parts.append(name)
            _cell(cell, parts, depth)
    return True


def _cell(cell: CellType, parts: list[str], depth: int) -> None:
    try:
        value = cell.cell_contents
    except ValueError:
        parts.append("empty")  # the variable has no value yet
    else:
        _value(value, parts, depth)


def _value(value: Any, parts: list[str], depth: int) -> None:
    """Write down a value that a function holds, as far as it cannot change."""
    kind = type(value)
    if kind in _PLAIN:
        parts.append(f"{kind.__name__}:{value!r}")
    elif kind is tuple and depth <= _DEEPEST:
        parts.append(f"tuple:{len(value)}")
        for one in value:
            _value(one, parts, depth + 1)
    elif kind is frozenset and depth <= _DEEPEST:
        parts.append(f"frozenset:{sorted(map(_alone, value))}")
    elif isinstance(identity := getattr(value, "identity", None), str) and hasattr(value, "name_with_hash"):
        parts.append(f"step:{identity}")
    elif isinstance(value, ModuleType):
        parts.append(f"module:{value.__name__}")
    elif isinstance(value, type | BuiltinFunctionType):
        parts.append(f"named:{value.__module__}.{value.__qualname__}")
    elif callable(value):
        _held_function(value, parts, depth)
    else:
        parts.append(f"a:{kind.__module__}.{kind.__qualname__}")


def _held_function(fn: Any, parts: list[str], depth: int) -> None:
    inner: list[str] = []
    if _function(fn, inner, depth + 1):
        parts.append(f"function:{len(inner)}")
        parts += inner
    else:
        kind = type(fn)
        parts.append(f"unread:{getattr(fn, '__qualname__', '') or kind.__qualname__}")


def _alone(value: Any) -> str:
    parts: list[str] = []
    _value(value, parts, _DEEPEST)
    return "\0".join(parts)
