"""How leases on a plain file system are taken, from nobody or from the silent, and who holds them.

Lease 1 is made by exclusive create, where nobody holds the artifact; it is the beginning of a chain. Whoever
finds the last lease of the chain silent makes a file with the first number that is free above it, which
says whose lease it was; that is exclusive, too, so that one of all who try gets it. A chain is removed by
its last holder, from its beginning on: whoever looked at it before, and makes a file after that, sees
another beginning, or none, and has come too late. Files above a lease that were not taken over from it are
of such latecomers, or of a holder who was killed while removing: they are passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from msgspec import Struct

from treadle.base.errors import DiskError
from treadle.base.files import make_parents
from treadle.base.layout import ArtifactPlaces
from treadle.steps.heartbeats import Heartbeats
from treadle.steps.lease import DOUBT, LocalLease
from treadle.steps.lease_file import Held, create_lease, encode_lease, new_token, read_lease
from treadle.steps.owner import gone
from treadle.steps.record import Owner

PATIENCE = 90.0  # seconds of ours in which a lease did not move: then nobody is there to move it
_TRIES = 1000  # others may be faster now and then; never as often as this


class _Chain(Struct, frozen=True):
    """The first and the last lease of a chain, all its owners, and the first number that is free above."""

    first: Held
    last: Held
    owners: tuple[Owner, ...]
    free: int


class Leases:
    """Takes and observes the leases of one store; remembers how long those of others have not moved."""

    def __init__(self, monotonic: Callable[[], float], heart: Heartbeats) -> None:
        self._monotonic = monotonic
        self._heart = heart
        self._since: dict[str, tuple[str, int, float]] = {}
        self._lock = Lock()

    def claim(self, places: ArtifactPlaces, owner: Owner) -> LocalLease | Owner:
        """Take the lease, or tell who holds it and lives as far as is known. Raises `DiskError`."""
        for _ in range(_TRIES):
            lease = self._make(places, 1, owner)
            if lease is not None:
                return self._kept(lease)
            chain = self._chain(places)
            if chain is not None:
                if not self._silent(places.path, chain.last):
                    return chain.last.owner
                lease = self._take_over(places, chain, owner)
                if lease is not None:
                    return self._kept(lease)
        raise DiskError(
            f"the lease '{places.lease(1)}' can neither be read nor made",
            hint="look at what stands there; if no run is at work on this artifact, remove it",
            code="odd-lease",
        )

    def holder(self, places: ArtifactPlaces) -> Owner | None:
        """Who holds it now; None where nobody does, or who did is gone or has been silent for too long."""
        chain = self._chain(places)
        if chain is None:
            with self._lock:
                self._since.pop(places.path, None)
            return None
        return None if self._silent(places.path, chain.last) else chain.last.owner

    def current(self, places: ArtifactPlaces) -> Held | None:
        """The lease that is held now, unless its holder is known to be gone or gave it back."""
        chain = self._chain(places)
        return None if chain is None or chain.last.free or gone(chain.last.owner) else chain.last

    def _kept(self, lease: LocalLease) -> LocalLease:
        if self._since:
            with self._lock:
                self._since.pop(lease.path, None)
        self._heart.add(lease)
        return lease

    def _make(self, places: ArtifactPlaces, number: int, owner: Owner, after: str = "") -> LocalLease | None:
        """Make a lease file exclusively; None where there is one, or where that took so long that others may
        have taken what was not yet written for dead."""
        path, token, began = places.lease(number), new_token(), self._monotonic()
        while True:
            try:
                fd = create_lease(path, encode_lease(token, owner, after))
            except FileNotFoundError:
                make_parents(path)
                continue
            if fd < 0:
                return None
            lease = LocalLease(places, number, fd, token, self._heart, self._monotonic)
            if self._monotonic() - began < DOUBT:
                return lease
            lease.abandon()
            return None

    def _chain(self, places: ArtifactPlaces) -> _Chain | None:
        first = last = read_lease(places.lease(1))
        if first is None or last is None:
            return None
        owners, number = [first.owner], 2
        while (above := read_lease(places.lease(number))) is not None:
            if above.after == last.token or above.torn:
                last = above
                owners.append(above.owner)
            number += 1
        return _Chain(first, last, tuple(owners), number)

    def _take_over(self, places: ArtifactPlaces, chain: _Chain, owner: Owner) -> LocalLease | None:
        lease = self._make(places, chain.free, owner, after=chain.last.token)
        if lease is None:
            return None
        beginning = read_lease(places.lease(1))
        if beginning is None or beginning.token != chain.first.token:
            lease.abandon()
            return None
        lease.before = chain.owners
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
