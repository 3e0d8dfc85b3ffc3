"""Conditions while expanding: tasks that are skipped, and gathers that go on without them."""

from __future__ import annotations

import pytest
from rules_world import SAMPLES, error, expanded, notes, tasks

from treadle.plan.task import Skip


def rule(name: str, *lines: str, shell: str = "make {output}") -> str:
    return f'[[rules]]\nname = "{name}"\nshell = "{shell}"\n' + "\n".join(lines) + "\n"


QC = rule("qc", 'input = ["{sample}.bam"]', 'output = ["qc/{sample}.txt"]', "when = 'sample != \"S2\"'")
GATHER = rule("gather", 'input = ["qc/{sample}.txt"]', 'output = ["all.txt"]', shell="cat {input} > {output}")


def test_a_task_whose_condition_is_false_is_skipped_with_the_condition() -> None:
    found = tasks(SAMPLES + QC)
    assert found["qc/sample=S2"].skip == Skip("when", 'sample != "S2"')
    assert found["qc/sample=S1"].skip is None


def test_a_gather_goes_on_without_what_is_skipped() -> None:
    gather = tasks(SAMPLES + QC + GATHER)["gather"]
    assert gather.inputs == ("qc/S1.txt", "qc/S3.txt")
    assert gather.gathered == {"qc/S1.txt", "qc/S3.txt"}
    assert gather.command.text == "cat qc/S1.txt qc/S3.txt > all.txt"


def test_a_gather_goes_on_without_what_hangs_on_the_skipped() -> None:
    middle = rule("middle", 'input = ["qc/{sample}.txt"]', 'output = ["mid/{sample}.txt"]')
    gather = tasks(SAMPLES + QC + middle + GATHER.replace("qc/", "mid/"))["gather"]
    assert gather.inputs == ("mid/S1.txt", "mid/S3.txt")


@pytest.mark.parametrize("entry", ['["qc/*.txt"]', '{ path = "qc", pattern = "*.txt" }', '["qc/{any}.txt"]'])
def test_a_glob_goes_on_without_what_is_skipped_whatever_lies_on_disk(entry: str) -> None:
    text = SAMPLES + QC + rule("g", f"input = {entry}", 'output = ["g"]', shell="cat {input}")
    gather = tasks(text, ["qc/S2.txt", "S1.bam"])["g"]
    assert gather.inputs == ("qc/S1.txt", "qc/S3.txt")
    assert notes(text, ["qc/S2.txt"]) == ["left-on-disk"]


@pytest.mark.parametrize("entry", ['["qc/*.txt"]', '["qc/{sample}.txt"]', '["qc/{any}.txt"]'])
@pytest.mark.parametrize("disk", [[], ["qc/S1.txt", "qc/S2.txt", "qc/S3.txt"]])
def test_a_gather_that_has_only_skipped_tasks_is_left_to_the_plan_to_skip(
    entry: str, disk: list[str]
) -> None:
    text = SAMPLES + QC.replace('sample != \\"S2\\"', "false").replace('sample != "S2"', "false")
    gather = tasks(text + rule("g", f"input = {entry}", 'output = ["g"]'), disk)["g"]
    assert gather.gathered == {"qc/S1.txt", "qc/S2.txt", "qc/S3.txt"}


def test_a_gather_with_one_of_its_inputs_left_empty_is_skipped() -> None:
    none = rule("none", 'output = ["no/{sample}.txt"]', 'when = "false"')
    both = rule("both", 'input = ["qc/{sample}.txt", "no/{sample}.txt"]', 'output = ["both"]')
    after = rule("after", 'input = ["both", "x"]', 'output = ["after"]')
    found = tasks(SAMPLES + QC + none + both + after)
    assert found["both"].skip == Skip("empty", "no/{sample}.txt")


def test_what_a_skipped_gather_would_have_made_is_missing_further_down() -> None:
    none = rule("none", 'output = ["no/{sample}.txt"]', 'when = "false"')
    both = rule("both", 'input = ["qc/{sample}.txt", "no/{sample}.txt"]', 'output = ["out/both"]')
    other = rule("other", 'output = ["out/other"]')
    last = rule("last", 'input = ["out/*"]', 'output = ["last"]', shell="cat {input}")
    assert tasks(SAMPLES + QC + none + both + other + last)["last"].command.text == "cat out/other"


def test_two_rules_with_opposite_conditions_may_make_one_output() -> None:
    text = "[config]\nfast = true\n"
    text += rule("fast", 'output = ["o/x"]', 'when = "config.fast"')
    text += rule("slow", 'output = ["o/x"]', 'when = "!config.fast"')
    text += rule("g", 'input = ["o/*"]', 'output = ["g"]', shell="cat {input}")
    found = tasks(text)
    assert (found["fast"].skip, found["slow"].skip) == (None, Skip("when", "!config.fast"))
    assert found["g"].inputs == ("o/x",)
    assert found["g"].skip is None


def test_a_condition_sees_config_params_and_wildcards_with_their_types() -> None:
    text = (
        SAMPLES
        + "[config]\nn = 3\n"
        + rule(
            "r",
            'output = ["{sample}"]',
            'params = { k = 2.5, t = "{sample}.x" }',
            'when = \'config.n > params.k && params.t in ["S1.x", "S3.x"]\'',
        )
    )
    assert [draft.skip is None for draft in expanded(text).drafts] == [True, False, True]


def test_a_condition_names_what_the_rule_expands_over() -> None:
    text = SAMPLES + rule("r", 'output = ["{sample}"]', "when = 'group == \"all\"'")
    assert [draft.skip for draft in expanded(text).drafts] == [None, None, None]


def test_a_wildcard_in_a_condition_must_have_one_value_in_the_task() -> None:
    found = error(
        SAMPLES + rule("r", 'input = ["{sample}.x"]', 'output = ["o"]', "when = 'sample == \"S1\"'")
    )
    assert found.code == "several-values"
    assert "when" in found.message


def test_what_is_wrong_with_a_condition_is_an_error_of_the_workflow() -> None:
    found = error(SAMPLES + rule("r", 'output = ["{sample}"]', 'when = "sample == 1"'))
    assert found.code == "type-mismatch"
    assert found.place.key == "when"


def test_file_exists_asks_the_disk() -> None:
    text = SAMPLES + rule("r", 'output = ["{sample}"]', "when = 'file_exists(\"in/{sample}.txt\")'")
    assert [draft.skip is None for draft in expanded(text, ["in/S1.txt", "in/S3.txt"]).drafts] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("path", ["made/{sample}.txt", "made", "folder/x/{sample}"])
def test_file_exists_on_what_a_rule_makes_is_an_error(path: str) -> None:
    text = SAMPLES + rule("r", 'output = ["{sample}"]', f"when = 'file_exists(\"{path}\")'")
    text += rule("later", 'output = ["made/{sample}.txt"]') + rule("folder", 'output = ["folder/x"]')
    assert {one.code for one in _all_errors(text)} == {"file-is-planned"}


def _all_errors(text: str) -> list:  # type: ignore[type-arg]
    from rules_world import errors

    return errors(text)


def test_a_skipped_task_is_not_refused_for_what_its_text_would_need() -> None:
    text = rule("r", 'input = ["*.none"]', 'output = ["o"]', 'when = "false"', shell="x {input[3]}")
    assert tasks(text)["r"].skip == Skip("when", "false")


def test_the_count_of_skipped_tasks_is_told() -> None:
    assert expanded(SAMPLES + QC).sources[0].skipped == 1


PAIRS = """
[[pairs]]
pair_id = "P1"
experiment = "T1"
control = "N1"
[[pairs]]
pair_id = "P2"
experiment = "T2"
"""


@pytest.mark.parametrize("word", ["control", "wildcard.control", "wildcards.control"])
def test_a_condition_may_ask_for_a_wildcard_that_a_row_lacks(word: str) -> None:
    both = rule("both", 'input = ["{control}.bam"]', 'output = ["{pair_id}.vcf"]', f"when = \"{word} != ''\"")
    alone = rule("alone", 'output = ["{pair_id}.vcf"]', f"when = \"{word} == ''\"")
    found = tasks(PAIRS + both + alone)
    assert [name for name, draft in found.items() if draft.skip is None] == [
        "both/pair_id=P1",
        "alone/pair_id=P2",
    ]
    assert [name for name, draft in found.items() if draft.skip] == ["alone/pair_id=P1"]


def test_a_path_of_a_condition_needs_its_wildcards() -> None:
    text = PAIRS + rule("r", 'output = ["{pair_id}.vcf"]', "when = \"!file_exists('{control}.bam')\"")
    assert list(tasks(text)) == ["r/pair_id=P1"]


def test_metadata_that_one_group_has_is_empty_in_the_others() -> None:
    groups = '[[sample_groups]]\nname = "b"\nsamples = ["S9"]\nmetadata = { kind = "sra" }\n'
    found = tasks(SAMPLES + groups + rule("r", 'output = ["{sample}"]', "when = \"wildcard.kind == 'sra'\""))
    assert [name for name, draft in found.items() if draft.skip is None] == ["r/sample=S9"]
    assert len(found) == 4


def test_an_unknown_wildcard_of_a_condition_is_an_error_with_the_nearest() -> None:
    found = error(PAIRS + rule("r", 'output = ["{pair_id}"]', "when = \"wildcard.contrl == ''\""))
    assert (found.code, found.hint) == ("unknown-name", "did you mean 'control'?")


@pytest.mark.parametrize(
    "lines",
    [
        ('scatter = { variable = "x", values_from = "config.xs" }', 'output = ["{x}"]'),
        ('input = ["raw/{y}.txt"]', 'output = ["out/{y}"]'),
    ],
)
def test_nothing_need_be_there_for_a_rule_that_config_switches_off(lines: tuple[str, str]) -> None:
    head = "[config]\nxs = ''\non = {}\n"
    text = head + rule("r", *lines, "when = \"config.on && 'a' != 'b'\"")
    assert tasks(text.replace("{}", "false")) == {}
    assert error(text.replace("{}", "true")).code in ("no-values", "no-match")


def test_a_file_that_is_there_though_its_maker_is_skipped_is_told_once() -> None:
    unpack = rule("unpack", 'output = ["{sample}.fa"]', 'when = "false"')
    index = rule("index", 'input = ["{sample}.fa"]', 'output = ["{sample}.fai"]')
    below = rule("below", 'input = ["{sample}.fai"]', 'output = ["{sample}.x"]')
    text = SAMPLES + unpack + index + below
    assert notes(text, ["S1.fa", "S2.fa", "S1.fai"]) == ["skipped-though-there"]
    assert notes(text) == []


def test_metadata_by_another_spelling_is_told_how_it_is_named_here() -> None:
    found = error(SAMPLES + rule("r", 'output = ["{sample}"]', "when = \"meta.kind == 'sra'\""))
    assert (found.code, found.hint.rpartition(": ")[2]) == ("unknown-name", "write kind")
