"""In which place of the shell's grammar each hole of a command text stands: one pass over the text.

The grammar is POSIX 2.3 (token recognition) with bash's additions. What cannot be followed for certain
is told as `trouble`, never guessed: an unfinished quote, or a construct that shells read in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.rules.text import heredoc
from treadle.rules.text.frames import Frame, Kind
from treadle.rules.text.heredoc import Unit
from treadle.rules.text.quote import Mode, Spot

_UNITS = re.compile(r"[A-Za-z0-9_]+|.", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_]+")
# Bash expands the word after >& a second time when it is no number, whatever its quotes.
_DUPLICATES = "after >& (write > file 2>&1)"
# Bash evaluates an index as arithmetic, and with it the $(...) of an index in it.
_INDEX = "in an array index"
_ENDS = frozenset(" \t\n;&|<>()")


class Located(Struct, frozen=True):
    """The spot of each hole, in order; `trouble` says what could not be followed (else empty)."""

    spots: tuple[Spot, ...]
    trouble: str = ""


def locate(pieces: Iterable[object]) -> Located:
    """Find the spot of every piece that is not a text. `pieces` in the order in which they are joined."""
    units: list[Unit] = []
    holes = 0
    for piece in pieces:
        if isinstance(piece, str):
            units.extend(_UNITS.findall(piece))
        else:
            units.append(holes)
            holes += 1
    found: dict[int, Spot] = {}
    trouble = _Lexer(units, found).run(Kind.BARE) if holes else ""
    lost = Spot(Mode.REFUSED, "in a text whose quotes cannot be followed", quoted=True, live=False)
    return Located(tuple(found.get(hole, lost) for hole in range(holes)), trouble)


class _Lexer:
    """A walk over units with a stack of frames.

    Texts that the shell takes out whole and reads by themselves (backticks, here-documents) get a lexer
    of their own. `ticks`: how many backticks are around; `frozen`: why nothing here can be quoted.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        found: dict[int, Spot],
        ticks: int = 0,
        frozen: str = "",
        here: tuple[str, frozenset[int]] = ("", frozenset()),
    ) -> None:
        self.units = units
        self.found = found
        self.ticks = ticks
        self.frozen = frozen
        self.here = here  # the delimiter of this here-document, and the holes that could become it
        self.trouble = ""
        self.stack: list[Frame] = []
        self.named = -1  # where the last `$name` ended

    def run(self, kind: Kind) -> str:
        """Locate all holes; returns what could not be followed."""
        first = Frame(kind, "", None)
        self.stack.append(first)
        steps = {
            Kind.BARE: self._bare,
            Kind.DOUBLE: self._double,
            Kind.HERE: self._inside,
            Kind.PARAM: self._param,
            Kind.ARITH: self._arith,
        }
        at = 0
        while at < len(self.units):
            frame = self.stack[-1]
            at = steps[frame.kind](at, frame)
        first.end_word()
        if len(self.stack) > 1:
            self._doubt(f"{self.stack[-1].kind.value} is not closed")
        if first.cases:
            self._doubt("a case has no esac")
        return self.trouble

    def _doubt(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble

    def _peek(self, at: int) -> Unit:
        return self.units[at] if at < len(self.units) else ""

    def _push(self, kind: Kind, end: str) -> Frame:
        frame = Frame(kind, end, self.stack[-1])
        self.stack.append(frame)
        return frame

    # One step in each kind of frame: takes what stands at `at`, returns where to go on.

    def _bare(self, at: int, frame: Frame) -> int:
        unit = self.units[at]
        if isinstance(unit, int):
            self._hole(at, frame)
            return at + 1
        if frame.bracket and frame.command and unit in _ENDS and frame.word not in ("[", "[["):
            self._doubt("an array index holds a blank or an operator, which shells read in two ways")
        match unit:
            case " " | "\t":
                frame.end_word()
            case "\n":
                return self._newline(at, frame)
            case "\\":
                return self._escape(at, frame)
            case "'":
                frame.quote()
                return self._single(at, frame)
            case '"':
                frame.quote()
                self._push(Kind.DOUBLE, '"')
            case "`":
                return self._backtick(at, frame)
            case "$":
                return self._dollar(at, frame)
            case "#" if not frame.begun:
                return self._comment(at)
            case ";" | "&" | "|":
                return self._operator(at, frame)
            case "<" | ">":
                return self._redirect(at, frame)
            case "(":
                return self._open(at, frame)
            case ")":
                self._close(frame)
            case _:
                frame.sign(unit)
        return at + 1

    def _double(self, at: int, frame: Frame) -> int:
        if self.units[at] == '"':
            self.stack.pop()
            return at + 1
        return self._inside(at, frame)

    def _param(self, at: int, frame: Frame) -> int:
        match self.units[at]:
            case "}":
                if frame.singles % 2:
                    self._doubt('a single quote stands in "${...}", which shells read in two ways')
                self.stack.pop()
            case '"':
                self._push(Kind.DOUBLE, '"')
            case "'" if not frame.dq:
                return self._single(at, frame)
            case "'":
                frame.singles += 1
            case _:
                return self._inside(at, frame)
        return at + 1

    def _arith(self, at: int, frame: Frame) -> int:
        unit = self.units[at]
        if unit == "(":
            frame.depth += 1
        elif unit == ")" and frame.depth:
            frame.depth -= 1
        elif unit == ")":
            self.stack.pop()
            return at + 2
        elif unit == '"':
            self._push(Kind.DOUBLE, '"')
        else:
            return self._inside(at, frame)
        return at + 1

    def _inside(self, at: int, frame: Frame) -> int:
        """What is alike inside of "...", ${...}, arithmetic and here-documents."""
        match self.units[at]:
            case int():
                self._hole(at, frame)
            case "\\":
                return self._escape(at, frame)
            case "`":
                return self._backtick(at, frame)
            case "$":
                return self._dollar(at, frame)
            case _:
                frame.add(None)
        return at + 1

    # Holes.

    def _put(self, at: int, spot: Spot) -> None:
        hole = self.units[at]
        assert isinstance(hole, int)
        if self.frozen and spot.mode not in (Mode.REFUSED, Mode.NUMBER):
            spot = Spot(Mode.PLAIN, self.frozen, quoted=spot.quoted, live=False, start=spot.start)
        self.found[hole] = spot

    def _refuse(self, at: int, where: str) -> None:
        self._put(at, Spot(Mode.REFUSED, where, quoted=True, live=False))

    def _hole(self, at: int, frame: Frame) -> None:
        self._put(at, self._spot(at, frame))
        frame.add(None)

    def _after(self, at: int) -> Unit:
        """What follows `at`, whether or not the line ends there with a backslash."""
        at += 1
        while self._peek(at) == "\\" and self._peek(at + 1) == "\n":
            at += 2
        return self._peek(at)

    def _spot(self, at: int, frame: Frame) -> Spot:
        named, ticks, start = self.named == at, self.ticks > 0, not frame.host.started
        if frame.number:
            return Spot(Mode.NUMBER, "in arithmetic", quoted=frame.kind is not Kind.ARITH, after_name=named)
        if frame.plain:
            return Spot(Mode.PLAIN, "in ${...}", quoted=True, after_name=named)
        if frame.host.duplicates or frame.host.doubled:
            return Spot(Mode.PLAIN, _DUPLICATES, quoted=frame.dq, live=False, start=start, after_name=named)
        if frame.host.bracket:
            return Spot(Mode.PLAIN, _INDEX, quoted=frame.dq, start=start, after_name=named)
        if frame.kind is Kind.HERE:
            delimiter, risky = self.here
            delimiter = delimiter if at in risky else ""
            return Spot(Mode.PLAIN, "in a here-document", quoted=True, after_name=named, delimiter=delimiter)
        if frame.kind is Kind.DOUBLE:
            return Spot(Mode.DOUBLE, 'in "..."', quoted=True, start=start, after_name=named, ticks=ticks)
        return Spot(
            Mode.WORD,
            "outside of quotes",
            start=start,
            command=start and not frame.target and (frame.command or frame.pattern()),
            brace=frame.braces > 0,
            after_name=named,
            redirect=start and self._after(at) in ("<", ">"),
            test=frame.tests,
            ticks=ticks,
        )

    # Quotes, and what begins with a dollar.

    def _escape(self, at: int, frame: Frame) -> int:
        """A backslash and what follows it; before a newline both vanish."""
        following = self._peek(at + 1)
        if isinstance(following, int):
            self._refuse(at + 1, "directly after a backslash")
        if following != "\n":
            frame.add(None)
        elif self.named == at:
            self.named = at + 2
        return at + 2

    def _single(self, at: int, frame: Frame, ansi: bool = False) -> int:
        """'...' or $'...', `at` its opening quote; returns what is behind it."""
        at += 1
        while at < len(self.units):
            unit = self.units[at]
            if unit == "'":
                return at + 1
            if unit == "\\" and ansi:
                at = self._escape(at, frame)
                continue
            if isinstance(unit, int):
                self._put(at, self._single_spot(frame, ansi))
            frame.add(None)
            at += 1
        self._doubt("'...' is not closed")
        return at

    def _single_spot(self, frame: Frame, ansi: bool) -> Spot:
        if frame.plain:
            return Spot(Mode.PLAIN, "in ${...}", quoted=True, live=False)
        mode, where = (Mode.ANSI, "in $'...'") if ansi else (Mode.SINGLE, "in '...'")
        start = not frame.host.started
        if frame.host.duplicates or frame.host.doubled:
            return Spot(Mode.PLAIN, _DUPLICATES, quoted=True, live=False, start=start)
        if frame.host.bracket:
            return Spot(Mode.PLAIN, _INDEX, quoted=True, live=False, start=start)
        return Spot(mode, where, quoted=True, live=False, start=start, ticks=self.ticks > 0)

    def _backtick(self, at: int, frame: Frame) -> int:
        """Read backticks as the shell does: one layer of backslashes goes, then the rest is a command."""
        inner: list[Unit] = []
        special = ("$", "`", "\\", '"') if frame.dq else ("$", "`", "\\")
        frame.add(None)
        at += 1
        while at < len(self.units) and self.units[at] != "`":
            if self.units[at] == "\\" and self._peek(at + 1) in special:
                at += 1
            inner.append(self.units[at])
            at += 1
        if at >= len(self.units):
            self._doubt("`...` is not closed")
        nested = frame.dq or frame.plain or frame.host.duplicates or frame.host.doubled or self.ticks
        frozen = self.frozen or ("in backticks inside of other quotes" if nested else "")
        trouble = _Lexer(inner, self.found, self.ticks + 1, frozen).run(Kind.BARE)
        self._doubt(trouble)
        return at + 1

    def _dollar(self, at: int, frame: Frame) -> int:
        following = self._peek(at + 1)
        bare = not frame.dq
        if following == "'" and bare:
            frame.host.quote()
            return self._single(at + 1, frame, ansi=True)
        if following == '"' and bare:
            return at + 1
        frame.add(None)
        if isinstance(following, int):
            self._refuse(at + 1, "directly after a $")
            return at + 2
        self._two_ways(following, self._peek(at + 2))
        match following:
            case "(" if self._peek(at + 2) == "(" and self._arithmetic(at + 3):
                self._push(Kind.ARITH, "))")
                return at + 3
            case "(":
                self._push(Kind.BARE, ")")
            case "{":
                self._push(Kind.PARAM, "}")
            case "#" | "?" | "!" | "$" | "*" | "@" | "-":
                pass
            case _:
                return self._dollar_name(at + 1)
        return at + 2

    def _two_ways(self, following: Unit, after: Unit) -> None:
        """Doubt what bash and other shells, or two parts of bash, read differently behind a dollar."""
        if following == "[":
            self._doubt("$[ is read in two ways: write $((...)) for arithmetic, or \\$[,")
        elif following == "$" and after in ("(", "{", "["):
            self._doubt(f"$${after} is read in two ways: put a blank or quotes between them")
        elif following == "\\" and after == "\n":
            self._doubt("a $ stands before the end of a line")

    def _dollar_name(self, at: int) -> int:
        """`$name` or `$1`, `at` behind the dollar."""
        if str(self._peek(at))[:1].isdigit():
            return at + 1
        while isinstance(unit := self._peek(at), str) and _NAME.match(unit):
            at += 1
            self.named = at
        return at

    def _arithmetic(self, at: int) -> bool:
        """Whether `((` before `at` is closed by `))`; else it is a subshell in a subshell, as in bash."""
        depth, quote = 0, ""
        while at < len(self.units):
            unit = self.units[at]
            if unit == "\\" and quote != "'":
                at += 1
            elif quote:
                quote = "" if unit == quote else quote
            elif unit in ('"', "'"):
                quote = str(unit)
            elif unit == "(":
                depth += 1
            elif unit == ")" and depth:
                depth -= 1
            elif unit == ")":
                return self._peek(at + 1) == ")"
            at += 1
        return False

    # What stands between words.

    def _comment(self, at: int) -> int:
        while at < len(self.units) and self.units[at] != "\n":
            if isinstance(self.units[at], int):
                self._put(at, Spot(Mode.COMMENT, "in a comment", quoted=True, ticks=self.ticks > 0))
            at += 1
        return at

    def _operator(self, at: int, frame: Frame) -> int:
        frame.end_word()
        frame.command = True
        following = self._peek(at + 1)
        if self.units[at] == ";" and following in (";", "&") and frame.cases:
            frame.cases[-1] = "pattern"
            return at + (3 if following == ";" and self._peek(at + 2) == "&" else 2)
        return at + 1

    def _open(self, at: int, frame: Frame) -> int:
        """`(`: of a case pattern, of a function, of arithmetic, or a subshell, an array or a pattern."""
        if frame.pattern() and not frame.begun:
            return at + 1
        if self._peek(at + 1) == ")" and (frame.word or not frame.begun):
            frame.new_word()
            frame.command = True
            return at + 2
        if self._peek(at + 1) == "(" and not frame.begun and self._arithmetic(at + 2):
            self._push(Kind.ARITH, "))")
            return at + 2
        if frame.begun:
            frame.add(None)
        inner = self._push(Kind.BARE, ")")
        inner.heres = frame.heres  # they begin at the end of the line, whatever parenthesis is open there
        return at + 1

    def _close(self, frame: Frame) -> None:
        frame.end_word()
        if frame.pattern():
            frame.cases[-1] = "body"
            frame.command = True
        elif frame.end == ")":
            self.stack.pop()
            if frame.cases:
                self._doubt("a case has no esac")
            if frame.heres and frame.heres is not self.stack[-1].host.heres:
                self._doubt("a here-document begins behind the $(...) that it stands in")
        else:
            self._doubt("a ) has no ( before it")

    def _redirect(self, at: int, frame: Frame) -> int:
        """`<`, `>`, process substitution, here-string, or the announcement of a here-document."""
        following = self._peek(at + 1)
        if following == "(":
            frame.add(None)
            self._push(Kind.BARE, ")")
            return at + 2
        if frame.word and frame.word.isdigit():
            frame.new_word()  # a file descriptor is part of the operator
        frame.end_word()
        frame.target = True
        if following == "&":
            frame.duplicates = True
            return at + 2
        if self.units[at] == "<" and following == "\\":
            self._doubt("a < stands before a backslash")
        if self.units[at] != "<" or following != "<":
            return at + 1
        if self._peek(at + 2) == "<":
            return at + 3
        frame.target = False
        here, at = heredoc.announced(self.units, at + 2)
        if here.hole:
            self._doubt("the delimiter of a here-document holds a placeholder")
        frame.heres.append(here)
        return at

    def _newline(self, at: int, frame: Frame) -> int:
        frame.end_word()
        frame.command = True
        at += 1
        for here in frame.heres:
            at = self._body(at, here)
        frame.heres.clear()
        if any(other.heres for other in self.stack):
            self._doubt("a $(...) over several lines stands between a << and its here-document")
        return at

    def _body(self, at: int, here: heredoc.Here) -> int:
        found, at = heredoc.body(self.units, at, here)
        risky = (here.delimiter, frozenset(found.risky))
        lexer = _Lexer(found.units, self.found, self.ticks, self.frozen, risky)
        if not here.quoted:
            self._doubt(lexer.run(Kind.HERE))
            return at
        for n, unit in enumerate(found.units):
            if isinstance(unit, int):
                delimiter = here.delimiter if n in found.risky else ""
                lexer._put(
                    n, Spot(Mode.PLAIN, "in a here-document", quoted=True, live=False, delimiter=delimiter)
                )
        return at
