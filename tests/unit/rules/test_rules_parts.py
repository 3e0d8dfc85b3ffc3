"""`transform` written out as ordinary rules: names, values, paths, and fields of its parts."""

from __future__ import annotations

import pytest
from parts_world import CALL, DISK, GLOB, HEAD, NUMBERED, SCATTER, call, rules
from rules_world import SAMPLES, expanded, tasks

from treadle.plan.task import Draft


def test_each_sample_and_value_has_its_piece_and_each_sample_what_combines_its_own() -> None:
    made = tasks(SAMPLES + CALL, DISK)
    assert len(made) == 9
    piece = made["call.map/sample=S2,chr=chr1"]
    assert piece.outputs == (".chunks/call.map/sample=S2/chr=chr1/S2.vcf",)
    assert piece.inputs == ("in/S2.bam",)
    assert piece.command.text == "call chr1 in/S2.bam > .chunks/call.map/sample=S2/chr=chr1/S2.vcf"
    whole = made["call/sample=S2"]
    assert whole.inputs == tuple(f".chunks/call.map/sample=S2/chr={one}/S2.vcf" for one in ("chr1", "chr2"))
    first, second = whole.inputs
    assert whole.command.text == f"join -I {first} -I {second} > out/S2.vcf"
    assert whole.outputs == ("out/S2.vcf",)


def test_two_transforms_with_one_word_have_their_own_values_and_folders() -> None:
    other = CALL.replace('"call"', '"depth"').replace("out/{sample}.vcf", "depth/{sample}.vcf")
    other = other.replace('["chr1", "chr2"]', '["chrX"]')
    made = tasks(SAMPLES + CALL + other, DISK)
    assert "depth.map/sample=S1,chr=chrX" in made
    assert "depth.map/sample=S1,chr=chr1" not in made
    assert len(made["depth/sample=S1"].inputs) == 1
    assert len({path for one in made.values() for path in one.outputs}) == len(made)


def test_the_values_of_a_rule_hide_those_of_a_table() -> None:
    table = '[[values]]\nname = "chr"\nvalues = ["chr9"]\n'
    made = tasks(SAMPLES + table + CALL, DISK)
    assert {one.wildcards[-1][1] for one in made.values() if one.rule == "call.map"} == {"chr1", "chr2"}


@pytest.mark.parametrize("written", ['["chr1", "chr2"]', '"chr1, chr2"'])
@pytest.mark.parametrize("named", ["config.chrs", "chrs"])
def test_values_come_from_config_as_an_array_or_as_a_text_with_commas(written: str, named: str) -> None:
    text = f"[config]\nchrs = {written}\n" + CALL.replace(
        'values = ["chr1", "chr2"]', f'values_from = "{named}"'
    )
    made = tasks(SAMPLES + text, DISK)
    assert {one.wildcards[-1][1] for one in made.values() if one.rule == "call.map"} == {"chr1", "chr2"}


def test_values_may_be_the_samples_that_are_found_on_the_disk() -> None:
    text = """
        [[rules]]
        name = "each"
        output = ["all.txt"]
        [rules.transform]
        map = "look {one} > {output}"
        split = { by = "one", values_from = "config.samples_list" }
        combine = { aggregate = true }
    """
    made = tasks(text, ["in/A.bam", "in/B.bam"], head=HEAD + 'sample_pattern = "in/{sample}.bam"\n')
    assert set(made) == {"each.map/one=A", "each.map/one=B", "each"}


def test_fields_of_the_rule_hold_for_its_parts() -> None:
    text = CALL.replace(
        "[rules.transform]",
        """
        retries = 2
        priority = 7
        envvars = { A = "1" }
        params = { x = "y" }
        pre_exec = "echo begin"
        on_success = "echo good"
        on_failure = "echo bad"
        when = "config.on"
        tags = ["t"]
        threads = 3
        memory = "2G"
        required = false
        [rules.transform]""",
        1,
    )
    made = rules("[config]\non = true\n" + text)
    for part in (made["call.map"], made["call"]):
        assert part.policy.retries == 2
        assert part.policy.priority == 7
        assert part.policy.tags == ("t",)
        assert not part.policy.required
        assert part.envvars == {"A": "1"}
        assert part.params == {"x": "y"}
        assert (part.pre_exec, part.on_success, part.on_failure) == ("echo begin", "echo good", "echo bad")
        assert part.when == "config.on"
        assert part.resources.threads == 3
        assert part.memory_text == "2G"


def test_what_speaks_of_a_piece_is_left_out_where_they_are_combined() -> None:
    text = CALL.replace(
        "[rules.transform]",
        """
        params = { region = "{chr}:1", all = "x" }
        envvars = { REGION = "{chr}" }
        pre_exec = "echo {chr}"
        when = 'chr != "chr2"'
        [rules.transform]""",
        1,
    )
    whole = rules(text)["call"]
    assert (whole.params, whole.envvars, whole.pre_exec, whole.when) == ({"all": "x"}, {}, "", "")
    made = tasks(SAMPLES + text, DISK)
    assert made["call.map/sample=S1,chr=chr2"].skip
    assert made["call/sample=S1"].inputs == (".chunks/call.map/sample=S1/chr=chr1/S1.vcf",)


def test_a_condition_that_only_says_the_word_in_quotes_holds_for_all() -> None:
    assert call(when="""'config.what == "chr"'""")["call"].when


def test_logs_and_benchmarks_are_not_shared_by_the_parts() -> None:
    made = call(log='"logs/{sample}.log"', benchmark='"b/{sample}"')
    assert (made["call.map"].log, made["call"].log) == ("logs/{sample}.{chr}.log", "logs/{sample}.log")
    assert (made["call.map"].benchmark, made["call"].benchmark) == ("b/{sample}.{chr}", "b/{sample}")
    named = call(log='"logs/{chr}/{sample}.log"')
    assert (named["call.map"].log, named["call"].log) == (
        "logs/{chr}/{sample}.log",
        "logs/combine/{sample}.log",
    )


def test_pieces_go_when_that_is_asked_for_and_results_stay() -> None:
    kept, gone = rules(CALL), rules(CALL.replace("split =", "cleanup = true\nsplit =", 1))
    assert not kept["call.map"].temporary
    assert gone["call.map"].temporary
    assert not gone["call"].temporary


def test_only_the_rule_itself_is_a_target() -> None:
    made = call(target="true")
    assert made["call"].policy.target
    assert not made["call.map"].policy.target


def test_two_outputs_with_one_file_name_have_two_pieces() -> None:
    text = CALL.replace('["out/{sample}.vcf"]', '{ a = "a/{sample}.vcf", b = "b/{sample}.vcf" }')
    made = tasks(SAMPLES + text, DISK)
    piece = made["call.map/sample=S1,chr=chr1"]
    assert len(set(piece.outputs)) == 2
    both = text.replace('shell = "join {chunks:each=-I } > {output}"', "aggregate = true")
    whole = tasks(SAMPLES + both, DISK)["call/sample=S1"]
    assert piece.outputs[0] in whole.command.text.partition("> a/S1.vcf")[0]
    assert piece.outputs[1] in whole.command.text.partition("> a/S1.vcf")[2]


def test_a_gather_over_samples_is_split_too() -> None:
    made = tasks(SAMPLES + CALL.replace("out/{sample}.vcf", "all.vcf"), DISK)
    assert set(made) == {"call.map/chr=chr1", "call.map/chr=chr2", "call"}
    assert made["call.map/chr=chr1"].inputs == tuple(DISK)


def test_a_draft_says_where_its_rule_stands() -> None:
    made: dict[str, Draft] = tasks(SAMPLES + CALL, DISK)
    assert {one.place.table for one in made.values()} == {"rules.call"}


def test_an_ancient_input_is_ancient_where_it_is_read() -> None:
    cut = rules(NUMBERED.replace("[rules.transform]", 'ancient = ["in/{sample}.txt"]\n[rules.transform]'))
    assert [cut[name].ancient for name in ("up.cut", "up.map", "up")] == [("in/{sample}.txt",), (), ()]
    text = GLOB.replace("[rules.transform]", 'ancient = ["parts/*.txt"]\n[rules.transform]')
    made = tasks(text, ["parts/a.txt"])
    assert made["up.map/part=a"].ancient == {"parts/a.txt"}
    assert expanded(text, ["parts/a.txt"]).notes == ()


@pytest.mark.parametrize("written", [CALL, NUMBERED, SCATTER])
def test_what_combines_gets_the_wildcards_that_only_files_on_the_disk_give(written: str) -> None:
    written = written.replace('"v/{sample}.vcf"', '"merged/{sample}.vcf"')
    made = tasks(written, ["in/A.bam", "in/B.bam", "in/A.txt", "in/B.txt", "in/notes"])
    last = [one for one in made.values() if one.rule in ("call", "up", "merge") and len(one.wildcards) == 1]
    assert [one.wildcards for one in last] == [(("sample", "A"),), (("sample", "B"),)]
    for one in last:
        makers = [other for other in made.values() if set(other.outputs) & set(one.inputs)]
        assert len(makers) == len(one.inputs) > 1
        assert all(one.wildcards[0] in other.wildcards for other in makers)
