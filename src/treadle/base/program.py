"""Which file a program's name stands for."""

from __future__ import annotations

import errno
import os


def find_program(name: str, path: str, cwd: str) -> str:
    """The file that `name` stands for on the search path `path`, as seen from `cwd`.

    Found ones are remembered. Raises FileNotFoundError, or PermissionError when what is there cannot be
    executed.
    """
    if "/" in name:
        return name
    key = (name, path, cwd)
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = _search(name, path, cwd)
    return found


_programs: dict[tuple[str, str, str], str] = {}


def forget_programs() -> None:
    """Look everything up anew: a program that was found has moved."""
    _programs.clear()


def _search(name: str, path: str, cwd: str) -> str:
    seen = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(cwd, folder, name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            seen = seen or candidate
    if seen:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), seen)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
