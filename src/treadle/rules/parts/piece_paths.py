"""Where the pieces of a rule with `transform` go, and which of its texts speak of one piece."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from treadle.base.layout import CHUNKS
from treadle.base.place import Place
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import PathSpec, Rule, Transform, Workflow
from treadle.rules.text.placeholder import Mark, scan, spelled

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


class Pieces:
    """The paths of the pieces of one rule.

    They lie below `.chunks/` in a folder of the part, and there in one for the wildcards of each task, so
    that no two rules and no two tasks share one.
    """

    def __init__(self, rule: Rule, transform: Transform, workflow: Workflow) -> None:
        self.rule = rule
        self.by = transform.by
        self._maker = f"{rule.name}.map" if transform.combine else rule.name
        config = workflow.config_of(rule)
        self._texts = PathText(config, workflow.sensitive, {}, [])  # problems are told when it is read
        self._free = {name for source in workflow.sources for name in source.free}
        self._key = self._wildcards(rule.outputs or rule.inputs)

    def chunks(self) -> tuple[PathSpec, ...]:
        """Where one piece of each output goes."""
        outputs = self.rule.outputs
        bases = [posixpath.basename(spec.text.rstrip("/")) for spec in outputs]
        if len(set(bases)) < len(bases):
            bases = [f"{at}/{base}" for at, base in enumerate(bases)]
        return tuple(
            replace(self.chunk(base, spec.place), name=spec.name, pattern=spec.pattern)
            for base, spec in zip(bases, outputs)
        )

    def chunk(self, base: str, place: Place) -> PathSpec:
        """Where a piece of this name goes."""
        return PathSpec(text=self._path(self._maker, self._key, base), place=place)

    def cut(self, spec: PathSpec) -> PathSpec:
        """Where one piece of an input goes that is cut; it keeps its name, but for what may be a path."""
        base = posixpath.basename(spec.text)
        if "{config." in base or "*" in base or not self._free.isdisjoint(self.names(base)):
            base = "piece"
        key = dict.fromkeys((*self._key, *self._wildcards((spec,))))
        return replace(spec, text=self._path(f"{self.rule.name}.cut", key, base))

    def filled(self, text: str) -> str:
        """A text with config values filled in, as far as there are any."""
        return self._texts.fill_config(text, Place()) or text

    def names(self, text: str) -> tuple[str, ...]:
        """The wildcards of a path."""
        pattern = self._texts.pattern(text, Place(), globs=True)
        return pattern.names if pattern is not None else ()

    def speaks(self, text: str) -> bool:
        """Whether a text names the wildcard of the pieces."""
        return any(
            mark.root == self.by or (mark.root == "values" and mark.attr == self.by) for mark in marks(text)
        )

    def log(self, path: str, word: str = "", *, always: bool = False) -> str:
        """A log or benchmark that no two tasks share: with the piece in it, or with the `word` of the part.

        Without `always` a word only stands for the piece where the author named that.
        """
        mark = f"{{{self.by}}}"
        if not path or self.by in self.names(path):
            return path.replace(f"{{values.{self.by}}}", mark).replace(mark, word or mark)
        if word and not always:
            return path
        stem, ending = posixpath.splitext(path)
        return f"{path}.{word or mark}" if "}" in ending else f"{stem}.{word or mark}{ending}"

    def apart(self, word: str, *, own_inputs: bool = False) -> dict[str, Any]:
        """The texts of a part that makes no single piece: those that speak of one are left out.

        Without `own_inputs` so are those that pick among the inputs of the rule, which it does not have.
        """
        rule = self.rule

        def mine(text: object) -> bool:
            said = spelled(text)
            return not self.speaks(said) and (own_inputs or not _picks(said))

        bare = _QUOTED.sub("", rule.when)
        hooks = {key: getattr(rule, key) for key in ("pre_exec", "on_success", "on_failure")}
        return {
            "params": {name: value for name, value in rule.params.items() if mine(value)},
            "envvars": {name: value for name, value in rule.envvars.items() if mine(value)},
            "when": "" if re.search(rf"(?<![\w.]){self.by}\b", bare) else rule.when,
            "log": self.log(rule.log, word, always=own_inputs),
            "benchmark": self.log(rule.benchmark, word, always=own_inputs),
            **{key: text if mine(text) else "" for key, text in hooks.items()},
        }

    def _path(self, part: str, key: Iterable[str], base: str) -> str:
        folders = [f"{name}={{{name}}}" for name in (*key, self.by)]
        return "/".join((CHUNKS, part, *folders, base))

    def _wildcards(self, specs: Iterable[PathSpec]) -> tuple[str, ...]:
        found = (name for spec in specs for name in self.names(spec.text))
        return tuple(dict.fromkeys(name for name in found if name != self.by and name not in self._free))


def marks(text: str) -> list[Mark]:
    """The placeholders of a text."""
    return [piece for piece in scan(text) if isinstance(piece, Mark) and piece.braces % 2]


def _picks(text: str) -> bool:
    return any(mark.root == "input" and not mark.bare and not mark.option for mark in marks(text))
