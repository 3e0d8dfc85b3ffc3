"""Random small workflows down the whole pipe: one plan whatever the order, and what is shown is what runs."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from treadle.api.pipe import Request, View, look, plan_of
from treadle.api.run import RunOptions, run
from treadle.decide.reason import Answer, Verdict
from treadle.plan.show import digest, plan_object
from treadle.records.event import AttemptSubmitted, End, TaskSettled

SAMPLES = ("S1", "S 2", "s3")


class Made(Struct, frozen=True):
    """A rule: one task for each sample (`each`), or one for all; `reads` are rules before it.

    Every task writes its rule's `word`, its value if it names one, and all that it reads. It is skipped
    where the `gate` is shut, and for the sample `but`.
    """

    name: str
    each: bool
    reads: tuple[int, ...]
    word: str
    source: bool = False
    gate: bool = True
    but: str = ""
    temporary: bool = False
    threads: int = 1
    priority: int = 0
    after: str = ""

    @property
    def path(self) -> str:
        return f"{self.name}/{{sample}}.txt" if self.each else f"{self.name}.txt"


class Flow(Struct, frozen=True):
    """A workflow with the content of its source files."""

    rules: tuple[Made, ...]
    samples: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]

    def text(self, order: Sequence[int] | None = None) -> str:
        tables = [self._rule(self.rules[at]) for at in (order or range(len(self.rules)))]
        gates = "".join(f"{rule.name} = {str(rule.gate).lower()}\n" for rule in self.rules)
        head = '[workflow]\nname = "random"\nstrict_shell = true\n'
        groups = f'[[sample_groups]]\nname = "g"\nsamples = {msgspec.json.encode(self.samples).decode()}\n'
        return "\n".join([head, f"[config]\n{gates}", groups, *tables])

    def _rule(self, rule: Made) -> str:
        inputs = [self.rules[at].path for at in rule.reads]
        inputs += ["in/{sample}.txt"] if rule.source else []
        lines = [
            f'name = "{rule.name}"',
            f"input = {inputs}",
            f'output = ["{rule.path}"]',
            f"""when = "config.{rule.name}{f" && sample != '{rule.but}'" if rule.each else ""}\"""",
            f"temporary = {str(rule.temporary).lower()}",
            f"priority = {rule.priority}",
            f"resources = {{ threads = {rule.threads} }}",
            f'params = {{ word = "{rule.word}{" {sample}" if rule.each else ""}" }}',
            "shell = '{ echo {params.word}; cat /dev/null {input}; } > {output}'",
        ]
        lines += [f'depends_on = ["{rule.after}"]'] if rule.after else []
        return "[[rules]]\n" + "\n".join(lines) + "\n"

    def outputs(self) -> dict[str, str]:
        """What lies in each output after a run, whatever was there before; nothing of what is skipped."""
        found: dict[str, str] = {}
        for rule in self.rules:
            for sample in self.samples if rule.each else ("",):
                content = self._content(rule, sample, found)
                if content is not None:
                    found[rule.path.format(sample=sample)] = content
        return found

    def _content(self, rule: Made, sample: str, found: dict[str, str]) -> str | None:
        if not rule.gate or (rule.each and sample == rule.but):
            return None
        parts = [f"{rule.word} {sample}\n" if rule.each else f"{rule.word}\n"]
        for at in rule.reads:
            paths = self._paths(self.rules[at].path, rule, sample)
            there = [found[path] for path in paths if path in found]
            if not there:
                return None
            parts += there
        sources = dict(self.sources)
        return "".join(
            parts + ([sources[path] for path in self._paths("in/{sample}.txt", rule, sample)] * rule.source)
        )

    def _paths(self, path: str, rule: Made, sample: str) -> list[str]:
        if "{" not in path:
            return [path]
        return [path.format(sample=one) for one in ((sample,) if rule.each else self.samples)]

    def with_rule(self, at: int, **changes: Any) -> Flow:
        rules = list(self.rules)
        rules[at] = replace(rules[at], **changes)
        return replace(self, rules=tuple(rules))


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    rules: list[Made] = []
    for number in range(draw(st.integers(2, 5))):
        reads = draw(st.lists(st.integers(0, number - 1), max_size=2, unique=True)) if number else []
        rules.append(
            Made(
                name=f"r{number}",
                each=draw(st.booleans()),
                reads=tuple(reads),
                word=f"word{number}",
                source=not reads or draw(st.booleans()),
                gate=draw(st.sampled_from([True, True, True, False])),
                but=draw(st.sampled_from(["", *SAMPLES])),
                temporary=draw(st.booleans()),
                priority=draw(st.integers(-1, 1)),
                after=f"r{draw(st.integers(0, number - 1))}" if number and draw(st.booleans()) else "",
            )
        )
    samples = tuple(draw(st.lists(st.sampled_from(SAMPLES), min_size=1, unique=True)))
    return Flow(tuple(rules), samples, tuple((f"in/{one}.txt", f"text of {one}\n") for one in SAMPLES))


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def write(flow: Flow, here: Path, order: Sequence[int] | None = None, names: Sequence[str] = ()) -> Path:
    """Put the workflow and its sources into a folder; the sources in the order of `names`."""
    (here / "in").mkdir(parents=True, exist_ok=True)
    sources = dict(flow.sources)
    for name in names or sources:
        if not (here / name).exists() or (here / name).read_text() != sources[name]:
            (here / name).write_text(sources[name])
    file = here / "main.oxoflow"
    file.write_text(flow.text(order))
    return file


def planned(file: Path) -> bytes:
    plan = plan_of(Request(file=str(file))).plan
    return msgspec.json.encode([plan_object(plan), digest(plan), [str(note) for note in plan.notes]])


# --- one plan ------------------------------------------------------------------------------------------


@given(flows(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_of_rules_and_files_and_the_folder_change_no_byte_of_a_plan(flow, chance):
    order, names = list(range(len(flow.rules))), [name for name, _ in flow.sources]
    chance.shuffle(order)
    chance.shuffle(names)
    with folder() as here, folder() as there:
        assert planned(write(flow, here)) == planned(write(flow, there / "a b" / "c", order, names))


_PROGRAM = """
import sys
from treadle.api.pipe import Request, plan_of
from treadle.plan.show import digest
for file in sys.argv[1:]:
    print(digest(plan_of(Request(file=file)).plan))
"""


def test_the_seed_of_the_hash_changes_no_plan(tmp_path):
    chance = random.Random(7)
    files = []
    for number in range(8):
        rules = tuple(
            Made(
                name=f"r{at}",
                each=chance.random() < 0.6,
                reads=tuple(sorted(chance.sample(range(at), min(at, 2)))),
                word="w",
                source=True,
                gate=chance.random() < 0.8,
            )
            for at in range(6)
        )
        flow = Flow(rules, SAMPLES, tuple((f"in/{one}.txt", "x\n") for one in SAMPLES))
        files.append(str(write(flow, tmp_path / str(number))))
    said = set()
    for seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, *files],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert len(set(said.pop().split())) > 1, "the workflows differ"


# --- what is shown is what runs ------------------------------------------------------------------------


class Watcher:
    """Whoever asks for a run: says yes, and keeps what happened."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.ends: dict[str, End] = {}

    def say(self, news: object) -> None:
        raise AssertionError(news)

    def agree(self, view: View, mask: object) -> bool:
        return True

    def open(self, folder: object) -> None:
        pass

    def feed(self, events: Sequence[object]) -> None:
        for event in events:
            if isinstance(event, AttemptSubmitted):
                self.ran.append(event.task)
            elif isinstance(event, TaskSettled):
                self.ends[event.task] = event.state

    def close(self) -> None:
        pass


def run_as_shown(request: Request) -> set[str]:
    """Preview, run, and hold one against the other; the tasks that ran."""
    view = look(request)
    answers = view.decision.answers
    shown = {task for task, answer in answers.items() if answer.verdict is Verdict.WILL_RUN}
    watcher = Watcher()
    report = run(request, RunOptions(jobs=2), watcher)
    ran = set(watcher.ran)
    assert report.exit_code == 0
    assert len(ran) == len(watcher.ran), "each once"
    assert ran <= shown
    for task in shown - ran:
        assert answers[task].may_cut_off
        assert watcher.ends[task] is End.UNCHANGED
    _closed(view, ran, watcher.ends, answers)
    return ran


def _closed(view: View, ran: set[str], ends: dict[str, End], answers: dict[str, Answer]) -> None:
    """Whoever reads what was made again ran as well, or was found unchanged, or is skipped."""
    for other, answer in answers.items():
        if answer.verdict is not Verdict.SKIPPED and not ran.isdisjoint(view.plan.tasks[other].needs):
            assert other in ran or ends.get(other) is End.UNCHANGED


EDITS = (
    "source",
    "touch",
    "delete",
    "scribble",
    "word",
    "threads",
    "gate",
    "drop",
    "swap",
    "rename",
)


def edited(flow: Flow, edit: str, here: Path, chance: random.Random) -> Flow:
    """What a person does between two runs: to the files, or to the workflow."""
    at = chance.randrange(len(flow.rules))
    source, _ = chance.choice(flow.sources)
    made = sorted(path for path in here.rglob("r*") if path.is_file())
    match edit:
        case "source":
            sources = {**dict(flow.sources), source: f"other text {chance.random()}\n"}
            return replace(flow, sources=tuple(sources.items()))
        case "touch":
            os.utime(here / source, ns=(0, chance.randrange(10**18)))
        case "delete" if made:
            chance.choice(made).unlink()
        case "scribble" if made:
            chance.choice(made).write_text("scribbled")
        case "word":
            return flow.with_rule(at, word=f"word{chance.random()}")
        case "threads":
            return flow.with_rule(at, threads=2, priority=chance.randrange(5))
        case "gate":
            return flow.with_rule(at, gate=not flow.rules[at].gate)
        case "drop" if len(flow.samples) > 1:
            return replace(flow, samples=flow.samples[1:])
        case "swap":
            return replace(flow, samples=(*flow.samples[1:], flow.samples[0]))
        case "rename":
            name = f"{flow.rules[at].name}x"
            return flow.with_rule(at, name=name) if not any(one.after for one in flow.rules) else flow
    return flow


def check_outputs(flow: Flow, here: Path) -> None:
    """All outputs are what a run in an empty folder would give; temporary ones may be gone."""
    kept = {rule.path.partition("/")[0] for rule in flow.rules if not rule.temporary}
    for path, content in flow.outputs().items():
        if path.partition("/")[0] in kept or (here / path).exists():
            assert (here / path).read_text() == content, path


@given(flows(), st.permutations(EDITS).map(lambda edits: edits[:4]), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_after_any_edits_what_is_shown_runs_and_all_outputs_are_as_if_made_anew(flow, edits, chance):
    with folder() as here:
        request = Request(file=str(write(flow, here)))
        run_as_shown(request)
        check_outputs(flow, here)
        for edit in edits:
            flow = edited(flow, edit, here, chance)
            write(flow, here)
            ran = run_as_shown(request)
            check_outputs(flow, here)
            if edit in ("touch", "threads"):
                assert not ran
            assert run_as_shown(request) == set(), "a second run has nothing to do"


@given(flows(), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=10, deadline=None)
def test_a_part_of_a_workflow_runs_as_shown_and_leaves_the_rest_alone(flow, force, cutoff, chance):
    with folder() as here:
        whole = Request(file=str(write(flow, here)))
        if chance.random() < 0.5:
            run_as_shown(whole)
        flow = edited(flow, "source", here, chance)
        write(flow, here)
        target = chance.choice(flow.rules).name
        part = replace(whole, targets=(target,), force=force, cutoff=cutoff)
        allowed = look(part).selected
        live = [
            task for task, one in look(part).decision.answers.items() if one.verdict is not Verdict.SKIPPED
        ]
        ran = run_as_shown(part)
        assert allowed is not None
        assert ran <= allowed
        if force:
            assert {task for task in live if task.partition("/")[0] == target} <= ran
        assert run_as_shown(replace(part, force=False)) == set()
        run_as_shown(whole)
        check_outputs(flow, here)
