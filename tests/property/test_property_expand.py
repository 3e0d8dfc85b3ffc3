"""Expansion does not hang on the order of rules, of the listing, or of a hash."""

from __future__ import annotations

import random
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.base.errors import UserError
from treadle.plan.task import Draft
from treadle.rules.expand.expand import expand
from treadle.rules.file.read import read_text
from treadle.rules.pattern.listing import PathListing
from treadle.rules.schema import PathSpec, Rule, Source, Workflow

SAMPLES = Source(
    kind="samples",
    label="groups",
    columns=("sample", "group"),
    rows=(("S1", "x"), ("S2", "x"), ("S3", "y")),
)
PAIRS = Source(
    kind="table",
    label="pairs",
    columns=("sample", "lane"),
    rows=(("S1", "L1"), ("S1", "L2"), ("S3", "L1"), ("S4", None)),
)
PATHS = [f"{folder}/{name}.{end}" for folder in "pq" for name in ("S1", "S2", "S1.L1", "S9") for end in "ab"]
FOLDER = st.sampled_from(["p", "q", "r", "s"])
STEM = st.sampled_from(["{sample}", "{any}", "*", "{sample}.{lane}", "S1", "{any}.L1", "{group}"])


@st.composite
def rules(draw: st.DrawFn) -> tuple[Rule, ...]:
    made: list[Rule] = []
    for number in range(draw(st.integers(1, 5))):
        inputs = draw(
            st.lists(st.builds("{}/{}.{}".format, FOLDER, STEM, st.sampled_from("aabbcd")), max_size=2)
        )
        open_too = any("{any}" in text for text in inputs)
        stem = draw(
            STEM.filter(lambda stem, open_too=open_too: "*" not in stem and (open_too or "any" not in stem))
        )
        output = f"{draw(FOLDER)}/{stem}.{'abcdef'[number]}"
        when = draw(st.sampled_from(["", "", "", "true", "false"]))
        spec = tuple(PathSpec(text=text) for text in dict.fromkeys(inputs))
        made.append(
            Rule(
                name=f"r{number}",
                inputs=spec,
                outputs=(PathSpec(text=output),),
                shell="cat {input} > {output}",
                when=when,
            )
        )
    return tuple(made)


def outcome(rules: tuple[Rule, ...], paths: list[str]) -> set[Draft] | set[str]:
    workflow = Workflow(file="f", folder="/f", name="w", rules=rules, sources=(SAMPLES, PAIRS))
    try:
        drafts = expand(workflow, PathListing(paths)).drafts
    except UserError as wrong:
        return {one.code for one in wrong.diagnostics}
    assert len(drafts) == len(set(drafts))
    return set(drafts)


@given(rules(), st.lists(st.sampled_from(PATHS), unique=True), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_order_of_rules_and_listing_changes_nothing(
    given: tuple[Rule, ...], paths: list[str], chance: random.Random
) -> None:
    shuffled, mixed = list(given), list(paths)
    chance.shuffle(shuffled)
    chance.shuffle(mixed)
    assert outcome(given, paths) == outcome(tuple(shuffled), mixed)


@given(rules(), st.lists(st.sampled_from(PATHS), unique=True))
@settings(max_examples=100, deadline=None)
def test_every_path_is_in_its_one_spelling_and_every_input_comes_once(
    given: tuple[Rule, ...], paths: list[str]
) -> None:
    for draft in outcome(given, paths):
        if isinstance(draft, Draft):
            assert len(set(draft.inputs)) == len(draft.inputs)
            assert draft.gathered <= set(draft.inputs)
            assert all(
                "//" not in path and not path.startswith("./") for path in draft.inputs + draft.outputs
            )


_FLOW = """
[workflow]
name = "w"
[[sample_groups]]
name = "g"
samples = ["b", "a", "c"]
[[rules]]
name = "r"
input = ["in/{sample}_{lane}.txt", "in/*.txt"]
output = ["out/{sample}.txt"]
ancient = ["in/b*"]
shell = "cat {input} > {output}"
"""
_PROGRAM = f"""
import msgspec
from treadle.rules.expand.expand import expand
from treadle.rules.pattern.listing import PathListing
from treadle.rules.file.read import read_text
paths = [f"in/{{s}}_{{n}}.txt" for s in "cab" for n in range(4)]
found = expand(read_text({_FLOW!r}), PathListing(paths))
print(msgspec.json.encode([found.drafts, found.notes, found.sources], order="sorted"))
"""


def test_the_seed_of_the_hash_changes_nothing() -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1
    assert "out/a.txt" in answers.pop()


def test_the_program_above_reads_what_it_should() -> None:
    assert len(read_text(_FLOW).rules) == 1
