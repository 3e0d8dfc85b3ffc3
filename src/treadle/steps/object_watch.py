"""How long leases of others have been silent, by our own clock: no clock of another machine is believed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from treadle.steps.object_bucket import Version
from treadle.steps.owner import gone
from treadle.steps.record import Owner

PATIENCE = 90.0  # seconds without any change: then nobody moves it any more


class Watch:
    """What was seen of leases, and since when. May be used from any thread."""

    def __init__(self, monotonic: Callable[[], float], patience: float = PATIENCE) -> None:
        self._monotonic = monotonic
        self._patience = patience
        self._seen: dict[str, tuple[Version, float]] = {}
        self._lock = Lock()

    def lives(self, key: str, owner: Owner, version: Version) -> bool:
        """Whether the holder lives as far as is known: its process is there, or it has moved lately."""
        if gone(owner):
            return False
        now = self._monotonic()
        with self._lock:
            seen, since = self._seen.get(key, (version, now))
            if seen != version:
                since = now
            self._seen[key] = (version, since)
        return now - since < self._patience

    def forget(self, key: str) -> None:
        with self._lock:
            self._seen.pop(key, None)
