"""Formatting changes the layout alone: values, comments and plans stay, and a second time changes nothing."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import msgspec
import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from toml_documents import documents

from treadle.api.pipe import Request, plan_of
from treadle.base.errors import UserError, WorkflowError
from treadle.plan.show import plan_object
from treadle.rules.toml.fields import RULE
from treadle.rules.toml.format import formatted

ROOT = Path(__file__).parents[2]
FLOWS = sorted(
    file
    for below in ("tests/golden/flows", "tests/corpus", "examples", "src/treadle/cli/templates")
    for file in (ROOT / below).rglob("*.oxoflow")
)
TEXTS = [flow.read_text(encoding="utf-8") for flow in FLOWS]


def shown(text: str) -> bytes:
    """The plan of a text, or what is wrong with it: what does not depend on lines."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "main.oxoflow").write_text(text, encoding="utf-8")
        try:
            return msgspec.json.encode(plan_object(plan_of(Request(file=f"{name}/main.oxoflow")).plan))
        except UserError as error:
            told = sorted((one.code, one.place.table, one.place.key) for one in error.diagnostics)
            return msgspec.json.encode(told)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow.parent.name}/{flow.name}")
def test_the_plan_of_a_formatted_file_is_the_same_to_the_byte(flow: Path) -> None:
    text = flow.read_text(encoding="utf-8")
    made = formatted(text, "f")
    assert formatted(made, "f") == made
    assert shown(made) == shown(text)


def untidy(text: str, draw: st.DrawFn) -> str:
    """The same file as a careless person would leave it."""
    lines = []
    for line in text.split("\n"):
        if re.fullmatch(r"[a-z_]+ = (\"[^\"\\]*\"|\d+|true)", line) and "'''" not in text:
            line = line.replace(" = ", draw(st.sampled_from(["=", "  =  ", " ="]))) + draw(
                st.sampled_from(["", " ", " # why"])
            )
        elif line.startswith("[[") and "'''" not in text:
            line = draw(st.sampled_from(["", "# above\n", "\n\n\n", "# far\n\n"])) + line
        lines.append(line)
    return (
        draw(st.sampled_from(["", "\n\n", "# head\n"]))
        + "\n".join(lines)
        + draw(st.sampled_from(["", "\n\n"]))
    )


@st.composite
def untidy_flows(draw: st.DrawFn) -> str:
    return untidy(draw(st.sampled_from(TEXTS)), draw)


@given(untidy_flows())
@settings(max_examples=25, deadline=None)
def test_untidy_files_keep_their_plan(text: str) -> None:
    made = formatted(text, "f")
    assert formatted(made, "f") == made
    assert shown(made) == shown(text)


def comments(text: str) -> list[str]:
    return sorted(re.findall(r"# (?:why|above|far|head)", text))


@given(untidy_flows())
@settings(max_examples=40, deadline=None)
def test_no_comment_is_ever_lost(text: str) -> None:
    assert comments(formatted(text, "f")) == comments(text)


@given(documents())
@settings(max_examples=120, deadline=None)
def test_any_toml_keeps_its_values_or_is_refused(document: tuple[str, object]) -> None:
    text, _ = document
    made = formatted(text, "f")
    assert tomli.loads(made) == tomli.loads(text)
    assert formatted(made, "f") == made
    assert made == "" or (made.endswith("\n") and not made.endswith("\n\n") and not made.startswith("\n"))


RULE_KEYS = st.lists(st.sampled_from([name for name in RULE if name != "name"]), unique=True, max_size=6)


@given(RULE_KEYS)
@settings(max_examples=40, deadline=None)
def test_keys_of_a_rule_come_in_the_order_of_the_format(keys: list[str]) -> None:
    text = "[[rules]]\n" + "".join(f"{key} = 1 # {key}\n" for key in keys) + 'name = "r"\n'
    found = re.findall(r"^(\w+) = ", formatted(text, "f"), re.M)
    assert found == [key for key in RULE if key in {*keys, "name"}]


@given(st.text(alphabet="ab=.[]{}\"'#\\\n ,1-é", max_size=60))
@settings(max_examples=150, deadline=None)
def test_what_is_no_toml_is_refused_by_its_place(text: str) -> None:
    try:
        said = tomli.loads(text)
    except tomli.TOMLDecodeError:
        with pytest.raises(WorkflowError) as refused:
            formatted(text, "f")
        (one,) = refused.value.diagnostics
        assert one.place.file == "f"
        assert 1 <= one.place.line <= text.count("\n") + 1
    else:
        assert tomli.loads(formatted(text, "f")) == said
