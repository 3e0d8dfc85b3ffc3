"""Where something stands in a file, and what is to be said about it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Place(Struct, frozen=True, order=True, gc=False):
    """A spot in a file that a person wrote.

    `file` as the person would type it, `line` from 1 (0: the file as a whole), `table` such as
    `rules.align` and `key` such as `input[2]`, both empty where they do not apply.
    """

    file: str = ""
    line: int = 0
    table: str = ""
    key: str = ""

    def __str__(self) -> str:
        spot = f"{self.file}:{self.line}" if self.line else self.file
        inside = ".".join(part for part in (self.table, self.key) if part)
        return f"{spot} [{inside}]" if spot and inside else spot or inside


class Severity(StrEnum):
    """How much a diagnostic weighs: an error stops, a warning is said."""

    ERROR = "error"
    WARNING = "warning"


class Diagnostic(Struct, frozen=True):
    """One finding about a file: the thing, the place and the way out.

    `code` is stable (`unknown-key`, `two-producers`): people may search for it and switch on it.
    """

    code: str
    message: str
    place: Place = Place()
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = str(self.place)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text
