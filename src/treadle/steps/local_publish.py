"""Publishing an artifact on a plain file system, so that one of all who try wins and nobody sees a half.

    sync -> the record as pending -> is the lease ours? -> move in -> pending becomes the record

A pending record is made exclusively, so it is never overwritten: who finds one finishes it, or sees that it
cannot be finished and removes it.
"""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec.structs import replace

from treadle.base.disk import disk_error
from treadle.base.errors import DiskError, StepError
from treadle.base.files import make_parents, remove
from treadle.base.layout import ArtifactPlaces
from treadle.steps.lease import LocalLease
from treadle.steps.local_move import finish, move_aside, move_back, move_in, settle_record
from treadle.steps.local_output import Made, measure, output_of, see_folder, sync_output
from treadle.steps.local_record import Filed, Placed, create_filed, encode_filed, read_filed
from treadle.steps.record import ArtifactRecord, Kind
from treadle.steps.store import LeaseLost

_TRIES = 100


def publish(
    lease: LocalLease, work: str, record: ArtifactRecord, over: ArtifactRecord | None
) -> tuple[ArtifactRecord, bool]:
    """The record that counts in the end, and whether it is ours; one that is `over` may be replaced.

    Raises `LeaseLost`; `DiskError`, and then all stands as before.
    """
    places, made = lease.places, measure(work)
    if made.kind is Kind.NOTHING:
        see_folder(work)
    elif not made.digest:
        sync_output(work, made.kind)  # nothing else would tell that the disk has lost a part of it
    if made.kind is not Kind.NOTHING or record.path != places.path:
        record = replace(record, path=places.path, kind=made.kind, size=made.size, digest=made.digest)
    # Of nothing made only one record can come to stand where there is none: no need to look before that.
    looks = made.kind is not Kind.NOTHING or over is not None
    try:
        for _ in range(_TRIES):
            stood = read_filed(places.record, places.path) if looks else None
            looks = True
            if winner := _winner(places, stood, record, over):
                remove(work)
                return winner, False
            placed = _placed(lease, made, work, stood)
            if _announce(places, encode_filed(record, placed), sealed=made.kind is Kind.NOTHING):
                if _carry_out(places, lease, record, placed, stood):
                    return record, True
            elif pending := read_filed(places.pending, places.path):
                settle(places, pending)
    except OSError as error:
        raise disk_error("publish", places.path, error) from error
    raise LeaseLost(None)


def _winner(
    places: ArtifactPlaces, stood: Filed | None, ours: ArtifactRecord, over: ArtifactRecord | None
) -> ArtifactRecord | None:
    """The record that makes us the loser."""
    if stood is None or stood.record is None:
        return None
    if over is not None and stood.record == replace(over, path=places.path):
        return None
    problem, _ = output_of(places.path, stood.record, thoroughly=not stood.sealed)
    if problem:
        return None
    if stood.record.identity == ours.identity:
        return stood.record
    raise StepError(
        f"step '{ours.name}': at {places.path} stands the artifact of another identity "
        f"({stood.record.identity[:12]}), not of this one ({ours.identity[:12]})",
        hint='give it another path, or take what stands there with drift="warn"',
        code="artifact-drift",
    )


def _placed(lease: LocalLease, made: Made, work: str, stood: Filed | None) -> Placed:
    over = "" if stood is None else stood.mark
    name = os.path.basename(work) if made.kind is not Kind.NOTHING else ""
    return Placed(token=lease.token, inode=made.inode, work=name, over=over)


def _announce(places: ArtifactPlaces, data: bytes, *, sealed: bool) -> bool:
    try:
        return create_filed(places.pending, data, sealed=sealed)
    except DiskError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        make_parents(places.pending)  # somebody removed the folder
        return create_filed(places.pending, data, sealed=sealed)


def _carry_out(
    places: ArtifactPlaces,
    lease: LocalLease,
    record: ArtifactRecord,
    placed: Placed,
    stood: Filed | None,
) -> bool:
    """From the pending record to the end; False where another was faster."""
    moved = False
    try:
        lease.check()
        if stood is not None:
            move_aside(places, placed)
        moved = move_in(places, record, placed)
        done = moved and settle_record(places, record, placed)
    except BaseException:
        if not moved:  # else the pending record stays, to be finished
            _take_back(places, placed)
        raise
    if not done:
        _take_back(places, placed)
    elif stood is not None:
        with suppress(DiskError):
            remove(places.aside(placed.token))
            remove(places.aside(stood.mark))  # who replaced that one was killed before this
    return done


def settle(places: ArtifactPlaces, pending: Filed) -> None:
    """A pending record of somebody else, while the lease is ours: to its end, or away with it.

    OSErrors go through.
    """
    if not finish(places, pending):
        move_back(places, pending.placed)
        with suppress(FileNotFoundError):
            os.unlink(places.pending)


def _take_back(places: ArtifactPlaces, placed: Placed) -> None:
    """Leave all as it was before: what was replaced in its place, our pending record gone."""
    with suppress(OSError, DiskError):
        move_back(places, placed)
        pending = read_filed(places.pending, places.path)
        if pending is not None and pending.placed.token == placed.token:
            os.unlink(places.pending)
