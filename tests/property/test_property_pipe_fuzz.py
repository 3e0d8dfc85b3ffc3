"""Workflows that somebody spoiled: the whole front says what is wrong, or plans; it never breaks."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.api.check import check
from treadle.api.pipe import Request, plan_of, view_of
from treadle.base.errors import UserError
from treadle.plan.show import plan_object
from treadle.records.past import Past

FLOWS = sorted((Path(__file__).parents[1] / "golden" / "flows").glob("*.oxoflow"))
TEXTS = [flow.read_text(encoding="utf-8") for flow in FLOWS]
WORD = re.compile(r'"[^"\n]*"|\{[^{}\n]*\}|\w+|[^\w\s]')
WORDS = sorted({word for text in TEXTS for word in WORD.findall(text)})
WORDS += [
    *(
        '"{sample}"',
        '"{pair_id}"',
        "{config.x}",
        "{{",
        "}}",
        "**",
        "*",
        "[a]",
        '""',
        "'''",
        '"""',
        "\\",
        "..",
    ),
    *("./", "//", "{input[9]}", "{input:sep=,}", "{input.list}", "[[rules]]", "[config]", "-1", "1e5", "[]"),
    *("{}", "ü", "\u2028", "\t", "\x7f", "{", "}", "$", "`", "$(", "<<EOF", "&&", "!", "{a}.{b}", "{a}{b}"),
]


def spoiled(text: str, chance: random.Random) -> str:
    """The text with a word or a line taken out, put in, doubled or moved."""
    words = [found.span() for found in WORD.finditer(text)]
    start, end = chance.choice(words)
    match chance.randrange(6):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:start] + chance.choice(WORDS) + text[end:]
        case 2:
            at = chance.randint(start, end)
            return text[:at] + chance.choice(WORDS) + text[at:]
        case 3:
            one, other = chance.choice(words)
            return text[:start] + text[one:other] + text[end:]
        case 4:
            lines = text.split("\n")
            lines.insert(chance.randrange(len(lines)), chance.choice(lines))
            return "\n".join(lines)
        case _:
            lines = text.split("\n")
            del lines[chance.randrange(len(lines))]
            return "\n".join(lines)


@given(st.sampled_from(TEXTS), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None)
def test_a_spoiled_workflow_is_planned_or_refused_with_places(text, times, chance):
    for _ in range(times):
        text = spoiled(text, chance) if WORD.search(text) else text
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        shutil.copytree(FLOWS[0].parent / "sheets", here / "sheets")
        for file in ("reads/S1.fq", "raw/S1_L1.fq", "in/a.txt", "in/d/x.txt", "bam/P1.T1.N1.bam"):
            (here / file).parent.mkdir(exist_ok=True, parents=True)
            (here / file).write_text("x")
        request = Request(file=str(here / "main.oxoflow"))
        (here / "main.oxoflow").write_text(text, encoding="utf-8")
        found = check(request)
        told = [*found.errors, *found.warnings]
        try:
            planned = plan_of(request)
            msgspec.json.encode(plan_object(planned.plan))
            assert not found.errors
            view_of(planned, request, Past())
        except UserError as error:
            told += error.diagnostics
        assert all(one.message and (one.place.file or one.place.key) for one in told)
