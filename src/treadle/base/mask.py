"""The one sink that every record, script and message passes: secrets become `***`."""

from __future__ import annotations

import os
import re
from typing import Any

STARS = "***"
_LINE = 8  # a line of a secret with several lines counts by itself from this length on


class Mask:
    """Knows the secrets of a run and blots them out of texts. Add first, then mask: both are cheap."""

    __slots__ = ("_forms", "_pattern")

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        """Whether there is any secret."""
        return bool(self._forms)

    def add(self, value: str) -> None:
        """Make `value` a secret, in each form in which it may be written; an empty text is none."""
        if value:
            self._forms |= _forms(value)
            self._pattern = None

    def text(self, text: str) -> str:
        """The text with every secret in it replaced by `***`; secrets that overlap become one."""
        if not self._forms:
            return text
        if self._pattern is None:
            self._pattern = _pattern(self._forms)
        spans = [found.span(1) for found in self._pattern.finditer(text)]
        return _blot(text, spans) if spans else text

    def within(self, value: Any) -> Any:
        """The value, as JSON has them, with every text in it masked, names of fields too; numbers stay."""
        match value:
            case str():
                return self.text(value)
            case list() | tuple():
                return [self.within(one) for one in value]
            case dict():
                return {self.text(name): self.within(one) for name, one in value.items()}
            case _:
                return value

    def copy(self, source: str, target: str) -> None:
        """Write the masked content of one file into another, line by line, for its owner alone (0600).

        `target` is whole or not there. Raises OSError.
        """
        aside = f"{target}.part"
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(source, "rb") as lines, open(fd, "wb") as masked:
            for line in lines:
                masked.write(
                    self.text(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
                )
        os.replace(aside, target)


def _forms(secret: str) -> set[str]:
    """The secret plain, by lines, inside quotes of a shell, and each of these inside a JSON text."""
    import json  # 1 ms, and most workflows have no secrets

    plain = {secret, *(line for line in secret.splitlines() if len(line) >= _LINE)}
    shell = set(plain)
    for one in plain:
        shell.add(one.replace("'", "'\"'\"'"))
        shell.add(one.replace("'", "'\\''"))
        shell.add(re.sub(r'([\\"$`])', r"\\\1", one))
    told = {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in shell for ascii_only in (True, False)}
    return shell | told


def _pattern(forms: set[str]) -> re.Pattern[str]:
    """At each place the longest form; looking ahead, so that a secret is found within another's tail."""
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile(f"(?=({'|'.join(map(re.escape, longest_first))}))")


def _blot(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        if start >= done:
            parts += (text[done:start], STARS)
        done = max(done, end)
    parts.append(text[done:])
    return "".join(parts)
