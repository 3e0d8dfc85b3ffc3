"""The words of a condition: `config.n >= 3 && sample in ["S1", "S2"]` cut into tokens."""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """What a token is."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    SIGN = "sign"
    END = "end"


class Token(Struct, frozen=True):
    """One token: its text as written, what it stands for, and where it begins (from 0)."""

    kind: Kind
    text: str
    value: str | int | float | None
    start: int


class ConditionError(Exception):
    """What is wrong with a condition, and a way out."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(message)


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>[A-Za-z_]\w*(?:\.\w[\w-]*)*)
    | (?P<sign>==|!=|<=|>=|&&|\|\||[<>!()\[\],])
    | (?P<wrong>\S))""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WRONG = {
    "=": "write == to compare",
    "&": "write && for 'and'",
    "|": "write || for 'or'",
    "{": "names stand without braces here",
    "}": "names stand without braces here",
    '"': "this quote is not closed",
    "'": "this quote is not closed",
    "/": "put paths in quotes",
}


def tokens(text: str) -> list[Token]:
    """The tokens of a condition, with END at the end. Raises ConditionError."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, raw = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "wrong":
            hint = _WRONG.get(raw, "")
            raise ConditionError(
                "bad-condition", f"'{raw}' at character {match.start(kind) + 1} means nothing", hint
            )
        found.append(Token(Kind(kind), raw, _value(kind, raw), match.start(kind)))
    found.append(Token(Kind.END, "", None, len(text)))
    return found


def _value(kind: str, raw: str) -> str | int | float | None:
    if kind == "number":
        return float(raw) if set(raw) & set(".eE") else int(raw)
    return _ESCAPED.sub(r"\1", raw[1:-1]) if kind == "string" else raw
