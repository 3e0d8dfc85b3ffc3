"""Which store an output path or a prefix belongs to: plain file systems, or one of the object stores."""

from __future__ import annotations

import os
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from treadle.base.errors import StepError
from treadle.steps.object_url import MEMORY, SCHEMES, scheme_of, spot

if TYPE_CHECKING:
    from treadle.steps.store import ArtifactStore

_FILE = "file"
_stores: dict[tuple[int, str, bool], ArtifactStore] = {}
_lock = Lock()


def store_for(path: str, *, unsafe_locks: bool = False) -> ArtifactStore:
    """The store of an absolute path or a URL, the same object for one bucket over the whole process.

    `unsafe_locks` allows stores without conditional writes, where nothing keeps two runs apart. Raises
    `StepError` for a scheme that is not supported, `DiskError` where the store cannot be opened.
    """
    scheme = "" if path.startswith("/") else scheme_of(path)
    if scheme not in ("", _FILE, *SCHEMES):
        raise _unknown(scheme, path)
    root = spot(path).root if scheme in SCHEMES else ""
    key = (os.getpid(), root, unsafe_locks)
    found = _stores.get(key)
    if found is None:
        with _lock:
            found = _stores.get(key) or _stores.setdefault(key, _make(root, unsafe_locks))
    return found


def local_path(path: str) -> str:
    """A path as the local store takes it: `file:///data` is `/data`."""
    if scheme_of(path) != _FILE:
        return path
    host, slash, rest = path.partition("://")[2].partition("/")
    if host not in ("", "localhost") or not slash:
        raise StepError(
            f"'{path}' names no file of this machine",
            hint="write it as a plain path, or as file:///folder",
            code="bad-url",
        )
    return slash + rest


def refuse_elsewhere(name: str, paths: Iterable[str]) -> None:
    """Raise `StepError` where a step that runs in another process writes or reads this one's memory."""
    for path in paths:
        if scheme_of(path) == MEMORY:
            raise StepError(
                f"step '{name}' runs in a process of its own, which cannot reach '{path}'",
                hint="memory:// is the memory of this process alone: take another prefix, or run the step"
                " in a thread (without resources, timeout, env_vars and isolation)",
                code="memory-elsewhere",
            )


def _make(root: str, unsafe_locks: bool) -> ArtifactStore:
    if root:
        from treadle.steps.object_store import ObjectStore

        return ObjectStore(root, unsafe_locks=unsafe_locks)
    from treadle.steps.local_store import LocalStore

    return LocalStore()


def _unknown(scheme: str, path: str) -> StepError:
    hint = f"supported are plain paths, file:// and {', '.join(f'{one}://' for one in SCHEMES)}"
    if scheme in ("http", "https"):
        hint += "; for a server of your own that speaks S3 write s3://bucket and set AWS_ENDPOINT_URL"
    else:
        hint += "; what fsspec reaches beside these has no conditional writes, which leases need: mount it"
    return StepError(f"'{path}': artifacts cannot stand at {scheme}://", hint=hint, code="unknown-scheme")
