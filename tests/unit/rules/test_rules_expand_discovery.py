"""Discovery: wildcards that no table gives take their values from planned outputs, else from the disk."""

from __future__ import annotations

import pytest
from rules_world import HEAD, SAMPLES, error, errors, expanded, notes, tasks

from treadle.rules.expand.expand import expand
from treadle.rules.file.read import read_text
from treadle.rules.pattern.listing import PathListing

COUNT = """
[[rules]]
name = "count"
input = ["texts/{text}.txt"]
output = ["out/{text}.count"]
shell = "wc {input} > {output}"
"""
SAMPLE_PATTERN = '[workflow]\nname = "w"\nsample_pattern = "raw/{sample}.fq"\n'
TOP = """
[[rules]]
name = "top"
input = ["out/{t}.count"]
output = ["out/{t}.top"]
shell = "head {input} > {output}"
"""
ALL = """
[[rules]]
name = "all"
input = ["out/*.top"]
output = ["all.md"]
shell = "cat {input} > {output}"
"""
DISK = ["texts/b.txt", "texts/a.txt", "texts/.hidden.txt", "texts/c.txt.failed", "texts/deep/d.txt"]


def rule(name: str, inputs: str, output: str, shell: str = "x") -> str:
    return f'[[rules]]\nname = "{name}"\ninput = [{inputs}]\noutput = ["{output}"]\nshell = "{shell}"\n'


def test_a_wildcard_without_a_table_takes_its_values_from_the_disk_sorted() -> None:
    found = expanded(COUNT, DISK)
    assert [draft.inputs for draft in found.drafts] == [("texts/a.txt",), ("texts/b.txt",)]
    assert found.sources[0].origins == ("texts/{text}.txt (disk)",)


def test_values_come_from_planned_outputs_in_whatever_order_the_rules_stand() -> None:
    found = tasks(ALL + TOP + COUNT, DISK)
    assert list(found) == ["all", "top/t=a", "top/t=b", "count/text=a", "count/text=b"]
    assert found["all"].inputs == ("out/a.top", "out/b.top")


def test_planned_outputs_alone_count_and_what_they_hide_is_listed() -> None:
    found = expanded(COUNT + TOP, [*DISK, "out/a.count", "out/old.count", "out/older.count"])
    assert [draft.inputs for draft in found.drafts if draft.rule == "top"] == [
        ("out/a.count",),
        ("out/b.count",),
    ]
    (note,) = found.notes
    assert note.code == "left-on-disk"
    assert "2 files" in note.message
    assert "out/old.count, out/older.count" in note.message


def test_a_glob_hides_what_is_left_of_removed_samples_too() -> None:
    found = expanded(COUNT + TOP + ALL, [*DISK, "out/gone.top"])
    assert found.drafts[-1].inputs == ("out/a.top", "out/b.top")
    assert [note.code for note in found.notes] == ["left-on-disk"]


def test_what_matches_nothing_is_an_error_with_a_hint() -> None:
    found = error(SAMPLES + COUNT.replace("{text}", "{sampel}"), DISK[3:4])
    assert found.code == "no-match"
    assert "texts/{sampel}.txt" in found.message
    assert "sample" in found.hint
    assert found.place.key == "input[0]"


def test_what_matches_nothing_is_told_of_the_first_rule_and_not_of_those_that_read_what_it_makes() -> None:
    found = errors(COUNT + TOP + rule("last", '"out/{t}.top"', "last/{t}"))
    assert [(one.code, one.place.table) for one in found] == [("no-match", "rules.count")]


def test_text_that_can_be_split_in_two_ways_asks_for_a_constraint() -> None:
    this = COUNT.replace("{text}", "{sample}.{lane}")
    found = error(this, ["texts/S1.v2.L1.txt", "texts/S2.L1.txt"])
    assert found.code == "ambiguous-match"
    assert "sample=S1, lane=v2.L1; sample=S1.v2, lane=L1" in found.message
    assert "wildcard_constraints" in found.hint
    mended = '[wildcard_constraints]\nlane = "L[0-9]+"\n' + this
    assert list(tasks(mended, ["texts/S1.v2.L1.txt"])) == ["count/sample=S1.v2,lane=L1"]


def test_text_with_one_way_to_split_it_needs_no_constraint() -> None:
    assert list(tasks(COUNT.replace("{text}", "{s}_{r}"), ["texts/S1_R1.txt"])) == ["count/s=S1,r=R1"]


def test_discovery_binds_only_what_the_tables_leave_open() -> None:
    this = COUNT.replace("{text}", "{sample}_{lane}")
    found = tasks(SAMPLES + this, ["texts/S1_L1.txt", "texts/S1_L2.txt", "texts/S3_L1.txt", "texts/X_L1.txt"])
    assert list(found) == ["count/sample=S1,lane=L1", "count/sample=S1,lane=L2", "count/sample=S3,lane=L1"]


def test_values_of_a_table_without_a_file_are_named() -> None:
    this = COUNT.replace("{text}", "{sample}_{lane}")
    found = expanded(SAMPLES + this, ["texts/S1_L1.txt", "texts/S3_L1.txt"])
    assert [note.code for note in found.notes] == ["values-dropped"]
    assert "sample=S2" in found.notes[0].message


def test_a_file_that_two_samples_of_a_table_could_claim_is_ambiguous() -> None:
    groups = '[[sample_groups]]\nname = "g"\nsamples = ["S1", "S1_a"]\n'
    assert (
        error(groups + COUNT.replace("{text}", "{sample}_{lane}"), ["texts/S1_a_L1.txt"]).code
        == "ambiguous-match"
    )


def test_inputs_that_share_an_open_wildcard_are_joined_on_it() -> None:
    this = COUNT.replace('"texts/{text}.txt"', '"r1/{text}.fq", "r2/{text}.fq"')
    found = expanded(this, ["r1/a.fq", "r1/b.fq", "r2/b.fq", "r2/c.fq"])
    assert [draft.inputs for draft in found.drafts] == [("r1/b.fq", "r2/b.fq")]
    assert [note.code for note in found.notes] == ["values-dropped", "values-dropped"]


def test_inputs_that_fit_together_in_nothing_are_an_error() -> None:
    this = COUNT.replace('"texts/{text}.txt"', '"r1/{text}.fq", "r2/{text}.fq"')
    assert error(this, ["r1/a.fq", "r2/c.fq"]).code == "join-empty"


def test_the_same_wildcard_twice_must_match_the_same_text() -> None:
    found = tasks(COUNT.replace("texts/{text}", "texts/{text}/{text}"), ["texts/a/a.txt", "texts/a/b.txt"])
    assert list(found) == ["count/text=a"]


def test_folders_may_hold_wildcards() -> None:
    found = tasks(COUNT.replace("texts/{text}", "{text}/x"), ["a/x.txt", "b/x.txt", "c/y.txt"])
    assert list(found) == ["count/text=a", "count/text=b"]


def test_an_open_wildcard_that_is_not_in_the_output_gathers() -> None:
    found = tasks(COUNT.replace("out/{text}.count", "all.count"), DISK)
    assert found["count"].inputs == ("texts/a.txt", "texts/b.txt")
    assert found["count"].gathered == frozenset(found["count"].inputs)


def test_a_rule_that_could_feed_its_own_input_is_an_error_with_the_chain() -> None:
    found = error(COUNT.replace("out/{text}.count", "texts/{text}.sorted.txt"), DISK)
    assert found.code == "discovery-circle"
    assert "count -> count" in found.message
    assert "texts/{text}.txt" in found.message


def test_a_glob_that_takes_in_its_own_output_is_an_error() -> None:
    assert error(ALL.replace("all.md", "out/all.top"), ["out/a.top"]).code == "discovery-circle"


def test_a_constraint_ends_a_circle() -> None:
    this = COUNT.replace("out/{text}.count", "texts/{text}.sorted.txt")
    assert list(tasks('[wildcard_constraints]\ntext = "[a-z]+"\n' + this, DISK)) == [
        "count/text=a",
        "count/text=b",
    ]


def test_a_circle_of_discovery_is_an_error_with_the_chain_of_rules() -> None:
    back = COUNT.replace("count", "back").replace("texts/{text}.txt", "out/{text}.top")
    back = back.replace("out/{text}.back", "texts/{text}.txt")
    found = error(COUNT + TOP + back, DISK)
    assert found.code == "discovery-circle"
    assert "count -> top -> back -> count" in found.message


def test_two_circles_are_two_errors() -> None:
    other = (
        COUNT.replace("count", "other").replace("texts/", "o/").replace("out/{text}.other", "o/{text}.y.txt")
    )
    own = COUNT.replace("out/{text}.count", "texts/{text}.x.txt")
    assert [one.code for one in errors(own + other, DISK)] == ["discovery-circle"] * 2


def test_a_rule_with_values_from_a_table_makes_no_circle() -> None:
    this = COUNT.replace("{text}", "{sample}").replace("out/{sample}.count", "texts/{sample}.sorted.txt")
    assert len(tasks(SAMPLES + this)) == 3


def test_names_that_no_plan_can_hold_are_refused_by_name() -> None:
    found = error(COUNT, ["texts/a\nb.txt", "texts/b.txt"])
    assert found.code == "bad-file-name"
    assert "'texts/a\\nb.txt'" in found.message
    assert error(COUNT, ["texts/a\udcff.txt"]).code == "bad-file-name"


def test_a_value_that_would_lead_astray_is_refused() -> None:
    assert error(COUNT.replace("texts/{text}.txt", "x{text}"), ["x.."]).code == "bad-value"


def test_samples_are_found_by_a_pattern() -> None:
    found_in = rule("r", '"raw/{sample}.fq"', "{sample}.bam", "x {group} {config.samples_list}")
    found = expanded(found_in, ["raw/S2.fq", "raw/S1.fq"], head=SAMPLE_PATTERN)
    assert [draft.outputs[0] for draft in found.drafts] == ["S1.bam", "S2.bam"]
    assert found.drafts[0].command.text == "x auto-discovered S1,S2"
    assert found.config["samples_list"] == "S1,S2"
    assert found.config["samples_auto-discovered"] == "S1,S2"


def test_samples_on_disk_join_those_of_the_groups() -> None:
    found = tasks(
        SAMPLES + COUNT.replace("{text}", "{sample}"), ["raw/S2.fq", "raw/S9.fq"], head=SAMPLE_PATTERN
    )
    assert list(found) == [f"count/sample={name}" for name in ("S1", "S2", "S3", "S9")]


def test_a_sample_pattern_without_a_match_is_an_error() -> None:
    assert error(COUNT.replace("{text}", "{sample}"), head=SAMPLE_PATTERN).code == "no-match"


def test_a_sample_pattern_must_hold_the_sample() -> None:
    head = '[workflow]\nname = "w"\nsample_pattern = "{config.where}/{s}.fq"\n[config]\nwhere = "raw"\n'
    assert error(COUNT, DISK, head=head).code == "bad-value"


def test_a_sample_pattern_that_would_find_outputs_of_its_samples_is_a_circle() -> None:
    trim = rule("trim", '"raw/{sample}.fq"', "raw/{sample}.trimmed.fq")
    found = error(trim, ["raw/S1.fq"], head=SAMPLE_PATTERN)
    assert found.code == "discovery-circle"
    assert "sample_pattern -> trim -> sample_pattern" in found.message


def test_a_sample_pattern_finds_what_other_rules_are_going_to_make() -> None:
    fetch = '[[values]]\nname = "acc"\nvalues = ["E1", "E2"]\n' + rule("fetch", "", "raw/{acc}.fq")
    align = rule("align", '"raw/{sample}.fq"', "{sample}.bam")
    found = tasks(align + fetch, ["raw/old.fq"], head=SAMPLE_PATTERN)
    assert list(found) == ["align/sample=E1", "align/sample=E2", "fetch/acc=E1", "fetch/acc=E2"]
    assert notes(align + fetch, ["raw/old.fq"], head=SAMPLE_PATTERN) == ["left-on-disk"]


def test_pairs_are_found_by_a_pattern_and_give_samples() -> None:
    head = '[workflow]\nname = "w"\npairs_pattern = "p/{pair_id}_{experiment}_{control}.txt"\n'
    call = rule("call", '"{experiment}.bam", "{normal}.bam"', "{pair_id}.vcf")
    align = rule("align", "", "{sample}.bam")
    found = tasks(call + align, ["p/P1_T1_N1.txt"], head=head)
    assert list(found) == ["call/pair_id=P1", "align/sample=T1", "align/sample=N1"]
    assert found["call/pair_id=P1"].inputs == ("T1.bam", "N1.bam")


@pytest.mark.parametrize("constraint", ["", '[wildcard_constraints]\nrest = ".+"\n'])
def test_a_wildcard_crosses_folders_only_by_its_constraint(constraint: str) -> None:
    this = COUNT.replace("texts/{text}.txt", "texts/{rest}.txt").replace("{text}", "{rest}")
    found = [draft.inputs[0] for draft in expanded(constraint + this, DISK).drafts]
    assert ("texts/deep/d.txt" in found) is bool(constraint)


def test_lenient_expansion_takes_missing_source_files_for_a_warning() -> None:
    workflow = read_text(HEAD + COUNT + TOP + ALL)
    found = expand(workflow, PathListing([]), lenient=True)
    assert [note.code for note in found.notes] == ["no-match", "no-match"]
    assert [(info.rule, info.tasks) for info in found.sources] == [("count", 0), ("top", 0), ("all", 1)]


def test_a_glob_that_no_value_of_a_table_leads_to_an_output_is_no_circle() -> None:
    merge = rule("merge", '"in/{sample}/*.fq"', "in/merged/{sample}.fq")
    found = tasks(SAMPLES + merge, ["in/S1/a.fq"])
    assert found["merge/sample=S1"].inputs == ("in/S1/a.fq",)
    own = rule("own", '"in/{sample}/*.fq"', "in/{sample}/all.fq")
    assert error(SAMPLES + own, ["in/S1/a.fq"]).code == "discovery-circle"


def test_folders_of_a_table_are_looked_into_behind_the_rules_that_fill_them() -> None:
    table = '[[tables]]\nname = "t"\nrows = [{ run = "raw/r1" }, { run = "/seq/r2" }]\n'
    total = rule("total", "", "o").replace("[]", '{ path = "{run}", pattern = "*.fq" }')
    fetch = SAMPLES + rule("fetch", "", "raw/r1/{sample}.fq")
    found = tasks(table + total + fetch, ["/seq/r2/x.fq"])
    assert found["total"].inputs == ("raw/r1/S1.fq", "raw/r1/S2.fq", "raw/r1/S3.fq", "/seq/r2/x.fq")


def test_samples_that_a_pattern_finds_order_the_rules_as_well() -> None:
    merge = rule("merge", '"out/{sample}/*.txt"', "all/{sample}.txt")
    split = rule("split", '"raw/{sample}.fq"', "out/{sample}/part.txt")
    found = tasks(merge + split, ["raw/S1.fq"], head=SAMPLE_PATTERN)
    assert found["merge/sample=S1"].inputs == ("out/S1/part.txt",)


@pytest.mark.parametrize(
    ("entry", "more", "refused"),
    [
        ("in/*", 'log = "in/a.log"', True),
        ("in/*", 'benchmark = "in/a.tsv"', True),
        ("in/*.txt", 'log = "in/a.log"', False),
        ("in/{s}.txt", 'log = "in/{s}.log.txt"', True),
        ("in/{s}.txt", 'log = "in/{s}.txt.log"', False),
        ("in/{s}.txt", 'log = "logs/{s}.txt"', False),
        ("**/*.txt", 'log = "deep/down/a.txt"', True),
    ],
)
def test_a_log_that_the_next_run_would_take_for_an_input_is_refused(
    entry: str, more: str, refused: bool
) -> None:
    output = "out/{s}.bin" if "{s}" in entry else "out.bin"
    text = f'[[rules]]\nname = "a"\ninput = ["{entry}"]\noutput = ["{output}"]\n{more}\nshell = "x"\n'
    if refused:
        assert error(text, ["in/x.txt"]).code == "log-feeds-input"
    else:
        assert len(tasks(text, ["in/x.txt"])) == 1


def test_a_log_beside_planned_files_is_no_input() -> None:
    text = """
[[rules]]
name = "make"
output = ["in/x.txt"]
shell = "x"

[[rules]]
name = "a"
input = ["in/*"]
output = ["out.bin"]
log = "in/a.log"
shell = "x"
"""
    assert tasks(text, ["in/a.log"])["a"].inputs == ("in/x.txt",)
