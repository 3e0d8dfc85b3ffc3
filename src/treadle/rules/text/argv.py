"""A command line without a shell: words are split and quotes taken off, and nothing else is special."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from treadle.base.place import Diagnostic, Place, Severity
from treadle.rules.text.holes import Hole, Piece, Stray

_UNITS = re.compile(r"[A-Za-z0-9_./:=,-]+|.", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_{(]")


class Slot(Struct, frozen=True):
    """A hole in a word. `quoted`: inside of quotes, where several paths stay in one word."""

    hole: Hole
    quoted: bool


# One word: texts, and slots between them. It can become several words, or none, by a list of paths.
Word = list[str | Slot]


class Split(Struct, frozen=True):
    """The words of a text, and its strays with whether they stood in quotes."""

    words: tuple[Word, ...]
    strays: tuple[tuple[Stray, bool], ...]


def split(pieces: Sequence[Piece], place: Place, problems: list[Diagnostic]) -> Split:
    """Split into words by the shell's rules for blanks, quotes and backslashes (POSIX 2.2).

    What only a shell could carry out (pipes, redirections, variables) is a problem, not an argument.
    """
    splitter = _Splitter(place, problems)
    for piece in pieces:
        if isinstance(piece, str):
            for unit in _UNITS.findall(piece):
                splitter.letter(unit)
        else:
            splitter.piece(piece)
    return splitter.finish()


class _Splitter:
    """Takes a text unit by unit."""

    def __init__(self, place: Place, problems: list[Diagnostic]) -> None:
        self.place = place
        self.problems = problems
        self.words: list[Word] = []
        self.word: Word | None = None
        self.strays: list[tuple[Stray, bool]] = []
        self.quote = ""
        self.escaped = False
        self.dollar = False  # the last letter was a live $
        self.told: set[str] = set()

    def piece(self, piece: Hole | Stray) -> None:
        self.dollar = False
        if isinstance(piece, Stray):
            self.strays.append((piece, bool(self.quote) or self.escaped))
            self._add(piece.mark.source)
        else:
            if self.escaped:
                self._problem("cannot-quote", f"a backslash stands directly before {piece.source}")
            self._open().append(Slot(piece, bool(self.quote)))
        self.escaped = False

    def letter(self, unit: str) -> None:
        if self.dollar and _NAME.match(unit):
            self._shell_only("$" + unit[0], "variables are not expanded")
        self.dollar = unit == "$" and self.quote != "'" and not self.escaped
        if self.escaped:
            self.escaped = False
            keep = self.quote == '"' and unit[0] not in '"\\$`'
            if unit != "\n":
                self._add(f"\\{unit}" if keep else unit)
        elif unit == "\\" and self.quote != "'":
            self.escaped = True
        elif self.quote:
            self._in_quotes(unit)
        elif unit in ("'", '"'):
            self.quote = unit
            self._add("")  # a word, if nothing stands in it
        elif unit.isspace():
            self.word = None
        else:
            self._bare(unit)

    def _in_quotes(self, unit: str) -> None:
        if unit == self.quote:
            self.quote = ""
            return
        if unit == "`" and self.quote == '"':
            self._shell_only(unit, "commands are not substituted")
        self._add(unit)

    def _bare(self, unit: str) -> None:
        if unit in "|&;<>()`":
            self._shell_only(unit, "it has no meaning here")
        elif unit in "*?" or (unit == "~" and self.word is None):
            self._not_expanded(unit)
        self._add(unit)

    def _open(self) -> Word:
        if self.word is None:
            self.word = []
            self.words.append(self.word)
        return self.word

    def _add(self, text: str) -> None:
        word = self._open()
        if word and isinstance(word[-1], str):
            word[-1] += text
        else:
            word.append(text)

    def _not_expanded(self, sign: str) -> None:
        if sign in self.told:
            return
        self.told.add(sign)
        message = f"a script is started without a shell: {sign} is not expanded"
        hint = f"quote it: '{sign}'"
        self.problems.append(Diagnostic("no-shell-here", message, self.place, hint, Severity.WARNING))

    def _shell_only(self, sign: str, why: str) -> None:
        if sign not in self.told:
            self.told.add(sign)
            hint = f"put the command into shell = \"...\", or quote it: '{sign}'"
            self._problem(
                "no-shell-here", f"a script is started without a shell: {sign} stands here, but {why}", hint
            )

    def _problem(self, code: str, message: str, hint: str = "") -> None:
        self.problems.append(Diagnostic(code, message, self.place, hint))

    def finish(self) -> Split:
        if self.quote or self.escaped:
            what = f"a quote {self.quote}" if self.quote else "a backslash at the end"
            self._problem("unclosed-quote", f"{what} is not closed")
        return Split(tuple(self.words), tuple(self.strays))
