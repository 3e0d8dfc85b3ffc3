"""What object stores answer, in our own errors: what may pass by itself, what will not, and the way out."""

from __future__ import annotations

import re

from treadle.base.errors import DiskError, StepError

_FOR_GOOD = re.compile(r"status code: 4(?!08|25|29)[0-9][0-9]")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
_NO_CREDENTIALS = re.compile(r"Missing ?(AccessKey|SecretAccess|Account)|169\.254\.16|credential", re.I)
_ANSWER = re.compile(r"<Code>([^<]{1,100})</Code>(?:\s*<Message>([^<]{1,300}))?")
_QUERY = re.compile(r"\?[^\s\"'>)]+")  # may hold a signature


class StorageOutError(DiskError):
    """The storage cannot be reached, or is overloaded: that may pass, and asking again is right."""

    code = "storage-out"


def store_error(deed: str, place: str, error: Exception) -> DiskError:
    """The error for a failed deed (`read`, `write`) at a place, from what obstore raised."""
    text = str(error)
    told = f"cannot {deed} '{place}': {_first_line(text)}{_answer(text)}"
    kind = type(error).__name__
    if _NO_BUCKET.search(text):
        return DiskError(told, hint="make the bucket, or mend its name in the prefix", code="no-bucket")
    if kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return DiskError(
            told, hint="look whether the credentials may read, write, list and delete there", code="no-access"
        )
    if _NO_CREDENTIALS.search(text):
        return DiskError(
            told,
            hint="set them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            code="no-credentials",
        )
    if isinstance(error, ValueError):
        return DiskError(told, hint="rename it: the store does not take such names", code="bad-name")
    if kind == "GenericError" and not _FOR_GOOD.search(text):
        return StorageOutError(told, hint="look whether the storage can be reached from here, and run again")
    return DiskError(told, hint="look at the URL, at the endpoint and at the storage's own log")


def no_conditions(root: str) -> StepError:
    """A store that takes every write cannot keep two writers apart."""
    return StepError(
        f"'{root}' does not refuse conditional writes (If-None-Match, If-Match): two runs could write one"
        " artifact at a time, and neither would know",
        hint="use a storage that has them (S3, GCS, Azure, MinIO, R2, ...), or allow it with"
        " unsafe_locks=True where one run alone writes there",
        code="no-conditional-writes",
    )


def _answer(text: str) -> str:
    """What the storage itself said: `: SlowDown: Please reduce your request rate.`"""
    found = _ANSWER.search(text)
    return "".join(f": {part.strip()}" for part in found.groups() if part) if found else ""


def _first_line(text: str) -> str:
    """Without the debug output, the body of the answer and what stands behind `?` in its address."""
    head = text.partition("\n")[0].partition("<?xml")[0].partition("<Error")[0]
    return _QUERY.sub("?...", head).strip().rstrip(":")
