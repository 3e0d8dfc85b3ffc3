"""Python steps: each is named by what it is made of, and is made once.

treadle plan pipeline.py           what would run, and why
treadle run pipeline.py            run it; again: nothing to do
treadle run pipeline.py least=5    longer words: other steps, beside the first ones
"""

from pathlib import Path
from typing import Any

from treadle import StepSpec, step


@step(inputs=["texts/one.txt", "texts/two.txt"])
def words(out: str, least: int) -> int:
    """All words of at least so many letters, one a line; the value is kept in the record."""
    found = [
        word
        for name in ("texts/one.txt", "texts/two.txt")
        for word in Path(name).read_text().split()
        if len(word) >= least
    ]
    Path(out).write_text("".join(f"{word}\n" for word in found))
    return len(found)


@step
def report(out: str, counted: StepSpec, ctx: Any) -> None:
    """What came out, in words."""
    first = Path(ctx.path(counted)).read_text().split()[:1]
    Path(out).write_text(f"{ctx.load(counted)} words; the first is {first}\n")


def steps(least: int = 3) -> list[StepSpec]:
    """What is to be made; its parameters are given on the command line."""
    return [report(words(least))]
