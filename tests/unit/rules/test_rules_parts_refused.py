"""`scatter` and `transform` that cannot be, told at the keys of their author."""

from __future__ import annotations

import pytest
from parts_world import CALL, MAPPED, NUMBERED, SCATTER, errors, warnings
from rules_world import SAMPLES

from treadle.base.place import Diagnostic


def _one(text: str) -> tuple[str, str, str]:
    found = errors(text)
    assert len(found) == 1, found
    return found[0].code, found[0].place.table, found[0].place.key


@pytest.mark.parametrize(
    ("old", "new", "code", "key"),
    [
        ('by = "chr", ', "", "missing-key", "transform.split"),
        ('by = "chr"', 'by = "input"', "bad-name", "transform.split.by"),
        ('by = "chr"', 'by = "chunks"', "bad-name", "transform.split.by"),
        ('values = ["chr1", "chr2"]', "values = []", "empty", "transform.split.values"),
        (', values = ["chr1", "chr2"]', "", "missing-key", "transform.split"),
        ('values = ["chr1", "chr2"]', 'value = ["chr1"]', "unknown-key", "transform.split.value"),
        (
            'values = ["chr1", "chr2"]',
            'values_from = "config.no"',
            "unknown-config",
            "transform.split.values_from",
        ),
        ('values = ["chr1", "chr2"]', 'values_from = "a b"', "bad-value", "transform.split.values_from"),
        ('values = ["chr1", "chr2"]', 'values = ["../x"]', "bad-value", "transform.split.values"),
        ('values = ["chr1", "chr2"]', "n = 0", "bad-value", "transform.split.n"),
        ('values = ["chr1", "chr2"]', 'n = "many"', "bad-value", "transform.split.n"),
        ('values = ["chr1", "chr2"]', 'glob = "a/*/*"', "bad-value", "transform.split.glob"),
        ('map = "call {chr} {input} > {output}"', "", "missing-key", "transform"),
        ("> {output}", "> x", "piece-output", "transform.map"),
        ("{sample}.vcf", "{sample}.{chr}.vcf", "piece-output", "output[0]"),
        (
            'shell = "join {chunks:each=-I } > {output}"',
            'method = "concat"',
            "no-command",
            "transform.combine",
        ),
        (
            'shell = "join {chunks:each=-I } > {output}"',
            'aggregate = true, method = "cat"',
            "bad-value",
            "transform.combine.method",
        ),
        ("join {chunks:each=-I }", "join {nothing}", "unknown-placeholder", "transform.combine.shell"),
        ("call {chr}", "call {chr} {nothing}", "unknown-placeholder", "transform.map"),
    ],
)
def test_what_is_wrong_is_told_at_the_key_of_its_author(old: str, new: str, code: str, key: str) -> None:
    assert old in CALL
    found = errors(SAMPLES + CALL.replace(old, new, 1))
    assert (code, key) in {(one.code, one.place.key) for one in found}, found
    assert {one.place.table for one in found} == {"rules.call"}


def test_what_is_wrong_with_a_scatter_is_told_at_its_keys() -> None:
    assert _one(SAMPLES + SCATTER.replace("{sample}.{chr}.vcf", "{sample}.x"))[0] == "piece-output"
    assert _one(SAMPLES + SCATTER.replace('"merge" }', '"murge" }')) == (
        "unknown-rule",
        "rules.call",
        "scatter.gather",
    )
    assert _one(SAMPLES + SCATTER.replace('variable = "chr", ', ""))[0] == "missing-key"
    assert "values" in errors(SAMPLES + SCATTER.replace('values = ["chr1", "chr2"], ', ""))[0].message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("in/{sample}.txt", "in/{sample}.bam"),
        ('input = ["in/{sample}.txt"]', 'input = ["in/a", "in/b.txt"]'),
        ('by = "chunk"', 'by = "records"'),
    ],
)
def test_an_input_that_cannot_be_cut_is_refused(old: str, new: str) -> None:
    assert _one(SAMPLES + NUMBERED.replace(old, new)) == ("cannot-cut", "rules.up", "transform.split.n")


def test_what_has_no_effect_is_said() -> None:
    assert warnings(CALL.replace("[rules.transform]", 'shell = "x"\n[rules.transform]', 1)) == ["no-effect"]
    assert warnings(CALL.replace("values =", 'glob = "x*", values =')) == ["no-effect"]
    assert warnings(CALL.replace("call {chr}", "call")) == ["same-pieces"]
    assert warnings(CALL.replace("shell =", 'method = "concat", shell =')) == ["no-effect"]


def test_no_rule_of_a_file_can_have_the_name_of_a_part() -> None:
    assert any(
        one.code == "bad-name" for one in errors(SAMPLES + CALL + MAPPED.replace('"call"', '"call.map"'))
    )


def test_two_rules_of_one_name_are_told_once_and_by_their_own_names() -> None:
    found: list[Diagnostic] = errors(SAMPLES + CALL + CALL)
    assert [one.message for one in found] == ["two rules are named 'call'"]
