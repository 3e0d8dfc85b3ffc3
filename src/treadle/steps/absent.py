"""Many artifacts that are not there, told from the names in their folder instead of by looks at each."""

from __future__ import annotations

import os
import time

from treadle.base.layout import places_of
from treadle.steps.record import ArtifactState, Seen

NOTHING = Seen(ArtifactState.ABSENT)

_MANY = 64  # looks in one folder that found nothing: then it is read
_MOST = 20_000  # names of a folder that are read: with more, it costs more than it saves
_FRESH = 1.0  # seconds for which a list of names is believed


class Absent:
    """Names of the folders beside artifacts. What it calls absent was so within the last second.

    A plan that is built by it is no more than a look at what stood there: each attempt looks again.
    """

    def __init__(self) -> None:
        self._missed: dict[str, int] = {}
        self._names: dict[str, tuple[float, frozenset[str]]] = {}

    def note(self, path: str) -> None:
        """A look at an output path found nothing."""
        folder = path[: path.rindex("/")]
        missed = self._missed[folder] = self._missed.get(folder, 0) + 1
        if missed % _MANY == 0:
            names = _names(places_of(path).folder)
            if names is not None:
                self._names[folder] = (time.monotonic() + _FRESH, names)

    def surely(self, path: str) -> bool:
        """Whether neither a record nor a status, nor a lease, stands beside an output path."""
        at = path.rindex("/")
        known = self._names.get(path[:at])
        if known is None:
            return False
        until, names = known
        if time.monotonic() > until:
            del self._names[path[:at]]
            return False
        stem = places_of(path).stem
        return not (
            f"{stem}.json" in names
            or f"{stem}.pending" in names
            or f"{stem}.status.json" in names
            or f"{stem}.lease.1" in names
        )


def _names(folder: str) -> frozenset[str] | None:
    """All names in a folder; None where they are too many, or cannot be read."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) > _MOST:
                    return None
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return None
    return frozenset(found)
