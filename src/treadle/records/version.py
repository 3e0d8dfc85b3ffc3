"""The state folder and its version: made on first use, refused when newer, migrated when older."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from treadle.base.errors import DiskError, RecordError
from treadle.base.files import disk_error, remove, write_whole
from treadle.base.layout import StateFolder
from treadle.base.place import Place

VERSION = 1

# From version n to n + 1. A migration may be killed and begun again, so it must bear being run twice.
MIGRATIONS: Mapping[int, Callable[[StateFolder], None]] = {}

_NOT_COPIED = frozenset({"lock", "trash", "logs", "texts", "jobs"})


def prepare(state: StateFolder) -> None:
    """Make `.treadle/` where there is none. Raises `RecordError` when it is of a newer Treadle.

    Raises `DiskError` that names the work folder when nothing can be written in it.
    """
    try:
        os.mkdir(state.root)
    except FileExistsError:
        pass
    except OSError as error:
        raise disk_error("make the state folder", state.root, error) from error
    if not os.access(state.root, os.W_OK | os.X_OK):
        raise DiskError(
            f"cannot write in '{state.root}', where Treadle keeps its records",
            hint="run as its owner, get write permission, or name another work folder (--workdir)",
        )
    if read_version(state) is None:
        write_whole(state.ignore, b"*\n")
        write_whole(state.version, b"%d\n" % VERSION, durable=True)
    check_version(state, older=True)


def read_version(state: StateFolder) -> int | None:
    """The version of the state folder; None when it was not made yet. Raises `RecordError`."""
    try:
        with open(state.version, "rb") as file:
            text = file.read(64)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise disk_error("read", state.version, error) from error
    if not text.strip().isdigit():
        raise RecordError(
            f"no version stands here, but {text[:20]!r}",
            place=Place(state.version),
            hint=f"if nothing newer than this Treadle has run here, write {VERSION} into it",
            code="damaged-record",
        )
    return int(text)


def check_version(state: StateFolder, *, older: bool = False) -> None:
    """Refuse records that this Treadle cannot read; `older` ones are let through for `migrate`."""
    found = read_version(state)
    if found is None or found == VERSION:
        return
    if found > VERSION:
        raise RecordError(
            f"the records are of version {found}, of a newer Treadle; this one knows up to version {VERSION}",
            place=Place(state.version),
            hint="use the newer Treadle in this folder, or name another work folder (--workdir)",
            code="newer-format",
        )
    if not older:
        raise RecordError(
            f"the records are of the older version {found}; this Treadle works with version {VERSION}",
            place=Place(state.version),
            hint="treadle run brings them up to date and keeps a copy",
            code="older-format",
        )


def migrate(
    state: StateFolder,
    *,
    target: int = VERSION,
    migrations: Mapping[int, Callable[[StateFolder], None]] = MIGRATIONS,
) -> list[int]:
    """Bring older records up to date, under the lock: the versions that were left, usually none.

    A copy of the records as they were (not of logs) stays in `.treadle/version-<n>/`.
    """
    left: list[int] = []
    found = read_version(state)
    while found is not None and found < target:
        if found not in migrations:
            raise RecordError(
                f"the records are of version {found}, which this Treadle can no longer read",
                place=Place(state.version),
                hint="run the last Treadle that could once in this folder, then this one",
                code="older-format",
            )
        _keep_copy(state, found)
        migrations[found](state)
        write_whole(state.version, b"%d\n" % (found + 1), durable=True)
        left.append(found)
        found += 1
    return left


def _keep_copy(state: StateFolder, version: int) -> None:
    import shutil  # only ever for a migration

    kept = state.kept_copy(version)
    if os.path.exists(kept):
        return  # from a migration that was killed: that copy is the one from before it
    partial = f"{kept}.partial"
    remove(partial)
    try:
        shutil.copytree(state.root, partial, symlinks=True, ignore=_left_out)
        os.rename(partial, kept)
    except (OSError, shutil.Error) as error:
        raise DiskError(
            f"cannot keep a copy of the records in '{kept}': {error}",
            hint="make room, or mend the permissions, and run again; nothing was changed",
        ) from error


def _left_out(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in _NOT_COPIED or name.startswith(("lock.", "version-"))}
