"""How leases on a plain file system are taken, from nobody or from the silent, and who holds them.

Lease 1 is made by exclusive create, where nobody holds the artifact. Whoever finds the lease on top of the
chain 1, 2, ... N silent makes N+1 exclusively, and holds it if meanwhile neither N has moved nor the chain
was removed from below (the holder of N, done). Otherwise it takes its file away and begins anew. Somebody
who died while removing a chain leaves one without a beginning: then the one who makes lease 1 finds 2,
says that its own is nobody's and goes on at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec import Struct

from treadle.base.errors import DiskError
from treadle.base.files import is_there, make_parents
from treadle.base.layout import ArtifactPlaces
from treadle.steps.heartbeats import Heartbeats
from treadle.steps.lease import LocalLease
from treadle.steps.lease_file import Held, create_lease, encode_lease, new_token, read_lease
from treadle.steps.owner import gone
from treadle.steps.record import Owner

PATIENCE = 90.0  # seconds of ours in which a lease did not move: then nobody is there to move it
_TRIES = 1000  # others may be faster now and then; never as often as this


class _Top(Struct, frozen=True):
    number: int
    held: Held
    first: Held


class Leases:
    """Takes and observes the leases of one store; remembers how long those of others have not moved."""

    def __init__(self, monotonic: Callable[[], float], heart: Heartbeats) -> None:
        self._monotonic = monotonic
        self._heart = heart
        self._since: dict[str, tuple[str, int, float]] = {}
        self._lock = Lock()

    def claim(self, places: ArtifactPlaces, owner: Owner) -> LocalLease | Owner:
        """Take the lease, or tell who holds it and lives as far as is known. Raises `DiskError`."""
        token = new_token()
        data = encode_lease(token, owner)
        for _ in range(_TRIES):
            lease = self._make(places, 1, token, data)
            if lease is not None:
                if not is_there(places.lease(2)):
                    return self._kept(lease)
                lease.forsake()
            top = self._top(places)
            if top is not None:
                if not self._silent(places.path, top.held):
                    return top.held.owner
                lease = self._take_over(places, top, token, data)
                if lease is not None:
                    return self._kept(lease)
        raise DiskError(
            f"the lease '{places.lease(1)}' can neither be read nor made",
            hint="look at what stands there; if no run is at work on this artifact, remove it",
            code="odd-lease",
        )

    def holder(self, places: ArtifactPlaces) -> Owner | None:
        """Who holds it now; None where nobody does, or who did is gone or has been silent for too long."""
        top = self._top(places)
        if top is None:
            with self._lock:
                self._since.pop(places.path, None)
            return None
        return None if self._silent(places.path, top.held) else top.held.owner

    def current(self, places: ArtifactPlaces) -> Held | None:
        """The lease on top, whoever's it is, unless that is known to be gone or was given back."""
        top = self._top(places)
        return None if top is None or top.held.free or gone(top.held.owner) else top.held

    def _kept(self, lease: LocalLease) -> LocalLease:
        if self._since:
            with self._lock:
                self._since.pop(lease.path, None)
        self._heart.add(lease)
        return lease

    def _make(self, places: ArtifactPlaces, number: int, token: str, data: bytes) -> LocalLease | None:
        path = places.lease(number)
        while True:
            try:
                fd = create_lease(path, data)
            except FileNotFoundError:
                make_parents(path)
                continue
            return LocalLease(places, number, fd, token, self._heart, self._monotonic) if fd >= 0 else None

    def _top(self, places: ArtifactPlaces) -> _Top | None:
        first = found = read_lease(places.lease(1))
        number = 1
        while found is not None and (above := read_lease(places.lease(number + 1))):
            number, found = number + 1, above
        return None if first is None or found is None else _Top(number, found, first)

    def _take_over(self, places: ArtifactPlaces, top: _Top, token: str, data: bytes) -> LocalLease | None:
        lease = self._make(places, top.number + 1, token, data)
        if lease is None:
            return None
        first, still = read_lease(places.lease(1)), read_lease(places.lease(top.number))
        if still != top.held or first is None or first.token != top.first.token:
            lease.withdraw()
            return None
        if is_there(places.lease(top.number + 2)):
            lease.forsake()
            return None
        lease.before = top.held.owner
        return lease

    def _silent(self, path: str, held: Held) -> bool:
        """Whether it may be taken: given back, its process gone, or not moved for long by our own clock."""
        if held.free or gone(held.owner):
            return True
        now = self._monotonic()
        with self._lock:
            token, counter, since = self._since.get(path, ("", 0, now))
            if (token, counter) != (held.token, held.counter):
                since = now
                self._since[path] = (held.token, held.counter, now)
        return now - since >= PATIENCE
