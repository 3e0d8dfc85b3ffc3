"""Sources of values: pairs, sample groups, values and tables, inline and from sheets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic, Place
from treadle.rules.file.read import ReadOptions, read_text
from treadle.rules.schema import Source, Workflow
from treadle.rules.sources.sheets import read_sheet
from treadle.rules.toml.section import Findings

RULE = '[[rules]]\nname = "a"\nshell = "x"\n'
PAIR_COLUMNS = ("pair_id", "experiment", "control", "experiment_type")
ALIASES = ("tumor", "normal", "tumor_type")


def workflow(head: str, folder: Path | None = None, sheets: tuple[str, ...] = (), more: str = "") -> Workflow:
    text = f'[workflow]\nname = "x"\n{head}\n{RULE}{more}'
    return read_text(text, folder=str(folder or "/nowhere"), options=ReadOptions(sheets=sheets))


def sources(head: str, folder: Path | None = None, more: str = "") -> dict[str, Source]:
    return {source.label: source for source in workflow(head, folder, more=more).sources}


def errors(head: str, folder: Path | None = None, more: str = "") -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        workflow(head, folder, more=more)
    return list(caught.value.diagnostics)


def test_inline_pairs_have_metadata_and_the_older_names() -> None:
    more = (
        '[[pairs]]\npair_id = "P1"\nexperiment = "T1"\ncontrol = "N1"\nmetadata = { age = 7, kind = "x" }\n'
        '[[pairs]]\npair_id = "P2"\ntumor = "T2"\ntumor_type = "lung"\ncontrol = ""\n'
    )
    pairs = sources("", more=more)["pairs"]
    assert (pairs.kind, pairs.columns) == ("pairs", (*PAIR_COLUMNS, "age", "kind", *ALIASES))
    assert pairs.rows == (
        ("P1", "T1", "N1", None, "7", "x", "T1", "N1", None),
        ("P2", "T2", None, "lung", None, None, "T2", None, "lung"),
    )
    assert pairs.place.line == 7


def test_both_sides_of_pairs_are_samples_where_there_are_no_groups() -> None:
    pairs = '[[pairs]]\npair_id = "P1"\nexperiment = "T1"\ncontrol = "N"\n'
    pairs += '[[pairs]]\npair_id = "P2"\nexperiment = "T2"\ncontrol = "N"\n'
    (sides,) = [one for one in workflow("", more=pairs).sources if one.kind == "samples"]
    assert (sides.columns, sides.rows) == (("sample",), (("T1",), ("N",), ("T2",)))
    groups = '[[sample_groups]]\nname = "g"\nsamples = ["S"]\n'
    assert [one.rows for one in workflow("", more=pairs + groups).sources if one.kind == "samples"] == [
        (("S", "g"),)
    ]
    discovered = workflow('sample_pattern = "raw/{sample}.fq"', more=pairs)
    assert [one.kind for one in discovered.sources] == ["pairs"]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('experiment = "T"', "missing-key"),
        ('pair_id = "P"', "missing-key"),
        ('pair_id = "P"\nexperiment = "T"\ntumor = "U"', "said-twice"),
        ('pair_id = "P"\nexperiment = "a/b"', "bad-value"),
        ('pair_id = ".."\nexperiment = "T"', "bad-value"),
        ('pair_id = "."\nexperiment = "T"', "bad-value"),
        ('pair_id = "a\\tb"\nexperiment = "T"', "bad-value"),
        ('pair_id = "P"\nexperiment = "T"\nmetadata = { "a b" = 1 }', "bad-name"),
        ('pair_id = "P"\nexperiment = "T"\nmetadata = { tumor = 1 }', "bad-name"),
        ('pair_id = "P"\nexperiment = "T"\nmetadata = { log = 1 }', "bad-name"),
        ('pair_id = "P"\nexperiment = "T"\nmetadata = { x = [1] }', "wrong-type"),
        ('pair_id = "P"\nexperiment = "T"\nwhen = "x"', "write-instead"),
        ('pair_id = "P"\nexperiment = ["T"]', "wrong-type"),
        (f'pair_id = "{"p" * 5000}"\nexperiment = "T"', "bad-value"),
    ],
)
def test_a_pair_that_cannot_be_is_an_error(table: str, code: str) -> None:
    found = errors("", more="[[pairs]]\n" + table)
    assert found[0].code == code
    assert all(one.place.line >= 6 for one in found)


def test_a_pair_given_twice_must_be_the_same() -> None:
    pair = '[[pairs]]\npair_id = "P"\nexperiment = "T"\n'
    assert len(sources("", more=pair + pair)["pairs"].rows) == 1
    (error,) = errors("", more=pair + pair + 'control = "N"\n')
    assert (error.code, error.hint) == ("said-twice", "first at main.oxoflow:7 [pairs.P]")


CSV = (
    '# from the lab\npair_id,experiment,control,note\nP1,"T1",N1,"lung, left"\n\n# out: P9,T9,N9,x\nP2,T2,,\n'
)
TSV = "pair_id\texperiment\tcontrol\tnote\nP1\tT1\tN1\tlung, left\nP2\tT2\t\t\n"
JSON = json.dumps(
    [
        {"pair_id": "P1", "experiment": "T1", "control": "N1", "metadata": {"note": "lung, left"}},
        {"pair_id": "P2", "experiment": "T2", "control": None},
    ]
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", CSV),
        ("p.tsv", TSV),
        ("p.json", JSON),
        ("p.txt", TSV),
        ("p", CSV),
        ("sheet", JSON),
        ("p.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("p.tsv", TSV.rstrip("\n").replace("\n", "\r")),
        ("p.csv", CSV.replace(",note", " , note ,,").replace("P1", " P1 ")),
    ],
)
def test_a_pair_sheet_is_read_in_each_of_its_forms(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    pairs = sources(f'pairs_file = "{name}"', tmp_path)["pairs"]
    assert pairs.columns == (*PAIR_COLUMNS, "note", *ALIASES)
    assert [row[:5] for row in pairs.rows] == [
        ("P1", "T1", "N1", None, "lung, left"),
        ("P2", "T2", None, None, None),
    ]


def test_a_sheet_and_inline_pairs_are_merged(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pair_id,tumor,batch\nP1,T1,b1\nP2,T2,b2\n")
    inline = '[[pairs]]\npair_id = "P0"\nexperiment = "T0"\n[[pairs]]\npair_id = "P2"\nexperiment = "T2"\n'
    pairs = sources('pairs_file = "p.csv"', tmp_path, inline + 'metadata = { batch = "b2" }\n')["pairs"]
    assert [(row[0], row[1], row[4]) for row in pairs.rows] == [
        ("P0", "T0", None),
        ("P2", "T2", "b2"),
        ("P1", "T1", "b1"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "pair_id,experiment\nP1,T1\nP2\nP3,T3,x\n",
            [("ragged-sheet", 3), ("ragged-sheet", 4), ("missing-key", 3)],
        ),
        ("pair_id,experiment\nP1,T1\n\nP1,T2\n", [("said-twice", 4)]),
        ("pair_id,experiment\n# c\nP1,a/b\n", [("bad-value", 3)]),
        ("pair_id,experiment\nP1,../b\n", [("bad-value", 2)]),
        ("pair_id,experiment\nP1,T1\n,T2\nP3,\n", [("missing-key", 3), ("missing-key", 4)]),
        ('pair_id,experiment\nP1,"a\nb"\n', [("bad-value", 3)]),
        ('pair_id,experiment\nP1,"a\tb"\n', [("bad-value", 2)]),
        ('pair_id,experiment\n"P1,T1\n', [("bad-sheet", 3)]),
        ('pair_id,experiment\nP1,"T"x\n', [("bad-sheet", 2)]),
        ("pair_id,experiment,experiment\nP1,a,b\n", [("bad-sheet", 1)]),
        ("pair_id,experiment,tumor\nP1,a,b\n", [("bad-sheet", 0)]),
        ("pair_id,,experiment\nP1,a,b\n", [("bad-sheet", 1)]),
        ("pair,experiment\nP1,a\n", [("bad-sheet", 0)]),
        ("", [("empty-sheet", 0)]),
        ("#pair_id,experiment\nP1,T1\n", [("bad-sheet", 0), ("bad-sheet", 0)]),
    ],
)
def test_what_is_wrong_in_a_sheet_is_told_with_file_and_line(
    tmp_path: Path, text: str, found: list[tuple[str, int]]
) -> None:
    (tmp_path / "p.csv").write_text(text)
    told = errors('pairs_file = "p.csv"', tmp_path)
    assert sorted((one.code, one.place.line) for one in told) == sorted(found)
    assert {one.place.file for one in told} == {"p.csv"}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a": 1}',
        "[1]",
        '[{"pair_id": "P", "pair_id": "Q", "experiment": "T"}]',
        '[{"pair_id": "P", "experiment": NaN}]',
        '[{"pair_id": "P", "experiment": {"x": 1}}]',
        '[{"pair_id": "P", "experiment": ["T"]}]',
        '[{"pair_id": "\\ud800", "experiment": "T"}]',
        '[{"pair_id": "a\\u0000b", "experiment": "T"}]',
        "[" * 100_000,
        '[{"pair_id": "P"',
        "",
    ],
)
def test_json_that_is_no_sheet_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    assert all(one.place.file == "p.json" for one in errors('pairs_file = "p.json"', tmp_path))


def test_json_keeps_the_spelling_of_numbers(tmp_path: Path) -> None:
    text = '[{"a": 1e-5, "b": true, "c": 100000000000000000000}]'
    (tmp_path / "t.json").write_text(text)
    table = sources("", tmp_path, '[[tables]]\nname = "t"\nfile = "t.json"\n')["tables.t"]
    assert table.rows == (("1e-5", "true", "100000000000000000000"),)


def test_sheets_that_cannot_be_read_are_told_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "b.tsv").write_bytes(b"name\tsamples\ng\t\xff\n")
    told = errors('pairs_file = "none.csv"\nsample_groups_file = "d"', tmp_path)
    assert [(one.code, one.place.line, one.place.key) for one in told] == [
        ("no-sheet", 3, "pairs_file"),
        ("no-sheet", 4, "sample_groups_file"),
    ]
    (error,) = errors('sample_groups_file = "b.tsv"', tmp_path)
    assert (error.code, error.place.file, error.place.line) == ("not-utf8", "b.tsv", 2)


def test_a_column_that_cannot_be_a_wildcard_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pair_id,experiment,date of birth,sample,log,ok\nP,T,1,2,3,4\n")
    read = workflow('pairs_file = "p.csv"', tmp_path)
    assert [one.code for one in read.warnings] == ["unusable-column"] * 3
    assert read.sources[0].columns == (*PAIR_COLUMNS, "ok", *ALIASES)


def test_sample_groups_become_samples_with_group_and_metadata(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text('name\tsamples\tlayout\nbulk\t"A, B,C"\tpe\nsc\tD,\t\n')
    inline = '[[sample_groups]]\nname = "g"\nsamples = ["Z", 7]\n[sample_groups.metadata]\ntissue = "blood"\n'
    samples = sources('sample_groups_file = "g.tsv"', tmp_path, inline)["sample_groups"]
    assert (samples.kind, samples.columns) == ("samples", ("sample", "group", "tissue", "layout"))
    assert samples.rows == (
        ("Z", "g", "blood", None),
        ("7", "g", "blood", None),
        ("A", "bulk", None, "pe"),
        ("B", "bulk", None, "pe"),
        ("C", "bulk", None, "pe"),
        ("D", "sc", None, None),
    )


def test_a_group_sheet_may_have_a_row_for_each_sample(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("sample,group,batch\nA,g,1\nB,g,2\nA,h,3\nA,g,1\n")
    assert sources('sample_groups_file = "g.csv"', tmp_path)["sample_groups"].rows == (
        ("A", "g", "1"),
        ("B", "g", "2"),
        ("A", "h", "3"),
    )


def test_a_group_sheet_of_json_has_lists_of_samples(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text('[{"name": "g", "samples": ["A", "B"], "metadata": {"n": 3}}]')
    assert sources('sample_groups_file = "g.json"', tmp_path)["sample_groups"].rows == (
        ("A", "g", "3"),
        ("B", "g", "3"),
    )


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('name = "g"', "missing-key"),
        ('samples = ["A"]', "missing-key"),
        ('name = "g"\nsamples = "A"', "wrong-type"),
        ('name = "g"\nsamples = [""]', "empty"),
        ('name = "g"\nsamples = [["A"]]', "wrong-type"),
        ('name = "a/b"\nsamples = ["A"]', "bad-value"),
        ('name = ""\nsamples = ["A"]', "empty"),
        ('name = "g"\nsamples = ["A"]\nmetadata = { sample = 1 }', "bad-name"),
        ('name = "g"\nsample = ["A"]', "unknown-key"),
    ],
)
def test_a_sample_group_that_cannot_be_is_an_error(table: str, code: str) -> None:
    assert code in [one.code for one in errors("", more="[[sample_groups]]\n" + table)]


def test_the_same_sample_with_other_metadata_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("name,samples,batch\ng,A,1\ng,A,2\n")
    (error,) = errors('sample_groups_file = "g.csv"', tmp_path)
    assert (error.code, error.place.line, error.hint) == ("said-twice", 3, "first at g.csv:2")


def test_values_are_texts_in_the_authors_order() -> None:
    read = workflow("", more='[[values]]\nname = "chr"\nvalues = [10, "X", 2, 0.50, true, "X"]\n')
    (source,) = read.sources
    assert (source.kind, source.label, source.columns) == ("values", "values.chr", ("chr",))
    assert source.rows == (("10",), ("X",), ("2",), ("0.50",), ("true",))
    assert [one.code for one in read.warnings] == ["duplicate-value"]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ('name = "c"', "missing-key"),
        ("values = [1]", "missing-key"),
        ('name = "c"\nvalues = []', "empty"),
        ('name = "sample"\nvalues = [1]', "reserved-name"),
        ('name = "input"\nvalues = [1]', "reserved-name"),
        ('name = "a-b"\nvalues = [1]', "reserved-name"),
        ('name = "c"\nvalues = ["a/b"]', "bad-value"),
        ('name = "c"\nvalues = [[1]]', "wrong-type"),
        ('name = "c"\nvalues = [1]\n[[values]]\nname = "c"\nvalues = [2]', "duplicate-name"),
    ],
)
def test_a_list_of_values_that_cannot_be_is_an_error(table: str, code: str) -> None:
    assert [one.code for one in errors("", more="[[values]]\n" + table)] == [code]


def test_a_constraint_may_allow_a_slash_but_never_the_way_out() -> None:
    more = '[wildcard_constraints]\nc = ".*"\n[[values]]\nname = "c"\nvalues = ["a/b"]\n'
    assert sources("", more=more)["values.c"].rows == (("a/b",),)
    assert [one.code for one in errors("", more=more.replace("a/b", "a/../b"))] == ["bad-value"]
    assert [one.code for one in errors("", more=more.replace(".*", "[a-z]"))] == ["bad-value"]


def test_a_table_may_hold_paths_and_says_in_which_columns(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("sample\tfastq\tbad name\nA\t../raw/a.fq\tx\nB\t\ty\n")
    more = '[[tables]]\nname = "t"\nfile = "t.tsv"\n'
    more += '[[tables]]\nname = "u"\nrows = [\n{ a = 1 },\n{ b = "x/y" },\n]\n'
    read = workflow("", tmp_path, more=more)
    first, second = read.sources
    assert (first.kind, first.label, first.columns) == ("table", "tables.t", ("sample", "fastq"))
    assert first.rows == (("A", "../raw/a.fq"), ("B", None))
    assert first.free == {"fastq"}
    assert (second.columns, second.rows, second.free) == (("a", "b"), (("1", None), (None, "x/y")), {"b"})


@pytest.mark.parametrize(
    "table",
    [
        'name = "t"',
        'name = "t"\nfile = "x"\nrows = []',
        "rows = [{ a = 1 }]",
        'name = "t"\nrows = [1]',
        'name = "t"\nrows = [{ "a b" = 1 }]',
        'name = "t"\nrows = [{ a = [1] }]',
        'name = "t"\nrows = [{ a = "x\\ny" }]',
    ],
)
def test_a_table_that_cannot_be_is_one_error(table: str) -> None:
    assert len(errors("", more="[[tables]]\n" + table)) == 1


def test_many_bad_values_are_counted_after_the_first_few() -> None:
    values = ", ".join(f'"a/{n}"' for n in range(1000))
    told = errors("", more=f'[[values]]\nname = "c"\nvalues = [{values}]\n')
    assert len(told) == 6
    assert "995 more" in str(told)


def test_sheets_of_the_command_line_add_or_replace(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("name\tsamples\ng\tA\n")
    (tmp_path / "names.txt").write_text("sample\nB\nC\n")
    (tmp_path / "p.csv").write_text("pair_id,experiment\nP,T\n")
    head = 'sample_groups_file = "g.tsv"'

    def rows(*sheets: str) -> dict[str, tuple[tuple[str | None, ...], ...]]:
        return {source.kind: source.rows for source in workflow(head, tmp_path, sheets).sources}

    assert rows("+@names.txt")["samples"] == (("A", "g"), ("B", None), ("C", None))
    assert rows("@names.txt")["samples"] == (("B", None), ("C", None))
    assert rows("@p.csv") == {
        "samples": (("A", "g"),),
        "pairs": (("P", "T", None, None, "T", None, None),),
    }


@pytest.mark.big
@pytest.mark.parametrize("divider", [",", "\t"])
def test_blanks_around_a_cell_are_left_out_and_those_in_quotes_are_its_own(
    tmp_path: Path, divider: str
) -> None:
    rows = [
        (" who ", " word", '"note"'),
        (" S1 ", '" a ""b"" "', '", "'),
        ("S 2", ' "x" ', ""),
        ('" "', '""', '"  one\ntwo "'),
    ]
    text = "\n".join(divider.join(row) for row in rows)
    (tmp_path / "sheet.txt").write_text(text.replace('", "', f'"{divider} "') + "\n")
    found = read_sheet("sheet.txt", str(tmp_path), Findings(""), Place())
    assert found is not None
    assert list(zip(*found.columns.values())) == [
        ("S1", ' a "b" ', f"{divider} "),
        ("S 2", '"x"', None),
        (" ", None, "  one\ntwo "),
    ]


def test_a_text_of_a_json_sheet_is_taken_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('[{"who": " S1 ", "word": ""}]')
    found = read_sheet("s.json", str(tmp_path), Findings(""), Place())
    assert found is not None
    assert found.columns == {"who": [" S1 "], "word": [None]}


def test_a_large_sheet_keeps_its_order_and_lines(tmp_path: Path) -> None:
    lines = [f"P{n}\tT{n}\tN{n}\tb{n % 7}" for n in range(100_000)]
    lines[77_776] = "P5\tother\t\t"
    (tmp_path / "p.tsv").write_text("pair_id\texperiment\tcontrol\tbatch\n" + "\n".join(lines))
    (error,) = errors('pairs_file = "p.tsv"', tmp_path)
    assert (error.place.line, error.hint) == (77_778, "first at p.tsv:7")
