"""Times and sizes, as schedulers read and print them."""

from __future__ import annotations

import re
import time

_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size(text: str, unit: int = 1) -> int:
    """`4G`, `200mb`, `1.5g`; a bare number is in `unit` bytes. Raises `ValueError`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?(b?)", text.strip().lower())
    if not match:
        raise ValueError(text)
    if not match[2] and not match[3]:
        return int(float(match[1]) * unit)
    return int(float(match[1]) * 1024 ** _POWERS[match[2]])


def clock_seconds(text: str, bare: int = 1) -> float:
    """`HH:MM:SS`, `MM:SS`, `D-HH[:MM[:SS]]`; a bare number is in `bare` seconds. Raises `ValueError`."""
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if len(parts) > 3 or (dash and not days):
        raise ValueError(text)
    if dash:
        parts += [0] * (3 - len(parts))
        return int(days) * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2]
    if len(parts) == 1:
        return parts[0] * bare
    return float(sum(part * 60**power for power, part in enumerate(reversed(parts))))


def iso(moment: float) -> str:
    """`2026-11-29T11:58:32`, in this machine's time zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))


def from_iso(text: str, now: float) -> float:
    """A start time as sacct takes it: ISO, `now`, `now-1hour`. Raises `ValueError`."""
    match = re.fullmatch(r"now(?:-(\d+)(second|minute|hour|day|week)s?)?", text)
    if match:
        unit = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
        return now - int(match[1] or 0) * unit[match[2] or "second"]
    for shape in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text, shape))
        except ValueError:
            continue
    raise ValueError(text)


def ctime(moment: float) -> str:
    """`Sun Nov 29 11:35:00 2026`, the days padded by blanks, English on every machine."""
    return time.asctime(time.localtime(moment))


def hms(seconds: float) -> str:
    """`00:01:07`, hours without bound."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def days_hms(seconds: float) -> str:
    """`00:01:07`, `1-00:00:00`."""
    whole = int(seconds)
    return f"{whole // 86400}-{hms(whole % 86400)}" if whole >= 86400 else hms(whole)


def short(seconds: float) -> str:
    """`0:19`, `1:00:00`, `1-00:00:00`: as squeue prints them."""
    whole = int(seconds)
    if whole >= 86400:
        return days_hms(whole)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"
