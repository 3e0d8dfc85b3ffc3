"""What each `{...}` of a rule's texts stands for: the author's own text, a hole for a value, or nothing.

`{config.x}` and `{params.x}` are the author's text: they are written out here, before quotes are looked
at, so that what is around and inside them is read as the shell will read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, structs

from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place, Severity
from treadle.plan import tokens
from treadle.rules.schema import StepPath, Value
from treadle.rules.text.placeholder import Mark, one_slip_away, scan, spelled
from treadle.rules.text.step_path import step_path

MORE = "#"  # the name of what comes behind the numbered inputs; none that an author can write


class Known(Struct, frozen=True, kw_only=True):
    """What the texts of a rule may name. `config` and `params` are values as the author wrote them.

    `sensitive` are config keys that are read from the environment, `steps` the paths of artifacts. The counts
    are given where they are fixed (no glob, no fan-in), so that an index out of range is told before anything
    is expanded. `numbered` are the names under which a filling has the inputs by the number of their entry,
    where an entry may be other than one path; the paths of a fan-in come behind, under the name `MORE`.
    """

    wildcards: frozenset[str] = frozenset()
    input_names: frozenset[str] = frozenset()
    output_names: frozenset[str] = frozenset()
    config: Mapping[str, Value] = {}
    params: Mapping[str, Value] = {}
    sensitive: frozenset[str] = frozenset()
    steps: Mapping[str, StepPath] = {}
    has_log: bool = False
    input_count: int | None = None
    output_count: int | None = None
    numbered: tuple[str, ...] = ()


class Filling(Struct, frozen=True, kw_only=True, gc=False):
    """The values of one task. Paths as in the plan; a name stands for one path or for several."""

    inputs: tuple[str, ...] = ()
    named_inputs: Mapping[str, tuple[str, ...]] = {}
    outputs: tuple[str, ...] = ()
    named_outputs: Mapping[str, tuple[str, ...]] = {}
    log: str = ""
    wildcards: Mapping[str, str] = {}


class Kind(StrEnum):
    """What fills a hole."""

    INPUT = "input"
    OUTPUT = "output"
    LOG = "log"
    WILDCARD = "wildcard"
    STEP = "step"
    TOKEN = "token"
    SECRET = "secret"


class Hole(Struct, frozen=True):
    """A place for a value. `source` as the author wrote it.

    `name`: of the wildcard, of the named input or output, of the secret's variable; or the token; of a step
    the path of its artifact.
    `joiner` stands between several paths and `prefix` before each; `joined`: the author chose them.
    """

    source: str
    kind: Kind
    name: str = ""
    index: int | None = None
    joiner: str = " "
    prefix: str = ""
    joined: bool = False

    @property
    def path(self) -> bool:
        return self.kind in (Kind.INPUT, Kind.OUTPUT, Kind.LOG, Kind.STEP)

    @property
    def several(self) -> bool:
        """Whether it may stand for more than one path."""
        return self.kind in (Kind.INPUT, Kind.OUTPUT) and self.index is None


class Stray(Struct, frozen=True):
    """A `{...}` that nothing is known for: the shell's own in quotes, an error outside of them."""

    mark: Mark


Piece = str | Hole | Stray

_TOKENS = {
    "threads": tokens.THREADS,
    "memory": tokens.MEMORY,
    "effective_threads": tokens.EFFECTIVE_THREADS,
    "effective_memory_mb": tokens.EFFECTIVE_MEMORY_MB,
}
_WORDS = ("input", "output", "log", *_TOKENS)
_SPACES = ("input", "output", "config", "params", "values", "step")
_ROOTS = (*_WORDS, *_SPACES[2:])


def secret_variable(key: str) -> str:
    """The environment variable that holds the sensitive config value `key`: `TREADLE_SECRET_<KEY>`."""
    return "TREADLE_SECRET_" + "".join(one if one.isascii() and one.isalnum() else "_" for one in key.upper())


def resolve(text: str, known: Known, place: Place, problems: list[Diagnostic]) -> list[Piece]:
    """Cut `text` into the author's text, holes and strays; what is wrong is added to `problems`."""
    return _Resolver(known, place, problems).pieces(text, ())


class _Resolver:
    def __init__(self, known: Known, place: Place, problems: list[Diagnostic]) -> None:
        self.known = known
        self.place = place
        self.problems = problems

    def pieces(self, text: str, trail: tuple[str, ...]) -> list[Piece]:
        """`trail` names the config keys and params that are being written out."""
        if tokens.MARK in text:
            self._problem(
                "nul-character", f"the text {'of ' + trail[-1] if trail else ''} holds a NUL character"
            )
            return []
        found: list[Piece] = []
        for piece in scan(text):
            if isinstance(piece, str):
                found.append(piece)
            elif piece.braces == 1:
                found += self._one(piece, trail)
            else:
                found += self._several_braces(piece, trail)
        return found

    def _several_braces(self, mark: Mark, trail: tuple[str, ...]) -> list[Piece]:
        """`{{name}}` is a literal `{name}` and `{{{name}}}` a value in braces, where `name` is known."""
        half = mark.braces // 2
        inner = structs.replace(mark, source=mark.source[mark.braces - 1 : 1 - mark.braces], braces=1)
        trial = _Resolver(self.known, self.place, [])
        found = trial._one(inner, trail)
        if trial.problems or any(isinstance(piece, Stray) for piece in found):
            return [mark.source]
        return [mark.literal] if mark.braces % 2 == 0 else ["{" * half, *found, "}" * half]

    def _one(self, mark: Mark, trail: tuple[str, ...]) -> list[Piece]:
        root, attr, known = mark.root, mark.attr, self.known
        if mark.odd:
            return [Stray(mark)]
        if root in ("input", "output"):
            return self._files(mark)
        if mark.index is not None or (mark.option and root not in ("config", "params")):
            return [Stray(mark)]
        if attr:
            match root:
                case "config" if attr in known.sensitive:
                    return self._secret(mark)
                case "config":
                    return self._text(mark, known.config, "config key", trail)
                case "params":
                    return self._text(mark, known.params, "param", trail)
                case "values":
                    return self._values(mark)
                case "step":
                    return self._step(mark)
            return [Stray(mark)]
        if root in _TOKENS:
            return [Hole(mark.source, Kind.TOKEN, _TOKENS[root])]
        if root == "log":
            if not known.has_log:
                self._problem(
                    "no-log", "{log} is used, but the rule has no log", 'add log = "logs/..." to the rule'
                )
            return [Hole(mark.source, Kind.LOG)]
        return [Hole(mark.source, Kind.WILDCARD, root) if root in known.wildcards else Stray(mark)]

    def _files(self, mark: Mark) -> list[Piece]:
        kind = Kind(mark.root)
        names, count = (
            (self.known.input_names, self.known.input_count)
            if kind is Kind.INPUT
            else (self.known.output_names, self.known.output_count)
        )
        if mark.attr == "list" and kind is Kind.INPUT:
            if mark.index is not None or mark.option:
                self._problem("bad-placeholder", f"{mark.source}: {{input.list}} is one file")
                return []
            return [Hole(mark.source, Kind.TOKEN, tokens.INPUT_LIST)]
        if mark.attr and mark.attr not in names:
            self._unknown_file(mark, names)
            return []
        if mark.index is not None and count is not None and not mark.attr and mark.index >= count:
            self._problem("index-out-of-range", f"{mark.source} {out_of_range(count, kind)}")
            return []
        joiner = mark.text if mark.option == "sep" else " "
        prefix = mark.text if mark.option == "each" else ""
        name, index = mark.attr, mark.index
        if index is not None and not name and kind is Kind.INPUT and (numbered := self.known.numbered):
            behind = index - len(numbered)
            name, index = (numbered[index], None) if behind < 0 else (MORE, behind)
        return [Hole(mark.source, kind, name, index, joiner, prefix, bool(mark.option))]

    def _unknown_file(self, mark: Mark, names: frozenset[str]) -> None:
        root, attr = mark.root, mark.attr
        hint = did_you_mean(attr, sorted(names))
        if not names:
            hint = f'its {root}s have no names: write {{{root}[0]}}, or {root} = {{ {attr} = "..." }}'
        self._problem(f"unknown-{root}", f"{mark.source}: the rule has no {root} named '{attr}'", hint)

    def _text(
        self, mark: Mark, values: Mapping[str, Value], what: str, trail: tuple[str, ...]
    ) -> list[Piece]:
        name = f"{mark.root}.{mark.attr}"
        if name in trail:
            circle = " -> ".join((*trail[trail.index(name) :], name))
            self._problem("params-cycle", f"a value stands in itself: {circle}")
            return []
        if mark.attr not in values:
            near = did_you_mean(mark.attr, sorted(values))
            keep = f"to keep the text as it is, write {{{mark.source}}}"
            code = "unknown-config" if mark.root == "config" else "unknown-param"
            self._problem(code, f"there is no {what} '{mark.attr}' for {mark.source}", near or keep)
            return []
        value = values[mark.attr]
        parts = value if isinstance(value, (tuple, list)) else (value,)
        joiner = mark.text if mark.option == "sep" else " "
        prefix = mark.text if mark.option == "each" else ""
        found: list[Piece] = []
        for n, part in enumerate(parts):
            found += [joiner] if n else []
            found += [prefix, *self.pieces(spelled(part), (*trail, name))]
        return found

    def _values(self, mark: Mark) -> list[Piece]:
        if mark.attr in self.known.wildcards:
            return [Hole(mark.source, Kind.WILDCARD, mark.attr)]
        hint = did_you_mean(mark.attr, sorted(self.known.wildcards))
        self._problem("unknown-placeholder", f"{mark.source}: no [[values]] is named '{mark.attr}'", hint)
        return []

    def _step(self, mark: Mark) -> list[Piece]:
        path, wrong = step_path(mark.attr, mark.source, self.known.steps)
        if wrong is not None:
            self._problem(*wrong)
            return []
        return [Hole(mark.source, Kind.STEP, path)]

    def _secret(self, mark: Mark) -> list[Piece]:
        variable = secret_variable(mark.attr)
        twins = sorted(key for key in self.known.sensitive if secret_variable(key) == variable)
        if len(twins) > 1:
            self._problem("secret-name-clash", f"{' and '.join(twins)} would both be the variable {variable}")
        if mark.option:
            self._problem("bad-placeholder", f"{mark.source}: a sensitive value cannot be joined")
        return [Hole(mark.source, Kind.SECRET, variable)]

    def _problem(self, code: str, message: str, hint: str = "") -> None:
        self.problems.append(Diagnostic(code, message, self.place, hint))


def out_of_range(count: int, kind: Kind) -> str:
    """What to say of an index that no path has."""
    have = f"is 1 {kind.value}" if count == 1 else f"are {count} {kind.value}s"
    return f"is out of range: there {have}, counted from 0"


def stray_error(stray: Stray, known: Known, place: Place) -> Diagnostic | None:
    """What is wrong with a `{...}` outside of quotes; None where it can only be the shell's."""
    mark = stray.mark
    names = (*_ROOTS, *sorted(known.wildcards))
    if not mark.bare and mark.root in names:
        hint = _forms(mark)
        return Diagnostic("bad-placeholder", f"{mark.source} is not a form of placeholder", place, hint)
    if not mark.bare and not mark.attr:
        return None
    near = _near(mark, known) or did_you_mean(mark.root, names)
    keep = f"if it is meant for the command, quote it: '{mark.source}'"
    message = f"nothing is known for {mark.source}"
    return Diagnostic("unknown-placeholder", message, place, near or keep)


def _forms(mark: Mark) -> str:
    if mark.root in ("input", "output"):
        root = mark.root
        return f"write {{{root}}}, {{{root}[0]}}, {{{root}.name}}, {{{root}:sep=,}} or {{{root}:each=-I }}"
    if mark.root in _SPACES:
        return f"write {{{mark.root}.name}}"
    return f"write {{{mark.root}}}"


def stray_warning(stray: Stray, known: Known, place: Place) -> Diagnostic | None:
    """A warning where a `{...}` that is left to the shell looks like a mistyped placeholder."""
    near = _near(stray.mark, known)
    if not near:
        return None
    message = f"{stray.mark.source} looks like a placeholder, but nothing is known for it: it stays as it is"
    return Diagnostic("looks-like-placeholder", message, place, near, Severity.WARNING)


def _near(mark: Mark, known: Known) -> str:
    """A hint when `mark` is one typing error, or another engine's spelling, away from a placeholder."""
    if mark.odd or mark.index is not None:
        return ""
    if mark.root == "wildcards" and mark.attr in known.wildcards:
        return f"write {{{mark.attr}}}"
    names = _SPACES if mark.attr else (*_WORDS, *sorted(known.wildcards))
    return next((f"did you mean '{name}'?" for name in names if one_slip_away(mark.root, name)), "")
