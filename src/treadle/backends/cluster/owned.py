"""Which of the user's extra options belong to the engine, in every spelling that the commands take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from treadle.backends.cluster.words import given


def of_getopt(options: Sequence[str], *, long: Iterable[str], short: str, flags: str) -> list[str]:
    """For commands that parse as GNU getopt does: `-J x`, `-Jx`, `-HJx`, `--job-name=x`, `--job x`.

    `short` are the letters that are owned, `flags` those that take no value (so that another may follow in
    the same word). Abbreviations count as what they may mean. `--` would make an end of all options.
    """
    return _which(options, lambda word: _long(word, long) if word[:2] == "--" else _short(word, short, flags))


def of_words(options: Sequence[str], *, words: Iterable[str], attached: Iterable[str] = ()) -> list[str]:
    """For commands whose options are whole words behind one dash; `attached`: those that take `-Jx` too."""
    whole, starts = frozenset(words), tuple(attached)
    return _which(options, lambda word: word in whole or bool(starts and word.startswith(starts)))


def _which(options: Sequence[str], is_owned: Callable[[str], bool]) -> list[str]:
    return [option for option in options if option[:1] == "-" and is_owned(given([option])[0])]


def _long(word: str, names: Iterable[str]) -> bool:
    name = word[2:].partition("=")[0]
    return any(owned.startswith(name) for owned in names)


def _short(word: str, owned: str, flags: str) -> bool:
    for letter in word[1:]:
        if letter in owned:
            return True
        if letter not in flags:
            return False  # the rest is its value
    return False
