"""Where output goes: data to stdout, talk to stderr, colour only where it is wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any, TextIO

from treadle.cli import streams

_AT_A_TIME = 500
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Printer:
    """One command's two streams.

    `quiet` drops talk (never errors); `json` means that stdout carries one JSON object and nothing else.
    Colour follows NO_COLOR, FORCE_COLOR, TERM=dumb and whether the stream is a terminal.
    """

    def __init__(self, *, quiet: bool = False, json: bool = False) -> None:
        self.quiet = quiet
        self.json = json
        self.out_colour = wants_colour(sys.stdout)
        self.err_colour = wants_colour(sys.stderr)

    def data(self, text: str) -> None:
        """A line of what was asked for."""
        sys.stdout.write(text + "\n")

    def object(self, value: Any) -> None:
        """One JSON object on stdout."""
        sys.stdout.flush()
        sys.stdout.buffer.write(_pretty(value) + b"\n")
        sys.stdout.buffer.flush()

    def long_object(
        self, head: dict[str, Any], name: str, items: Iterable[Any], tail: dict[str, Any]
    ) -> None:
        """As `object({**head, name: [*items], **tail})`, to the byte, holding a few items at a time.

        `head` and `tail` are not empty.
        """
        sys.stdout.flush()
        write = sys.stdout.buffer.write
        empty = _pretty({name: []})
        write(_pretty(head)[:-2] + b"," + empty[1 : -len(b"]\n}")])
        before, after = _pretty({name: [0]}).split(b"0")
        divider, rest = before[len(empty) - len(b"]\n}") :], iter(items)
        started = False
        while some := list(islice(rest, _AT_A_TIME)):
            write((b"," if started else b"") + divider + _pretty({name: some})[len(before) : -len(after)])
            started = True
        write((after[: -len(b"\n}")] if started else b"]") + b"," + _pretty(tail)[1:] + b"\n")
        sys.stdout.buffer.flush()

    def talk(self, text: str = "") -> None:
        """A line for the person who watches; not with --quiet."""
        if not self.quiet:
            self.problem(text)

    def problem(self, text: str) -> None:
        """A line that is said whatever the options; data before it goes out first (both may be one pipe).

        That nobody can read it any longer (a pipe, a terminal or a full disk) must not end a run.
        """
        try:
            sys.stdout.flush()
        except OSError:
            pass  # whoever read the data went away; `main` sees it again
        streams.Lasting(sys.stderr).write(text + "\n")

    def style(self, text: str, *names: str, err: bool = False) -> str:
        """The text in colour, where the stream takes colour."""
        if not (self.err_colour if err else self.out_colour):
            return text
        codes = ";".join(_STYLES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"


def _pretty(value: Any) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream should get colour (no-color.org; FORCE_COLOR beats a pipe)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"
