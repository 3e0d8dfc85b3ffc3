"""`scatter` and `transform` written out as ordinary rules: names, values, paths, fields, what is refused."""

from __future__ import annotations

import pytest
from rules_world import SAMPLES, expanded, tasks

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.plan.task import Draft
from treadle.rules.file.read import read_text
from treadle.rules.schema import Rule

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
MAPPED = """
[[rules]]
name = "call"
input = ["in/{sample}.bam"]
output = ["out/{sample}.vcf"]
"""
CALL = (
    MAPPED
    + """
[rules.transform]
map = "call {chr} {input} > {output}"
split = { by = "chr", values = ["chr1", "chr2"] }
combine = { shell = "join {chunks:each=-I } > {output}" }
"""
)
DISK = ["in/S1.bam", "in/S2.bam", "in/S3.bam"]


def rules(text: str) -> dict[str, Rule]:
    return {rule.name: rule for rule in read_text(HEAD + text).rules}


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        expanded(text, ["in/a", "in/b.txt"])
    return list(caught.value.diagnostics)


def warnings(text: str) -> list[str]:
    return [one.code for one in read_text(HEAD + text).warnings]


def call(**fields: str) -> dict[str, Rule]:
    """The rules of `CALL` with further fields."""
    more = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return rules(CALL.replace("[rules.transform]", f"{more}[rules.transform]", 1))


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


N = """
[[rules]]
name = "up"
input = ["in/{sample}.txt"]
output = ["out/{sample}.txt"]
[rules.transform]
map = "tr a b < {input} > {output}"
split = { by = "chunk", n = 3 }
combine = { aggregate = true }
"""


def test_n_pieces_are_cut_from_the_input_where_the_command_does_not_name_the_number() -> None:
    made = tasks(SAMPLES + N)
    cut = made["up.cut/sample=S1"]
    assert cut.inputs == ("in/S1.txt",)
    assert cut.outputs == tuple(f".chunks/up.cut/sample=S1/chunk={at}/S1.txt" for at in range(3))
    assert made["up.map/sample=S1,chunk=2"].inputs == (cut.outputs[2],)
    assert len(made["up/sample=S1"].inputs) == 3


def test_a_command_that_names_the_number_gets_the_whole_input() -> None:
    made = tasks(SAMPLES + N.replace("tr a b", "part {chunk}"))
    assert not any(one.rule == "up.cut" for one in made.values())
    assert made["up.map/sample=S1,chunk=2"].inputs == ("in/S1.txt",)
    assert "up.map/sample=S1,chunk=3" not in made


@pytest.mark.parametrize("written", ['"3"', '"{config.parts}"', "3"])
def test_n_is_a_number_or_a_text(written: str) -> None:
    made = tasks("[config]\nparts = 3\n" + SAMPLES + N.replace("n = 3", f"n = {written}"))
    assert sum(one.rule == "up.map" for one in made.values()) == 9


def test_an_input_of_a_column_of_paths_can_be_cut() -> None:
    table = '[[tables]]\nname = "t"\nrows = [{ sample = "S1", file = "deep/x.txt" }]\n'
    made = tasks(table + N.replace("in/{sample}.txt", "{file}"))
    assert made["up.cut/sample=S1"].outputs[0] == ".chunks/up.cut/sample=S1/chunk=0/piece"


GLOB = """
[[rules]]
name = "up"
input = ["parts/*.txt"]
output = ["all.txt"]
[rules.transform]
map = "tr a b < {input} > {output}"
split = { by = "part", glob = "parts/*.txt" }
combine = { shell = "cat {chunks} > {output}" }
"""


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


SCATTER = """
[[rules]]
name = "call"
input = ["in/{sample}.bam"]
output = ["v/{sample}.{chr}.vcf"]
scatter = { variable = "chr", values = ["chr1", "chr2"], gather = "merge" }
shell = "call {chr} {input} > {output}"
[[rules]]
name = "merge"
output = ["v/{sample}.vcf"]
shell = "cat {input} > {output}"
"""


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
    assert _one(SAMPLES + N.replace(old, new)) == ("cannot-cut", "rules.up", "transform.split.n")


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


def test_a_draft_says_where_its_rule_stands() -> None:
    made: dict[str, Draft] = tasks(SAMPLES + CALL, DISK)
    assert {one.place.table for one in made.values()} == {"rules.call"}


def test_an_ancient_input_is_ancient_where_it_is_read() -> None:
    cut = rules(N.replace("[rules.transform]", 'ancient = ["in/{sample}.txt"]\n[rules.transform]'))
    assert [cut[name].ancient for name in ("up.cut", "up.map", "up")] == [("in/{sample}.txt",), (), ()]
    text = GLOB.replace("[rules.transform]", 'ancient = ["parts/*.txt"]\n[rules.transform]')
    made = tasks(text, ["parts/a.txt"])
    assert made["up.map/part=a"].ancient == {"parts/a.txt"}
    assert expanded(text, ["parts/a.txt"]).notes == ()
