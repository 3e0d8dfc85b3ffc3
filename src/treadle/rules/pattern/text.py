"""Reading the text of a path pattern: config filled in, wildcards and globs told apart, spelled one way."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place
from treadle.plan.paths import normal
from treadle.rules.pattern.constraint import Constraint
from treadle.rules.pattern.pattern import Deep, One, OneOf, Part, Pattern, Star, Text, Wild
from treadle.rules.schema import StepPath, Value
from treadle.rules.text.placeholder import Mark, scan, spelled
from treadle.rules.text.step_path import step_path

# What only command text can say; a path cannot depend on it.
COMMAND_ONLY = frozenset(
    (
        "input",
        "output",
        "log",
        "threads",
        "memory",
        "effective_threads",
        "effective_memory_mb",
        "params",
        "step",
    )
)
_GLOB = re.compile(r"\*+|\?|\[(?![!^]?\])[!^]?[^\]/\0]*\]|\[[!^]?\][^\]/\0]*\]")
_HOLE = re.compile("\0([0-9]+)\0")
# What no path may hold: control characters and line ends of any kind, and what is no UTF-8.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_INLINE = re.compile(r"\{\w+,")  # `{sample,[0-9]+}`: how another engine writes a constraint
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class PathText(Struct):
    """What the texts of paths are read with; findings are added to `problems`.

    `config` are the resolved values, `sensitive` names those that no path may hold. `steps` are the artifacts
    that a path may begin with (None: none may, as in an output).
    """

    config: Mapping[str, Value]
    sensitive: frozenset[str]
    constraints: Mapping[str, Constraint]
    problems: list[Diagnostic]
    steps: Mapping[str, StepPath] | None = None

    def pattern(self, text: str, place: Place, *, globs: bool = False) -> Pattern | None:
        """Parse one path; None when something is wrong with it, which is then among the problems.

        `globs`: whether `*`, `?` and `[...]` choose among files here. `{{name}}` is a literal `{name}`.
        """
        before = len(self.problems)
        if CONTROL.search(text) or not text:
            what = "holds a control character" if text else "is empty"
            self.problem("bad-path", f"this path {what}: {text!r}", place)
            return None
        filled = self.fill_config(text, place)
        if filled == "":
            hint = "give the key a value; '.' is the work folder"
            self.problem("empty-config", f"config leaves the path '{text}' empty", place, hint)
            return None
        parts = self._parts(filled, place, globs) if filled is not None else []
        if len(self.problems) > before or filled is None:
            return None
        spelled_once = _normal(parts)
        if not spelled_once:
            self.problem("bad-path", f"'{text}' is no path", place)
            return None
        return Pattern.of(filled, tuple(spelled_once), place)

    def is_hollow(self, text: str) -> bool:
        """Whether a path is nothing but config values, and all of them are empty."""
        if not text.startswith("{config."):
            return False
        scratch = PathText(self.config, self.sensitive, self.constraints, [])
        return all(_is_config(mark) and scratch._config(mark, Place()) == "" for mark in scan(text))

    def fill_config(self, text: str, place: Place) -> str | None:
        """The text with every `{config.x}` replaced; None when it names an array, a secret or nothing."""
        if "{config." not in text:
            return text
        pieces = [self._config(mark, place) if _is_config(mark) else _source(mark) for mark in scan(text)]
        if None in pieces:
            return None
        filled = "".join(piece or "" for piece in pieces)
        if filled.startswith("/") and not pieces[0]:
            message = f"config is empty at the beginning of '{text}', which would make it '{filled}'"
            self.problem("empty-config", message, place, "give the key a value; '.' is the work folder")
            return None
        return filled

    def _config(self, mark: str | Mark, place: Place) -> str | None:
        assert isinstance(mark, Mark)
        key = mark.attr
        if key not in self.config:
            hint = did_you_mean(key, self.config) or "declare it in [config]"
            self.problem("unknown-config", f"there is no config key '{key}'", place, hint)
            return None
        if key in self.sensitive:
            self.problem("secret-in-path", f"config.{key} is sensitive and cannot stand in a path", place)
            return None
        value = self.config[key]
        if isinstance(value, tuple | list):
            message = f"config.{key} is an array and cannot stand in a path"
            self.problem("array-in-path", message, place, "use expand_inputs for one path per value")
            return None
        text = spelled(value)
        if CONTROL.search(text):
            self.problem("control-character", f"config.{key} holds a control character", place)
            return None
        return text

    def _parts(self, text: str, place: Place, globs: bool) -> list[Part]:
        parts: list[Part] = []
        for piece in scan(text):
            if isinstance(piece, str):
                parts += self._plain(piece, place, globs)
            elif piece.braces % 2 == 0:
                parts.append(Text(piece.literal))
            elif piece.root == "step" and piece.attr and self.steps is not None:
                parts += self._step(piece, self.steps, place)
            elif name := self._name(piece, place):
                parts.append(Wild(name, self.constraints.get(name)))
        return parts

    def _step(self, mark: Mark, steps: Mapping[str, StepPath], place: Place) -> list[Part]:
        path, wrong = step_path(mark.attr, mark.source, steps)
        if wrong is not None:
            self.problem(wrong[0], wrong[1], place, wrong[2])
            return []
        return [Text(path)]

    def _plain(self, text: str, place: Place, globs: bool) -> list[Part]:
        if "{" in text or "}" in text:
            hint = "paths are no shell text; {{name}} stands for a literal {name}"
            if _INLINE.search(text):
                hint = "what a wildcard may match goes into [wildcard_constraints]"
            self.problem("brace-in-path", f"a brace without a name stands in '{text}'", place, hint)
            return []
        if globs:
            return _globs(text)
        if "*" in text or "?" in text:
            self.problem("glob-not-here", f"only inputs may hold * or ?: '{text}'", place)
            return []
        return [Text(text)]

    def _name(self, mark: Mark, place: Place) -> str:
        """The wildcard that a mark names (`{values.x}` is `{x}`), or an empty text and a problem."""
        of_values = mark.root == "values" and bool(mark.attr)
        name = mark.attr if of_values else mark.root
        plain = mark.bare or (of_values and not mark.option and mark.index is None)
        if mark.root in COMMAND_ONLY:
            self.problem("not-in-path", f"{mark.source} cannot stand in a path", place)
        elif not plain or mark.braces != 1 or not _NAME.fullmatch(name):
            hint = "a pattern for a wildcard goes into [wildcard_constraints]" if mark.odd else ""
            self.problem("unknown-placeholder", f"{mark.source} is not a placeholder of paths", place, hint)
        else:
            return name
        return ""

    def problem(self, code: str, message: str, place: Place, hint: str = "") -> None:
        """Note what is wrong with a path."""
        self.problems.append(Diagnostic(code, message, place, hint))


def _is_config(mark: str | Mark) -> bool:
    return isinstance(mark, Mark) and mark.root == "config" and bool(mark.attr) and mark.braces % 2 == 1


def _source(mark: str | Mark) -> str:
    return mark if isinstance(mark, str) else mark.source


def _globs(text: str) -> list[Part]:
    parts: list[Part] = []
    done = 0
    for found in _GLOB.finditer(text):
        if found.start() > done:
            parts.append(Text(text[done : found.start()]))
        done = found.end()
        parts.append(_glob(found[0]))
    if done < len(text):
        parts.append(Text(text[done:]))
    return parts


def _glob(text: str) -> Part:
    if text.startswith("*"):
        return Star() if text == "*" else Deep()
    if text == "?":
        return One()
    inside = text[1:-1]
    negated = inside[0] in "!^"
    members = re.sub(r"[\\\[\]]", r"\\\g<0>", inside[1:] if negated else inside)
    try:
        return OneOf(text, re.compile(f"[{'^/' if negated else ''}{members}]"))
    except re.error:  # such as a range that runs backwards: to a shell it is plain text
        return Text(text)


def _normal(parts: list[Part]) -> list[Part]:
    """The parts of the normalised path: `./`, `//` and `..` are gone, the holes are opaque."""
    text = "".join(part.text if isinstance(part, Text) else f"\0{at}\0" for at, part in enumerate(parts))
    pieces = _HOLE.split(normal(text))
    spread: list[Part] = []
    for at, piece in enumerate(pieces):
        if at % 2:
            spread.append(parts[int(piece)])
        elif piece:
            spread.append(Text(piece))
    return _settle_deep(spread)


def _settle_deep(parts: list[Part]) -> list[Part]:
    """`**` alone between slashes is any number of folders; at the end all below; elsewhere it is a `*`."""
    settled: list[Part] = []
    for at, part in enumerate(parts):
        before, after = (parts[at - 1] if at else None), (parts[at + 1] if at + 1 < len(parts) else None)
        if isinstance(part, Deep):
            begins = before is None or (isinstance(before, Text) and before.text.endswith("/"))
            if not begins or not (after is None or (isinstance(after, Text) and after.text.startswith("/"))):
                settled.append(Star())
            else:
                settled += [part] if after else [part, Star()]
        elif isinstance(part, Text) and settled and isinstance(settled[-1], Deep):
            if part.text != "/":
                settled.append(Text(part.text[1:]))
        else:
            settled.append(part)
    return settled
