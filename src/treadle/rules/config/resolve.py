"""`{config.x}` inside config values, filled to a fixed point; circles are found and drawn."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.base.place import Place
from treadle.rules.schema import Value
from treadle.rules.text.placeholder import Mark, scan, spelled
from treadle.rules.toml.section import Findings, clip

LONGEST = 1_000_000  # characters: a value that doubles with each step would fill the memory


def resolve(
    values: Mapping[str, Value], secret: set[str], places: Mapping[str, Place], findings: Findings
) -> tuple[dict[str, Value], set[str]]:
    """All values with their references filled, and which of them hold a secret.

    A value that is one reference alone takes what it names as it is, an array too; inside a longer text an
    array is joined by blanks. What holds a secret is a secret. Values with an error are left out.
    """
    return _Resolver(values, set(secret), places, findings).all()


class _Resolver:
    """A walk over the references, each key once; on a stack of its own, for chains may be long."""

    def __init__(
        self, values: Mapping[str, Value], secret: set[str], places: Mapping[str, Place], findings: Findings
    ) -> None:
        self.values = values
        self.secret = secret
        self.places = places
        self.findings = findings
        self.done: dict[str, Value] = {}
        self.failed: set[str] = set()

    def all(self) -> tuple[dict[str, Value], set[str]]:
        for key, value in self.values.items():
            if _may_refer(value):
                self._walk(key)
            else:
                self.done[key] = value
        return {key: self.done[key] for key in self.values if key in self.done}, self.secret

    def _walk(self, start: str) -> None:
        """Settle `start` and all that it refers to, innermost first."""
        open_keys = {start: iter(_references(self.values[start]))}
        path = [start]
        while path:
            key = path[-1]
            for one in open_keys[key]:
                if one in open_keys:
                    self._circle(path, one)
                elif one in self.values and one not in self.done and one not in self.failed:
                    open_keys[one] = iter(_references(self.values[one]))
                    path.append(one)
                    break
            else:
                self._finish(key)
                del open_keys[path.pop()]

    def _circle(self, path: list[str], back_to: str) -> None:
        circle = [*path[path.index(back_to) :], back_to]
        shown = circle if len(circle) <= 12 else [*circle[:6], "...", *circle[-5:]]
        message = f"config values refer to each other in a circle: {' -> '.join(map(clip, shown))}"
        self._error("config-cycle", message, back_to)
        self.failed.update(circle)

    def _finish(self, key: str) -> None:
        if key in self.failed:
            return
        references = _references(self.values[key])
        for mark in _strange(self.values[key]):
            message = f"{clip(mark.source)} cannot stand in a config value"
            self._error("unknown-placeholder", message, key, "here a reference is just {config.KEY}")
        for one in references:
            if one not in self.values:
                message = f"there is no config key '{clip(one)}'"
                self._error("unknown-config", message, key, self.findings.guess(one, self.values))
        if any(one not in self.done for one in references):
            self.failed.add(key)
            return
        if not self.secret.isdisjoint(references):
            self.secret.add(key)
        filled = self._filled(self.values[key])
        if filled is None:
            self._error("too-long", f"'{clip(key)}' grows beyond {LONGEST:,} characters", key)
            self.failed.add(key)
        else:
            self.done[key] = filled

    def _filled(self, value: Value) -> Value | None:
        if not isinstance(value, tuple | list):
            return self._text(value) if isinstance(value, str) else value
        spread: list[Value] = []
        for item in value:
            one = self._text(item) if isinstance(item, str) else item
            if one is None:
                return None
            spread += one if isinstance(one, tuple) else [one]
        return tuple(spread)

    def _text(self, text: str) -> Value | None:
        pieces = scan(text)
        if len(pieces) == 1 and isinstance(pieces[0], Mark) and _refers(pieces[0]) and pieces[0].braces == 1:
            return self.done[pieces[0].attr]
        filled, length = [], 0
        for piece in pieces:
            filled.append(self._piece(piece))
            length += len(filled[-1])
            if length > LONGEST:
                return None
        return "".join(filled)

    def _piece(self, piece: str | Mark) -> str:
        if isinstance(piece, str) or piece.root != "config" or not piece.attr:
            return piece if isinstance(piece, str) else piece.source
        if not _refers(piece):
            return piece.literal if piece.braces % 2 == 0 else piece.source
        around = piece.braces // 2
        return "{" * around + spelled(self.done[piece.attr]) + "}" * around

    def _error(self, code: str, message: str, key: str, hint: str = "") -> None:
        self.findings.error(code, message, self.places.get(key, Place(table="config", key=key)), hint)


def _refers(mark: Mark) -> bool:
    """Whether it stands for a config value; `{{config.x}}` is a literal one."""
    plain = bool(mark.attr) and not (mark.odd or mark.option or mark.index is not None)
    return plain and mark.root == "config" and mark.braces % 2 == 1


def _may_refer(value: Value) -> bool:
    texts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(text, str) and "{config." in text for text in texts)


def _marks(value: Value) -> list[Mark]:
    texts = value if isinstance(value, tuple) else (value,)
    found = [mark for text in texts if isinstance(text, str) for mark in scan(text)]
    return [mark for mark in found if isinstance(mark, Mark) and mark.root == "config"]


def _references(value: Value) -> list[str]:
    return list(dict.fromkeys(mark.attr for mark in _marks(value) if _refers(mark)))


def _strange(value: Value) -> list[Mark]:
    return [mark for mark in _marks(value) if mark.braces % 2 == 1 and not _refers(mark)]
