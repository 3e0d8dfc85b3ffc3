"""Times and sizes as schedulers write them: out rounded up and never 0, in from whatever they print."""

from __future__ import annotations

import re
import time
from decimal import Decimal

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?)\s*([KMGTP]?)(?:i?b|bytes?)?\s*[nc]?\Z", re.IGNORECASE)
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9}(?::[0-9]{1,9}){0,2})(\.[0-9]+)?\Z")
_SECONDS = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?)\s*(?:s|sec\.?|seconds?|second\(s\))?\Z", re.IGNORECASE)
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\Z")
_SLASHED = re.compile(r"([0-9]{2})/([0-9]{2})/([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?\Z")
_NAMED = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})\Z"
)
_EPOCH = re.compile(r"[0-9]{9,11}(?:\.[0-9]+)?\Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def memory_in(size: int, unit: str) -> int:
    """How many of `unit` (`K`, `M`, `G`, `T`, 1024-based; empty: bytes) hold `size` bytes: at least 1."""
    return max(1, -(-size // _UNITS[unit]))


def per_slot(size: int, slots: int) -> int:
    """Bytes for each of `slots`, so that all together hold `size`."""
    return max(1, -(-size // max(1, slots)))


def whole_seconds(seconds: float) -> int:
    """Rounded up, at least 1: schedulers read 0 as no limit."""
    return max(1, -int(-seconds // 1))


def hours_and_minutes(seconds: float) -> str:
    """`HH:MM` with any number of hours, rounded up to a minute (LSF's `-W`)."""
    hours, minute = divmod(max(1, -int(-seconds // 60)), 60)
    return f"{hours:02}:{minute:02}"


def read_size(text: str) -> int | None:
    """Bytes of `97060K`, `94536kb`, `89.730MB` or `5.2 Gbytes`, all 1024-based; None: it is no size."""
    found = _SIZE.match(text.strip())
    return round(Decimal(found[1]) * _UNITS[found[2].upper()]) if found else None


def read_seconds(text: str) -> float | None:
    """Seconds of `1-02:03:04`, `00:02.569`, `2.183s` or `0.1 second(s)`; None: it is no duration."""
    text = text.strip()
    if found := _SECONDS.match(text):
        return float(found[1])
    found = _CLOCK.match(text)
    if found is None:
        return None
    total = 0
    for part in found[2].split(":"):
        total = total * 60 + int(part)
    if found[1] and found[2].count(":") == 0:
        total *= 3600  # `2-03`: days and hours
    return int(found[1] or 0) * 86_400 + total + float(found[3] or 0)


def read_time(text: str) -> float | None:
    """Seconds since the epoch of a point in time; None for `Unknown`, `None`, `-/-` and the like.

    Texts without a zone are times of this machine: the command that printed them ran here.
    """
    text = text.strip()
    if _EPOCH.match(text):
        return float(text)
    try:
        if found := _ISO.match(text):
            year, month, day, *clock = (int(part) for part in found.groups())
        elif found := _SLASHED.match(text):
            month, day, year, *clock = (int(part) for part in found.groups())
        elif (found := _NAMED.match(text)) and found[1] in _MONTHS:
            month = _MONTHS.index(found[1]) + 1
            day, *clock, year = (int(part) for part in found.groups()[1:])
        else:
            return None
        seconds = time.mktime((year, month, day, clock[0], clock[1], clock[2], 0, 0, -1))
    except (OverflowError, ValueError):
        return None
    return seconds if seconds > 86_400 else None  # SGE writes a time it does not know as 1970


def local_time(seconds: float) -> str:
    """`YYYY-MM-DDTHH:MM:SS` of this machine, as a scheduler's own commands read it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(max(0.0, seconds)))
