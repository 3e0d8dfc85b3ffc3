"""Texts of a rule with holes in them: parsed once per rule, rendered once per task.

`ShellTemplate` quotes each value for the place it stands in, `ArgvTemplate` makes words for a program
that is started without a shell, and `TextTemplate` puts values in as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Self

from treadle.base.place import Diagnostic, Place, Severity
from treadle.plan import tokens
from treadle.rules.text.argv import Slot, Word, split
from treadle.rules.text.fill import Fill, shell_part, text_fill, values_of
from treadle.rules.text.holes import (
    Filling,
    Hole,
    Kind,
    Known,
    Stray,
    resolve,
    secret_variable,
    stray_error,
    stray_warning,
)
from treadle.rules.text.quote import Mode, Spot, UnfitError
from treadle.rules.text.shell import locate

__all__ = [
    "ArgvTemplate",
    "Filling",
    "Known",
    "ShellTemplate",
    "TextTemplate",
    "lookalikes",
    "secret_variable",
]


_NO_NAMES: frozenset[str] = frozenset()


class _Template:
    """What the templates have in common: which values they name.

    `names` are the wildcards, `secrets` the environment variables of sensitive config values in the
    order of their first use, `steps` likewise the paths of artifacts; `uses_log` and `uses_input_list` say
    whether `{log}` and `{input.list}` occur.
    """

    __slots__ = ("names", "place", "secrets", "steps", "uses_input_list", "uses_log")

    def __init__(self, holes: Sequence[Hole], place: Place) -> None:
        self.place = place
        self.names = frozenset(hole.name for hole in holes if hole.kind is Kind.WILDCARD) or _NO_NAMES
        self.secrets = tuple(dict.fromkeys(hole.name for hole in holes if hole.kind is Kind.SECRET))
        self.steps = tuple(dict.fromkeys(hole.name for hole in holes if hole.kind is Kind.STEP))
        self.uses_log = any(hole.kind is Kind.LOG for hole in holes)
        self.uses_input_list = any(hole.name == tokens.INPUT_LIST for hole in holes)


# A part of a text: the author's, or a hole (as written) and the function that gives its text.
Part = str | tuple[str, Fill]


class _TextParts(_Template):
    """A text in parts."""

    __slots__ = ("_fills", "_parts")

    def __init__(self, holes: Sequence[Hole], place: Place, parts: Sequence[Part]) -> None:
        super().__init__(holes, place)
        self._parts = [part if isinstance(part, str) else "" for part in parts]
        self._fills = [(n, *part) for n, part in enumerate(parts) if not isinstance(part, str)]

    def _text(self, filling: Filling, problems: list[Diagnostic]) -> str:
        parts = self._parts.copy()
        for n, source, fill in self._fills:
            try:
                parts[n] = fill(filling)
            except UnfitError as unfit:
                problems.append(_diagnostic(source, unfit, self.place))
        return "".join(parts)


class ShellTemplate(_TextParts):
    """Command text for bash or a POSIX shell."""

    __slots__ = ("_lists", "_warned")

    def __init__(
        self,
        holes: Sequence[Hole],
        place: Place,
        parts: Sequence[Part],
        lists: Sequence[tuple[Hole, Spot]],
    ) -> None:
        super().__init__(holes, place, parts)
        self._lists = tuple((hole, spot, values_of(hole)) for hole, spot in lists)
        self._warned: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, known: Known, place: Place, problems: list[Diagnostic]) -> Self:
        """Read `text`; everything wrong or suspicious in it is added to `problems`."""
        pieces = resolve(text, known, place, problems)
        located = locate(pieces)
        holes = [piece for piece in pieces if isinstance(piece, Hole)]
        if located.trouble and holes:
            message = f"{located.trouble}, so no value can be quoted for its place"
            problems.append(Diagnostic("shell-syntax", message, place, "mend the quotes of the text"))
            return cls(holes, place, [], [])
        spots = iter(located.spots)
        parts: list[Part] = []
        lists = []
        for piece in pieces:
            if isinstance(piece, str):
                parts.append(piece)
                continue
            spot = next(spots)
            if isinstance(piece, Stray):
                leave = spot.quoted or spot.redirect or bool(located.trouble)
                _judge(piece, leave, known, place, problems)
                parts.append(piece.mark.source)
                continue
            if piece.several and not piece.joined and _smells(spot):
                lists.append((piece, spot))
            try:
                part = shell_part(piece, spot)
                parts.append(part if isinstance(part, str) else (piece.source, part))
            except UnfitError as unfit:
                problems.append(_diagnostic(piece.source, unfit, place))
        return cls(holes, place, parts, lists)

    def render(self, filling: Filling, problems: list[Diagnostic]) -> str:
        """The text for one task. A value that cannot stand in its place is added to `problems`.

        A warning is given once, not for every task.
        """
        if self._lists:
            self._warn(filling, problems)
        return self._text(filling, problems)

    def _warn(self, filling: Filling, problems: list[Diagnostic]) -> None:
        for hole, spot, values in self._lists:
            try:
                count = len(values(filling))
            except UnfitError:
                continue
            if count > 1 and hole.source not in self._warned:
                self._warned += (hole.source,)
                problems.append(_list_warning(hole, spot, count, self.place))


class TextTemplate(_TextParts):
    """Plain text, such as an exported variable: values go in as they are, several joined by a blank."""

    __slots__ = ()

    @classmethod
    def parse(
        cls, text: str, known: Known, place: Place, problems: list[Diagnostic], *, lenient: bool = False
    ) -> Self:
        """Read `text`. `lenient`: an unknown `{word}` may stay, as for a param that will stand in quotes."""
        pieces = resolve(text, known, place, problems)
        for piece in pieces:
            if isinstance(piece, Stray):
                _judge(piece, lenient, known, place, problems)
        holes = [piece for piece in pieces if isinstance(piece, Hole)]
        parts: list[Part] = []
        for piece in pieces:
            if isinstance(piece, Hole):
                parts.append((piece.source, text_fill(piece)))
            else:
                parts.append(piece if isinstance(piece, str) else piece.mark.source)
        return cls(holes, place, parts)

    def render(self, filling: Filling, problems: list[Diagnostic]) -> str:
        """The text for one task; a sensitive value is a token (`plan.tokens.secret`)."""
        return self._text(filling, problems)


class ArgvTemplate(_Template):
    """The words of a program that is started without a shell."""

    __slots__ = ("_words",)

    def __init__(self, holes: Sequence[Hole], place: Place, words: Iterable[Word]) -> None:
        super().__init__(holes, place)
        self._words = tuple(
            [part if isinstance(part, str) else (part, values_of(part.hole)) for part in word]
            for word in words
        )

    @classmethod
    def parse(cls, text: str, known: Known, place: Place, problems: list[Diagnostic]) -> Self:
        """Read `text`; everything wrong or suspicious in it is added to `problems`."""
        pieces = resolve(text, known, place, problems)
        found = split(pieces, place, problems)
        for stray, quoted in found.strays:
            _judge(stray, quoted, known, place, problems)
        holes = [piece for piece in pieces if isinstance(piece, Hole)]
        for hole in holes:
            if hole.kind is Kind.SECRET:
                hint = (
                    f"export it with envvars and read it in the script (or read ${hole.name} in shell text)"
                )
                message = f"{hole.source} is sensitive: as an argument everybody on the machine could read it"
                problems.append(Diagnostic("secret-in-arguments", message, place, hint))
        return cls(holes, place, found.words)

    def render(self, filling: Filling, problems: list[Diagnostic]) -> tuple[str, ...]:
        """The words for one task: a value is never split, and a list of paths is several words."""
        words: list[str] = []
        for word in self._words:
            row = _Row()
            for part in word:
                try:
                    row.add(part, filling)
                except UnfitError as unfit:
                    source = part if isinstance(part, str) else part[0].hole.source
                    problems.append(_diagnostic(source, unfit, self.place))
            words += row.finish()
        return tuple(words)


class _Row:
    """The words that one word of an argv becomes."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.word: str | None = None

    def add(self, part: str | tuple[Slot, Callable[[Filling], Sequence[str]]], filling: Filling) -> None:
        if isinstance(part, str):
            self.word = (self.word or "") + part
            return
        slot, values = part
        hole = slot.hole
        for n, value in enumerate(values(filling)):
            if n:
                self.author(hole.joiner, slot.quoted)
            self.author(hole.prefix, slot.quoted)
            dash = hole.path and not self.word and value.startswith("-")
            self.word = (self.word or "") + ("./" if dash else "") + value
        if slot.quoted:
            self.word = self.word or ""

    def author(self, text: str, quoted: bool) -> None:
        """Text of the author's between paths: outside of quotes its blanks divide words."""
        pieces = [text] if quoted else text.replace("\t", " ").replace("\n", " ").split(" ")
        for n, piece in enumerate(pieces):
            if n and self.word is not None:
                self.done.append(self.word)
                self.word = None
            if piece:
                self.word = (self.word or "") + piece

    def finish(self) -> list[str]:
        return self.done if self.word is None else [*self.done, self.word]


def lookalikes(text: str, known: Known, place: Place) -> tuple[Diagnostic, ...]:
    """The warnings about `{...}` in shell text that is left to the shell but looks like a placeholder."""
    problems: list[Diagnostic] = []
    ShellTemplate.parse(text, known, place, problems)
    return tuple(one for one in problems if one.code == "looks-like-placeholder")


def _diagnostic(source: str, unfit: UnfitError, place: Place) -> Diagnostic:
    return Diagnostic(unfit.code, f"{source} {unfit.message}", place, unfit.hint)


def _judge(stray: Stray, leave: bool, known: Known, place: Place, problems: list[Diagnostic]) -> None:
    found = stray_warning(stray, known, place) if leave else stray_error(stray, known, place)
    if found is not None:
        problems.append(found)


def _smells(spot: Spot) -> bool:
    """Whether a list of paths at `spot` is more likely one path that became several."""
    return spot.mode in (Mode.DOUBLE, Mode.SINGLE, Mode.ANSI) or (spot.mode is Mode.WORD and not spot.start)


def _list_warning(hole: Hole, spot: Spot, count: int, place: Place) -> Diagnostic:
    inner = hole.source[1:-1]
    if spot.mode is Mode.WORD:
        code, message = (
            "list-in-word",
            f"{hole.source} is {count} paths, but text is joined to it in one word",
        )
        hint = f"write {{{inner}:each=TEXT}} to put a text before each, or {{{inner}[0]}} for the first"
    else:
        code, message = (
            "list-in-quotes",
            f"{hole.source} is {count} paths, but stands {spot.where} as one word",
        )
        hint = f"take it out of the quotes, or write {{{inner}:sep= }} if one word is meant"
    return Diagnostic(code, message, place, hint, Severity.WARNING)
