"""Functions that give the text of a hole for one task, made once per rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import structs

from treadle.plan import tokens
from treadle.rules.text.holes import Filling, Hole, Kind, out_of_range
from treadle.rules.text.quote import Mode, Spot, UnfitError, joiner_fits, quoter, secret, token, unchanged

Fill = Callable[[Filling], str]


def values_of(hole: Hole) -> Callable[[Filling], Sequence[str]]:
    """The function that looks up the values of a hole, one or several; it raises UnfitError."""
    name, index = hole.name, hole.index

    def wildcard(filling: Filling) -> Sequence[str]:
        value = filling.wildcards.get(name)
        if value is None:
            raise UnfitError("no-value", "has no value for this task")
        return (value,)

    def log(filling: Filling) -> Sequence[str]:
        if not filling.log:
            raise UnfitError("no-value", "has no value for this task")
        return (filling.log,)

    def paths(filling: Filling) -> Sequence[str]:
        all_paths, named = (
            (filling.inputs, filling.named_inputs)
            if hole.kind is Kind.INPUT
            else (filling.outputs, filling.named_outputs)
        )
        found = named.get(name) if name else all_paths
        if found is None:
            raise UnfitError("no-value", "has no value for this task")
        if index is None:
            return found
        if index >= len(found):
            raise UnfitError("index-out-of-range", out_of_range(len(found), hole.kind))
        return (found[index],)

    match hole.kind:
        case Kind.WILDCARD:
            return wildcard
        case Kind.LOG:
            return log
        case Kind.TOKEN:
            return lambda _: (name,)
        case Kind.SECRET:
            return lambda _: (tokens.secret(name),)
        case Kind.STEP:
            return lambda _: (name,)
        case _:
            return paths


def text_fill(hole: Hole) -> Fill:
    """The function that gives the values of a hole as they are."""
    values, glue = values_of(hole), hole.joiner + hole.prefix

    def fill(filling: Filling) -> str:
        found = values(filling)
        return hole.prefix + glue.join(found) if found else ""

    return fill


@lru_cache(maxsize=1024)  # thousands of rules have the same few placeholders
def shell_part(hole: Hole, spot: Spot) -> str | Fill:
    """The text of a hole at its spot, or the function that makes it; raises UnfitError if there is none."""
    if hole.kind is Kind.SECRET:
        return secret(hole.name, spot)
    if hole.kind is Kind.TOKEN:
        return token(hole.name, spot)
    if hole.several:
        return _shell_list(hole, spot)
    return _shell_single(hole, spot)


def _shell_single(hole: Hole, spot: Spot) -> Fill:
    """The function for one value. The usual cases are spelled out: they run for every task."""
    same, write = unchanged(spot, hole.path), quoter(spot, hole.path)
    name, index, values = hole.name, hole.index, values_of(hole)

    def slow(filling: Filling) -> str:
        return write(values(filling)[0])

    def wildcard(filling: Filling) -> str:
        value = filling.wildcards.get(name, "")
        return value if same(value) else slow(filling)

    def log(filling: Filling) -> str:
        return filling.log if same(filling.log) else slow(filling)

    def nth_input(filling: Filling) -> str:
        assert index is not None
        value = filling.inputs[index] if index < len(filling.inputs) else ""
        return value if same(value) else slow(filling)

    def nth_output(filling: Filling) -> str:
        assert index is not None
        value = filling.outputs[index] if index < len(filling.outputs) else ""
        return value if same(value) else slow(filling)

    if hole.kind is Kind.WILDCARD:
        return wildcard
    if hole.kind is Kind.LOG:
        return log
    if name:
        return slow  # a named input or output, or the artifact of a step
    return nth_input if hole.kind is Kind.INPUT else nth_output


def _shell_list(hole: Hole, spot: Spot) -> Fill:
    """The function for a list of paths: each is quoted, the author's text between them is not."""
    joiner, prefix, values = hole.joiner, hole.prefix, values_of(hole)
    if not (joiner_fits(joiner, spot) and joiner_fits(prefix, spot)) and (
        hole.joined or spot.mode is Mode.NUMBER
    ):
        raise UnfitError(
            "bad-placeholder",
            f"puts text between or before paths that cannot stand {spot.where}",
            "use plain text without quotes",
        )
    bare = spot.mode is Mode.WORD
    first = structs.replace(spot, start=spot.start if not prefix else bare and prefix[-1].isspace())
    between = prefix or joiner
    rest = structs.replace(spot, start=bare and between[-1:].isspace(), after_name=False)
    same_first, write_first = unchanged(first, True), quoter(first, True)
    same, write = unchanged(rest, True), quoter(rest, True)
    glue = joiner + prefix

    def fill(filling: Filling) -> str:
        found = values(filling)
        if not found:
            return ""
        head = found[0]
        text = prefix + (head if same_first(head) else write_first(head))
        for value in found[1:]:
            text += glue + (value if same(value) else write(value))
        return text

    return fill
