"""A rule with `transform` as the rules that it stands for.

    RULE.cut    cuts the input into pieces, where `split.n` asks for that
    RULE.map    makes one piece for each value
    RULE        combines the pieces; without `combine` it is the rule that makes them

No rule of a file can have a dot in its name, so these meet none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from msgspec.structs import replace

from treadle.base.layout import CHUNKS
from treadle.base.place import Place
from treadle.rules.parts.piece_paths import Pieces, marks
from treadle.rules.parts.piece_texts import KINDS, aggregate_text, cut_text
from treadle.rules.schema import FanIn, OwnValues, PathSpec, Rule, Transform, Value, Workflow
from treadle.rules.text.placeholder import Mark, scan, spelled
from treadle.rules.toml.section import Findings, clip

_MOST = 10_000  # pieces of one input
_CUT_BY = ("lines", "records")
# What nobody cuts at line ends.
_BINARY = (".bam", ".cram", ".bcf", ".sra", ".h5", ".h5ad", ".zip", ".bz2", ".xz", ".zst", ".parquet")

Given = tuple[Value, ...] | str


def parts(rule: Rule, transform: Transform, workflow: Workflow, findings: Findings) -> tuple[Rule, ...]:
    """The rules that a rule with `transform` stands for; none, with findings, where it cannot be."""
    return tuple(_Writer(rule, transform, workflow, findings).parts())


class _Writer:
    """Writes out one rule."""

    def __init__(self, rule: Rule, transform: Transform, workflow: Workflow, findings: Findings) -> None:
        self.rule = replace(rule, transform=None)
        self.said = transform
        self.findings = findings
        self.by = transform.by
        self.pieces = Pieces(rule, transform, workflow)

    def parts(self) -> Iterator[Rule]:
        rule, said = self.rule, self.said
        given = self._given()
        pattern = self._pattern() if said.glob else ""
        if given is None or (said.glob and not pattern) or not self._fits():
            return
        inputs = rule.inputs
        if said.count and (self.by in _CUT_BY or not self._named()):
            if not self._can_cut():
                return
            inputs = (self.pieces.cut(rule.inputs[0]),)
            yield self._cut(len(given), inputs[0])
        elif pattern:
            inputs = self._with_glob(pattern)
        elif not self._named():
            message = f"'map' does not name {{{self.by}}}: each of its tasks does the same"
            self.findings.warn("same-pieces", message, self._at("map"))
        yield self._mapped(given, inputs)
        if said.combine is not None:
            yield self._combined(given)

    def _given(self) -> Given | None:
        """The values of the pieces: a list, `config.key`, or nothing where they are found; None: wrong."""
        if not self.said.count:
            return self.said.values
        text = self.pieces.filled(self.said.count)
        if re.fullmatch(r"[1-9][0-9]{0,4}", text) and int(text) <= _MOST:
            return tuple(range(int(text)))
        hint = f"write a whole number from 1 to {_MOST:,}"
        self.findings.error("bad-value", f"'{clip(text)}' is no number of pieces", self._at("split.n"), hint)
        return None

    def _pattern(self) -> str:
        """The glob with the wildcard of the pieces in it; empty, with a finding, where that is not clear."""
        glob = self.said.glob
        if self.by in self.pieces.names(glob):
            return glob
        if glob.count("*") == 1 and not any(sign in glob for sign in "?["):
            return glob.replace("*", f"{{{self.by}}}")
        message = f"it is not clear what {{{self.by}}} is in '{clip(glob)}'"
        hint = f"write {{{self.by}}} where its values stand, such as 'parts/{{{self.by}}}.txt'"
        self.findings.error("bad-value", message, self._at("split.glob"), hint)
        return ""

    def _fits(self) -> bool:
        """Whether outputs and `combine` go together."""
        combine = self.said.combine
        for spec in self.rule.outputs if combine else ():
            if self.by in self.pieces.names(spec.text):
                message = f"the output '{clip(spec.text)}' holds {{{self.by}}}, but combine makes one of all"
                self.findings.error("piece-output", message, spec.place, "take it out, or leave out combine")
                return False
            if spec.pattern and combine and combine.method:
                message = f"'{clip(spec.text)}' is a folder, and {combine.method} makes one file"
                self.findings.error("piece-output", message, spec.place, "combine it by a command: shell")
                return False
        if combine and combine.method and not self.rule.outputs:
            self.findings.error("piece-output", "this rule has no output to combine into", self.rule.place)
            return False
        return True

    def _named(self) -> bool:
        """Whether `map`, or what goes with it, says which piece it is."""
        rule = self.rule
        texts = (self.said.map, *map(spelled, rule.params.values()), *rule.envvars.values(), rule.pre_exec)
        paths = (*(spec.text for spec in rule.inputs), *(fan.pattern for fan in rule.fan_in))
        return any(map(self.pieces.speaks, texts)) or any(
            self.by in self.pieces.names(path) for path in paths
        )

    def _can_cut(self) -> bool:
        """Whether there is one input that can be cut; a finding where not."""
        rule, place = self.rule, self._at("split.n")
        hint = f"name {{{self.by}}} in 'map', and let its command pick what belongs to the piece"
        if len(rule.inputs) != 1 or rule.fan_in or rule.inputs[0].pattern:
            self.findings.error("cannot-cut", "only a rule with one input can have it cut", place, hint)
            return False
        text = rule.inputs[0].text
        ending = posixpath.splitext(text.removesuffix(".gz"))[1].lower()
        if ending in _BINARY:
            self.findings.error("cannot-cut", f"'{clip(text)}' cannot be cut at line ends", place, hint)
        elif self.by == "records" and ending and "}" not in ending and ending not in KINDS:
            message = f"what a record of '{clip(text)}' is, is not known"
            hint = f'records are those of {", ".join(KINDS)}; else cut by = "lines"'
            self.findings.error("cannot-cut", message, place, hint)
        else:
            return True
        return False

    def _cut(self, count: int, piece: PathSpec) -> Rule:
        mark = f"{{{self.by}}}"
        outputs = [replace(piece, text=piece.text.replace(mark, str(at)), name="") for at in range(count)]
        return self._part(
            f"{self.rule.name}.cut",
            "split.n",
            outputs=tuple(outputs),
            shell=cut_text(records=self.by == "records"),
            script="",
            interpreter="",
            **self.pieces.apart("cut", own_inputs=True),
        )

    def _with_glob(self, pattern: str) -> tuple[PathSpec, ...]:
        """The inputs with the file of the piece: in the place of the glob where it is one of them."""
        inputs, glob = self.rule.inputs, self.said.glob
        found = tuple(replace(one, text=pattern) if one.text == glob else one for one in inputs)
        if any(one.text == pattern for one in found):
            return found
        return (*found, PathSpec(text=pattern, place=self._at("split.glob")))

    def _mapped(self, given: Given, inputs: tuple[PathSpec, ...]) -> Rule:
        rule, said = self.rule, self.said
        listed = "split.values" if "split.values" in said.places else "split.values_from"
        own = OwnValues(variable=self.by, given=given, place=self._at("split.n" if said.count else listed))
        changes = {
            "inputs": inputs,
            "ancient": self._ancient(inputs),
            "outputs": self._made(),
            "own": None if said.glob else own,
            "shell": said.map,
            "script": "",
            "interpreter": "",
            "log": self.pieces.log(rule.log),
            "benchmark": self.pieces.log(rule.benchmark),
        }
        if said.combine is not None:
            return self._part(f"{rule.name}.map", "map", **changes)
        return replace(rule, places={**rule.places, "shell": self._at("map")}, **changes)

    def _ancient(self, inputs: tuple[PathSpec, ...]) -> tuple[str, ...]:
        """What is ancient of the inputs of a piece: a file of the glob as the glob is; what is cut, not."""
        if self.said.glob:
            pattern = self._pattern()
            return tuple(pattern if one == self.said.glob else one for one in self.rule.ancient)
        return self.rule.ancient if inputs == self.rule.inputs else ()

    def _made(self) -> tuple[PathSpec, ...]:
        """What one task of `map` makes."""
        rule, combine = self.rule, self.said.combine
        if rule.outputs:
            return self.pieces.chunks() if combine else rule.outputs
        if "output" not in {mark.root for mark in marks(self.said.map)}:
            return ()
        if not combine:
            message = f"this rule has no output, so its pieces go to {CHUNKS}/{rule.name}/"
            hint = f'give it one with the wildcard: output = ["results/{{{self.by}}}.txt"]'
            self.findings.warn("hidden-pieces", message, rule.place, hint)
        return (self.pieces.chunk("output", rule.place),)

    def _combined(self, given: Given) -> Rule:
        rule, combine = self.rule, self.said.combine
        assert combine is not None
        chunks = self._made()
        names = [
            one.name or ("chunks" if len(chunks) == 1 else f"chunks{at}") for at, one in enumerate(chunks)
        ]
        inputs = tuple(replace(one, name=name) for one, name in zip(chunks, names))
        variables = ((self.by, given),)
        gathered = tuple(
            FanIn(pattern=one.text, variables=variables, name=one.name, place=self._at("split.by"))
            for one in inputs
        )
        text = _reading(combine.shell) or aggregate_text(combine, names, [one.text for one in rule.outputs])
        return replace(
            rule,
            inputs=inputs if self.said.glob else (),
            fan_in=() if self.said.glob else gathered,
            ancient=(),
            shell=text,
            script="",
            interpreter="",
            places={**rule.places, "shell": self._at("combine.shell" if combine.shell else "combine")},
            **self.pieces.apart("combine"),
        )

    def _part(self, name: str, key: str, **changes: object) -> Rule:
        """A part that is not the rule itself: its files are only pieces, and go when that was asked for."""
        rule = self.rule
        same = (rule.resources, rule.memory_text)
        resources, memory_text = rule.part_resources.get(name.rpartition(".")[2], same)
        return replace(
            rule,
            name=name,
            resources=resources,
            memory_text=memory_text,
            manifest="",
            adds=(),
            temporary=self.said.cleanup,
            temp_output=(),
            protected=(),
            policy=replace(rule.policy, target=False),
            places={**rule.places, "shell": self._at(key)},
            **changes,
        )

    def _at(self, key: str) -> Place:
        return self.said.places.get(key) or self.rule.at("transform")


def _reading(text: str) -> str:
    """The command with `{chunks}` as what it is to the rule that combines: its `{input}`."""
    return "".join(piece if isinstance(piece, str) else _as_input(piece) for piece in scan(text))


def _as_input(mark: Mark) -> str:
    own = mark.root == "chunks" and mark.braces % 2
    return mark.source.replace("{chunks", "{input", 1) if own else mark.source
