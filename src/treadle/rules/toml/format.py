"""A workflow file or profile in one layout: what `treadle fmt` writes. Nothing that it says changes.

Tables stay in the order in which their author wrote them. Inside a table, keys come in the order of the
format's own tables, but only between blank lines and comments that stand alone: those are its author's
grouping. A comment above a key goes where the key goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tomli
from msgspec import Struct

from treadle.base.errors import WorkflowError
from treadle.base.place import Place
from treadle.rules.toml.document import parse
from treadle.rules.toml.fields import RULE, TOP, Fields, Kind
from treadle.rules.toml.format_body import Line, lines_of
from treadle.rules.toml.lines import LONG_BASIC, LONG_LITERAL, SHORT_TEXTS, Spot

_TEXT_OR_COMMENT = re.compile(rf"{LONG_BASIC}|{LONG_LITERAL}|{SHORT_TEXTS}|(#[^\n]*+)", re.DOTALL)
_HEADER = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\[\]]*?)[ \t]*\]{1,2}")


class Block(Struct):
    """A line in brackets (empty at the top of the file), comments right above it, and what follows it."""

    header: str = ""
    above: tuple[str, ...] = ()
    body: list[Line] = []
    apart: bool = False  # a blank line stood before it

    def path(self) -> list[str]:
        """The names in its brackets."""
        found = _HEADER.match(self.header)
        return [part.strip() for part in found[1].split(".")] if found else []

    def fields(self) -> Fields | None:
        """The fields that a table of this name has; None where its keys are the author's own."""
        first, *inside = self.path() or [""]
        top = TOP.get(first)
        fields = None if top is None else top.fields
        for name in inside:
            one = (fields or {}).get(name)
            if one is not None:  # named inputs and outputs stay in their order, which `{input}` keeps
                fields = None if one.kind is Kind.FILES else one.inside
            elif first != "rules" or fields is not RULE:  # a profile has [rules.NAME.resources]
                return None
        return fields


def formatted(text: str, file: str) -> str:
    """The text of a file in one layout. Formatting it again changes nothing.

    Raises WorkflowError where the text is no TOML, or where its layout cannot be changed without a loss.
    """
    document = parse(text, file)
    given = document.text
    made = "".join(_written(_blocks(given.split("\n"), sorted({*_headers(document.spots)}))))
    if not _says_the_same(made, given):
        message, hint = "this file cannot be formatted without changing what it says", "it stays as it is"
        raise WorkflowError(message, place=Place(file), hint=hint, code="cannot-format")
    return made


def _headers(spot: Spot) -> Iterator[int]:
    """The lines, from 1, on which a header stands."""
    stack = [spot]
    while stack:
        one = stack.pop()
        if one.header:
            yield one.line
        stack += (one.inside or {}).values()


def _blocks(lines: list[str], headers: list[int]) -> Iterator[Block]:
    """The file cut at its headers; comments that end right above one go with it."""
    block, start = Block(), 0
    for line in headers:
        block.body = lines_of("\n".join(lines[start : line - 1]))
        above: list[str] = []
        while block.body and block.body[-1].comment:
            above.insert(0, block.body.pop().text)
        apart = not block.body or block.body[-1].blank
        yield block
        block, start = Block(lines[line - 1].strip(), tuple(above), [], apart), line
    block.body = lines_of("\n".join(lines[start:]))
    yield block


def _written(blocks: Iterator[Block]) -> Iterator[str]:
    started = False
    for block in blocks:
        head = [*block.above, block.header] if block.header else []
        body = _paragraphs(block)
        if started and head and (block.apart or len(block.path()) < 2):
            yield "\n"
        yield from (f"{line}\n" for line in (*head, *body))
        started = started or bool(head) or bool(body)


def _paragraphs(block: Block) -> list[str]:
    """What stands below a header: keys in order in each paragraph, one blank line between paragraphs."""
    order = {key: at for at, key in enumerate(block.fields() or ())}
    paragraphs: list[list[Line]] = [[]]
    for line in block.body:
        if line.blank:
            paragraphs.append([])
        else:
            paragraphs[-1].append(line)
    found: list[str] = []
    for paragraph in filter(None, paragraphs):
        if found:
            found.append("")
        found += _sorted(paragraph, order)
    return found


def _sorted(paragraph: list[Line], order: dict[str, int]) -> list[str]:
    """The lines of a paragraph, each key with the comments above it; comments at the end stay there."""
    units: list[tuple[int, list[str]]] = []
    above: list[str] = []
    for line in paragraph:
        above.append(line.text)
        if not line.comment:
            units.append((order.get(line.key, len(order)), above))
            above = []
    if order:
        units.sort(key=lambda unit: unit[0])
    return [text for _, texts in units for text in texts] + above


def _says_the_same(made: str, given: str) -> bool:
    try:
        return _meaning(made) == _meaning(given) and _comments(made) == _comments(given)
    except (ValueError, RecursionError):
        return False


def _meaning(text: str) -> Any:
    """All values with their types (1 is not true), floats as they are spelled."""

    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(one) for key, one in value.items()}
        return list(map(typed, value)) if isinstance(value, list) else (type(value), value)

    return typed(tomli.loads(text, parse_float=_Digits))


class _Digits(str):
    """A float as it is spelled."""

    __slots__ = ()


def _comments(text: str) -> list[str]:
    return sorted(found[1].rstrip() for found in _TEXT_OR_COMMENT.finditer(text) if found[1])
