"""Automata over sets of characters: texts, loops, and regular expressions as far as they are regular.

What is not (look-around, back references) is taken for any text, so an automaton may take too much, never
too little.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

# A set of characters is a number with one bit for each printable character of ASCII and one for the rest.
_CHARACTERS = [chr(code) for code in range(32, 127)] + ["\u00e9"]
_REST = len(_CHARACTERS) - 1
ANY = (1 << len(_CHARACTERS)) - 1
SLASH = 1 << (ord("/") - 32)
NO_SLASH = ANY & ~SLASH
_MOST_COPIES = 50  # of a repeated part: beyond it, any number


class Automaton:
    """States with steps over sets of characters and with free jumps; built from beginning to end."""

    __slots__ = ("end", "jumps", "steps")

    def __init__(self) -> None:
        self.steps: list[list[tuple[int, int]]] = [[]]
        self.jumps: list[list[int]] = [[]]
        self.end = 0

    def state(self) -> int:
        """A new state, reached by nothing yet."""
        self.steps.append([])
        self.jumps.append([])
        return len(self.steps) - 1

    def step(self, mask: int) -> None:
        """One character of a set."""
        target = self.state()
        self.steps[self.end].append((mask, target))
        self.end = target

    def loop(self, mask: int) -> None:
        """Any number of characters of a set, also none."""
        target = self.state()
        self.jumps[self.end].append(target)
        self.steps[target].append((mask, target))
        self.end = target

    def text(self, text: str) -> None:
        """These characters."""
        for character in text:
            self.step(_bit(character))


def _bit(character: str) -> int:
    code = ord(character)
    return 1 << (code - 32 if 32 <= code < 127 else _REST)


def letters(regex: re.Pattern[str]) -> int:
    return sum(1 << at for at, character in enumerate(_CHARACTERS) if regex.fullmatch(character))


def add_regex(made: Automaton, text: str) -> None:
    parser = importlib.import_module("re._parser")  # what `re` itself reads a pattern with
    parsed: Any = parser.parse(text)
    _add_nodes(made, parsed, bool(parsed.state.flags & re.IGNORECASE))


def _add_nodes(made: Automaton, nodes: Any, fold: bool) -> None:
    for kind, detail in nodes:
        _add_node(made, str(kind), detail, fold)


def _add_node(made: Automaton, kind: str, detail: Any, fold: bool) -> None:
    match kind:
        case "LITERAL":
            made.step(_letter(detail, fold))
        case "NOT_LITERAL":
            made.step(ANY & ~_letter(detail, fold) | 1 << _REST)
        case "ANY":
            made.step(ANY)
        case "IN":
            made.step(_set(detail, fold))
        case "BRANCH":
            _add_branch(made, detail[1], fold)
        case "SUBPATTERN":
            _, on, off, nodes = detail
            _add_nodes(made, nodes, (fold or bool(on & re.IGNORECASE)) and not off & re.IGNORECASE)
        case "ATOMIC_GROUP":
            _add_nodes(made, detail, fold)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = detail
            _add_repeat(made, least, most, inner, fold)
        case "AT" | "ASSERT" | "ASSERT_NOT":
            pass
        case _:
            made.loop(ANY)


def _add_branch(made: Automaton, branches: Any, fold: bool) -> None:
    start, ends = made.end, []
    for nodes in branches:
        made.end = made.state()
        made.jumps[start].append(made.end)
        _add_nodes(made, nodes, fold)
        ends.append(made.end)
    made.end = made.state()
    for end in ends:
        made.jumps[end].append(made.end)


def _add_repeat(made: Automaton, least: int, most: Any, nodes: Any, fold: bool) -> None:
    if least > _MOST_COPIES or len(made.steps) > 20 * _MOST_COPIES:
        made.loop(ANY)
        return
    for _ in range(least):
        _add_nodes(made, nodes, fold)
    extra = int(most) - least
    skips = [made.end]
    if extra <= _MOST_COPIES:
        for _ in range(extra):
            _add_nodes(made, nodes, fold)
            skips.append(made.end)
    else:
        start = made.end = _behind(made)
        _add_nodes(made, nodes, fold)
        made.jumps[made.end].append(start)
        skips.append(start)
    made.end = _behind(made)
    for state in skips:
        made.jumps[state].append(made.end)


def _behind(made: Automaton) -> int:
    """A new state that is reached from the end by a jump."""
    target = made.state()
    made.jumps[made.end].append(target)
    return target


def _letter(code: int, fold: bool) -> int:
    character = chr(code)
    return _bit(character) | _bit(character.swapcase()[:1]) if fold else _bit(character)


def _set(members: Any, fold: bool) -> int:
    mask, negated = 0, False
    for kind, detail in members:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                mask |= _letter(detail, fold)
            case "RANGE":
                low, high = detail
                mask |= sum(1 << at for at, one in enumerate(_CHARACTERS[:-1]) if low <= ord(one) <= high)
                mask |= 1 << _REST if high > 126 else 0
                mask |= _folded(mask) if fold else 0
            case _:  # CATEGORY: \d, \w, \s and their opposites
                mask |= letters(re.compile(_CATEGORIES.get(str(detail), "")))
    return (ANY & ~mask) | 1 << _REST if negated else mask


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
}


def _folded(mask: int) -> int:
    letters = [one for at, one in enumerate(_CHARACTERS[:-1]) if mask >> at & 1]
    return sum({_bit(one.swapcase()) for one in letters})
