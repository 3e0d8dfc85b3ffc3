"""The same workflow gives the same bytes, whatever the hash seed of the process."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import msgspec
from treadle.base.errors import PlanError
from treadle.plan.build import build
from treadle.plan.select import select
from treadle.plan.show import plan_object
from treadle.plan.task import Skip
from treadle.testing.drafts import draft, step

drafts = [
    draft(f"a/s={i}", f"in/{i} ref/x", f"a/{i}", ancient=frozenset({f"in/{i}", "ref/x"}), log="shared.log")
    for i in range(20)
]
reads = [f"a/{i} a/{(i * 7) % 20} A/{i}" for i in range(20)]
drafts += [draft(f"b/s={i}", reads[i], f"b/{i}", depends_on=("ref",)) for i in range(20)]
drafts += [draft("ref", "", "ref"), draft("all", "b", "all"), draft("off", "", "x", skip=Skip("when", "c"))]
drafts += [draft("down", "x", "y")]
low = [step(f"low{i}", attrs='{"a":1}', inputs=(f"b/{i}",)) for i in range(20)]
below = [[low[(i * at) % 20] for at in (1, 3, 7)] for i in range(1, 5)]
drafts += [*low, *(step(f"high{i}", its, path=f"h/{i}") for i, its in enumerate(below))]
drafts += [draft("late", "h", "late", depends_on=("@low3",))]
plan = build("flow", drafts)
print(msgspec.json.encode(plan_object(plan)).decode())
print(*plan.notes, sep="\\n")
print(list(plan.tasks), list(plan.producer))
print(sorted(select(plan, ["all"])))
wrong = [draft("twin", "in", "a/3 a/4 ref/in"), draft("c", "d", "c"), draft("d", "c", "d")]
try:
    build("flow", drafts + wrong)
except PlanError as error:
    print(error)
"""


def told(seed: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def test_the_hash_seed_changes_no_byte():
    first = told("1")
    for part in ("differ only in case", "both write", "both make a/3", "c -> d -> c"):
        assert part in first
    assert told("2") == first
    assert told("31337") == first
