"""Leases on object stores: one small object per artifact, which is only ever written on a condition.

The object is created once and stays; whoever takes the lease writes it over with a number one higher, on
the condition that it is still the version that was read. So of two who take it one wins, and a holder who
was overtaken (asleep, cut off) finds that its version is gone. Every write has a content of its own, since
S3 knows versions by their content.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from uuid import uuid4

import msgspec
from msgspec import Struct

from treadle.base.errors import DiskError
from treadle.steps.object_bucket import Bucket, ChangedError, Found, Version
from treadle.steps.object_errors import StorageOutError
from treadle.steps.object_watch import Watch
from treadle.steps.record import FORMAT, Owner
from treadle.steps.store import LeaseLost

_TRIES = 10  # how often another may be faster in one call, before it is said that they hold it


class LeaseText(Struct, frozen=True, kw_only=True):
    """What the object holds. `claim` names one taking of the lease, `beat` counts its signs of life.

    `attempts` are the folders of attempts that may stand below the output path.
    """

    format: int = FORMAT
    number: int
    claim: str
    beat: int = 0
    free: bool = False
    owner: Owner
    attempts: tuple[str, ...] = ()


class ObjectLease:
    """A lease that we hold. `beat` is called by the store's own thread, `check` before publishing."""

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        text: LeaseText,
        version: Version,
        ended: Callable[[ObjectLease], None],
    ) -> None:
        self._bucket = bucket
        self._ended = ended
        self._key = key
        self._text = text
        self._version = version
        self._lock = Lock()
        self.lost: Owner | None = None

    @property
    def number(self) -> int:
        return self._text.number

    @property
    def attempt(self) -> str:
        """The name of the folder that this attempt alone writes to."""
        return self._text.attempts[-1]

    @property
    def earlier(self) -> tuple[str, ...]:
        """Folders of earlier attempts that nobody has removed."""
        return self._text.attempts[:-1]

    def beat(self) -> None:
        """Give a sign of life. Raises `DiskError` where none could be given: it may still be ours then."""
        try:
            self._renew()
        except LeaseLost:
            pass  # `lost` tells it

    def check(self) -> None:
        self._renew()

    def keep(self, attempts: tuple[str, ...]) -> None:
        """These folders stand below the output path from now on; written down with the next beat."""
        with self._lock:
            self._text = msgspec.structs.replace(self._text, attempts=attempts)

    def release(self) -> None:
        """Give it back; where the storage is out it is left, and others find it silent in time."""
        self._ended(self)
        try:
            self._renew(free=True)
        except (LeaseLost, DiskError):
            pass

    def _renew(self, *, free: bool = False) -> None:
        with self._lock:
            if self.lost is not None:
                raise LeaseLost(self.lost)
            text = msgspec.structs.replace(self._text, beat=self._text.beat + 1, free=free)
            for _ in range(_TRIES):
                self._text = text  # also when no answer comes: it may have been written
                try:
                    self._version = self._bucket.replace(self._key, encode(text), self._version)
                    return
                except ChangedError:
                    if self._settled(text):
                        return
            raise StorageOutError(
                f"cannot write '{self._bucket.url(self._key)}': it changes all the time, by our own doing",
                hint="look whether the storage answers late, and run again",
            )

    def _settled(self, text: LeaseText) -> bool:
        """Whether our own write changed it, its answer lost; else be ready to write again, or lose."""
        found = self._bucket.get(self._key)
        if found is None:  # removed with its artifact, by a person: what nobody holds may be taken
            try:
                self._version = self._bucket.create(self._key, encode(text))
            except ChangedError:
                return False
            return True
        now = decode(found, self._bucket.url(self._key))
        if now.claim != text.claim:
            self.lost = now.owner
            raise LeaseLost(now.owner)
        self._version = found.version
        return now == text


def take(
    bucket: Bucket, key: str, owner: Owner, watch: Watch, ended: Callable[[ObjectLease], None]
) -> ObjectLease | Owner:
    """Take the lease, or tell who holds it and lives as far as is known. `ended` is told of its release."""
    claim = uuid4().hex
    attempt = owner.attempt or claim
    text = LeaseText(number=1, claim=claim, owner=owner, attempts=(attempt,))
    holder = owner
    for _ in range(_TRIES):
        try:
            return ObjectLease(bucket, key, text, bucket.create(key, encode(text)), ended)
        except ChangedError:
            found = bucket.get(key)
        if found is None:
            continue
        old = decode(found, bucket.url(key))
        if old.claim == claim:  # ours, and the answer was lost
            return ObjectLease(bucket, key, text, found.version, ended)
        holder = old.owner
        if not old.free and watch.lives(key, old.owner, found.version):
            return holder
        before = tuple(one for one in old.attempts if one != attempt)
        text = msgspec.structs.replace(text, number=old.number + 1, attempts=(*before, attempt))
        try:
            return ObjectLease(bucket, key, text, bucket.replace(key, encode(text), found.version), ended)
        except ChangedError:
            pass  # another was faster, or the answer was lost: look again
    return holder


def read_lease(bucket: Bucket, key: str) -> LeaseText | None:
    """The lease as it is, or None."""
    found = bucket.get(key)
    return decode(found, bucket.url(key)) if found else None


def held(bucket: Bucket, key: str, watch: Watch) -> Owner | None:
    """Who holds the lease and lives as far as is known."""
    found = bucket.get(key)
    if found is None:
        watch.forget(key)
        return None
    text = decode(found, bucket.url(key))
    if text.free:
        watch.forget(key)
        return None
    return text.owner if watch.lives(key, text.owner, found.version) else None


def encode(text: LeaseText) -> bytes:
    return msgspec.json.encode(text)


def decode(found: Found, place: str) -> LeaseText:
    try:
        return msgspec.json.decode(found.data, type=LeaseText)
    except msgspec.MsgspecError as error:
        raise DiskError(
            f"'{place}' is no lease: {error}",
            hint="if no run is at work on this artifact, remove that object and run again",
            code="torn-lease",
        ) from error
