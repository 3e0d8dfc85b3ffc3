"""Ids of tasks and their encoding; the nearest known name to a mistyped one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from treadle.base.digest import blake2b

_PLAIN = re.compile(r"[A-Za-z0-9._-]*\Z")
_LONGEST = 4096  # characters of a name that is compared with others: what a path may have
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
RULE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def encode(value: str) -> str:
    """Percent-encode what is outside `[A-Za-z0-9._-]`, byte by byte of its UTF-8.

    Of a word of the command line that is no UTF-8, byte by byte of what was typed.
    """
    if _PLAIN.match(value):
        return value
    return "".join(
        chr(byte) if chr(byte).isascii() and _PLAIN.match(chr(byte)) else f"%{byte:02X}"
        for byte in value.encode(errors="surrogateescape")
    )


def task_id(rule: str, wildcards: Iterable[tuple[str, str]]) -> str:
    """`align/sample=S1,lane=2`; the bare rule name where there are no wildcards."""
    pairs = ",".join([f"{name}={encode(value)}" for name, value in wildcards])
    return f"{rule}/{pairs}" if pairs else rule


def step_id(name: str, identity: str) -> str:
    """The task id of a step: `@train_0f3c9a1b2d4e`, its name and the first 12 hex digits of its identity."""
    return f"@{encode(name)}_{identity[:12]}"


@lru_cache(maxsize=64)
def job_prefix(run: str) -> str:
    """What the names of all jobs of a run begin with: `t`, 40 bits of the run's id, `-`.

    With the attempt's number behind it at most 15 characters up to 36^5 attempts, which is what old PBS and
    SGE take.
    """
    number = int.from_bytes(blake2b(run.encode(), digest_size=5).digest())
    return "t" + "".join(_BASE32[(number >> shift) & 31] for shift in range(35, -1, -5)) + "-"


def job_name(run: str, n: int) -> str:
    """The name of the job of attempt `n` (from 1) of a run, such as `t4k2abcde-1a`."""
    digits = ""
    while n:
        n, digit = divmod(n, 36)
        digits = _BASE36[digit] + digits
    return job_prefix(run) + digits


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, or an empty string where none is near."""
    if len(name) > _LONGEST:
        return ""
    import difflib  # only on the way to an error message

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else ""


def listing(file: str) -> str:
    """The command that lists the tasks of a file, as typed; empty: of the one that is found without."""
    if not file:
        return "treadle plan --tasks"
    from shlex import quote  # only on the way to an error message

    return f"treadle plan --tasks {quote(file)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'input'?`, or an empty string: for the hint of a diagnostic."""
    found = nearest(name, known)
    return f"did you mean '{found}'?" if found else ""
