"""`--samples`: reading it, choosing by it, and what gathers over a selection are marked with."""

from __future__ import annotations

import pytest
from rules_world import PAIRS, SAMPLES, expanded, refusal, tasks

from treadle.base.errors import OptionError
from treadle.rules.selection import EVERYTHING, Selection, parse_selection

GROUPS = """
[[sample_groups]]
name = "case"
samples = ["S1", "S2"]
[[sample_groups]]
name = "control"
samples = ["S3", "S4"]
"""


def rule(name: str, inputs: str, output: str, more: str = "") -> str:
    head = f'[[rules]]\nname = "{name}"\ninput = [{inputs}]\noutput = ["{output}"]\n'
    return head + 'shell = "cat {input} > {output}"\n' + more + "\n"


ALIGN = rule("align", '"raw/{sample}.fq"', "bam/{sample}.bam")
GATHER = rule("gather", '"bam/{sample}.bam"', "all.txt")


def ids(text: str, *samples: str, disk: tuple[str, ...] = ()) -> list[str]:
    return list(tasks(text, disk, samples=samples))


def test_the_words_of_a_selection_are_read() -> None:
    found = parse_selection(["S1,S2", "!S3", "first:2", "ready", "@sheet.tsv"])
    assert found == Selection(names=("S1", "S2"), excluded=("S3",), first=2, ready=True, replaced=True)
    assert parse_selection([]) == EVERYTHING
    assert parse_selection(["+@more.tsv"]) == EVERYTHING
    assert not EVERYTHING.narrows


@pytest.mark.parametrize("text", ["first:", "first:0", "first:x", "first:-1", "first:1.5"])
def test_a_first_that_is_no_number_is_an_error(text: str) -> None:
    with pytest.raises(OptionError, match="first"):
        parse_selection([text])


def test_names_choose_and_an_exclamation_mark_leaves_out() -> None:
    assert ids(GROUPS + ALIGN, "S3,S1") == ["align/sample=S1", "align/sample=S3"]
    assert ids(GROUPS + ALIGN, "!S1", "!S3") == ["align/sample=S2", "align/sample=S4"]
    assert ids(GROUPS + ALIGN, "S1,S2,!S2") == ["align/sample=S1"]


def test_first_takes_so_many_in_the_order_of_the_tables() -> None:
    assert ids(GROUPS + ALIGN, "first:2") == ["align/sample=S1", "align/sample=S2"]
    assert ids(GROUPS + ALIGN, "!S1", "first:1") == ["align/sample=S2"]


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    found = refusal(GROUPS + ALIGN, ["S11"])
    assert (found.code, found.hint) == ("unknown-sample", "did you mean 'S1'?")
    assert refusal(GROUPS + ALIGN, ["!nobody"]).code == "unknown-sample"


def test_all_unknown_names_are_told_at_once() -> None:
    with pytest.raises(OptionError) as caught:
        expanded(GROUPS + ALIGN, samples=["A9", "B9"])
    assert len(caught.value.diagnostics) == 2


def test_an_empty_selection_is_an_error() -> None:
    assert refusal(GROUPS + ALIGN, ["S1,!S1"]).code == "empty-selection"
    assert refusal(GROUPS + ALIGN, ["ready"]).code == "empty-selection"


def test_a_workflow_without_samples_has_nothing_to_select() -> None:
    text = '[[rules]]\nname = "r"\noutput = ["o"]\nshell = "x"\n'
    assert refusal(text, ["first:1"]).code == "empty-selection"
    assert refusal(text, ["S1"]).code == "unknown-sample"


def test_ready_are_samples_all_of_whose_outside_inputs_are_there() -> None:
    text = (
        GROUPS
        + rule("align", '"raw/{sample}_1.fq", "raw/{sample}_2.fq", "ref.fa"', "bam/{sample}.bam")
        + GATHER
    )
    disk = ("raw/S1_1.fq", "raw/S1_2.fq", "raw/S2_1.fq", "raw/S4_1.fq", "raw/S4_2.fq")
    assert ids(text, "ready", disk=disk) == ["align/sample=S1", "align/sample=S4", "gather"]
    assert ids(text, "ready", "first:1", disk=disk) == ["align/sample=S1", "gather"]


def test_ready_looks_for_globs_and_for_paths_of_a_table() -> None:
    rows = '{ sample = "S1", fq = "a/x.fq" }, { sample = "S2", fq = "a/y.fq" }'
    table = f'[[tables]]\nname = "t"\nrows = [{rows}]\n'
    text = table + rule("align", '"{fq}", "more/{sample}_*.txt"', "{sample}.bam")
    assert ids(text, "ready", disk=("a/x.fq", "a/y.fq", "more/S2_1.txt")) == ["align/sample=S2"]


def test_a_selection_may_be_made_of_discovered_samples() -> None:
    assert ids(ALIGN, "S2", disk=("raw/S1.fq", "raw/S2.fq")) == ["align/sample=S2"]
    assert refusal(ALIGN, ["S3"], ["raw/S1.fq"]).code == "unknown-sample"


def test_pairs_count_where_both_sides_are_selected() -> None:
    text = PAIRS + rule("call", '"{experiment}.bam"', "{pair_id}.vcf")
    assert ids(text, "T1,N1,T3") == ["call/pair_id=P1", "call/pair_id=P3"]
    assert ids(text, "T1,T2") == []


def test_rules_without_samples_are_not_touched_by_a_selection() -> None:
    text = GROUPS + rule("ref", "", "ref.fa") + ALIGN
    assert ids(text, "S1") == ["ref", "align/sample=S1"]


def narrowed(text: str, *samples: str, disk: tuple[str, ...] = ()) -> frozenset[str]:
    return expanded(text, disk, samples=samples).narrowed


def test_a_gather_over_a_selection_is_marked() -> None:
    found = expanded(GROUPS + ALIGN + GATHER, samples=["S1"])
    assert found.narrowed == {"all.txt"}
    assert found.samples == ("S1",)
    assert [info.narrowed for info in found.sources] == [0, 1]


def test_a_gather_over_everything_is_not_marked() -> None:
    assert narrowed(GROUPS + ALIGN + GATHER) == frozenset()
    assert narrowed(GROUPS + ALIGN + GATHER, "S1,S2,S3,S4") == frozenset()
    assert expanded(GROUPS + ALIGN).samples is None


def test_a_gather_over_a_group_that_is_selected_as_a_whole_is_not_marked() -> None:
    text = GROUPS + ALIGN + rule("g", '"bam/{sample}.bam"', "{group}.txt")
    assert narrowed(text, "S1,S2,S3") == {"control.txt"}


def test_tasks_of_one_sample_are_never_marked() -> None:
    lanes = '[[values]]\nname = "lane"\nvalues = ["1", "2"]\n'
    text = GROUPS + lanes + rule("merge", '"{sample}_{lane}.bam"', "{sample}.bam")
    assert narrowed(text, "S1") == frozenset()


@pytest.mark.parametrize("entry", ['"bam/*.bam"', '"bam/{any}.bam"'])
def test_a_gather_that_looks_for_outputs_of_a_selection_is_marked(entry: str) -> None:
    text = GROUPS + ALIGN + rule("g", entry, "all.txt") + rule("one", '"bam/{any}.bam"', "one/{any}.txt")
    found = expanded(text, ["bam/S4.bam"], samples=["S1,S2"])
    assert found.narrowed == {"all.txt"}
    assert found.notes == ()
    assert next(draft for draft in found.drafts if draft.rule == "g").inputs == ("bam/S1.bam", "bam/S2.bam")


@pytest.mark.parametrize(
    "variable", ['sample = "config.samples_list"', 'v = "config.samples_case"', 'sample = ["S1", "S3"]']
)
def test_a_fan_in_over_the_cohort_is_cut_to_the_selection_and_marked(variable: str) -> None:
    name = variable.split()[0]
    fan = f'expand_inputs = [{{ pattern = "bam/{{{name}}}.bam", variables = {{ {variable} }} }}]'
    text = GROUPS + ALIGN + rule("g", "", "all.txt", fan)
    found = expanded(text, samples=["S1"])
    assert found.narrowed == {"all.txt"}
    assert found.drafts[-1].inputs == ("bam/S1.bam",)


def test_a_fan_in_over_something_else_is_left_alone() -> None:
    fan = 'expand_inputs = [{ pattern = "x/{v}.txt", variables = { v = ["S1", "S9"] } }]'
    found = expanded(GROUPS + rule("g", "", "all.txt", fan), samples=["S2"])
    assert (found.narrowed, found.drafts[0].inputs) == (frozenset(), ("x/S1.txt", "x/S9.txt"))


def test_a_fan_in_with_nothing_left_is_skipped() -> None:
    fan = 'expand_inputs = [{ pattern = "bam/{v}.bam", variables = { v = "config.samples_case" } }]'
    draft = expanded(GROUPS + ALIGN + rule("g", "", "all.txt", fan), samples=["S3"]).drafts[-1]
    assert draft.skip is not None
    assert draft.skip.why == "empty"


def test_a_sheet_in_the_place_of_the_samples_marks_all_gathers_over_samples() -> None:
    assert narrowed(SAMPLES + ALIGN + GATHER, "@other.tsv") == {"all.txt"}
    assert narrowed(SAMPLES + ALIGN + GATHER, "+@more.tsv") == frozenset()


def test_ready_leaves_out_samples_for_which_nothing_was_found() -> None:
    text = GROUPS + rule("align", '"raw/{sample}_{lane}.fq"', "{sample}.{lane}.bam")
    assert ids(text, "ready", disk=("raw/S2_1.fq", "raw/S2_2.fq")) == [
        "align/sample=S2,lane=1",
        "align/sample=S2,lane=2",
    ]


def test_samples_that_a_pattern_found_can_be_selected() -> None:
    head = '[workflow]\nname = "w"\nsample_pattern = "raw/{sample}.fq"\n'
    found = expanded(ALIGN + GATHER, ["raw/S1.fq", "raw/S2.fq"], samples=["S2"], head=head)
    assert [draft.outputs[0] for draft in found.drafts] == ["bam/S2.bam", "all.txt"]
    assert found.narrowed == {"all.txt"}
