"""Inputs of a task: globs, folders, fan-in, their order, and how they are marked."""

from __future__ import annotations

import pytest
from rules_world import SAMPLES, error, expanded, notes, tasks

from treadle.plan.task import Skip


def rule(name: str, *lines: str, shell: str = "make {output}") -> str:
    return f'[[rules]]\nname = "{name}"\nshell = "{shell}"\n' + "\n".join(lines) + "\n"


DISK = ["in/S1_b.fq", "in/S1_a.fq", "in/S2_a.fq", "in/x.txt", "in/sub/S1_z.fq"]


def test_a_glob_is_sorted_by_bytes_and_gathered() -> None:
    found = tasks(rule("r", 'input = ["in/*.fq"]', 'output = ["x"]'), DISK)["r"]
    assert found.inputs == ("in/S1_a.fq", "in/S1_b.fq", "in/S2_a.fq")
    assert found.gathered == frozenset(found.inputs)


def test_paths_keep_the_order_of_the_author_each_once() -> None:
    lines = 'input = ["in/x.txt", "in/*.fq", "in/S1_a.fq", "in/*.txt"]'
    found = tasks(rule("r", lines, 'output = ["x"]', shell="cat {input} > {output}"), DISK)["r"]
    assert found.inputs == ("in/x.txt", "in/S1_a.fq", "in/S1_b.fq", "in/S2_a.fq")
    assert found.command.text == "cat in/x.txt in/S1_a.fq in/S1_b.fq in/S2_a.fq > x"


def test_a_path_that_is_named_by_itself_is_fixed_even_if_a_glob_finds_it_too() -> None:
    found = tasks(rule("r", 'input = ["in/*.fq", "in/S1_a.fq"]', 'output = ["x"]'), DISK)["r"]
    assert "in/S1_a.fq" not in found.gathered
    assert "in/S2_a.fq" in found.gathered


def test_a_glob_with_a_wildcard_looks_for_each_value() -> None:
    text = '[[values]]\nname = "s"\nvalues = ["S1", "S2"]\n'
    found = tasks(text + rule("r", 'input = ["in/{s}_*.fq"]', 'output = ["{s}.x"]'), DISK)
    assert found["r/s=S1"].inputs == ("in/S1_a.fq", "in/S1_b.fq")
    assert found["r/s=S2"].inputs == ("in/S2_a.fq",)


def test_a_value_with_glob_characters_stands_for_itself() -> None:
    text = '[[values]]\nname = "s"\nvalues = ["S?"]\n'
    found = tasks(text + rule("r", 'input = ["in/{s}_*.fq"]', 'output = ["{s}.x"]'), [*DISK, "in/S?_c.fq"])
    assert found["r/s=S%3F"].inputs == ("in/S?_c.fq",)


def test_a_glob_that_finds_nothing_stands_for_itself_as_in_the_shell() -> None:
    assert tasks(rule("r", 'input = ["in/*.bam"]', 'output = ["x"]'), DISK)["r"].inputs == ("in/*.bam",)


def test_a_file_that_a_glob_finds_for_two_values_is_told() -> None:
    text = '[[values]]\nname = "s"\nvalues = ["S1", "S10"]\n'
    found = expanded(
        text + rule("r", 'input = ["in/{s}*.fq"]', 'output = ["{s}.x"]'), ["in/S1_a.fq", "in/S10_a.fq"]
    )
    (note,) = found.notes
    assert note.code == "file-matched-twice"
    assert "in/S10_a.fq" in note.message
    assert "s=S1 and for s=S10" in note.message


def test_two_stars_look_into_all_folders() -> None:
    found = tasks(rule("r", 'input = ["in/**/S1_*.fq"]', 'output = ["x"]'), DISK)["r"]
    assert found.inputs == ("in/S1_a.fq", "in/S1_b.fq", "in/sub/S1_z.fq")


def test_a_glob_and_an_open_wildcard_go_together() -> None:
    found = tasks(rule("r", 'input = ["in/{s}_*.fq"]', 'output = ["{s}.x"]'), DISK)
    assert {key: draft.inputs for key, draft in found.items()} == {
        "r/s=S1": ("in/S1_a.fq", "in/S1_b.fq"),
        "r/s=S2": ("in/S2_a.fq",),
    }


def test_a_folder_with_a_pattern_gives_the_files_that_count() -> None:
    found = tasks(rule("r", 'input = { path = "in", pattern = "*.fq" }', 'output = ["x"]'), DISK)["r"]
    assert found.inputs == ("in/S1_a.fq", "in/S1_b.fq", "in/S2_a.fq")
    assert found.gathered == frozenset(found.inputs)


def test_a_folder_that_a_task_makes_stands_for_what_will_be_in_it() -> None:
    text = SAMPLES + rule("split", 'output = { path = "parts/{sample}", pattern = "*.fa" }')
    text += rule("join", 'input = { path = "parts/{sample}", pattern = "*.fa" }', 'output = ["{sample}.x"]')
    found = tasks(text, ["parts/S1/old.fa"])
    assert found["split/sample=S1"].outputs == ("parts/S1",)
    assert found["join/sample=S1"].inputs == ("parts/S1",)


def test_an_open_wildcard_of_a_folder_takes_its_values_from_planned_folders() -> None:
    text = SAMPLES + rule("split", 'output = ["parts/{sample}"]')
    text += rule("join", 'input = { path = "parts/{p}", pattern = "*.fa" }', 'output = ["{p}.x"]')
    assert [key for key in tasks(text) if key.startswith("join")] == [f"join/p=S{n}" for n in (1, 2, 3)]


def test_a_glob_into_a_folder_that_a_task_makes_is_an_error() -> None:
    text = SAMPLES + rule("split", 'output = ["parts/{sample}"]')
    text += rule("join", 'input = ["parts/{sample}/*.fa"]', 'output = ["{sample}.x"]')
    found = error(text, ["parts/S1/old.fa"])
    assert found.code == "glob-in-output"
    assert "parts/S1" in found.message


def fan(pattern: str, variables: str, more: str = "") -> str:
    return f'expand_inputs = [{{ pattern = "{pattern}", variables = {{ {variables} }}{more} }}]'


def test_a_fan_in_is_the_product_of_its_variables_the_first_slowest() -> None:
    lines = fan("{a}.{b}", 'a = ["2", "1"], b = ["x", "y"]')
    found = tasks(rule("r", 'input = ["first"]', lines, 'output = ["o"]'))["r"]
    assert found.inputs == ("first", "2.x", "2.y", "1.x", "1.y")
    assert found.gathered == {"2.x", "2.y", "1.x", "1.y"}


@pytest.mark.parametrize(
    "variable", ['"config.list"', '"list"', '"config.text"', '["a", "b"]', '"config.again"']
)
def test_a_variable_is_a_config_key_a_bare_key_a_split_text_or_a_list(variable: str) -> None:
    text = '[config]\nlist = ["a", "b"]\ntext = " a , b,"\nagain = ["a", "b", "a"]\n'
    assert tasks(text + rule("r", fan("{v}.x", f"v = {variable}"), 'output = ["o"]'))["r"].inputs == (
        "a.x",
        "b.x",
    )


def test_an_array_of_one_keeps_its_commas() -> None:
    text = '[config]\nlist = ["a,b"]\n' + rule("r", fan("{v}.x", 'v = "config.list"'), 'output = ["o"]')
    assert tasks(text)["r"].inputs == ("a,b.x",)


def test_a_variable_that_is_no_key_is_one_literal_and_numbers_are_texts() -> None:
    assert tasks(rule("r", fan("{v}{n}", 'v = "lone", n = [1, 2]'), 'output = ["o"]'))["r"].inputs == (
        "lone1",
        "lone2",
    )


def test_a_variable_hides_a_wildcard_of_its_name() -> None:
    lines = fan("{sample}.{group}.x", 'sample = ["a", "b"]')
    found = tasks(SAMPLES + rule("r", lines, 'output = ["{group}.o"]'))
    assert found["r/group=all"].inputs == ("a.all.x", "b.all.x")


def test_an_unknown_config_key_of_a_variable_is_an_error_with_the_nearest() -> None:
    found = error('[config]\nlist = ["a"]\n' + rule("r", fan("{v}", 'v = "config.lst"'), 'output = ["o"]'))
    assert (found.code, found.hint) == ("unknown-config", "did you mean 'list'?")


def test_a_variable_without_values_is_an_error() -> None:
    assert error(rule("r", fan("{v}", "v = []"), 'output = ["o"]')).code == "no-values"


@pytest.mark.parametrize("nothing", ["[]", '""'])
def test_a_config_key_that_lists_nothing_gives_no_input_and_a_warning(nothing: str) -> None:
    text = f"[config]\nlist = {nothing}\n" + rule("r", fan("{v}", 'v = "config.list"'), 'output = ["o"]')
    more = text.replace("[[rules]]", '[[rules]]\ninput = ["a"]')
    assert tasks(more)["r"].inputs == ("a",)
    assert notes(more) == ["no-values"]
    assert tasks(text)["r"].skip == Skip("empty", "{v}")


def test_an_input_that_config_leaves_empty_is_no_input() -> None:
    text = '[config]\nfasta = ""\n' + rule("r", 'input = ["{config.fasta}", "b"]', 'output = ["o"]')
    assert tasks(text)["r"].inputs == ("b",)
    assert tasks(text, config=[("fasta", "g.fa")])["r"].inputs == ("g.fa", "b")
    named = text.replace('["{config.fasta}", "b"]', '{ fasta = "{config.fasta}", other = "b" }')
    shell = 'shell = "make {output}"'
    draft = tasks(named.replace(shell, 'shell = "x [{input.fasta}] {input.other}"'))["r"]
    assert (draft.inputs, draft.command.text) == (("b",), "x [] b")


def test_numbers_count_the_entries_where_one_is_left_empty_or_a_glob() -> None:
    entries = 'input = ["{config.fasta}", "in/*.fq", "b"]'
    text = '[config]\nfasta = ""\n' + rule("r", entries, fan("{v}.x", 'v = ["p", "q"]'), 'output = ["o"]')
    told = text.replace("make {output}", "x [{input[0]}] [{input[1]}] '{input[2]}' {input[3]} {input[4]}")
    assert tasks(told, DISK)["r"].command.text == "x [] [in/S1_a.fq in/S1_b.fq in/S2_a.fq] 'b' p.x q.x"
    assert error(text.replace("make {output}", "x {input[5]}"), DISK).code == "index-out-of-range"
    joined = text.replace("make {output}", "x {input[1]:sep=,}")
    assert tasks(joined, DISK)["r"].command.text == "x in/S1_a.fq,in/S1_b.fq,in/S2_a.fq"


def test_an_output_that_config_leaves_empty_is_an_error() -> None:
    text = '[config]\nout = ""\n' + rule("r", 'output = ["{config.out}"]')
    assert error(text).code == "empty-config"


def test_values_of_a_fan_in_obey_constraints() -> None:
    text = '[wildcard_constraints]\nv = "[a-z]"\n' + rule("r", fan("{v}", 'v = ["a", "B"]'), 'output = ["o"]')
    assert error(text).code == "constraint-not-met"


def test_a_named_fan_in_is_a_named_input() -> None:
    line = fan("{v}.x", 'v = ["a", "b"]', ', name = "all"')
    found = tasks(rule("r", line, 'output = ["o"]', shell="cat {input.all} > {output}"))["r"]
    assert found.command.text == "cat a.x b.x > o"


def test_a_fan_in_gives_values_to_the_wildcards_that_nothing_else_has() -> None:
    maker = rule("m", 'input = ["in/{s}.raw"]', 'output = ["p/{s}.1", "p/{s}.2"]')
    line = fan("p/{s}.{v}", "v = [2, 1]")
    found = tasks(maker + rule("r", line, 'output = ["o/{s}"]'), ["in/a.raw", "in/b.raw", "p/c.1"])
    assert found["r/s=a"].inputs == ("p/a.2", "p/a.1")
    assert "r/s=b" in found
    assert "r/s=c" not in found


def test_a_fan_in_leaves_out_nothing_that_another_input_finds() -> None:
    line = fan("p/{s}.{v}", "v = [1]")
    lines = ('input = ["in/{s}.raw"]', line, 'output = ["o/{s}"]')
    found = tasks(rule("r", *lines), ["in/a.raw", "in/b.raw", "p/a.1"])
    assert found["r/s=b"].inputs == ("in/b.raw", "p/b.1"), "a file that is missing is for the plan to tell"


def test_a_fan_in_that_finds_nothing_for_a_wildcard_is_told() -> None:
    told = error(rule("r", fan("p/{s}.{v}", "v = [1]"), 'output = ["o/{s}"]'))
    assert told.message == "no file matches 'p/{s}.{v}', so {s} of rule r has no values"


def test_a_gather_over_a_hundred_thousand_inputs_is_one_task() -> None:
    text = '[config]\nlist = "' + ",".join(str(n) for n in range(100_000)) + '"\n'
    found = tasks(
        text + rule("r", fan("{v}.x", 'v = "config.list"'), 'output = ["o"]', shell="cat {input.list}")
    )["r"]
    assert len(found.inputs) == 100_000


def test_inputs_of_one_name_go_together_in_the_order_of_the_file() -> None:
    lines = 'input = { b = "2", a = ["1", "3"] }'
    shell = "x {input.a} {input.b} {input}"
    assert tasks(rule("r", lines, 'output = ["o"]', shell=shell))["r"].command.text == "x 1 3 2 2 1 3"


@pytest.mark.parametrize("ancient", ["ref.fa", "ref", "r*.fa", "{config.ref}"])
def test_ancient_inputs_are_named_by_text_by_name_or_by_glob(ancient: str) -> None:
    text = '[config]\nref = "ref.fa"\n'
    lines = ('input = { ref = "ref.fa", a = "a" }', f'ancient = ["{ancient}"]', 'output = ["o"]')
    assert tasks(text + rule("r", *lines))["r"].ancient == {"ref.fa"}


def test_an_ancient_that_is_no_input_is_told() -> None:
    assert notes(rule("r", 'input = ["a"]', 'ancient = ["b*"]', 'output = ["o"]')) == ["no-effect"]


def test_temporary_marks_all_outputs_and_temp_output_those_it_names() -> None:
    outputs = 'output = { bam = "{sample}.bam", log = "{sample}.log" }'
    whole = tasks(SAMPLES + rule("r", outputs, "temporary = true"))
    assert whole["r/sample=S1"].temporary == ("S1.bam", "S1.log")
    for name in ("bam", "{sample}.bam"):
        some = tasks(SAMPLES + rule("r", outputs, f'temp_output = ["{name}"]'))
        assert some["r/sample=S1"].temporary == ("S1.bam",)


def test_two_outputs_that_become_one_path_are_one() -> None:
    text = '[config]\na = "x"\n' + rule("r", 'output = ["{config.a}", "x"]')
    assert tasks(text)["r"].outputs == ("x",)


def test_two_rules_of_one_name_are_an_error() -> None:
    text = rule("r", 'output = ["a"]') + rule("r", 'output = ["b"]')
    assert error(text).code == "duplicate-rule"


def test_a_folder_of_outputs_that_a_glob_takes_in_from_the_disk_is_told() -> None:
    text = rule("all", 'input = ["in/*"]', 'output = ["o"]') + rule("sub", 'output = ["in/sub/x"]')
    assert notes(text, ["in/a.txt", "in/sub/x"]) == ["folder-of-outputs"]
    assert notes(text, ["in/a.txt"]) == []


@pytest.mark.parametrize("input", ["parts/S1/*.fa", "parts/{p}/*.fa", "parts/S1/{f}.fa"])
def test_whatever_looks_into_a_folder_that_a_task_makes_is_an_error(input: str) -> None:
    text = rule("split", 'output = ["parts/S1"]') + rule("join", f'input = ["{input}"]', 'output = ["o"]')
    assert error(text, ["parts/S1/old.fa"]).code == "glob-in-output"
