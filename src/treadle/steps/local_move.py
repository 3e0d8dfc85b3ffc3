"""Putting an output with its pending record into its place, and finishing what somebody else began.

Each function goes on from whatever its steps have done already, so that a publication that was killed at
any point is finished by whoever calls the same ones.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from stat import S_IMODE, S_ISDIR

from treadle.base.errors import DiskError
from treadle.base.files import is_there, make_parents, remove, set_aside
from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_output import output_of
from treadle.steps.local_record import Filed, Placed, read_filed
from treadle.steps.record import ArtifactRecord, Kind

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
_OCCUPIED = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)


def in_place(places: ArtifactPlaces, pending: Filed) -> bool:
    """Whether the output of a pending record stands at its path, whole. Nothing made is never in place."""
    if pending.record is None or pending.record.kind is Kind.NOTHING:
        return False
    problem, inode = output_of(places.path, pending.record, thoroughly=True)
    return not problem and inode == pending.placed.inode


def finish(places: ArtifactPlaces, pending: Filed) -> bool:
    """Go on with a pending publication up to its end; False where that cannot be. OSErrors go through."""
    record, placed = pending.record, pending.placed
    if record is None:
        return False
    stood = read_filed(places.record, places.path)
    if stood is not None and stood.placed.token == placed.token:  # linked already, as `settle_record` does
        with suppress(FileNotFoundError):
            os.unlink(places.pending)
        return True
    if not in_place(places, pending):
        if stood is not None and stood.record is not None and stood.mark != placed.over:
            return False
        if not _at_work(places, record, placed):
            return False
        if stood is not None:
            move_aside(places, placed)
        if not move_in(places, record, placed):
            return False
    done = settle_record(places, record, placed)
    _clear(places, record, placed)
    return done


def _at_work(places: ArtifactPlaces, record: ArtifactRecord, placed: Placed) -> bool:
    if record.kind is Kind.NOTHING:
        return True
    problem, inode = output_of(places.work_named(placed.work), record, thoroughly=True)
    return not problem and inode == placed.inode


def _clear(places: ArtifactPlaces, record: ArtifactRecord, placed: Placed) -> None:
    with suppress(DiskError):
        if record.kind is Kind.FILE:
            remove(places.work_named(placed.work))  # killed between link and unlink
        if placed.over:
            remove(places.aside(placed.token))


def move_aside(places: ArtifactPlaces, placed: Placed) -> None:
    """Move the output that is replaced out of the way, if it still stands there."""
    aside = places.aside(placed.token)
    try:
        if os.lstat(places.path).st_ino == placed.inode:
            return
        try:
            _rename(places.path, aside)
        except FileNotFoundError:
            make_parents(aside)
            _rename(places.path, aside)
    except FileNotFoundError:
        return


def move_back(places: ArtifactPlaces, placed: Placed) -> None:
    """Undo `move_aside`: nothing is lost where the new output cannot be moved in."""
    aside = places.aside(placed.token)
    if is_there(aside) and not is_there(places.path):
        _rename(aside, places.path)


def move_in(places: ArtifactPlaces, record: ArtifactRecord, placed: Placed) -> bool:
    """Move the output to its path without replacing anything; False where its place is taken.

    What stands there without any record is nobody's artifact: it is set aside as `<path>.failed`.
    """
    if record.kind is Kind.NOTHING:
        return True
    work = places.work_named(placed.work)
    for _ in range(2):
        try:
            _move(work, places.path, record.kind)
            return True
        except OSError as error:
            if error.errno not in (*_OCCUPIED, errno.ENOENT):
                raise
            if in_place(places, Filed(record, placed, sealed=False)):  # who found the record moved it
                if record.kind is Kind.FILE:
                    remove(work)
                return True
            if error.errno == errno.ENOENT:
                raise
        if read_filed(places.record, places.path) is not None and not placed.over:
            return False
        set_aside(places.path)
    return False


def _move(work: str, path: str, kind: Kind) -> None:
    if kind is Kind.FOLDER:
        _move_folder(work, path)
        return
    try:
        os.link(work, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _refuse_over(path)  # no hard links there: the best that is left
        os.rename(work, path)
    else:
        os.unlink(work)


def _move_folder(work: str, path: str) -> None:
    _refuse_over(path)  # rename(2) would replace an empty folder
    _rename(work, path)


def _rename(old: str, new: str) -> None:
    """Rename, also a folder that may not be written to: its `..` is, and needs the permission for once."""
    try:
        os.rename(old, new)
    except PermissionError:
        mode = os.lstat(old).st_mode
        if not S_ISDIR(mode) or mode & 0o200:
            raise
        os.chmod(old, S_IMODE(mode) | 0o200)
        os.rename(old, new)
        os.chmod(new, S_IMODE(mode))


def _refuse_over(path: str) -> None:
    if is_there(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def settle_record(places: ArtifactPlaces, record: ArtifactRecord, placed: Placed) -> bool:
    """The pending record becomes the record. False where another one stands there now."""
    try:
        if record.kind is Kind.NOTHING and not placed.over:
            os.link(places.pending, places.record)  # there was no move that only one can win: this is it
            os.unlink(places.pending)
        else:
            os.rename(places.pending, places.record)
    except (FileNotFoundError, FileExistsError):
        stood = read_filed(places.record, places.path)
        return stood is not None and stood.placed.token == placed.token
    except OSError as error:
        if error.errno not in _NO_LINKS or is_there(places.record):
            raise
        os.rename(places.pending, places.record)
    return True
