"""Expansion: which rows a rule has, and which tasks they make."""

from __future__ import annotations

import pytest
from rules_world import PAIRS, SAMPLES, error, errors, expanded, notes, tasks

ALIGN = """
[[rules]]
name = "align"
input = ["raw/{sample}.fq"]
output = ["bam/{sample}.bam"]
shell = "align {input} > {output}"
"""
GATHER = """
[[rules]]
name = "gather"
input = ["bam/{sample}.bam"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


def values(name: str, *given: str) -> str:
    return f'[[values]]\nname = "{name}"\nvalues = {list(given)!r}\n'


def table(name: str, *rows: str) -> str:
    inside = ", ".join("{ " + row + " }" for row in rows)
    return f'[[tables]]\nname = "{name}"\nrows = [{inside}]\n'


def rule(name: str, inputs: str, output: str, more: str = "", shell: str = "make {output}") -> str:
    out = f'output = ["{output}"]\n' if output else ""
    return f'[[rules]]\nname = "{name}"\ninput = {inputs}\n{out}shell = "{shell}"\n{more}\n'


def test_each_value_makes_a_task_in_the_order_of_the_table() -> None:
    found = tasks(SAMPLES.replace('"S1", "S2"', '"S2", "S1"') + ALIGN)
    assert list(found) == ["align/sample=S2", "align/sample=S1", "align/sample=S3"]
    assert found["align/sample=S1"].inputs == ("raw/S1.fq",)
    assert found["align/sample=S1"].outputs == ("bam/S1.bam",)
    assert found["align/sample=S1"].command.text == "align raw/S1.fq > bam/S1.bam"


def test_an_output_without_the_wildcard_gathers_over_all_its_values() -> None:
    gather = tasks(SAMPLES + ALIGN + GATHER)["gather"]
    assert gather.inputs == ("bam/S1.bam", "bam/S2.bam", "bam/S3.bam")
    assert gather.gathered == frozenset(gather.inputs)
    assert gather.wildcards == ()


def test_tables_that_share_no_wildcard_multiply_and_the_first_is_slowest() -> None:
    text = values("a", "1", "2") + values("b", "x", "y") + rule("r", "[]", "{b}.{a}")
    assert [draft.outputs[0] for draft in expanded(text).drafts] == ["x.1", "y.1", "x.2", "y.2"]


def test_the_wildcards_of_the_outputs_make_the_id_in_their_order() -> None:
    found = tasks(values("a", "1") + values("b", "x y") + rule("r", '["{a}"]', "{b}/{a}.{b}"))
    assert list(found) == ["r/b=x%20y,a=1"]


def test_a_rule_without_outputs_is_keyed_by_all_that_it_names() -> None:
    text = values("a", "1", "2") + values("b", "x") + rule("r", '["{a}.txt"]', "", shell="echo {b}")
    assert list(tasks(text)) == ["r/a=1,b=x", "r/a=2,b=x"]


def test_tables_that_share_a_wildcard_are_joined_on_it() -> None:
    lanes = table(
        "lanes", 'sample = "S1", lane = "L1"', 'sample = "S1", lane = "L2"', 'sample = "S2", lane = "L1"'
    )
    found = tasks(SAMPLES + lanes + rule("r", '["{sample}_{lane}.fq"]', "{sample}.bam"))
    assert found["r/sample=S1"].inputs == ("S1_L1.fq", "S1_L2.fq")
    assert found["r/sample=S2"].inputs == ("S2_L1.fq",)


def test_values_that_a_join_drops_are_counted_and_named() -> None:
    lanes = table("lanes", 'sample = "S1", lane = "L1"', 'sample = "S9", lane = "L1"')
    found = expanded(SAMPLES + lanes + rule("r", '["{sample}_{lane}.fq"]', "{sample}.bam"))
    (info,) = found.sources
    assert [(one.count, one.examples) for one in info.dropped] == [
        (2, ("sample=S2", "sample=S3")),
        (1, ("sample=S9",)),
    ]
    assert [note.code for note in found.notes] == ["values-dropped", "values-dropped"]
    assert "sample=S2, sample=S3" in found.notes[0].message


def test_one_loss_of_several_rules_is_told_once() -> None:
    lanes = table("lanes", 'sample = "S1", lane = "L1"')
    rules = [rule(name, '["{sample}_{lane}.fq"]', f"{name}/{{sample}}.bam") for name in ("a", "b")]
    assert notes(SAMPLES + lanes + "".join(rules)) == ["values-dropped"]


def test_tables_are_joined_through_a_column_that_the_rule_does_not_name() -> None:
    first = table("one", 'k = "1", a = "x"', 'k = "2", a = "y"')
    second = table("two", 'k = "1", b = "p"', 'k = "2", b = "q"')
    found = tasks(first + second + rule("r", "[]", "{a}{b}"))
    assert list(found) == ["r/a=x,b=p", "r/a=y,b=q"]


def test_three_tables_join_without_multiplying_first() -> None:
    first = table("one", *(f'a = "a{n}"' for n in range(30)))
    second = table("two", *(f'b = "b{n}"' for n in range(30)))
    third = table("three", 'a = "a7", b = "b9"', 'a = "a3", b = "b2"')
    found = expanded(first + second + third + rule("r", "[]", "{a}{b}"))
    assert [draft.outputs[0] for draft in found.drafts] == ["a3b2", "a7b9"]


def test_a_join_that_leaves_nothing_is_an_error() -> None:
    lanes = table("lanes", 'sample = "S8", lane = "L1"')
    found = error(SAMPLES + lanes + rule("r", '["{sample}_{lane}.fq"]', "{sample}.bam"))
    assert found.code == "join-empty"
    assert "sample_groups" in found.message
    assert "tables.lanes" in found.message


def test_tables_that_multiply_beyond_all_bounds_are_an_error() -> None:
    many = [values(name, *(str(n) for n in range(300))) for name in "abc"]
    found = error("".join(many) + rule("r", "[]", "{a}{b}{c}"))
    assert found.code == "too-many-rows"
    assert "27,000,000" in found.message


def test_a_pair_brings_its_own_sides_into_the_inputs() -> None:
    text = PAIRS + rule("call", '["{experiment}.bam", "{control}.bam"]', "{pair_id}.vcf")
    found = tasks(text)
    assert found["call/pair_id=P1"].inputs == ("T1.bam", "N1.bam")
    assert found["call/pair_id=P2"].inputs == ("T2.bam", "N1.bam")
    assert found["call/pair_id=P1"].gathered == frozenset()


def test_a_row_without_a_value_that_is_named_makes_no_task() -> None:
    text = PAIRS + rule("call", '["{experiment}.bam", "{control}.bam"]', "{pair_id}.vcf")
    found = expanded(text)
    assert "call/pair_id=P3" not in tasks(text)
    assert found.sources[0].valueless == 1
    assert [note.code for note in found.notes] == ["rows-without-value"]


def test_a_row_without_a_value_counts_where_the_rule_does_not_name_it() -> None:
    assert "solo/pair_id=P3" in tasks(PAIRS + rule("solo", '["{experiment}.bam"]', "{pair_id}.vcf"))


def test_where_no_row_has_a_value_there_is_no_task_and_no_error() -> None:
    text = '[[pairs]]\npair_id = "P"\nexperiment = "T"\n' + rule("call", '["{control}.bam"]', "{pair_id}.vcf")
    assert tasks(text) == {}
    assert notes(text) == ["rows-without-value"]


def test_a_gather_takes_each_path_once() -> None:
    found = tasks(PAIRS + rule("panel", '["{control}.bam"]', "panel.vcf"))
    assert found["panel"].inputs == ("N1.bam",)


def test_older_names_of_the_sides_work() -> None:
    text = PAIRS + rule("call", '["{tumor}.bam", "{normal}.bam"]', "{pair_id}.vcf")
    assert tasks(text)["call/pair_id=P2"].inputs == ("T2.bam", "N1.bam")


def test_both_sides_of_pairs_are_samples_where_there_are_no_groups() -> None:
    assert list(tasks(PAIRS + ALIGN)) == [f"align/sample={name}" for name in ("T1", "N1", "T2", "T3")]


def test_wildcards_of_pairs_and_of_groups_do_not_go_together() -> None:
    found = error(PAIRS + SAMPLES + rule("r", '["{sample}.bam"]', "{pair_id}.vcf"))
    assert found.code == "pairs-and-samples"
    assert "{experiment}" in found.hint


def test_a_wildcard_without_a_source_is_an_error_with_the_nearest_name() -> None:
    found = error(SAMPLES + rule("r", "[]", "{sampel}.bam"))
    assert found.code == "no-source"
    assert "sample" in found.hint
    assert found.place.key == "output[0]"


def test_all_errors_of_all_rules_are_told_at_once() -> None:
    text = SAMPLES + rule("a", "[]", "{x}.bam") + rule("b", "[]", "{config.y}.bam") + rule("c", '["{"]', "c")
    assert [one.code for one in errors(text)] == ["no-source", "unknown-config", "brace-in-path"]


@pytest.mark.parametrize(
    "where", ['log = "{lane}.log"', 'params = { x = "{lane}" }', 'on_failure = "echo {lane}"']
)
def test_a_wildcard_in_a_text_must_have_one_value_in_the_task(where: str) -> None:
    lanes = values("lane", "L1", "L2")
    found = error(SAMPLES + lanes + rule("r", '["{sample}_{lane}.fq"]', "{sample}.bam", where))
    assert found.code == "several-values"
    assert "L1, L2" in found.message
    assert "{lane}" in found.message
    assert "sample=S1" in found.message


def test_a_wildcard_in_the_command_must_have_one_value_in_the_task() -> None:
    found = error(SAMPLES + ALIGN + GATHER.replace("cat ", "cat {sample} "))
    assert found.code == "several-values"
    assert "S1, S2, S3" in found.message


def test_a_wildcard_that_hangs_on_the_key_may_stand_in_a_text() -> None:
    text = PAIRS + rule(
        "call", '["{experiment}.bam"]', "{pair_id}.vcf", shell="call -n {experiment} {output}"
    )
    assert tasks(text)["call/pair_id=P2"].command.text == "call -n T2 P2.vcf"


def test_a_column_of_paths_stands_for_a_whole_input() -> None:
    reads = table("reads", 'sample = "S1", fq = "/far/away/x y.fq"', 'sample = "S2", fq = "../raw//b.fq"')
    found = tasks(reads + rule("r", '["{fq}"]', "{sample}.bam", shell="align {input} > {output}"))
    assert found["r/sample=S1"].inputs == ("/far/away/x y.fq",)
    assert found["r/sample=S1"].command.text == "align '/far/away/x y.fq' > S1.bam"
    assert found["r/sample=S2"].inputs == ("../raw/b.fq",)


@pytest.mark.parametrize("output", ["{fq}", "out/{fq}.bam"])
def test_a_column_of_paths_is_refused_in_an_output(output: str) -> None:
    reads = table("reads", 'sample = "S1", fq = "raw/x.fq"')
    assert error(reads + rule("r", '["{fq}"]', output)).code == "path-in-path"


def test_a_column_of_paths_is_refused_as_a_part_of_an_input() -> None:
    reads = table("reads", 'sample = "S1", fq = "raw/x.fq"')
    assert error(reads + rule("r", '["data/{fq}"]', "{sample}.bam")).code == "path-in-path"


def test_a_column_of_plain_values_may_stand_anywhere() -> None:
    plain = table("t", 'name = "a"', 'name = "b"')
    assert list(tasks(plain + rule("r", '["{name}"]', "{name}.out"))) == ["r/name=a", "r/name=b"]


def test_a_value_that_misses_its_constraint_is_an_error() -> None:
    found = error(SAMPLES + '[wildcard_constraints]\nsample = "S[12]"\n' + ALIGN)
    assert found.code == "constraint-not-met"
    assert "'S3'" in found.message


def test_a_value_may_hold_a_slash_where_a_constraint_matches_it() -> None:
    text = values("f", "a/b") + '[wildcard_constraints]\nf = ".+"\n' + rule("r", "[]", "out/{f}.txt")
    assert tasks(text)["r/f=a%2Fb"].outputs == ("out/a/b.txt",)


@pytest.mark.parametrize("value", ["a//b", "/a", "a/", "./a", "a/../b"])
def test_a_value_with_odd_parts_is_refused_even_so(value: str) -> None:
    text = values("f", value) + '[wildcard_constraints]\nf = ".+"\n' + rule("r", "[]", "out/{f}.txt")
    assert {one.code for one in errors(text)} <= {"constraint-not-met", "bad-value"}


def test_the_origin_of_values_is_told() -> None:
    found = expanded(SAMPLES + ALIGN + GATHER)
    assert [(info.rule, info.tasks, info.fan_in, info.origins) for info in found.sources] == [
        ("align", 3, 0, ("sample_groups",)),
        ("gather", 1, 3, ("sample_groups",)),
    ]


def test_tasks_of_a_rule_share_what_is_the_same_for_all() -> None:
    first, second, _ = expanded(SAMPLES + ALIGN).drafts
    assert first.policy is second.policy
    assert first.resources is second.resources
    assert first.gathered is second.gathered


def test_a_column_of_folders_may_stand_alone_before_a_pattern() -> None:
    runs = table("runs", 'sample = "S1", run = "/seq//r1"', 'sample = "S2", run = "seq/r2/"')
    text = runs + rule("r", '{ path = "{run}", pattern = "*.fq" }', "{sample}.bam")
    found = tasks(text, ["/seq/r1/a.fq", "seq/r2/b.fq", "seq/r2/c.txt"])
    assert found["r/sample=S1"].inputs == ("/seq/r1/a.fq",)
    assert found["r/sample=S2"].inputs == ("seq/r2/b.fq",)


def test_rows_without_a_value_are_counted_beside_discovery() -> None:
    text = PAIRS + rule("call", '["{control}/{experiment}_{lane}.bam"]', "{pair_id}.vcf")
    found = expanded(text, ["N1/T1_a.bam", "N1/T2_a.bam"])
    assert [draft.outputs[0] for draft in found.drafts] == ["P1.vcf", "P2.vcf"]
    assert found.sources[0].valueless == 1
