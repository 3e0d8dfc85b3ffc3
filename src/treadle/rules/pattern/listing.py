"""What the disk holds, as a value: which paths match a pattern, and whether a path is there.

Each folder is read once, when it is first asked for, so that one trip down the pipe sees one state of the
disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Protocol

from treadle.base.disk import disk_error
from treadle.rules.pattern.matching import Values
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.tree import NOTHING, Entries, Match, Tree, join, seen

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class Listing(Protocol):
    """The disk as expansion sees it; relative paths are those of the work folder."""

    def match(self, pattern: Pattern, known: Values = NOTHING) -> list[Match]:
        """The paths that match, sorted by their bytes, with the values of `pattern.names`.

        `known` values are held fast. A path that can be split in several ways comes more than once.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether something stands at `path`, links followed."""
        ...


class DiskListing(Tree):
    """The disk as it is below and around the work folder `workdir`.

    Raises `DiskError` when a folder is there but cannot be read.
    """

    def __init__(self, workdir: str) -> None:
        self._workdir = workdir
        self._folders: dict[str, Entries] = {}
        self._there: dict[str, bool] = {}

    def exists(self, path: str) -> bool:
        """Whether something stands at `path`, links followed; looked at once."""
        found = self._there.get(path)
        if found is None:
            found = self._there[path] = os.path.exists(os.path.join(self._workdir, path))
        return found

    def entries(self, folder: str) -> Entries:
        """What stands in a folder; nothing when there is no such folder."""
        found = self._folders.get(folder)
        if found is None:
            found = self._folders[folder] = _scan(os.path.join(self._workdir, folder))
        return found


class PathListing(Tree):
    """A disk made of the paths of its files (the folders above them are there too); for plans and tests.

    `folders` False: only the paths themselves are ever matched, not the folders above them.
    """

    def __init__(self, paths: Iterable[str] = (), *, folders: bool = True) -> None:
        self._with_folders = folders
        self._paths: set[str] = set()
        self._fresh: list[str] = []
        self._held: dict[str, dict[str, bool]] = {}
        self._folders: dict[str, Entries] = {}
        self.add(paths)

    def add(self, paths: Iterable[str]) -> None:
        """Put in more files; nothing is sorted before it is asked for."""
        self._fresh.extend(paths)

    def exists(self, path: str) -> bool:
        """Whether `path` is one of the files, or a folder above one."""
        self._settle()
        return path in self._paths or (self._with_folders and path in self._held)

    def within(self, folder: str) -> bool:
        """Whether one of the files lies below `folder`."""
        self._settle()
        return folder in self._held

    def entries(self, folder: str) -> Entries:
        """What stands in a folder; nothing when there is no such folder."""
        self._settle()
        found = self._folders.get(folder)
        if found is None:
            held = self._held.get(folder, {})
            names = [name for name in held if seen(name)]
            inner = [name for name in names if held[name]]
            if not self._with_folders:
                names = [name for name in names if join(folder, name) in self._paths]
            found = self._folders[folder] = Entries(names, inner, inner)
        return found

    def __bool__(self) -> bool:
        return bool(self._paths or self._fresh)

    def _settle(self) -> None:
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, []
        for path in fresh:
            if path not in self._paths:
                self._paths.add(path)
                self._hold(path)

    def _hold(self, path: str) -> None:
        """Enter a path into its folder, and that folder into the one above, as far as it is new."""
        is_folder = False
        while path:
            above, slash, name = path.rpartition("/")
            folder = above or slash
            held = self._held.setdefault(folder, {})
            if held.get(name, False) or (name in held and not is_folder):
                return
            held[name] = is_folder
            self._folders.pop(folder, None)
            path, is_folder = above, True


def _scan(folder: str) -> Entries:
    names, folders, real = [], [], []
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                name = entry.name
                if not seen(name):
                    continue
                names.append(name)
                if entry.is_dir():
                    folders.append(name)
                    if not entry.is_symlink():
                        real.append(name)
    except OSError as error:
        if error.errno not in _ABSENT:
            raise disk_error("look into", folder, error) from error
    return Entries(names, folders, real)
