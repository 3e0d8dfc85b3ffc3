"""Whether two patterns can both be one path: each becomes an automaton, and both walk together.

Constraints count, as far as a regular expression is regular; what is not (look-around, back references)
and the rule that one wildcard twice is one text are left out, so the answer may be yes too often, never no.
"""

from __future__ import annotations

from functools import lru_cache

from treadle.rules.pattern.automaton import ANY, NO_SLASH, SLASH, Automaton, add_regex, letters
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.pattern.pattern import Deep, One, OneOf, Part, Parts, Star, Text, Wild


def meet(one: Parts, other: Parts) -> bool:
    """Whether some path is both patterns."""
    if not _ends_fit(one, other):
        return False
    left, right = _automaton(one), _automaton(other)
    pending, seen = [(0, 0)], {(0, 0)}
    while pending:
        here, there = pending.pop()
        if here == left.end and there == right.end:
            return True
        for state in _next(left, right, here, there):
            if state not in seen:
                seen.add(state)
                pending.append(state)
    return False


def _ends_fit(one: Parts, other: Parts) -> bool:
    """A quick no: the plain text at the beginnings or at the ends differs."""
    first, second = one[0], other[0]
    if isinstance(first, Text) and isinstance(second, Text):
        shared = min(len(first.text), len(second.text))
        if first.text[:shared] != second.text[:shared]:
            return False
    last, final = one[-1], other[-1]
    if isinstance(last, Text) and isinstance(final, Text):
        shared = min(len(last.text), len(final.text))
        return last.text[-shared:] == final.text[-shared:]
    return True


def _next(left: Automaton, right: Automaton, here: int, there: int) -> list[tuple[int, int]]:
    states = [(target, there) for target in left.jumps[here]]
    states += [(here, target) for target in right.jumps[there]]
    for mask, target in left.steps[here]:
        states += [(target, goal) for other, goal in right.steps[there] if mask & other]
    return states


@lru_cache(maxsize=4096)
def _automaton(parts: Parts) -> Automaton:
    made = Automaton()
    for part in parts:
        _add(made, part)
    return made


def _add(made: Automaton, part: Part) -> None:
    match part:
        case Text(text):
            made.text(text)
        case One():
            made.step(NO_SLASH)
        case OneOf():
            made.step(letters(part.regex) & NO_SLASH)
        case Star():
            made.loop(NO_SLASH)
        case Deep():
            _add_deep(made)
        case Wild(_, None):
            made.step(NO_SLASH)
            made.loop(NO_SLASH)
        case Wild(_, Constraint() as constraint):
            add_regex(made, constraint.text)


def _add_deep(made: Automaton) -> None:
    """Nothing, or anything that ends in a slash."""
    start = made.end
    made.loop(ANY)
    made.step(SLASH)
    made.jumps[start].append(made.end)
