"""What installed packages add: entry points, by group and name."""

from __future__ import annotations

from typing import Any

BACKENDS = "treadle.backends"
"""The group of backends: each is called with the work folder and the `[cluster]` values, by keyword."""


def plugin_names(group: str) -> list[str]:
    """Names of all that is installed for a group, sorted. Slow: it looks at every package."""
    from importlib.metadata import entry_points

    return sorted({one.name for one in entry_points(group=group)})


def load_plugin(group: str, name: str) -> Any:
    """What an entry point names. Raises KeyError where there is none, and what importing it raises."""
    from importlib.metadata import entry_points

    for one in entry_points(group=group, name=name):
        return one.load()
    raise KeyError(name)
