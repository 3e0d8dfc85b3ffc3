"""Reading `[[rules]]`: every field in every form, and what a rule cannot mean."""

from __future__ import annotations

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.plan.task import Growth, Resources
from treadle.rules.file.read import read_text
from treadle.rules.schema import FanIn, Rule, Spelled

HEAD = '[workflow]\nname = "x"\nstrict_shell = true\n'


def rule(body: str, head: str = HEAD) -> Rule:
    return read_text(f'{head}[[rules]]\nname = "a"\n{body}\n').rules[0]


def errors(body: str, head: str = HEAD) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        read_text(f'{head}[[rules]]\nname = "a"\n{body}\n')
    return list(caught.value.diagnostics)


def codes(body: str, head: str = HEAD) -> list[str]:
    return [one.code for one in errors(body, head)]


def warnings(body: str, head: str = HEAD) -> list[str]:
    return [one.code for one in read_text(f'{head}[[rules]]\nname = "a"\n{body}\n').warnings]


MAKE = 'output = ["o"]\nshell = "x"\n'


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        ('"a.txt"', [("a.txt", "", "")]),
        ('["a.txt", "b.txt"]', [("a.txt", "", ""), ("b.txt", "", "")]),
        (
            '{ bam = "a.bam", reads = ["1.fq", "2.fq"] }',
            [("a.bam", "bam", ""), ("1.fq", "reads", ""), ("2.fq", "reads", "")],
        ),
        ('{ path = "d", pattern = "*.txt" }', [("d", "", "*.txt")]),
        ('{ qc = { path = "d", pattern = "*.txt" } }', [("d", "qc", "*.txt")]),
        ('["x", { path = "d", pattern = "*.txt" }]', [("x", "", ""), ("d", "", "*.txt")]),
        ("[]", []),
    ],
)
def test_files_are_read_in_each_of_their_forms(written: str, texts: list[tuple[str, str, str]]) -> None:
    read = rule(f'input = {written}\nshell = "x"')
    assert [(spec.text, spec.name, spec.pattern) for spec in read.inputs] == texts


def test_each_file_knows_its_line() -> None:
    read = rule('input = [\n  "a",\n  "b",\n]\noutput = {\n  x = "c",\n}\nshell = "x"')
    assert [spec.place.line for spec in read.inputs] == [7, 8]
    assert [spec.place.key for spec in read.inputs] == ["input[0]", "input[1]"]
    assert [(spec.place.line, spec.place.key) for spec in read.outputs] == [(11, "output.x")]


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("3", "wrong-type"),
        ("[3]", "wrong-type"),
        ('[["a"]]', "wrong-type"),
        ('""', "empty"),
        ('"a\\tb"', "control-character"),
        ('"a\\u0000b"', "control-character"),
        ('{ list = "a" }', "reserved-name"),
        ('{ "a b" = "a" }', "bad-name"),
        ('{ path = "d", pattern = "*", more = 1 }', "unknown-key"),
        ('{ pattern = "*" }', "missing-key"),
    ],
)
def test_an_input_that_cannot_be_is_an_error(written: str, code: str) -> None:
    assert codes(f'input = {written}\nshell = "x"') == [code]


def test_an_output_may_be_named_list_but_not_be_named_twice() -> None:
    assert rule('output = { list = "a" }\nshell = "x"').outputs[0].name == "list"
    assert codes('output = ["a", "a"]\nshell = "x"') == ["duplicate-output"]


def test_fan_in_keeps_literals_and_references_apart() -> None:
    read = rule(
        'shell = "x"\nexpand_inputs = [\n  { pattern = "v/{s}.{n}.vcf", '
        'variables = { s = "config.samples_list", n = [1, "two"] } },\n'
        '  { pattern = "w/{k}", variables = { k = 5 } },\n]'
    )
    assert [(one.pattern, one.variables, one.place.line) for one in read.fan_in] == [
        ("v/{s}.{n}.vcf", (("s", "config.samples_list"), ("n", (1, "two"))), 8),
        ("w/{k}", (("k", (5,)),), 9),
    ]
    assert isinstance(read.fan_in[0], FanIn)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ('[{ pattern = "a" }]', "missing-key"),
        ('[{ pattern = "{s}", variables = { s = { a = 1 } } }]', "wrong-type"),
        ('[{ pattern = "{s}", variables = { s = ["a", ["b"]] } }]', "wrong-type"),
        ('["{s}"]', "wrong-type"),
        ("5", "wrong-type"),
        ('[{ pattern = "{s}", variable = { s = "x" } , variables = {} }]', "unknown-key"),
    ],
)
def test_a_fan_in_that_cannot_be_is_an_error(written: str, code: str) -> None:
    assert codes(f'expand_inputs = {written}\nshell = "x"') == [code]


def test_a_variable_that_the_pattern_does_not_hold_is_named() -> None:
    assert warnings('expand_inputs = [{ pattern = "a", variables = { s = "x" } }]') == ["no-effect"]
    read = rule('expand_inputs = [{ pattern = "{config.p}", variables = { s = "x" } }]')
    assert read.fan_in[0].variables == (("s", "x"),)


def test_every_field_of_the_policy_is_read() -> None:
    read = rule(
        MAKE + 'retries = 3\nretry_delay = "1m"\nretry_memory = "x1.5"\nretry_time = "+2h"\npriority = -4\n'
        "required = false\noptional = true\ntarget = true\nresumable = true\nrestartable = true\n"
        'oom_ok = true\ndescription = "d"\ntags = ["q"]\nsignal_before_end = "90s"\n'
        '[rules.resources]\ntime_limit = "2h"'
    ).policy
    assert (read.retries, read.retry_delay, read.priority) == (3, 60.0, -4)
    assert (read.retry_memory, read.retry_time) == (Growth(factor=1.5), Growth(add=7200))
    assert (read.required, read.optional, read.target) == (False, True, True)
    assert (read.resumable, read.restartable, read.oom_ok) == (True, True, True)
    assert (read.description, read.tags, read.signal_before_end) == ("d", ("q",), 90)


def test_a_growth_of_memory_is_in_bytes_and_a_delay_may_be_a_number_of_seconds() -> None:
    read = rule(MAKE + 'retry_memory = "+8G"\nretry_delay = 2.5').policy
    assert (read.retry_memory, read.retry_delay) == (Growth(add=8 * 1024**3), 2.5)


@pytest.mark.parametrize(
    "line",
    [
        'retry_memory = "8G"',
        'retry_memory = "x1"',
        'retry_memory = "x0.5"',
        'retry_memory = "+0G"',
        "retry_memory = 2",
        'retry_time = "+2"',
        'retry_time = "x9999999999"',
        "retry_delay = -1",
        "retry_delay = inf",
        "retry_delay = nan",
        "retry_delay = true",
        'retry_delay = "5"',
        "retries = -1",
        "retries = 1.5",
        'retries = "3"',
        "retries = true",
        "retries = 99999999999999999999",
        "priority = 0.5",
        'signal_before_end = "soon"',
    ],
)
def test_a_policy_that_cannot_be_is_one_error(line: str) -> None:
    assert len(errors(MAKE + line)) == 1


def test_a_signal_that_comes_before_the_start_is_an_error_and_without_a_limit_a_warning() -> None:
    assert codes(MAKE + 'signal_before_end = "2h"\nresources = { time_limit = "1h" }') == ["out-of-range"]
    assert warnings(MAKE + 'signal_before_end = "2h"') == ["no-effect"]


def test_every_resource_is_read() -> None:
    read = rule(
        MAKE + '[rules.resources]\nthreads = 8\nmemory = "1.5G"\ngpu_spec = { count = 2, model = "A100", '
        'memory_gb = 40 }\ndisk = "200G"\ntime_limit = "1h30m"\npartition = "long"\n'
        'groups = { net = 1, db = 2 }\nnodes = 2\ntasks_per_node = 4\naccount = "a"\nqos = "q"\n'
        'constraint = "c"\nextra_args = ["--x"]',
        HEAD + "[resource_groups]\ndb = 2\nnet = { max = 1 }\n",
    )
    assert read.resources == Resources(
        threads=8,
        memory=1536 * 1024**2,
        gpus=2,
        gpu_model="A100",
        gpu_memory=40 * 1024**3,
        disk=200 * 1024**3,
        time_limit=5400,
        groups=(("db", 2), ("net", 1)),
        partition="long",
        account="a",
        qos="q",
        constraint="c",
        nodes=2,
        tasks_per_node=4,
        extra_args=("--x",),
    )
    assert read.memory_text == "1.5G"


def test_defaults_hold_only_where_a_rule_says_nothing() -> None:
    head = HEAD + '[defaults]\nthreads = 4\nmemory = "8G"\n'
    assert rule(MAKE, head).resources == Resources(threads=4, memory=8 * 1024**3)
    assert rule(MAKE, head).memory_text == "8G"
    assert rule(MAKE + "threads = 1", head).resources.threads == 1
    said = rule(MAKE + "[rules.resources]\nthreads = 1\nmemory = 500", head)
    assert (said.resources.threads, said.resources.memory, said.memory_text) == (1, 500 * 1024**2, "500")


def test_the_older_spelling_on_the_rule_counts_and_may_not_contradict() -> None:
    assert rule(MAKE + 'threads = 3\nmemory = "2G"').resources == Resources(threads=3, memory=2 * 1024**3)
    assert rule(MAKE + "threads = 3\nresources = { threads = 3 }").resources.threads == 3
    assert codes(MAKE + "threads = 3\nresources = { threads = 4 }") == ["said-twice"]


@pytest.mark.parametrize(
    "line",
    [
        "threads = 0",
        "threads = 2.0",
        'memory = "0"',
        'memory = "-8G"',
        "memory = -8",
        "memory = nan",
        'memory = "8Q"',
        "memory = ['8G']",
        'memory = "' + "9" * 1000 + 'G"',
        'memory = "99999999999999999999G"',
        "gpu = -1",
        'time_limit = "10:00"',
        "time_limit = 60",
        "groups = { db = 0 }",
        "groups = 5",
        'extra_args = "--x"',
        "memory_limit = 4",
    ],
)
def test_a_resource_that_cannot_be_is_one_error(line: str) -> None:
    (error,) = errors(MAKE + f"[rules.resources]\n{line}", HEAD + "[resource_groups]\ndb = 2\n")
    assert error.place.line == 11


def test_a_bare_time_is_refused_with_both_readings() -> None:
    (error,) = errors(MAKE + "[rules.resources]\ntime_limit = 60")
    assert (error.message, error.hint) == ("60 may mean seconds or minutes", "write '60s' or '60m'")


def test_a_group_that_can_never_be_had_is_an_error() -> None:
    head = HEAD + "[resource_groups]\nlicense = 2\n"
    assert codes(MAKE + "resources = { groups = { license = 3 } }", head) == ["group-too-large"]
    (error,) = errors(MAKE + "resources = { groups = { licence = 1 } }", head)
    assert (error.code, error.hint) == ("unknown-group", "did you mean 'license'?")


def test_gpus_said_twice_must_agree() -> None:
    assert rule(MAKE + "resources = { gpu = 2, gpu_spec = { model = 'A' } }").resources.gpus == 2
    assert codes(MAKE + "resources = { gpu = 1, gpu_spec = { count = 2 } }") == ["said-twice"]


def test_params_keep_their_types_and_spelling() -> None:
    read = rule(MAKE + '[rules.params]\nq = 20\ne = 1e-5\nb = true\nl = ["x", 2]\nt = "a\\tb"')
    assert read.params == {"q": 20, "e": Spelled("1e-5"), "b": True, "l": ("x", 2), "t": "a\tb"}
    assert str(read.params["e"]) == "1e-5"
    assert str(rule(MAKE + "params = { n = 1_000.5 }").params["n"]) == "1000.5"
    assert read.at("params.q").line == 9


def test_environment_variables_become_texts() -> None:
    assert rule(MAKE + 'envvars = { A = "x", B = 2, C = true, D = 1e-5 }').envvars == {
        "A": "x",
        "B": "2",
        "C": "true",
        "D": "1e-5",
    }


@pytest.mark.parametrize(
    "line",
    [
        "params = { x = { y = 1 } }",
        "params = { x = 1979-05-27 }",
        "params = { 'a b' = 1 }",
        "params = { x = 99999999999999999999 }",
        'params = { x = "\\u0000" }',
        "envvars = { 'A-B' = 1 }",
        "envvars = { A = [1] }",
        "envvars = { TREADLE_X = '1' }",
        "envvars = 3",
        "depends_on = 'b'",
        "depends_on = ['a']",
        "tags = [1]",
        "when = true",
        'log = "a\\nb"',
    ],
)
def test_a_field_that_cannot_be_is_one_error(line: str) -> None:
    assert len(errors(MAKE + line)) == 1


def test_a_rule_may_be_a_target_a_side_effect_or_a_script() -> None:
    assert rule('input = ["x"]').shell == ""
    assert rule('shell = "ping host"').outputs == ()
    read = rule('output = "o"\nscript = "s.py --q 3"\ninterpreter = "python3"')
    assert (read.script, read.interpreter) == ("s.py --q 3", "python3")


def test_a_rule_that_does_nothing_or_makes_nothing_is_an_error() -> None:
    assert codes('output = ["o"]') == ["no-command"]
    assert codes('output = ["o"]\nshell = "  "') == ["no-command"]
    assert codes('description = "d"') == ["empty-rule"]
    assert codes("output = ['o']\nshell = 3") == ["wrong-type"]


def test_names_chosen_among_the_files_become_paths() -> None:
    read = rule(
        'input = { ref = "r.fa" }\noutput = { bam = "b.bam" }\nshell = "x"\n'
        'ancient = ["ref"]\ntemp_output = ["bam"]'
    )
    assert (read.ancient, read.temp_output) == (("r.fa",), ("b.bam",))


def test_a_temporary_or_ancient_file_that_is_none_of_the_rule_is_named() -> None:
    assert warnings(MAKE + 'temp_output = ["p"]') == ["no-effect"]
    assert warnings(MAKE + 'input = ["i"]\nancient = ["j"]') == ["no-effect"]
    assert warnings(MAKE + 'input = ["{config.ref}"]\nancient = ["ref.fa"]') == []
    assert warnings(MAKE + 'temp_output = ["o"]\ntemporary = true') == []


@pytest.mark.parametrize(
    "line", ["checkpoint = false", "scratch = false", "protected_output = []", "pipe = false"]
)
def test_a_field_that_is_switched_off_says_nothing(line: str) -> None:
    assert warnings(MAKE + line) == []


@pytest.mark.parametrize(
    "line",
    [
        "localrule = true",
        "group = 'g'",
        "pack = 10",
        "cache_key = 'k'",
        "input_function = 'f'",
        "format_hint = ['bam']",
        "pipe = true",
        "resource_hint = { io_bound = true }",
        "interpreter = 'python3'",
    ],
)
def test_fields_without_effect_are_warnings(line: str) -> None:
    assert warnings(MAKE + line) == ["no-effect"]


def test_metadata_is_kept_for_the_report() -> None:
    assert rule(MAKE + "rule_metadata = { assay = 'WGS', n = [1, { x = 2 }] }").metadata == {
        "assay": "WGS",
        "n": [1, {"x": 2}],
    }


@pytest.mark.parametrize("name", ["1a", "-a", "a b", "a.b", "a/b", "é", "a::b"])
def test_a_bad_name_is_an_error(name: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        read_text(f'{HEAD}[[rules]]\nname = "{name}"\nshell = "x"\n')
    assert [one.code for one in caught.value.diagnostics] == ["bad-name"]


def test_a_rule_without_a_name_is_told_by_its_number() -> None:
    with pytest.raises(WorkflowError) as caught:
        read_text(f'{HEAD}[[rules]]\nname = "a"\nshell = "x"\n[[rules]]\nshell = "y"\n')
    assert caught.value.diagnostics[0].place.table == "rules[1]"


def test_a_resource_on_the_rule_is_told_where_it_belongs() -> None:
    (error,) = errors(MAKE + 'time_limit = "2h"')
    assert (error.code, error.hint) == ("unknown-key", "it belongs in [rules.resources]")


def test_depends_on_an_unknown_rule_names_the_nearest() -> None:
    align = '[[rules]]\nname = "align"\nshell = "x"\n'
    text = f'{HEAD}{align}[[rules]]\nname = "b"\nshell = "x"\ndepends_on = ["algin"]\n'
    with pytest.raises(WorkflowError) as caught:
        read_text(text)
    assert caught.value.diagnostics[0].hint == "did you mean 'align'?"
