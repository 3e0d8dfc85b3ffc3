"""The keys below one header, each on lines of its own in one layout; tomlkit knows where each begins."""

from __future__ import annotations

import re

import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, Comment, InlineTable, Item, Key, SingleKey, String, Whitespace

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_PLAIN = re.compile(r"'([^'\"\\\x00-\x1f\x7f]*)'\Z")  # what means the same in either kind of quotes


class Line(Struct):
    """A key with its value, a comment on a line of its own, or a blank line: without its newline.

    `key` is empty where the value's layout is left alone.
    """

    text: str = ""
    key: str = ""
    comment: bool = False

    @property
    def blank(self) -> bool:
        return not self.text


def lines_of(text: str) -> list[Line]:
    """The lines of a text that holds keys and comments and no header.

    What tomlkit does not give back as it took it is one line, as it is.
    """
    whole = [Line(text.strip("\n"))] if text.strip() else []
    whole += [Line()] if text.endswith("\n") else []
    try:
        found = tomlkit.parse(text + "\n")
        if found.as_string() != text + "\n":
            return whole
        return [_line(key, item) for key, item in found.body]
    except (TOMLKitError, ValueError, RecursionError):
        return whole


def _line(key: Key | None, item: Item) -> Line:
    if isinstance(item, Whitespace):
        return Line()
    if isinstance(item, Comment):
        return Line(item.as_string().strip(), comment=True)
    assert key is not None
    if not isinstance(key, SingleKey) or key.is_dotted():
        return Line(_dotted(key, item))
    said = item.trivia
    comment = f"{said.comment_ws or '  '}{said.comment}" if said.comment else ""
    return Line(f"{_key(key)} = {_value(item)}{comment}".rstrip(), key.key)


def _dotted(key: Key, item: Item) -> str:
    """`a.b = 1`, which tomlkit takes for tables, as it stands."""
    document = tomlkit.document()
    document.append(key, item)
    return document.as_string().strip()


def _key(key: Key) -> str:
    return key.key if _BARE.match(key.key) else key.as_string().strip()


def _value(item: Item) -> str:
    """The value in one layout; one over several lines, or with a comment in it, as it is."""
    text = item.as_string()
    if "\n" in text:
        return text
    if isinstance(item, String):
        return _PLAIN.sub(r'"\1"', text) if not text.startswith("'''") else text
    if isinstance(item, Array):
        return f"[{', '.join(_value(one) for one in item)}]"
    if isinstance(item, InlineTable):
        return _inline(item, text)
    return text


def _inline(table: InlineTable, text: str) -> str:
    parts = [(key, item) for key, item in table.value.body if key is not None]
    if any(not isinstance(key, SingleKey) or key.is_dotted() for key, _ in parts):
        return text
    inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in parts)
    return f"{{ {inner} }}" if inner else "{}"
