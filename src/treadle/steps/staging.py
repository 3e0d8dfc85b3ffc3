"""Local copies of artifacts that stand in object stores: a private folder, cleared when the process ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock

from treadle.base.digest import blake2b
from treadle.base.disk import disk_error
from treadle.base.errors import DiskError, StepError
from treadle.base.files import make_parents, remove
from treadle.base.layout import ArtifactPlaces, StagingFolder
from treadle.base.proc import host, process_gone, start_time

_WRITABLE_BY_OTHERS = 0o022


class Staging:
    """The staging folder of this process, made when first asked for. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._folder: StagingFolder | None = None
        self._pid = 0
        self._busy: dict[str, Lock] = {}
        self._whole: set[str] = set()

    def work(self, url: str, attempt: str, *, resumable: bool) -> str:
        """A path on which nothing stands (but what a resumable step left), in a folder that does."""
        folder, name = self._here(), ArtifactPlaces(url).name
        path = folder.resume(_place(url), name) if resumable else folder.work(_place(url), attempt, name)
        if not resumable:
            remove(path)
        make_parents(path)
        return path

    def fetched(self, url: str, name: str, bring: Callable[[str], None]) -> str:
        """The local copy of what stands at a URL; `bring` is called once to write it to a path."""
        path = self._here().fetched(_place(url), name)
        with self._lock:
            lock = self._busy.setdefault(path, Lock())
        with lock:
            if path not in self._whole or not os.path.lexists(path):
                remove(path)
                make_parents(path)
                bring(path)
                self._whole.add(path)
        return path

    def drop(self, path: str) -> None:
        """Remove what stands at a work path, and the folder that was made for it."""
        remove(path)
        try:
            os.rmdir(os.path.dirname(path))
        except OSError:
            pass  # the function wrote something beside its path: it goes when the process ends

    def clear(self) -> None:
        """Remove all that this process has staged."""
        with self._lock:
            folder, self._folder = self._folder, None
            self._whole.clear()
        if folder is not None and self._pid == os.getpid():
            try:
                remove(folder.root)
            except DiskError:
                pass  # the next process of this user tries again

    def _here(self) -> StagingFolder:
        with self._lock:
            if self._folder is None or self._pid != os.getpid():  # a fork has its own
                self._whole.clear()
                self._pid = os.getpid()
                self._folder = _make(self.clear)
            return self._folder


def _place(url: str) -> str:
    return blake2b(url.encode(), digest_size=8).hexdigest()


def _make(clear: Callable[[], None]) -> StagingFolder:
    base = staging_base()
    pid = os.getpid()
    _private(base)
    folder = StagingFolder(base, f"{host()}.{pid}.{start_time(pid)}")
    _sweep(base)
    try:
        for private in (folder.root, folder.kept):
            os.makedirs(private, mode=0o700, exist_ok=True)
    except OSError as error:
        raise disk_error("make the folder", folder.root, error) from error
    import atexit

    atexit.register(clear)
    return folder


def staging_base() -> str:
    """The folder below which all processes of this user stage; it need not be there."""
    chosen = os.environ.get("TREADLE_STAGING", "")
    if chosen:
        return os.path.abspath(chosen)
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"treadle-{os.getuid()}")


def _private(base: str) -> None:
    """Make the folder, for us alone; refuse one that another user could have prepared or can change."""
    try:
        os.makedirs(base, mode=0o700, exist_ok=True)
        found = os.lstat(base)
    except OSError as error:
        raise disk_error("make the folder", base, error) from error
    link = os.path.islink(base)
    if link or found.st_uid != os.getuid() or found.st_mode & _WRITABLE_BY_OTHERS:
        raise StepError(
            f"'{base}' cannot be used for staging: "
            + ("it is a symbolic link" if link else "another user owns it, or may write to it"),
            hint="set TREADLE_STAGING to a folder that is yours alone",
            code="unsafe-staging",
        )


def _sweep(base: str) -> None:
    """Remove what processes of this host left that ended without clearing up."""
    for name in sorted(os.listdir(base)):
        where, _, rest = name.rpartition(".")
        machine, _, pid = where.rpartition(".")
        if machine == host() and pid.isdigit() and rest.isdigit() and process_gone(int(pid), int(rest)):
            try:
                remove(os.path.join(base, name))
            except DiskError:
                pass


STAGING = Staging()
