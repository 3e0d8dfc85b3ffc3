"""Whatever a file, a sheet or the command line holds: a workflow, or a WorkflowError; nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.base.errors import WorkflowError
from treadle.rules.config.types import TYPES
from treadle.rules.file.read import ReadOptions, read, read_text
from treadle.rules.schema import Workflow
from treadle.rules.toml.fields import DECLARED, DEFAULTS, PAIR, RESOURCES, RULE, TOP, WORKFLOW

VALID = """\
[workflow]
name = "flow"
strict_shell = true
sample_pattern = "raw/{sample}.fq"
interpreter_map = { ".m" = "octave" }

[config]
ref = "ref.fa"
bam = "{config.ref}.bam"
db = { default = "30", type = "int", range = "1..50", help = "h" }
chroms = ["1", "X"]

[defaults]
threads = 2
memory = "8G"

[[pairs]]
pair_id = "P1"
experiment = "T1"
control = "N1"
metadata = { age = 7 }

[[sample_groups]]
name = "g"
samples = ["A", "B"]

[[values]]
name = "chr"
values = ["1", 2]

[[tables]]
name = "t"
rows = [{ lane = "L1", fastq = "x/y.fq" }]

[wildcard_constraints]
sample = "[A-Z]+"

[resource_groups]
net = 2

[[rules]]
name = "align"
input = { fq = "raw/{sample}.fq", ref = ["{config.ref}", "x"] }
output = ["out/{sample}.bam"]
shell = \"\"\"
bwa {input.fq} \\
  > {output}
\"\"\"
retries = 2
retry_memory = "x2"
[rules.resources]
threads = 4
memory = "1.5G"
time_limit = "1h30m"
groups = { net = 1 }
gpu_spec = { count = 1, model = "A" }
[rules.params]
q = 1e-5

[[rules]]
name = "gather"
expand_inputs = [{ pattern = "out/{s}.bam", variables = { s = "config.samples_list" } }]
output = { all = "all.txt" }
shell = 'cat {input} > {output}'
depends_on = ["align"]
"""

ODD = st.sampled_from(
    [
        "",
        '"',
        "'''",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        "\\",
        ",",
        "[[rules]]",
        "{config.bam}",
        "\x00",
        "\x7f",
        "é",
        "-1",
        "inf",
        "1979-05-27",
        "99999999999999999999",
        "0xffffffffffffffffffff",
        "true",
        "../",
        '"\\u0000"',
        '"\\t"',
        "[rules.x]",
        "\ufeff",
        "\r",
    ]
)


def only_workflow_errors(text: str, options: ReadOptions | None = None, folder: str = "/nowhere") -> None:
    found: Workflow | WorkflowError
    try:
        found = read_text(text, folder=folder, options=options)
    except WorkflowError as error:
        found = error
    if isinstance(found, WorkflowError):
        assert found.diagnostics
        assert all(one.code and one.message and len(str(one)) < 2000 for one in found.diagnostics)
    else:
        assert found.rules


def test_the_valid_workflow_is_valid() -> None:
    assert read_text(VALID).warnings == ()


@given(st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 12), ODD), min_size=1, max_size=3))
@settings(max_examples=250, deadline=None)
def test_a_mutated_workflow_is_read_or_refused(edits: list[tuple[int, int, str]]) -> None:
    text = VALID
    for at, cut, new in edits:
        text = text[:at] + new + text[at + cut :]
    only_workflow_errors(text)


@given(st.lists(st.sampled_from(VALID.splitlines()), max_size=30))
@settings(max_examples=150, deadline=None)
def test_shuffled_lines_are_read_or_refused(lines: list[str]) -> None:
    only_workflow_errors("\n".join(lines))


VALUES = st.recursive(
    st.sampled_from(
        [
            "1",
            "-1",
            "0",
            "2.5",
            "nan",
            "true",
            "false",
            '""',
            '"a"',
            '"8G"',
            '"2h"',
            '"x2"',
            '"+1G"',
            '"{config.k}"',
            "1979-05-27",
            '"a\\u0000b"',
            '"a\\tb"',
            '"../x"',
            "9223372036854775808",
            "-9223372036854775809",
            f"0x{'f' * 5000}",
            f"1{'0' * 400}.5",
            *(f'"{kind}"' for kind in TYPES),
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(
            st.sampled_from(["name", "path", "pattern", "variables", "x", "max", "list", "default", "type"]),
            inner,
            max_size=3,
        ).map(lambda table: "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }")
    ),
    max_leaves=6,
)


def fields(names: object) -> st.SearchStrategy[str]:
    keys = st.sampled_from([*sorted(names), "odd", '"a b"'])  # type: ignore[call-overload]
    tables = st.dictionaries(keys, VALUES, max_size=6)
    return tables.map(lambda table: "\n".join(f"{key} = {value}" for key, value in table.items()))


TABLES = st.one_of(
    fields(WORKFLOW).map("[workflow]\n{}\n".format),
    fields(DEFAULTS).map("[defaults]\n{}\n".format),
    fields(["k", "ref"]).map("[config]\n{}\n".format),
    fields(DECLARED).map("[config.d]\n{}\n".format),
    fields(RULE).map('[[rules]]\nname = "r"\n{}\n'.format),
    fields(RESOURCES).map("[[rules]]\n[rules.resources]\n{}\n".format),
    fields(RULE).map("[[rules]]\n[rules.params]\n{}\n".format),
    fields(PAIR).map("[[pairs]]\n{}\n".format),
    fields(["name", "samples", "metadata"]).map("[[sample_groups]]\n{}\n".format),
    fields(["name", "values"]).map("[[values]]\n{}\n".format),
    fields(["name", "rows", "file"]).map("[[tables]]\n{}\n".format),
    fields(["sample"]).map("[wildcard_constraints]\n{}\n".format),
    fields(["net"]).map("[resource_groups]\n{}\n".format),
    st.sampled_from(sorted(TOP)).map("[{}]\n".format),
    fields(sorted(TOP)),
)


@given(st.lists(TABLES, max_size=5))
@settings(max_examples=80, deadline=None)
def test_any_value_in_any_field_is_read_or_refused(tables: list[str]) -> None:
    only_workflow_errors("\n".join(tables))


@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "f.oxoflow")
        file.write_bytes(data)
        try:
            read(str(file))
        except WorkflowError:
            return
        raise AssertionError("no workflow is that short")


KEYS = st.sampled_from(["ref", "bam", "db", "chroms", "nothing", "a.b", "", "\udcff", "(", "x" * 300])


@given(
    st.lists(
        st.tuples(KEYS, st.text(max_size=20) | st.sampled_from(["7", "true", "[1", "\udcff", "\0"])),
        max_size=3,
    )
)
@settings(max_examples=150, deadline=None)
def test_any_text_of_the_command_line_is_taken_or_refused(config: list[tuple[str, str]]) -> None:
    only_workflow_errors(VALID, ReadOptions(config=tuple(config)))


CELLS = st.text(alphabet='ab/.,"#\t\n\r\0 é\\', max_size=5)


@given(
    st.sampled_from(["p.csv", "p.tsv", "p.json", "p.txt"]),
    st.sampled_from(
        ["", "pair_id,experiment\n", "pair_id\texperiment\tx\n", "name,samples\n", "#", '[{"pair_id":']
    ),
    st.lists(st.lists(CELLS, max_size=4).map(",".join), max_size=4).map("\n".join)
    | st.text(alphabet='[]{}":,ab1\\u ', max_size=40),
)
@settings(max_examples=200, deadline=None)
def test_any_sheet_is_read_or_refused(name: str, header: str, body: str) -> None:
    head = f'[workflow]\nname = "x"\npairs_file = "{name}"\nsample_groups_file = "{name}"\n'
    table = f'[[tables]]\nname = "t"\nfile = "{name}"\n'
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes((header + body).encode())
        only_workflow_errors(head + '[[rules]]\nname = "r"\nshell = "x"\n' + table, folder=folder)
