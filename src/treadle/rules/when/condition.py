"""`when`: conditions, parsed and typed once for each rule, evaluated for each task, and never `eval`ed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from treadle.base.names import did_you_mean
from treadle.base.place import Place
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Value
from treadle.rules.when.terms import (
    Eval,
    Setting,
    Term,
    Type,
    among,
    chained,
    compared,
    constant,
    negated,
    truth,
)
from treadle.rules.when.words import ConditionError, Kind, Token, tokens

_ROOTS = ("values", "wildcard", "wildcards")  # what may stand before the name of a wildcard
_DEEPEST = 50  # brackets and `!` inside one another


class Scope(Struct, frozen=True):
    """The names that a condition may use; `paths` reads the paths of `file_exists`."""

    wildcards: frozenset[str]
    config: Mapping[str, Value]
    params: Mapping[str, Value]
    paths: PathText


class _UnknownError(Exception):
    """A condition asked for what only a task has."""


class _Unknown(Mapping[str, Any]):
    """No value is known yet."""

    def __getitem__(self, key: str) -> Any:
        raise _UnknownError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _unknown_file(path: str) -> bool:
    raise _UnknownError(path)


_NOTHING_KNOWN = Setting(_Unknown(), _Unknown(), _unknown_file)


class Condition(Struct, frozen=True):
    """A condition that is ready: `names` are the wildcards it uses, `files` the paths it asks for."""

    text: str
    names: tuple[str, ...]
    files: tuple[Pattern, ...]
    eval: Eval

    @property
    def asked(self) -> frozenset[str]:
        """The wildcards that it compares: a row that has no value for them has an empty text there."""
        return frozenset(self.names).difference(name for path in self.files for name in path.names)

    def holds(self, setting: Setting) -> bool:
        """Whether it is true of a task."""
        return bool(self.eval(setting))

    def never(self) -> bool:
        """Whether the config alone makes it false: then it is false of every task, whatever its values."""
        try:
            return not self.eval(_NOTHING_KNOWN)
        except _UnknownError:
            return False


def parse_condition(text: str, scope: Scope, place: Place) -> Condition:
    """Parse and type a condition. Raises ConditionError; what is wrong with a path goes to its own list."""
    parser = _Parser(text, scope, place)
    term = parser.whole()
    return Condition(text, tuple(parser.names), tuple(parser.files), term.eval)


class _Parser:
    """Recursive descent over the tokens: or, and, not, comparison, operand."""

    def __init__(self, text: str, scope: Scope, place: Place) -> None:
        self.names: dict[str, None] = {}
        self.files: list[Pattern] = []
        self._text = text
        self._scope = scope
        self._place = place
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0

    def whole(self) -> Term:
        term = truth(self._either())
        if self._now.kind is not Kind.END:
            raise self._unexpected()
        return term

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> str:
        """The sign that stands here, if it is one of these; then it is passed."""
        token = self._now
        if token.kind in (Kind.SIGN, Kind.NAME) and token.text in signs:
            self._at += 1
            return token.text
        return ""

    def _want(self, sign: str) -> None:
        if not self._take(sign):
            raise self._unexpected(f"'{sign}' is wanted here")

    def _unexpected(self, hint: str = "") -> ConditionError:
        token = self._now
        if token.kind is Kind.END:
            return ConditionError("bad-condition", "the condition ends too early", hint)
        other = {"and": "write && for 'and'", "or": "write || for 'or'", "not": "write ! for 'not'"}
        message = f"'{token.text}' at character {token.start + 1} does not fit there"
        return ConditionError("bad-condition", message, other.get(token.text, hint))

    def _either(self) -> Term:
        terms = [self._both()]
        while self._take("||"):
            terms.append(self._both())
        return chained("||", terms)

    def _both(self) -> Term:
        terms = [self._not()]
        while self._take("&&"):
            terms.append(self._not())
        return chained("&&", terms)

    def _not(self) -> Term:
        if not self._take("!"):
            return self._comparison()
        with _Deeper(self):
            term = truth(self._not())
        return Term(f"!{term.text}", Type.TRUTH, negated(term.eval))

    def _comparison(self) -> Term:
        left = self._operand()
        if sign := self._take("==", "!=", "<=", ">=", "<", ">"):
            return compared(left, sign, self._operand())
        if self._take("in"):
            return among(left, self._operand())
        return left

    def _operand(self) -> Term:
        token = self._now
        if self._take("("):
            with _Deeper(self):
                term = self._either()
            self._want(")")
            return Term(f"({term.text})", term.type, term.eval, term.items)
        if self._take("["):
            with _Deeper(self):
                return self._list()
        if token.kind in (Kind.NUMBER, Kind.STRING):
            self._at += 1
            return constant(token.text, token.value)
        if token.kind is Kind.NAME and token.text not in ("in", "and", "or", "not"):
            self._at += 1
            return self._name(token.text)
        raise self._unexpected()

    def _list(self) -> Term:
        members: list[Term] = []
        while not self._take("]"):
            members.append(self._operand())
            if not self._take(","):
                self._want("]")
                break
        text = f"[{', '.join(term.text for term in members)}]"
        evals = [term.eval for term in members]
        types = frozenset(term.type for term in members)
        return Term(text, Type.LIST, lambda setting: tuple([one(setting) for one in evals]), types)

    def _name(self, name: str) -> Term:
        scope, (root, _, rest) = self._scope, name.partition(".")
        if name in ("true", "false"):
            return constant(name, name == "true")
        if name == "file_exists":
            return self._file_exists()
        if root == "config" and rest in scope.config:
            return constant(name, scope.config[rest])
        if root == "params" and rest in scope.params:
            known = constant(name, scope.params[rest])
            return Term(name, known.type, lambda setting: setting.params[rest], known.items)
        wildcard = rest if root in _ROOTS and rest else name
        if wildcard in scope.wildcards:
            self.names[wildcard] = None
            return Term(name, Type.TEXT, lambda setting: setting.values[wildcard])
        raise ConditionError(
            "unknown-name", f"the condition names '{name}', which is not known", self._near(name)
        )

    def _near(self, name: str) -> str:
        scope = self._scope
        known = [*scope.wildcards, *(f"config.{key}" for key in scope.config)]
        known += [f"params.{key}" for key in scope.params]
        if name in scope.config:
            return f"write config.{name}"
        root, _, rest = name.partition(".")
        if root == "meta" and rest:
            return f"keys of metadata and columns of sheets are wildcards: write {rest}"
        if root in _ROOTS and rest:
            return did_you_mean(rest, sorted(scope.wildcards)) or "nothing gives values to it"
        return did_you_mean(name, sorted(known)) or "texts stand in quotes"

    def _file_exists(self) -> Term:
        self._want("(")
        token = self._now
        if token.kind is not Kind.STRING:
            raise self._unexpected("file_exists takes a path in quotes")
        self._at += 1
        self._want(")")
        pattern = self._scope.paths.pattern(str(token.value), self._place)
        if pattern is None:  # what is wrong with it has been said
            return Term(f"file_exists({token.text})", Type.TRUTH, lambda setting: False)
        self.files.append(pattern)
        self.names.update(dict.fromkeys(pattern.names))
        return Term(
            f"file_exists({token.text})",
            Type.TRUTH,
            lambda setting: setting.exists(pattern.fill(setting.values)),
        )


class _Deeper:
    """One level further inside; too many are an error rather than a crash."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser

    def __enter__(self) -> None:
        self._parser._depth += 1
        if self._parser._depth > _DEEPEST:
            raise ConditionError("bad-condition", f"more than {_DEEPEST} brackets inside one another")

    def __exit__(self, *_: object) -> None:
        self._parser._depth -= 1
