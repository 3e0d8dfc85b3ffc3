"""One table of a file on its way to values: what it holds, where each thing stands, what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place, Severity
from treadle.rules.toml.fields import HOMES, Fields
from treadle.rules.toml.lines import Spot

LONGEST_NAME = 255  # bytes: what a file name may have at most (NAME_MAX of Linux and macOS)
_MOST_COMPARED = 100_000  # names in all: a file full of unknown ones should still be refused within a second


class Findings:
    """All that was found about one workflow; `source` is the text of its file.

    `scheduler`: its rules go to one, so that what only a scheduler can do has an effect. `root` is where what
    the file names is looked for, absolute (empty: the workflow's folder), and `pin` the token that stands
    for it where it is the checkout of a git pin.
    """

    def __init__(self, source: str = "", root: str = "", pin: str = "") -> None:
        self.source = source
        self.root = root
        self.pin = pin
        self.scheduler = False
        self.found: list[Diagnostic] = []
        self.told: set[tuple[str, str]] = set()  # (code, message) of what is said once a file
        self.sources = [source]  # of all files of the workflow
        self._guesses: dict[tuple[str, int], tuple[object, str]] = {}
        self._compared = [0]  # in a list, for included files count with the others

    def beside(self, source: str, root: str, pin: str) -> Findings:
        """The findings about an included file: noted with those of the file that includes it."""
        other = Findings(source, root, pin)
        other.scheduler = self.scheduler
        other.found, other.told, other.sources = self.found, self.told, self.sources
        other._guesses, other._compared = self._guesses, self._compared
        self.sources.append(source)
        return other

    def error(self, code: str, message: str, place: Place, hint: str = "") -> None:
        """Note what stops the workflow."""
        self.found.append(Diagnostic(code, message, place, hint))

    def warn(self, code: str, message: str, place: Place, hint: str = "") -> None:
        """Note what smells; an error when the reader is strict."""
        self.found.append(Diagnostic(code, message, place, hint, Severity.WARNING))

    def guess(self, name: str, known: Collection[str]) -> str:
        """`did you mean 'input'?`; each question is worked out once, and not too many of them."""
        question = (name, id(known))
        if question not in self._guesses:
            if len(name) > LONGEST_NAME or self._compared[0] + len(known) > _MOST_COMPARED:
                return ""
            self._compared[0] += len(known)
            self._guesses[question] = (known, did_you_mean(name, known))  # held, so that its id stays its own
        return self._guesses[question][1]


class Section:
    """One table: its values by key, the place of each, and a way to report about them.

    `name` is the table as a person would look for it (`rules.align`). `path` leads from there to this
    table, where it is a table inside. `around` is the section that this one is a field of. `lent` are the
    sections in which fields stand that this table takes over from another one (`extends`), by key, or by
    table and key where a table inside is made of both.
    """

    __slots__ = ("around", "fields", "file", "findings", "lent", "name", "path", "spot", "table")

    def __init__(
        self,
        table: dict[str, Any],
        spot: Spot,
        name: str,
        file: str,
        findings: Findings,
        *,
        path: tuple[str | int, ...] = (),
        around: Section | None = None,
        lent: Mapping[str | tuple[str, str], Section] | None = None,
    ) -> None:
        self.table = table
        self.spot = spot
        self.name = name
        self.file = file
        self.findings = findings
        self.path = path
        self.around = around
        self.fields: Fields = {}
        self.lent = lent or {}

    def home(self, *path: str | int) -> Section:
        """The section in which what stands at `path` was written: this one, or one that lends it."""
        if not self.lent or not path:
            return self
        lender = self.lent.get(str(path[0]))
        if lender is None and len(path) > 1:
            lender = self.lent.get((str(path[0]), str(path[1])))
        return lender or self

    def inner(self, table: dict[str, Any], *path: str | int) -> Section:
        """The table that stands in this one at `path`."""
        home = self.home(*path)
        if home is not self:
            return home.inner(table, *path)
        return Section(
            table,
            self.spot.at(*path),
            self.name,
            self.file,
            self.findings,
            path=self.path + path,
            around=self,
            lent={
                key[1]: home.inner(home.table[key[0]], key[0])
                for key, home in self.lent.items()
                if path == key[:1] and isinstance(key, tuple)
            },
        )

    def place(self, *path: str | int) -> Place:
        """Where the key or item at `path` stands; without one, the table itself."""
        home = self.home(*path)
        if home is not self:
            return home.place(*path)
        return Place(self.file, self.spot.at(*path).line, clip(self.name), key_text(self.path + path))

    def error(self, code: str, message: str, *path: str | int, hint: str = "") -> None:
        self.findings.error(code, message, self.place(*path), hint)

    def warn(self, code: str, message: str, *path: str | int, hint: str = "") -> None:
        self.findings.warn(code, message, self.place(*path), hint)

    def warn_once(self, code: str, message: str, key: str) -> None:
        """A warning that is the same wherever the key stands: told at its first place in the file."""
        if (code, message) not in self.findings.told:
            self.findings.told.add((code, message))
            self.warn(code, message, key)

    def unknown(self, key: str, fields: Fields, what: str) -> None:
        """Report a key that is no field of this table: mistyped, strayed in here, or made up."""
        if self.strayed(key):
            return
        hint = self.findings.guess(key, fields)
        homes = [home for home, others in HOMES.items() if key in others and others is not fields]
        around = self.around
        if not hint and around is not None and self.spot.header and not around.fields:
            hint = f"keys of [{clip(around.name)}] stand above the line {self._header()}"
        if homes:
            hint = f"it belongs in {homes[0]}"
        self.error("unknown-key", f"'{clip(key)}' is not a field of {what}", key, hint=hint)

    def strayed(self, key: str) -> bool:
        """Report a field of a table around this one that stands after this table's own header line.

        TOML gives every key below `[rules.params]` to that table, whatever its author meant.
        """
        around = self.around
        while around is not None and (key not in around.fields or key in around.table):
            around = around.around
        if around is None or not self.spot.header:
            return False
        header = self._header()
        self.error(
            "key-in-subtable",
            f"'{key}' stands below the line {header}, so it is read as a key of that table",
            key,
            hint=f"move it above the line {header}",
        )
        return True

    def _header(self) -> str:
        """The line in brackets that opens this table."""
        return f"[{key_text((re.split(r'[.[]', self.name)[0], *self.path))}]"


def clip(text: str, most: int = 60) -> str:
    """The text, or its beginning where it is long, with what a terminal cannot show made visible."""
    shown = text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
    return shown if shown.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)


def found(value: object) -> str:
    """What a value is, in words, with the value where it is short."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"the whole number {value}" if abs(value) < 2**63 else "a number beyond 64 bits"
        case float():
            return f"the number {clip(str(value))}"
        case str():
            return f"the text '{clip(value)}'"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def key_text(path: Iterable[str | int]) -> str:
    """`input[2]`, `resources.memory`: a path inside a table as a person writes it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{clip(part)}" if text else clip(part)
    return text
