"""What is open at one point of a shell text: a stack of these says where a value stands."""

from __future__ import annotations

import re
from enum import StrEnum

from treadle.rules.text.heredoc import Here

# After these a command still begins, so that `case` would be a reserved word.
_AGAIN = frozenset(("if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "coproc"))
_NAME = re.compile(r"(?:[A-Za-z_]\w*)?", re.ASCII)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


class Kind(StrEnum):
    """The constructs that hold others; the value is what messages call them."""

    BARE = "a command"
    DOUBLE = '"..."'
    PARAM = "${...}"
    ARITH = "arithmetic"
    HERE = "a here-document"


class Frame:
    """One open construct. For a command (BARE): also the word and the command that are being read."""

    __slots__ = (
        "begun", "braces", "bracket", "cases", "command", "depth", "doubled", "dq", "duplicates", "end",
        "heres", "host", "kind", "number", "plain", "singles", "started", "target", "tests", "word",
    )  # fmt: skip

    def __init__(self, kind: Kind, end: str, outer: Frame | None) -> None:
        self.kind = kind
        self.end = end  # what closes it
        held = outer if kind is not Kind.BARE else None
        self.dq: bool = kind in (Kind.DOUBLE, Kind.HERE, Kind.ARITH) or (held is not None and held.dq)
        # Inside of ${...} shells disagree about quotes: values there have to be plain.
        self.plain: bool = kind is Kind.PARAM or (held is not None and held.plain)
        self.number: bool = kind is Kind.ARITH or (held is not None and held.number)
        self.host: Frame = held.host if held is not None else self  # the command whose word this is part of
        # What stands in the target of >& is expanded twice, and so is what a $(...) in it prints.
        self.doubled: bool = outer is not None and (outer.host.duplicates or outer.host.doubled)
        self.depth = 0  # parentheses open in arithmetic
        self.singles = 0  # single quotes met in "${...}"
        self.heres: list[Here] = []  # announced, their bodies not yet met
        self.cases: list[str] = []  # per open `case`: subject, in, pattern or body
        self.tests = False  # inside of [[ ]]
        self.command = True  # the next word begins a command
        self.new_word()

    def new_word(self) -> None:
        """Between two words."""
        self.word: str | None = ""  # its letters so far; None once something in it is not a plain letter
        self.begun = False  # there is a word, if an empty one
        self.started = False  # something stands in it
        self.target = False  # it is the target of a redirection
        self.duplicates = False  # of >& or <&
        self.bracket = False  # an index is open, as in name[index]=value
        self.braces = 0  # brace expansions open in it

    def quote(self) -> None:
        """A quote opens: there is a word, but nothing stands in it yet."""
        self.begun, self.word = True, None

    def sign(self, letters: str) -> None:
        """Letters outside of quotes join the word: braces and brackets count."""
        self.braces += (letters == "{") - (letters == "}" and self.braces > 0)
        if letters == "[" and self.word is not None and _NAME.fullmatch(self.word):
            self.bracket = True
        elif letters == "]":
            self.bracket = False
        self.add(letters)

    def add(self, letters: str | None) -> None:
        """Something joins the word; None where it is not plain letters."""
        host = self.host
        host.begun = host.started = True
        plain = host.word is not None and letters is not None and host is self
        host.word = f"{host.word}{letters}" if plain else None

    def pattern(self) -> bool:
        """A pattern of a `case` is expected: a `)` ends it and closes nothing."""
        return bool(self.cases) and self.cases[-1] == "pattern"

    def end_word(self) -> None:
        """A word is over: follow `case`, and whether the next word begins a command."""
        if not self.begun:
            return
        if self.target:
            self.new_word()
            return
        word, state = self.word, self.cases[-1] if self.cases else ""
        if state == "subject":
            self.cases[-1] = "in"
        elif state == "in":
            self.cases[-1] = "pattern"
        elif word == "esac" and state and (state == "pattern" or self.command):
            self.cases.pop()
            self.command = False
        elif state != "pattern" and self.command:
            if word == "case":
                self.cases.append("subject")
            self.tests = word == "[["
            self.command = word is not None and (word in _AGAIN or bool(_ASSIGNMENT.match(word)))
        elif word == "]]":
            self.tests = False
        self.new_word()
