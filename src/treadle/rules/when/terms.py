"""The terms of a condition: their types, how they may be put together, and how they are evaluated.

Texts, numbers and yes/no are never mixed, and only numbers have an order: what cannot be compared is found
while the rule is read, whatever the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from treadle.rules.schema import Value
from treadle.rules.when.words import ConditionError


class Type(StrEnum):
    """What a value of a condition is."""

    TEXT = "a text"
    NUMBER = "a number"
    TRUTH = "true or false"
    LIST = "a list"


class Setting(Struct, frozen=True):
    """What one task's condition is evaluated with; `exists` is asked for paths of `file_exists`."""

    values: Mapping[str, str]
    params: Mapping[str, Value]
    exists: Callable[[str], bool]


Eval = Callable[[Setting], Value]


class Term(Struct, frozen=True):
    """A part of a condition: as written, its type (of a list: those of its items), how to get its value."""

    text: str
    type: Type
    eval: Eval
    items: frozenset[Type] = frozenset()


def type_of(value: Value) -> Type:
    """The type of a config value or a param."""
    match value:
        case bool():
            return Type.TRUTH
        case int() | float():
            return Type.NUMBER
        case tuple() | list():
            return Type.LIST
        case _:
            return Type.TEXT


def constant(text: str, value: Value) -> Term:
    """A value that is the same for every task."""
    kind = type_of(value)
    items = frozenset(map(type_of, value)) if kind is Type.LIST else frozenset()
    return Term(text, kind, lambda setting: value, items)


def truth(term: Term) -> Term:
    """The term, if it is true or false; else an error."""
    if term.type is Type.TRUTH:
        return term
    hint = "compare it with something: == != < > in" if term.type is not Type.LIST else "use it behind 'in'"
    raise ConditionError("not-a-condition", f"{term.text} is {term.type}, not true or false", hint)


def compared(left: Term, sign: str, right: Term) -> Term:
    """A comparison of two terms of one type."""
    _alike(left, right)
    text, one, other = f"{left.text} {sign} {right.text}", left.eval, right.eval
    match sign:
        case "==":
            return Term(text, Type.TRUTH, lambda setting: one(setting) == other(setting))
        case "!=":
            return Term(text, Type.TRUTH, lambda setting: one(setting) != other(setting))
    if left.type is not Type.NUMBER:
        hint = "use ==, != or in [...]"
        raise ConditionError("no-order", f"{left.text} is {left.type}: only numbers have an order", hint)
    match sign:
        case "<":
            return Term(text, Type.TRUTH, lambda setting: one(setting) < other(setting))
        case "<=":
            return Term(text, Type.TRUTH, lambda setting: one(setting) <= other(setting))
        case ">":
            return Term(text, Type.TRUTH, lambda setting: one(setting) > other(setting))
        case _:
            return Term(text, Type.TRUTH, lambda setting: one(setting) >= other(setting))


def among(left: Term, right: Term) -> Term:
    """Whether a value is one of a list."""
    if right.type is not Type.LIST:
        hint = f"write {left.text} in [{right.text}], or == to compare"
        raise ConditionError("type-mismatch", f"{right.text} is {right.type}, not a list", hint)
    for kind in sorted(right.items):
        if kind is not left.type:
            raise _mismatch(left, f"{right.text} holds", kind)
    one, other = left.eval, right.eval
    return Term(f"{left.text} in {right.text}", Type.TRUTH, lambda setting: one(setting) in other(setting))


def _alike(left: Term, right: Term) -> None:
    if left.type is not right.type:
        raise _mismatch(left, f"{right.text} is", right.type)
    if left.type is Type.LIST:
        raise ConditionError("type-mismatch", "lists cannot be compared", "write: VALUE in LIST")


def _mismatch(left: Term, right: str, kind: Type) -> ConditionError:
    message = f"{left.text} is {left.type} and {right} {kind}: they cannot be compared"
    hint = ""
    if {left.type, kind} == {Type.TEXT, Type.NUMBER}:
        hint = (
            "wildcards are texts: put the number in quotes"
            if left.type is Type.TEXT
            else "take the quotes away"
        )
    return ConditionError("type-mismatch", message, hint)


def chained(sign: str, terms: Sequence[Term]) -> Term:
    """Terms with `&&` or `||` between them; evaluated only as far as the answer hangs on it."""
    if len(terms) == 1:
        return terms[0]
    evals = [truth(term).eval for term in terms]
    text = f" {sign} ".join(term.text for term in terms)
    if sign == "&&":
        return Term(text, Type.TRUTH, lambda setting: all(one(setting) for one in evals))
    return Term(text, Type.TRUTH, lambda setting: any(one(setting) for one in evals))


def negated(one: Eval) -> Eval:
    """The opposite."""
    return lambda setting: not one(setting)
