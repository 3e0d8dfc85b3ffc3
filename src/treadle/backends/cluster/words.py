"""Small text functions that all dialects share: lines, complaints, ids, ranges, names, options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.backends.cluster.dialect import Answer, Said, Silence, Sort

ARGUMENT_LENGTH = 100_000
"""The most characters of ids in one command: Linux takes 128 KiB in one argument."""

MOST_INDICES = 200_000
"""A range of more elements than this is no array of ours, and is not written out."""

# The last two are the words for an element's index in the paths of SGE and PBS.
_PLAIN = re.compile(r"(?:[\w./+@%:=,~-]|\$TASK_ID|\^array_index\^)+\Z")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?\Z")
_NUMBER = re.compile(r"[0-9]{1,18}\Z")
_PREFIX = re.compile(
    r"^(?:(?:sbatch|squeue|sacct|scancel|scontrol|q(?:sub|stat|del|select|acct)): )?(?:fatal: |error: )?"
)
_SEPARATED = re.compile(r"(-[^\s=]+)\s+(\S.*)\Z", re.DOTALL)


class Signs(Struct, frozen=True):
    """The words by which failures are told apart; whatever fits none of them is a refusal."""

    unclear: re.Pattern[str]
    limit: re.Pattern[str]
    transient: re.Pattern[str]


def lines(text: str) -> list[str]:
    """The lines that are not empty, without the blanks around them."""
    return [line for line in (line.strip() for line in text.splitlines()) if line]


def last_line(text: str) -> str:
    """The last line that is not empty: sites wrap commands, and print banners before the answer."""
    found = lines(text)
    return found[-1] if found else ""


def complaint(said: Said) -> str:
    """What went wrong, in the scheduler's own words, on one line of at most 500 characters."""
    if said.code is None:
        return "no answer in time"
    kept: list[str] = []
    for line in lines(said.err) or lines(said.out):
        words = _PREFIX.sub("", line).strip()
        if words and words != "Exiting." and words not in kept:
            kept.append(words)
    text = "; ".join(kept) or f"exit code {said.code}, without a word"
    return text if len(text) <= 500 else text[:497] + "..."


def not_taken(said: Said, signs: Signs) -> Answer:
    """What a submission means whose answer holds no id.

    Exit code 0 without an id, no answer in time and death by a signal are unclear: the scheduler may have
    taken the job.
    """
    words = complaint(said)
    silent = not said.err.strip() and not said.out.strip()
    if said.code is None or said.code <= 0 or silent or signs.unclear.search(words):
        if said.code == 0:
            words = f"no job id in the answer: {last_line(said.out) or words}"
        return Answer(Sort.UNCLEAR, message=words)
    if signs.limit.search(words):
        return Answer(Sort.LIMIT, message=words)
    if signs.transient.search(words):
        return Answer(Sort.TRANSIENT, message=words)
    return Answer(Sort.REFUSED, message=words)


def silence(said: Said, signs: Signs) -> Silence:
    """A question that failed: `down` where the words say that the system cannot be reached."""
    words = complaint(said)
    down = said.code is None or bool(signs.unclear.search(words) or signs.transient.search(words))
    return Silence(words, down=down)


def unreadable(said: Said) -> Silence:
    """An answer that is there, but is none that this dialect knows."""
    return Silence(f"the answer cannot be read: {last_line(said.out)[:200]}", down=False)


def indices(text: str) -> list[int]:
    """The elements of `1,4-5,7-11:2%3` (`%3`: how many at once); those that cannot be read are left out."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        span = _RANGE.match(part.strip())
        if span is None:
            continue
        first, last = int(span[1]), int(span[2] or span[1])
        step = int(span[3] or 1)
        if step and 0 <= last - first < MOST_INDICES * step and len(found) < MOST_INDICES:
            found.extend(range(first, last + 1, step))
    return found


def number(text: str) -> int:
    """A whole number of at most 18 digits; 0 for anything else."""
    return int(text) if _NUMBER.match(text) else 0


def distinct(words: Iterable[str]) -> list[str]:
    """Each of them once, in order."""
    return list(dict.fromkeys(words))


def chunks(words: Sequence[str], most: int = MOST_INDICES) -> list[list[str]]:
    """Groups that fit into one command: `most` words and `ARGUMENT_LENGTH` characters each."""
    groups: list[list[str]] = []
    room = 0
    for word in words:
        if not groups or len(word) + 1 > room or len(groups[-1]) >= most:
            groups.append([])
            room = ARGUMENT_LENGTH
        groups[-1].append(word)
        room -= len(word) + 1
    return groups


def plain(text: str) -> bool:
    """Nothing in it could mean anything in a directive line, quoted or not."""
    return bool(_PLAIN.match(text))


def one_line(text: str) -> str:
    """Without control characters, which neither a directive nor a listing can hold."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def job_name(name: str, longest: int) -> str:
    """A name that every scheduler takes: `[A-Za-z0-9_.-]`, a letter first, at most `longest` characters."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    if not safe[:1].isalpha():
        safe = "t" + safe
    return safe[:longest]


def given(options: Iterable[str]) -> list[str]:
    """The user's options as arguments: `-l mem=4G`, written as one text, becomes two words."""
    words: list[str] = []
    for option in options:
        found = _SEPARATED.match(option)
        words.extend(found.groups() if found else (option,))
    return words
