"""How leases on an object store are taken, from nobody or from the silent, and who holds them."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from msgspec.structs import replace

from treadle.steps.heartbeats import Heartbeats
from treadle.steps.object_bucket import Bucket, ChangedError, Version
from treadle.steps.object_lease import LeaseText, ObjectLease, decode, encode
from treadle.steps.object_watch import Watch
from treadle.steps.record import Owner

_TRIES = 10  # how often another may be faster in one call, before it is said that they hold it


class Leases:
    """Takes and observes the leases in one bucket; remembers how long those of others have not moved."""

    def __init__(self, bucket: Bucket, monotonic: Callable[[], float], heart: Heartbeats) -> None:
        self._bucket = bucket
        self._monotonic = monotonic
        self._heart = heart
        self._watch = Watch(monotonic)

    def claim(self, key: str, owner: Owner) -> ObjectLease | Owner:
        """Take the lease, or tell who holds it and lives as far as is known."""
        text = LeaseText(number=1, claim=uuid4().hex, owner=owner)
        text = replace(text, attempts=(owner.attempt or text.claim,))
        holder = owner
        for _ in range(_TRIES):
            try:
                return self._kept(key, text, self._bucket.create(key, encode(text)))
            except ChangedError:
                found = self._bucket.get(key)
            if found is None:
                continue
            old = decode(found, self._bucket.url(key))
            if old.claim == text.claim:  # ours, and the answer was lost
                return self._kept(key, old, found.version)
            holder = old.owner
            if not old.free and self._watch.lives(key, holder, found.version):
                return holder
            text = _after(old, text)
            try:
                return self._kept(key, text, self._bucket.replace(key, encode(text), found.version))
            except ChangedError:
                pass  # another was faster, or the answer was lost: look again
        return holder

    def holder(self, key: str) -> Owner | None:
        """Who holds it and lives as far as is known."""
        found = self._bucket.get(key)
        text = decode(found, self._bucket.url(key)) if found else None
        if found is None or text is None or text.free:
            self._watch.forget(key)
            return None
        return text.owner if self._watch.lives(key, text.owner, found.version) else None

    def _kept(self, key: str, text: LeaseText, version: Version) -> ObjectLease:
        self._watch.forget(key)
        lease = ObjectLease(self._bucket, key, text, version, self._heart, self._monotonic)
        self._heart.add(lease)
        return lease


def _after(old: LeaseText, text: LeaseText) -> LeaseText:
    """The lease that follows another one, with what the attempts before it may have left."""
    ours = text.attempts[-1]
    earlier = (one for one in old.attempts if one != ours)
    return replace(text, number=old.number + 1, attempts=(*earlier, ours))
