"""URLs of object stores: the bucket that they name, and the key in it, taken as it is written."""

from __future__ import annotations

import re

from msgspec import Struct

from treadle.base.errors import StepError

MEMORY = "memory"
# What `obstore.store.from_url` takes for a store that can be written to, by the scheme of the URL.
SCHEMES = (MEMORY, "s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.S)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Spot(Struct, frozen=True):
    """A place in an object store: `root` is a URL of the store as a whole, `key` a name in it ("": all)."""

    root: str
    key: str


def scheme_of(path: str) -> str:
    """The scheme of a URL in lower case; empty for a path."""
    found = _URL.match(path)
    return found[1].lower() if found else ""


def spot(url: str) -> Spot:
    """The bucket and the key of a URL. The key is not decoded: `%20` is three characters, as in S3 itself.

    Raises `StepError` for `..`, `.`, `//` and control characters in it, and where no bucket is named.
    """
    found = _URL.match(url)
    if not found:
        raise _bad(url, "it is no URL")
    scheme, rest = found[1].lower(), found[2]
    bucket, _, key = ("", "", rest.lstrip("/")) if scheme == MEMORY else rest.partition("/")
    if not bucket and scheme != MEMORY:
        raise _bad(url, "it names no bucket")
    key = key.rstrip("/")
    if _CONTROL.search(key):
        raise _bad(url, "it holds a control character")
    for part in key.split("/") if key else ():
        if part in ("", ".", ".."):
            raise _bad(url, f"'{part}' may not stand in it as a part" if part else "it holds '//'")
    return Spot(f"{scheme}://{bucket}", key)


def _bad(url: str, why: str) -> StepError:
    return StepError(
        f"'{url}' is not a place for artifacts: {why}",
        hint="write it as s3://bucket/some/prefix",
        code="bad-url",
    )
