"""Sizes and durations: texts of people in, bytes and seconds inside, exact texts out.

Errors are `ValueError`s that name the thing and the way out; the caller adds the place.
"""

from __future__ import annotations

import re

_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_SIZE = re.compile(rf"{_NUMBER}\s*([A-Za-z]*)\Z")
_PART = re.compile(rf"{_NUMBER}\s*([A-Za-z]+)\s*")
_CLOCK = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]{1,2}):([0-9]{1,2})\Z")
_SHORT_CLOCK = re.compile(r"([0-9]+):([0-9]{1,2})\Z")

_POWERS = ("k", "m", "g", "t", "p")
_SIZES = (
    {"b": 1, "": 1024**2}
    | {letter: 1024**power for power, letter in enumerate(_POWERS, 1)}
    | {f"{letter}ib": 1024**power for power, letter in enumerate(_POWERS, 1)}
    | {f"{letter}b": 1000**power for power, letter in enumerate(_POWERS, 1)}
)
_SECONDS = {
    word: seconds
    for seconds, words in (
        (604_800, "w week weeks"),
        (86_400, "d day days"),
        (3_600, "h hr hrs hour hours"),
        (60, "m min mins minute minutes"),
        (1, "s sec secs second seconds"),
    )
    for word in words.split()
}


def parse_size(value: object, *, zero: bool = False) -> int:
    """Bytes of a size such as `8G`, `1.5 GiB`, `500MB` or 4000, a fraction of a byte rounded up.

    K M G T P and KiB.. are 1024-based, KB MB GB.. 1000-based, a bare number counts in M (1024^2 bytes, as
    in the first implementation of the format). Upper and lower case are the same. Raises ValueError; also
    for 0, which schedulers read as "no limit", unless `zero`.
    """
    text = _as_text(value)
    found = _SIZE.match(text.strip())
    unit = _SIZES.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"{value!r} is not a size: write a number and K, M, G or T, such as '8G' or '1.5G'")
    size = -(-_scaled(found[1], unit) // _SCALE)
    if not size and not zero:
        raise ValueError(f"{value!r} is a size of 0: write what is needed, or leave the field out")
    return size


def parse_duration(value: object, *, zero: bool = False) -> float:
    """Seconds of a duration such as `90m`, `1h30m`, `1.5 days`, `HH:MM:SS` or `D-HH:MM:SS`.

    Raises ValueError; also for what can be read in two ways (a bare number, `10:00`), and for 0, which
    schedulers read as "no limit", unless `zero`.
    """
    text = _as_text(value).strip()
    _refuse_two_readings(value, text)
    scaled = _clock(text) if ":" in text else _sum_of_parts(text)
    if scaled is None:
        raise ValueError(
            f"{value!r} is not a duration: write it like '90m', '1h30m', '2d', '01:30:00' or '1-12:00:00'"
        )
    if not scaled and not zero:
        raise ValueError(f"{value!r} is a duration of 0: write how long, or leave the field out")
    return scaled / _SCALE


_SCALE = 10**18  # exact to 18 decimals, without importing fractions


def _scaled(number: str, unit: int) -> int:
    whole, _, decimals = number.partition(".")
    kept = decimals[:18]
    more = bool(decimals[18:].strip("0"))  # beyond: counts only so far that it rounds up
    return (int(whole or "0") * _SCALE + int(kept.ljust(18, "0")) + more) * unit


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{value!r} is neither a text nor a number")


def _refuse_two_readings(value: object, text: str) -> None:
    if re.fullmatch(_NUMBER, text):
        raise ValueError(
            f"{value!r} may mean seconds or minutes: write '{text}s' or '{text}m'",
        )
    if found := _SHORT_CLOCK.match(text):
        left, right = found.groups()
        raise ValueError(
            f"{value!r} may mean {left} hours {right} minutes or {left} minutes {right} seconds: "
            f"write '{left}h{right}m' or '{left}m{right}s'"
        )


def _clock(text: str) -> int | None:
    found = _CLOCK.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or "0") for part in found.groups())
    if minutes > 59 or seconds > 59 or (found[1] is not None and hours > 23):
        return None
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * _SCALE


def _sum_of_parts(text: str) -> int | None:
    """`1h30m`: parts from large to small, each unit once."""
    at, total, last = 0, 0, None
    while found := _PART.match(text, at):
        unit = _SECONDS.get(found[2].lower())
        if unit is None or (last is not None and unit >= last):
            return None
        total += _scaled(found[1], unit)
        at, last = found.end(), unit
    return total if last is not None and at == len(text) else None


def format_size(size: int) -> str:
    """The shortest exact text of a number of bytes: `8G`, `1536M`, `1000B`; `parse_size` gives it back."""
    for power in range(len(_POWERS), 0, -1):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{_POWERS[power - 1].upper()}"
    return f"{size}B"


def format_duration(seconds: float) -> str:
    """`1h30m`, `2d`, `0.25s`: exact to the millisecond; `parse_duration` gives it back."""
    thousandths = round(seconds * 1000)
    rest, thousandths = divmod(thousandths, 60_000)
    parts = []
    for unit, size in (("d", 1440), ("h", 60), ("m", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    if thousandths or not parts:
        parts.append(f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def format_clock(seconds: float, *, days: bool = True) -> str:
    """`D-HH:MM:SS` for a scheduler, or `HH:MM:SS` with any number of hours; rounded up, never 0."""
    whole = max(1, -int(-seconds // 1))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if not days:
        return f"{hours:02}:{minute:02}:{second:02}"
    day, hour = divmod(hours, 24)
    return f"{day}-{hour:02}:{minute:02}:{second:02}"
