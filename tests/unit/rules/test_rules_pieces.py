"""What an input is cut into: by number, by the files that are there, and `scatter` with who gathers it."""

from __future__ import annotations

import pytest
from parts_world import CALL, DISK, GLOB, NUMBERED, SCATTER, warnings
from rules_world import SAMPLES, expanded, tasks


def test_n_pieces_are_cut_from_the_input_where_the_command_does_not_name_the_number() -> None:
    made = tasks(SAMPLES + NUMBERED)
    cut = made["up.cut/sample=S1"]
    assert cut.inputs == ("in/S1.txt",)
    assert cut.outputs == tuple(f".chunks/up.cut/sample=S1/chunk={at}/S1.txt" for at in range(3))
    assert made["up.map/sample=S1,chunk=2"].inputs == (cut.outputs[2],)
    assert len(made["up/sample=S1"].inputs) == 3


def test_a_command_that_names_the_number_gets_the_whole_input() -> None:
    made = tasks(SAMPLES + NUMBERED.replace("tr a b", "part {chunk}"))
    assert not any(one.rule == "up.cut" for one in made.values())
    assert made["up.map/sample=S1,chunk=2"].inputs == ("in/S1.txt",)
    assert "up.map/sample=S1,chunk=3" not in made


@pytest.mark.parametrize("written", ['"3"', '"{config.parts}"', "3"])
def test_n_is_a_number_or_a_text(written: str) -> None:
    made = tasks("[config]\nparts = 3\n" + SAMPLES + NUMBERED.replace("n = 3", f"n = {written}"))
    assert sum(one.rule == "up.map" for one in made.values()) == 9


def test_an_input_of_a_column_of_paths_can_be_cut() -> None:
    table = '[[tables]]\nname = "t"\nrows = [{ sample = "S1", file = "deep/x.txt" }]\n'
    made = tasks(table + NUMBERED.replace("in/{sample}.txt", "{file}"))
    assert made["up.cut/sample=S1"].outputs[0] == ".chunks/up.cut/sample=S1/chunk=0/piece"


def test_a_glob_gives_the_values_and_each_piece_its_own_file() -> None:
    made = tasks(GLOB, ["parts/a.txt", "parts/b.txt"])
    assert made["up.map/part=b"].inputs == ("parts/b.txt",)
    assert made["up"].inputs == tuple(f".chunks/up.map/part={one}/all.txt" for one in "ab")


def test_a_glob_finds_what_is_planned_before_what_is_there() -> None:
    maker = '[[rules]]\nname = "m"\noutput = ["parts/p.txt", "parts/q.txt"]\nshell = "x {output}"\n'
    made = tasks(maker + GLOB, ["parts/old.txt"])
    assert {one.wildcards[0][1] for one in made.values() if one.rule == "up.map"} == {"p", "q"}


def test_a_glob_may_name_the_wildcard_and_be_no_input() -> None:
    text = GLOB.replace('input = ["parts/*.txt"]', 'input = ["x"]').replace('"parts/*.txt"', '"{part}/in.*"')
    assert tasks(text, ["A/in.1", "A/in.2", "B/in.1"])["up.map/part=A"].inputs == ("x", "A/in.1", "A/in.2")


def test_without_combine_the_rule_makes_the_pieces() -> None:
    text = CALL.replace('combine = { shell = "join {chunks:each=-I } > {output}" }\n', "")
    text = text.replace("out/{sample}.vcf", "out/{sample}.{chr}.vcf")
    made = tasks(SAMPLES + text, DISK)
    assert made["call/sample=S1,chr=chr2"].outputs == ("out/S1.chr2.vcf",)
    assert len(made) == 6


def test_without_combine_and_output_pieces_are_made_and_it_is_said_where() -> None:
    text = CALL.replace('combine = { shell = "join {chunks:each=-I } > {output}" }\n', "")
    text = text.replace('output = ["out/{sample}.vcf"]\n', "")
    made = tasks(SAMPLES + text, DISK)
    assert made["call/sample=S1,chr=chr2"].outputs == (".chunks/call/sample=S1/chr=chr2/output",)
    assert "hidden-pieces" in warnings(text)


def test_a_rule_that_gathers_gets_the_pieces_of_its_own_wildcards() -> None:
    made = tasks(SAMPLES + SCATTER, DISK)
    assert made["merge/sample=S2"].inputs == ("v/S2.chr1.vcf", "v/S2.chr2.vcf")
    assert made["call/sample=S2,chr=chr1"].command.text == "call chr1 in/S2.bam > v/S2.chr1.vcf"


def test_one_without_wildcards_gets_them_all_and_one_that_names_them_gets_each_once() -> None:
    made = tasks(SAMPLES + SCATTER.replace('["v/{sample}.vcf"]', '["all.vcf"]'), DISK)
    assert len(made["merge"].inputs) == 6
    named = SCATTER.replace('name = "merge"\n', 'name = "merge"\ninput = ["v/{sample}.{chr}.vcf"]\n')
    named = named.replace('["v/{sample}.vcf"]', '["m/{sample}.vcf"]')
    assert len(tasks(SAMPLES + named, DISK)["merge/sample=S1"].inputs) == 2


def test_a_selection_of_samples_narrows_a_scatter_over_samples_and_spares_what_gathers_it() -> None:
    text = SCATTER.replace('"chr"', '"sample"').replace(
        ', values = ["chr1", "chr2"]', ', values_from = "samples_list"'
    )
    text = text.replace("v/{sample}.{chr}.vcf", "v/{sample}.x").replace("{chr} ", "")
    text = text.replace('["v/{sample}.vcf"]', '["all.vcf"]')
    found = expanded(SAMPLES + text, DISK, samples=["S1"])
    assert [one.wildcards for one in found.drafts if one.rule == "call"] == [(("sample", "S1"),)]
    assert found.narrowed == {"all.vcf"}
