"""What to say when the disk refuses: the system's words and the way out of each kind of trouble."""

from __future__ import annotations

import errno

from treadle.base.errors import DiskError

_WAY_OUT = {
    errno.ENOSPC: "make room on that file system and run again",
    errno.EDQUOT: "your quota there is used up: make room and run again",
    errno.EACCES: "check the permissions of it and of the folders above it",
    errno.EPERM: "check its owner, its permissions and its attributes",
    errno.EROFS: "that file system is mounted read-only: choose another place",
    errno.ENAMETOOLONG: "choose a shorter name (most file systems take 255 bytes)",
    errno.EISDIR: "a folder stands there: move it away or choose another path",
    errno.ENOTDIR: "a file stands where a folder is needed: move it away or choose another path",
    errno.EEXIST: "a file stands where a folder is needed: move it away or choose another path",
    errno.ENOTEMPTY: "something still writes there: end it and run again",
    errno.ESTALE: "the network file system lost it: look whether the server is up and run again",
    errno.EIO: "the disk or the network file system reports an error: look at the system's log",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
    errno.ELOOP: "symbolic links lead in a circle there: mend them",
    errno.ENOENT: "it went away meanwhile: make sure that nothing else changes this folder, and run again",
}


def disk_error(what: str, path: str, error: OSError | ValueError) -> DiskError:
    """The `DiskError` for a failed deed (`what`: `write`, `read`): the system's words, and a way out."""
    if isinstance(error, ValueError):  # Python's own refusal: NUL, or text that is no UTF-8
        return DiskError(
            f"cannot {what} {path!r}: the name is not valid UTF-8 text",
            hint="rename it: names must be UTF-8 and hold no NUL",
            code="bad-name",
        )
    words = error.strerror or str(error)
    hint = _WAY_OUT.get(error.errno or 0, "look at the path and at its file system, and run again")
    code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return DiskError(f"cannot {what} '{path}': {words}", hint=hint, code=code)
