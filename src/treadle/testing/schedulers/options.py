"""Command lines and directive lines of submissions, taken apart."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

Options = list[tuple[str, tuple[str, ...]]]


class OptionError(Exception):
    """An option that the command does not know, or one without its value."""


def read(
    arguments: Sequence[str], spec: Mapping[str, int], *, attached: bool = True, mixed: bool = True
) -> tuple[Options, list[str]]:
    """Options with their values, and the words that are none.

    `spec` tells how many values follow an option. `attached`: `-n4` and `--ntasks=4` are `-n 4`. `mixed`:
    options may follow other words; else those end them. Raises `OptionError`.
    """
    found: Options = []
    words: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            return found, [*words, *arguments[at:]]
        if not word.startswith("-") or word == "-":
            if not mixed:
                return found, [word, *arguments[at:]]
            words.append(word)
            continue
        name, values = _one(word, spec, attached)
        missing = spec[name] - len(values) if not values or spec[name] > 1 else 0
        if at + missing > len(arguments):
            raise OptionError(f"option requires an argument -- '{name.lstrip('-')}'")
        found.append((name, (*values, *arguments[at : at + missing])))
        at += missing
    return found, words


def _one(word: str, spec: Mapping[str, int], attached: bool) -> tuple[str, tuple[str, ...]]:
    if word in spec:
        return word, ()
    if attached and word.startswith("--") and "=" in word:
        name, _, value = word.partition("=")
        if name in spec:
            return name, (value,)
    if attached and not word.startswith("--") and spec.get(word[:2]):
        return word[:2], (word[2:].removeprefix("="),)
    raise OptionError(f"unrecognized option '{word}'")


def directives(script: bytes, mark: str, *, everywhere: bool = False) -> list[str]:
    """The words of the directive lines at the top of a script, up to its first command.

    `everywhere`: those behind it count, too, as for qsub of Grid Engine and for bsub, which even read them
    out of quoted texts.
    """
    words: list[str] = []
    for line in script.decode(errors="surrogateescape").splitlines():
        if line.startswith(mark):
            words += _words(line[len(mark) :])
        elif line.strip() and not line.lstrip().startswith("#") and not everywhere:
            break
    return words


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote without its end
        return text.split()


def indices(text: str) -> tuple[int, ...]:
    """The elements that an array names: `1-10`, `0-6:2`, `1,3,7-9`. Raises `ValueError`."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if not match:
            raise ValueError(text)
        first, last, step = match[1], match[2] or match[1], match[3] or "1"
        if int(last) < int(first) or int(step) < 1:
            raise ValueError(text)
        found += range(int(first), int(last) + 1, int(step))
    return tuple(dict.fromkeys(found))


def ranges(numbers: Sequence[int]) -> str:
    """The other way: `1,4-5`."""
    parts: list[str] = []
    first = last = None
    for number in [*sorted(numbers), None]:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = number
    return ",".join(parts)
