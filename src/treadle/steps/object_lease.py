"""Leases on object stores: one small object per artifact, which is only ever written on a condition.

The object is created once and stays; whoever takes the lease writes it over with a number one higher, on
the condition that it is still the version that was read. So of two who take it one wins, and a holder who
was overtaken (asleep, cut off) finds that its version is gone. Every write has a content of its own, since
S3 knows versions by their content.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.base.errors import DiskError
from treadle.steps.heartbeats import BEAT, Heartbeats
from treadle.steps.object_bucket import Bucket, ChangedError, Found, Version
from treadle.steps.object_errors import StorageOutError
from treadle.steps.record import FORMAT, Owner
from treadle.steps.store import LeaseLost

_TRIES = 10


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
    """A lease that we hold. Beats come from `heart`; all else may be called from any thread."""

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        text: LeaseText,
        version: Version,
        heart: Heartbeats,
        monotonic: Callable[[], float],
    ) -> None:
        self._bucket = bucket
        self._key = key
        self._text = text
        self._version = version
        self._heart = heart
        self._monotonic = monotonic
        self._moved = monotonic()
        self._lock = Lock()
        self.attempt = text.attempts[-1]  # the name of the folder that it alone writes to
        self.lost: Owner | None = None

    @property
    def number(self) -> int:
        return self._text.number

    @property
    def earlier(self) -> tuple[str, ...]:
        """Folders of earlier attempts that nobody has removed."""
        return tuple(one for one in self._text.attempts if one != self.attempt)

    def beat(self, now: float) -> None:
        """Give a sign of life if it is time. A storage that is out ends nothing: the next one tries again."""
        if now - self._moved < BEAT or self.lost is not None:
            return
        with suppress(LeaseLost, DiskError):
            self._renew()

    def check(self) -> None:
        """Read it while nobody can think us silent; else write it, which claims it again after an outage."""
        if self._monotonic() - self._moved < BEAT:
            with self._lock:
                found = self._bucket.get(self._key)
                if self.lost is None and found is not None and found.version == self._version:
                    return
        self._renew()

    def keep(self, attempts: tuple[str, ...]) -> None:
        """These folders stand below the output path from now on; written down with the next write."""
        with self._lock:
            self._text = replace(self._text, attempts=attempts)

    def release(self) -> None:
        """Give it back; where the storage is out it is left, and others find it silent in time."""
        self._heart.drop(self)
        with suppress(LeaseLost, DiskError):
            self._renew(free=True)

    def _renew(self, *, free: bool = False) -> None:
        with self._lock:
            if self.lost is not None:
                raise LeaseLost(self.lost)
            text = replace(self._text, beat=self._text.beat + 1, free=free)
            self._text = text  # also when no answer comes: it may have been written
            if not self._written(text):
                raise StorageOutError(
                    f"cannot write '{self._bucket.url(self._key)}': it changes all the time by our own doing",
                    hint="look whether the storage answers late, and run again",
                )

    def _written(self, text: LeaseText) -> bool:
        for _ in range(_TRIES):
            now = self._monotonic()
            try:
                self._version = self._bucket.replace(self._key, encode(text), self._version)
            except ChangedError:
                if not self._settled(text):
                    continue
            self._moved = now
            return True
        return False

    def _settled(self, text: LeaseText) -> bool:
        """Whether our own write changed it, its answer lost; else be ready to write again, or lose."""
        found = self._bucket.get(self._key)
        if found is None and text.free:
            return True
        if found is None:  # removed by hand: what nobody holds may be taken
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


def encode(text: LeaseText) -> bytes:
    return msgspec.json.encode(text)


def decode(found: Found, place: str) -> LeaseText:
    try:
        return msgspec.json.decode(found.data, type=LeaseText)
    except msgspec.MsgspecError as error:
        raise DiskError(
            f"'{place}' is no lease: {error}",
            hint="if no run is at work on this artifact, remove that object and run again",
            code="odd-lease",
        ) from error
