"""`Bucket`: the few things that are asked of an object store, with our errors and its conditional writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from msgspec import Struct

from treadle.steps.object_errors import store_error
from treadle.steps.object_open import open_remote

T = TypeVar("T")
_PAGE = 1000  # what S3 lists at once
_TOGETHER = 500  # objects removed by one call: S3 takes 1000 at a time


class Version(Struct, frozen=True):
    """What one write of an object is known by: `tag` is its ETag, `number` its generation on GCS."""

    tag: str
    number: str = ""


class Found(Struct, frozen=True):
    """A small object as it was read."""

    data: bytes
    version: Version


class Entry(Struct, frozen=True):
    """One object of a listing; `size` in bytes."""

    key: str
    size: int


class ChangedError(Exception):
    """The object exists, or is of another version than the write was told; nothing was written."""


class Bucket:
    """One object store, by keys. All methods may be called from any thread and raise `DiskError`."""

    def __init__(self, root: str, *, unsafe: bool = False) -> None:
        self.root = root
        self.unsafe = unsafe
        self._small, self.data = open_remote(root)

    def url(self, key: str) -> str:
        return f"{self.root}/{key}" if not self.root.endswith("//") else f"{self.root}{key}"

    def get(self, key: str) -> Found | None:
        """The content of a small object, or None where there is none."""

        def read() -> Found:
            answer = self._small.get(key)
            return Found(bytes(answer.bytes()), _version(answer.meta))

        try:
            return self.asked("read", key, read)
        except FileNotFoundError:
            return None

    def size(self, key: str) -> int | None:
        """Bytes of an object, or None where there is none."""
        try:
            return int(self.asked("look at", key, lambda: self._small.head(key)["size"]))
        except FileNotFoundError:
            return None

    def create(self, key: str, data: bytes) -> Version:
        """Write an object that does not exist. Raises `ChangedError` when it does."""
        if self.unsafe:
            if self.get(key) is not None:
                raise ChangedError(key)
            return self.put(key, data)
        return self._write(key, data, "create")

    def replace(self, key: str, data: bytes, version: Version) -> Version:
        """Write over an object that is still of that version. Raises `ChangedError` when it is not."""
        if self.unsafe:
            found = self.get(key)
            if found is None or found.version.tag != version.tag:
                raise ChangedError(key)
            return self.put(key, data)
        return self._write(key, data, _condition(version))

    def put(self, key: str, data: bytes) -> Version:
        """Write over whatever is there."""
        return self._write(key, data, "overwrite")

    def entries(self, folder: str) -> Iterator[Entry]:
        """All objects below a folder, in no order."""
        stream = self.asked("list", folder, lambda: iter(self._small.list(folder or None, chunk_size=_PAGE)))
        while True:
            page = self.asked("list", folder, lambda: next(stream, None))
            if page is None:
                return
            for one in page:
                yield Entry(one["path"], one["size"])

    def page(self, folder: str) -> tuple[list[Entry], bool]:
        """The first objects below a folder, by one request; and whether they are all."""
        stream = self.asked("list", folder, lambda: iter(self._small.list(folder, chunk_size=_PAGE)))
        first = self.asked("list", folder, lambda: next(stream, None)) or []
        return [Entry(one["path"], one["size"]) for one in first], len(first) < _PAGE

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; missing ones are fine."""
        names = list(keys)
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            try:
                self.asked("remove", some[0], lambda some=some: self._small.delete(some))  # type: ignore[misc]
            except FileNotFoundError:  # GCS and Azure say so, and stop there
                for name in some:
                    self._delete_one(name)

    def _delete_one(self, name: str) -> None:
        try:
            self.asked("remove", name, lambda: self._small.delete(name))
        except FileNotFoundError:
            pass

    def _write(self, key: str, data: bytes, mode: Any) -> Version:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            return self.asked(
                "write",
                key,
                lambda: _version(self._small.put(key, data, mode=mode, use_multipart=False)),
                (AlreadyExistsError, PreconditionError),
            )
        except (AlreadyExistsError, PreconditionError) as error:
            raise ChangedError(key) from error
        except FileNotFoundError as error:
            if isinstance(mode, dict):  # the object that was to be replaced is gone
                raise ChangedError(key) from error
            raise store_error("write", self.url(key), error) from None

    def asked(
        self, deed: str, key: str, ask: Callable[[], T], through: tuple[type[Exception], ...] = ()
    ) -> T:
        """One call of obstore with its errors as ours; `FileNotFoundError` and those of `through` stay.

        Its own are not shown below ours: they are long, and hold addresses with their signatures.
        """
        from obstore.exceptions import BaseError

        try:
            return ask()
        except through:
            raise
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
                raise store_error(deed, self.url(key), error) from None
            raise
        except (BaseError, ValueError, NotImplementedError) as error:
            raise store_error(deed, self.url(key), error) from None


def _condition(version: Version) -> dict[str, str]:
    told = {"e_tag": version.tag, "version": version.number}
    return {name: value for name, value in told.items() if value}


def _version(told: Any) -> Version:
    return Version(told["e_tag"] or "", told["version"] or "")
