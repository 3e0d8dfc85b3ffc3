"""The digests of files and folders: BLAKE2b-256 in hex, the same figures as `b2sum -l 256` gives.

The digest of a folder is that of a sorted list of facts, each ended by NUL. A fact is a path below the
folder, `//` (which no path holds), and one of: `s` and the size, `d` and the digest of a regular file, or
`m` and the time of one above the limit; `l` and the target of a symbolic link, which is not followed; `x`
for a pipe, socket or device. Folders count by what is in them: an empty one leaves no trace, and neither
do owners or modes. What stands beside artifacts of steps (records, leases) does not count.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from stat import S_ISREG
from typing import TYPE_CHECKING

from treadle.base.disk import disk_error
from treadle.base.errors import DiskError

if TYPE_CHECKING:
    from hashlib import blake2b as blake2b
else:
    try:
        from _blake2 import blake2b as blake2b  # what hashlib gives; that loads OpenSSL on the way, for 2 ms
    except ImportError:
        from hashlib import blake2b as blake2b

ARTIFACT_STATE = ".treadle-artifacts"  # the folder of what stands beside artifacts
_BESIDE = ARTIFACT_STATE.encode()

_CHUNK = 1024 * 1024
_FIRST = 64 * 1024

# For bash with GNU find, sort, sed, xargs, iconv and b2sum (coreutils 8.27 or later). Ends with another
# code than 0 where one of them is missing, a file cannot be read or a name is not UTF-8: then the driver
# digests. Call: treadle_digest_folder FOLDER [LIMIT]
DIGEST_FOLDER_SH = r"""
treadle_digest_folder() (
  set -o pipefail
  export LC_ALL=C
  case $1 in /*) ;; *) set -- "./$1" "${@:2}" ;; esac
  CDPATH= cd -- "$1" || exit
  small=() large=(-false)
  if [ -n "${2-}" ]; then small=(! -size "+${2}c") large=(-size "+${2}c"); fi
  skip=(-name .treadle-artifacts -prune -o)
  find . "${skip[@]}" -print0 | iconv -f UTF-8 -t UTF-8 >/dev/null || exit
  {
    find . "${skip[@]}" -type f -printf '%P//s%s\0' &&
    find . "${skip[@]}" -type f "${small[@]}" -print0 | xargs -0 -r b2sum -l 256 -z -- |
      sed -z 's|^\([0-9a-f]*\)  \./\(.*\)$|\2//d\1|' &&
    find . "${skip[@]}" -type f "${large[@]}" -printf '%P//m%T@\0' &&
    find . "${skip[@]}" -type l -printf '%P//l%l\0' &&
    find . "${skip[@]}" ! -type f ! -type l ! -type d -printf '%P//x\0'
  } | sort -z | b2sum -l 256 | cut -c 1-64
)
"""


def digest_file(path: str) -> str:
    """The digest of a file's content; a device, pipe or socket has none and gets the digest of nothing.

    Raises `DiskError`.
    """
    try:
        return _read(path)[1]
    except (OSError, ValueError) as error:
        raise disk_error("read", path, error) from error


def _read(path: str | bytes) -> tuple[int, str]:
    """(bytes read, digest); small files in one read, large ones in pieces, while other threads run."""
    # O_NONBLOCK: opening a named pipe must not wait for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        state = blake2b(digest_size=32)
        size = 0
        if S_ISREG(os.fstat(fd).st_mode):
            data = os.read(fd, _FIRST)
            while data:
                state.update(data)
                size += len(data)
                data = os.read(fd, _CHUNK if size >= _FIRST else _FIRST)
        return size, state.hexdigest()
    finally:
        os.close(fd)


def digest_folder(path: str, limit: int | None = None, without: Collection[str] = ()) -> str:
    """The digest of what a folder holds: names, sizes and contents, links as links.

    Files of more than `limit` bytes are not read: they count by size and time. `without` are paths below
    the folder, of files or folders, that do not count. Raises `DiskError` for what cannot be read and for
    names that are not UTF-8.
    """
    walk = _Walk(os.fsencode(path), limit, frozenset(map(os.fsencode, without)))
    try:
        facts = walk.facts()
    except OSError as error:
        raise disk_error("read", os.fsdecode(error.filename or path), error) from error
    state = blake2b(digest_size=32)
    for fact in sorted(facts):
        state.update(fact + b"\0")
    return state.hexdigest()


class _Walk:
    """One walk over a folder: without recursion, in bytes, so that no locale has a say."""

    def __init__(self, root: bytes, limit: int | None, without: frozenset[bytes]) -> None:
        self.root = root
        self.limit = limit
        self.without = without
        self.pending = [b""]

    def facts(self) -> list[bytes]:
        found: list[bytes] = []
        while self.pending:
            below = self.pending.pop()
            with os.scandir(os.path.join(self.root, below) if below else self.root) as entries:
                for entry in entries:
                    if entry.name == _BESIDE:
                        continue
                    _refuse_unless_utf8(entry)
                    found += self.about(entry, below + entry.name)
        return found

    def about(self, entry: os.DirEntry[bytes], name: bytes) -> tuple[bytes, ...]:
        """The facts of one entry; a folder is noted as still to be read."""
        if name in self.without:
            return ()
        if entry.is_symlink():
            return (name + b"//l" + os.readlink(entry.path),)
        if entry.is_dir(follow_symlinks=False):
            self.pending.append(name + b"/")
            return ()
        if not entry.is_file(follow_symlinks=False):
            return (name + b"//x",)
        if self.limit is not None:
            stat = entry.stat(follow_symlinks=False)
            if stat.st_size > self.limit:
                seconds, rest = divmod(stat.st_mtime_ns, 10**9)
                return b"%b//s%d" % (name, stat.st_size), b"%b//m%d.%09d0" % (name, seconds, rest)
        size, digest = _read(entry.path)
        return b"%b//s%d" % (name, size), b"%b//d%b" % (name, digest.encode())


def _refuse_unless_utf8(entry: os.DirEntry[bytes]) -> None:
    try:
        entry.name.decode()
    except UnicodeDecodeError:
        raise DiskError(
            f"a file name is not valid UTF-8: {entry.path!r}",
            hint="rename it: names must be UTF-8",
            code="bad-name",
        ) from None
