"""Pickling what wraps a function that stands, wrapped, under its own name in a module.

A decorated function cannot be pickled by name as others are: under its name stands what wraps it. So the
name travels, and how many wrappers to look through.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from msgspec import Struct

_DEEPEST = 8


class Address(Struct, frozen=True):
    """Where another process finds a thing: `depth` wrappers below what the module has under `name`."""

    module: str
    name: str
    depth: int


def address_of(thing: object, fn: object) -> Address | None:
    """The address of `thing`, which is `fn` or wraps it, by the name of `fn`; None: it has none."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _can_import(module):
        return None
    found = _named(module, name)
    for depth in range(_DEEPEST):
        if found is thing:
            return Address(module, name, depth)
        found = getattr(found, "__wrapped__", None)
    return None


def at(address: Address) -> Any:
    """What stands at an address; imports the module."""
    import_module(address.module)
    found = _named(address.module, address.name)
    for _ in range(address.depth):
        found = found.__wrapped__
    return found


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _can_import(module: str) -> bool:
    """Whether another process can import the module, as far as pickling goes."""
    if module == "__main__" or module not in sys.modules:
        return False
    cloudpickle = sys.modules.get("cloudpickle")
    by_value: set[str] = cloudpickle.list_registry_pickle_by_value() if cloudpickle else set()
    return not any(module == one or module.startswith(f"{one}.") for one in by_value)
