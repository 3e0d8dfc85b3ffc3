"""How well can the next letter be guessed? Models of several orders, judged by what they have not seen.

    treadle plan pipeline.py          what would run, and why
    treadle run pipeline.py           run it; again: nothing to do
    treadle run pipeline.py most=6    two models more, and a new verdict
    treadle why pipeline.py:best      what decides about one step

Needs nothing but Python. Change a text, and what was made of it is made again.
"""

import json
import math
from collections import Counter
from pathlib import Path

from treadle import StepSpec, step

TEXTS = ["texts/gettysburg.txt", "texts/ozymandias.txt", "texts/sonnet18.txt"]


@step(inputs=TEXTS)
def corpus(out: str, share: float = 0.8) -> dict[str, int]:
    """A folder with the letters to learn from and those to judge by."""
    letters = ""
    for name in TEXTS:
        words = "".join(c if c.isalpha() else " " for c in Path(name).read_text().lower()).split()
        letters += " ".join(words) + " "
    cut = int(len(letters) * share)
    Path(out).mkdir()
    Path(out, "learn.txt").write_text(letters[:cut])
    Path(out, "judge.txt").write_text(letters[cut:])
    return {"learn": cut, "judge": len(letters) - cut}


@step
def model(out: str, corpus: StepSpec, order: int, ctx) -> None:
    """Counts of letters by the `order` letters before them."""
    text = Path(ctx.path(corpus), "learn.txt").read_text()
    counts: dict[str, Counter[str]] = {}
    for at in range(order, len(text)):
        counts.setdefault(text[at - order : at], Counter())[text[at]] += 1
    Path(out).write_text(json.dumps(counts))


@step
def score(model: StepSpec, corpus: StepSpec, order: int, ctx) -> float:
    """Bits that a letter of the unseen text costs: less is better."""
    counts = json.loads(Path(ctx.path(model)).read_text())
    text = Path(ctx.path(corpus), "judge.txt").read_text()
    bits = 0.0
    for at in range(order, len(text)):
        seen = counts.get(text[at - order : at], {})
        bits -= math.log2((seen.get(text[at], 0) + 0.1) / (sum(seen.values()) + 2.7))
    return round(bits / (len(text) - order), 3)


@step
def best(out: str, scores: list[StepSpec], ctx) -> dict[str, float]:
    """A table of all orders, and the best of them."""
    bits = {str(one.hash_attrs["order"]): ctx.load(one) for one in scores}
    winner = min(bits, key=bits.get)
    lines = [f"order {order}: {cost} bits a letter" for order, cost in bits.items()]
    Path(out).write_text("\n".join([*lines, f"best: order {winner}"]) + "\n")
    return {"order": int(winner), "bits": bits[winner]}


def steps(most: int = 4) -> list[StepSpec]:
    """The verdict over the orders from 1 to `most`, and all that it takes."""
    letters = corpus()
    return [best([score(model(letters, order), letters, order) for order in range(1, most + 1)])]
