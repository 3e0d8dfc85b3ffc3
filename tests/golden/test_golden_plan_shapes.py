"""Plans of a few shapes, as `plan --json` shows them, and refusals, as the user reads them."""

from __future__ import annotations

import pytest

from treadle.base.errors import PlanError
from treadle.base.place import Place
from treadle.plan.build import build
from treadle.plan.show import plan_object
from treadle.plan.task import Command, Growth, Policy, Resources, Shell, Skip, Where
from treadle.plan.tokens import EFFECTIVE_THREADS, FLOWDIR, INPUT_LIST, WORKDIR
from treadle.testing.drafts import draft, step

SAMPLES = ("S1", "S2")
STRICT = Policy(shell=Shell(strict=True), retries=2, retry_memory=Growth(factor=2.0), priority=1)

TOKENS = step("tokenize", attrs='{"vocab":"v1"}', inputs=("raw.txt",))
TRAIN = step("train", [TOKENS], path="models/train", version="dev", mutable=True, where=Where.PROCESS)

SHAPES = {
    "single": [draft("hello", "", "hello.txt", text="echo hello > hello.txt")],
    "cohort": [
        *(
            draft(
                f"align/sample={one}",
                f"reads/{one}.fq.gz refs/star",
                f"bam/{one}.bam",
                text=f"align -t {EFFECTIVE_THREADS} refs/star reads/{one}.fq.gz > bam/{one}.bam",
                resources=Resources(threads=4, memory=8 * 1024**3, groups=(("licence", 1),)),
                policy=STRICT,
                log=f"logs/{one}.log",
                temporary=(f"bam/{one}.bam",),
            )
            for one in SAMPLES
        ),
        draft("index", "hg38.fa", "refs/star", text="index hg38.fa", ancient=frozenset({"hg38.fa"})),
        draft(
            "merge",
            [f"bam/{one}.bam" for one in SAMPLES],
            "all.bam",
            command=Command(
                text=f"merge @{INPUT_LIST}",
                script=("python3", f"{FLOWDIR}/check.py"),
                script_file=f"{FLOWDIR}/check.py",
                pre_exec=f"cd {WORKDIR}",
                env=(("LC_ALL", "C"),),
            ),
            benchmark="merge.tsv",
        ),
        draft("report", "bam", "report.html", depends_on=("merge",)),
    ],
    "skipped": [
        draft("qc", "reads.fq", "qc.html", skip=Skip("when", "config.qc")),
        draft("show", "qc.html", "show.txt"),
        draft("other", "", "other.txt", depends_on=("qc",)),
    ],
    "steps": [
        draft("fetch", "", "raw.txt", text="fetch > raw.txt"),
        TOKENS,
        TRAIN,
        draft("score", "models/train/weights.bin", "score.txt", text="score models/train > score.txt"),
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_plan_is_as_it_was(shape, golden_json):
    plan = build(shape, SHAPES[shape], pools=(("licence", 2),) if shape == "cohort" else ())
    golden_json(f"plans/{shape}.json", plan_object(plan))


def test_refusals_read_as_they_did(golden):
    def at(line: int, table: str) -> Place:
        return Place("flow.oxoflow", line, f"rules.{table}")

    drafts = [
        draft("a/sample=1", "b.txt", "a.txt", place=at(3, "a")),
        draft("b/sample=1", "a.txt", "b.txt", place=at(9, "b")),
        draft("twin", "", "x.txt", place=at(15, "twin")),
        draft("other", "", "./x.txt", place=at(20, "other")),
        draft("index", "", "refs", place=at(25, "index")),
        draft("fetch", "", "refs/hg38.fa", place=at(30, "fetch")),
        draft("sort", "s.bam", "s.bam", place=at(35, "sort")),
        draft("late", "", "late", depends_on=("indx",), place=at(40, "late")),
        draft("state", "", ".treadle/x", place=at(45, "state")),
        draft("all", "", ".", place=at(47, "all")),
        draft("flow", "", "flow.oxoflow", place=at(48, "flow")),
        draft("greedy", resources=Resources(groups=(("db", 3), ("gpu", 1))), place=at(50, "greedy")),
    ]
    with pytest.raises(PlanError) as caught:
        build("flow", drafts, pools=(("db", 2), ("gpus", 1)), protected=("flow.oxoflow",))
    golden("plans/refusals.txt", f"{caught.value}\n")
