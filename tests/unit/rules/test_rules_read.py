"""Reading a workflow file as a whole: what it gives, what cannot be read, everything wrong at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.place import Place, Severity
from treadle.plan.task import Shell
from treadle.rules.file.read import ReadOptions, Workflow, read, read_text

HEAD = '[workflow]\nname = "x"\n'
RULE = '[[rules]]\nname = "a"\noutput = ["o"]\nshell = "make {output}"\n'


def codes(text: str, **options: object) -> list[str]:
    with pytest.raises(WorkflowError) as caught:
        read_text(text, options=ReadOptions(**options))  # type: ignore[arg-type]
    return [one.code for one in caught.value.diagnostics]


def warned(workflow: Workflow) -> list[str]:
    return [one.code for one in workflow.warnings]


def test_a_small_workflow_is_read(tmp_path: Path) -> None:
    file = tmp_path / "main.oxoflow"
    file.write_text(HEAD + RULE)
    workflow = read(str(file))
    assert (workflow.name, workflow.file, workflow.folder) == ("x", str(file), str(tmp_path))
    assert [(rule.name, rule.shell, rule.outputs[0].text) for rule in workflow.rules] == [
        ("a", "make {output}", "o")
    ]
    assert workflow.rules[0].place == Place(str(file), 3, "rules.a")
    assert workflow.rules[0].at("shell") == Place(str(file), 6, "rules.a", "shell")


def test_the_folder_is_absolute_whatever_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "f.oxoflow").write_text(HEAD + RULE)
    monkeypatch.chdir(tmp_path)
    workflow = read("flows/f.oxoflow")
    assert workflow.file == "flows/f.oxoflow"
    assert workflow.folder == str(tmp_path / "flows")


@pytest.mark.parametrize("lead", [b"\xef\xbb\xbf", b""])
def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path, lead: bytes) -> None:
    file = tmp_path / "f.oxoflow"
    file.write_bytes(lead + (HEAD + RULE).replace("\n", "\r\n").encode())
    workflow = read(str(file))
    assert workflow.rules[0].shell == "make {output}"
    assert workflow.rules[0].at("shell").line == 6


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "main.oxoflow").write_text("")
    with pytest.raises(WorkflowError, match="there is no file") as caught:
        read(str(tmp_path / "mian.oxoflow"))
    assert caught.value.diagnostics[0].hint == "did you mean 'main.oxoflow'?"
    assert caught.value.exit_code == 2


def test_a_folder_is_no_workflow_file(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="is a folder"):
        read(str(tmp_path))


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000, "a\udcff"])
def test_a_file_name_that_cannot_be_is_a_workflow_error(name: str) -> None:
    with pytest.raises(WorkflowError):
        read(name)


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"a = 1\nb = '\xff'\n", "not-utf8", 2),
        (b"a = 1\n\nb = 'x\0y'\n", "nul-character", 3),
        ("a = 1".encode("utf-16"), "not-utf8", 0),
        (b"\x00\x01\x02", "nul-character", 1),
    ],
)
def test_bytes_that_are_no_text_are_told_with_their_line(
    tmp_path: Path, data: bytes, code: str, line: int
) -> None:
    file = tmp_path / "f.oxoflow"
    file.write_bytes(data)
    with pytest.raises(WorkflowError) as caught:
        read(str(file))
    assert [(one.code, one.place.line) for one in caught.value.diagnostics] == [(code, line)]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("[workflow]\nname = x", "toml-syntax", 2),
        ('a = "1', "toml-syntax", 1),
        ("\n[workflow\n", "toml-syntax", 2),
        ("a = 1\na = 2", "duplicate-key", 2),
        ("[a]\n[a]", "duplicate-table", 2),
        ('x = 1\ny = "a\\.b"', "bad-escape", 2),
        ("x = [1, 2", "toml-syntax", 1),
        ("x = " + "9" * 5000, "toml-syntax", 0),
    ],
)
def test_an_error_of_syntax_stops_at_the_first_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(WorkflowError) as caught:
        read_text(text)
    assert [(one.code, one.place.line) for one in caught.value.diagnostics] == [(code, line)]


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "x = " + "[" * 300 + "]" * 300,
        "x = " + "{a=" * 5000,
        ".".join("a" * 2000) + " = 1",
    ],
)
def test_deep_nesting_never_ends_in_a_recursion_error(text: str) -> None:
    assert codes(text)


def test_all_errors_of_a_file_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = (
        '[workflow]\nnmae = "x"\n[[rules]]\nname = "a"\ninputs = ["i"]\noutput = ["o"]\nthreads = "8"\n'
        'shell = "x"\n[rules.resources]\nmemory = "lots"\n[[rules]]\nname = "a"\n'
        'depends_on = ["b"]\nshell = "x"\n'
    )
    with pytest.raises(WorkflowError) as caught:
        read_text(text, "main.oxoflow")
    assert [(one.code, one.place.line, one.place.key) for one in caught.value.diagnostics] == [
        ("missing-key", 1, ""),
        ("unknown-key", 2, "nmae"),
        ("unknown-key", 5, "inputs"),
        ("wrong-type", 7, "threads"),
        ("bad-measure", 10, "resources.memory"),
        ("duplicate-rule", 12, "name"),
        ("unknown-rule", 13, "depends_on"),
    ]
    assert caught.value.diagnostics[1].hint == "did you mean 'name'?"
    assert caught.value.diagnostics[2].hint == "did you mean 'input'?"
    assert caught.value.diagnostics[3].hint == "write it without quotes: 8"
    assert caught.value.diagnostics[5].message == "two rules are named 'a'"


def test_a_workflow_without_rules_says_so() -> None:
    assert codes(HEAD) == ["no-rules"]
    assert codes("rules = []\n" + HEAD) == ["no-rules"]


def test_an_unknown_table_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(WorkflowError) as caught:
        read_text(HEAD + RULE + "[sample_group]\nx = 1\n")
    assert caught.value.diagnostics[0].code == "unknown-table"
    assert caught.value.diagnostics[0].hint == "did you mean 'sample_groups'?"


def test_a_key_before_the_first_table_is_told_where_it_belongs() -> None:
    with pytest.raises(WorkflowError) as caught:
        read_text('pairs_file = "p.tsv"\n' + HEAD + RULE)
    (error,) = caught.value.diagnostics
    assert (error.code, error.place.line, error.hint) == ("unknown-key", 1, "it belongs below [workflow]")


def test_a_single_table_where_an_array_is_wanted_says_so() -> None:
    assert codes(HEAD + '[rules]\nname = "a"\n') == ["wrong-type"]
    assert codes("[[workflow]]\nname = 'x'\n" + RULE)[0] == "wrong-type"


@pytest.mark.parametrize("table", ["[cluster]\nbackend = 'slurm'", "[plugins]\nx = 1", "[ai]\nmodel = 'm'"])
def test_tables_without_effect_are_warnings_and_errors_when_strict(table: str) -> None:
    text = HEAD + RULE + table
    assert warned(read_text(text)) == ["no-effect"]
    assert codes(text, strict=True) == ["no-effect"]
    with pytest.raises(WorkflowError) as caught:
        read_text(text, options=ReadOptions(strict=True))
    assert caught.value.diagnostics[0].severity is Severity.ERROR


def test_what_is_for_the_report_is_kept_without_a_word() -> None:
    workflow = read_text(
        '[workflow]\nname = "x"\nauthor = "me"\ngenome_build = "hg38"\nmin_version = "9.9"\n'
        '[report]\ntemplate = "r"\n[citation]\ndoi = "d"\n[[reference_db]]\nname = "dbsnp"\n' + RULE
    )
    assert workflow.warnings == ()
    assert workflow.about == {
        "author": "me",
        "genome_build": "hg38",
        "min_version": "9.9",
        "report": {"template": "r"},
        "citation": {"doi": "d"},
        "reference_db": [{"name": "dbsnp"}],
    }


def test_the_head_gives_the_shell_of_every_rule() -> None:
    workflow = read_text(
        '[workflow]\nname = "x"\nstrict_shell = true\nshell_executable = "zsh"\n'
        '[defaults]\nshell_prelude = "umask 002"\ndigest_limit = "none"\n' + RULE
    )
    policy = workflow.rules[0].policy
    assert policy.shell == Shell("zsh", True, "umask 002")
    assert policy.digest_limit is None


def test_two_shells_that_differ_are_refused() -> None:
    text = '[workflow]\nname = "x"\nshell_executable = "sh"\n[defaults]\nshell_executable = "bash"\n'
    assert codes(text + RULE) == ["said-twice"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('format_version = "2.0"', "format-version"),
        ("format_version = 1.0", "wrong-type"),
        ('profile_mode = "merge"', "bad-value"),
        ('sample_pattern = "raw/{smaple}.fq"', "bad-value"),
        ('pairs_pattern = "a/{pair_id}/{experiment}.bam"', "bad-value"),
        ('interpreter_map = { m = "octave" }', "bad-name"),
        ("interpreter_map = 3", "wrong-type"),
        ('pairs_file = ""', "empty"),
        ("strict_shell = 1", "wrong-type"),
        ("version = 1", "wrong-type"),
        ("name2 = 1", "unknown-key"),
    ],
)
def test_a_wrong_line_in_the_head_is_an_error(line: str, code: str) -> None:
    assert codes(f'[workflow]\nname = "x"\n{line}\n' + RULE) == [code]


def test_the_format_version_that_is_ours_is_accepted() -> None:
    workflow = read_text(
        '[workflow]\nname = "x"\nformat_version = "1.0"\nprofile_mode = "override"\non_end = "mail"\n'
        'sample_pattern = "raw/{sample}_R1.fq"\ninterpreter_map = { ".m" = "octave" }\n' + RULE
    )
    assert workflow.on_end == "mail"
    assert workflow.sample_pattern == "raw/{sample}_R1.fq"
    assert workflow.interpreters == {".m": "octave"}
    assert workflow.places["workflow.sample_pattern"].line == 6


def test_constraints_must_be_regular_expressions() -> None:
    assert codes(HEAD + '[wildcard_constraints]\nsample = "["\n' + RULE) == ["bad-constraint"]
    assert codes(HEAD + '[wildcard_constraints]\nsample = "a{99999999999}"\n' + RULE) == ["bad-constraint"]
    assert codes(HEAD + '[wildcard_constraints]\n"a b" = "x"\n' + RULE) == ["bad-name"]
    workflow = read_text(HEAD + "[wildcard_constraints]\nsample = '[A-Z]\\d+'\n" + RULE)
    assert workflow.constraints == {"sample": r"[A-Z]\d+"}
    assert workflow.places["wildcard_constraints.sample"].line == 4


def test_a_huge_name_is_an_error_that_does_not_print_it() -> None:
    huge = "b" * 1_000_000
    with pytest.raises(WorkflowError) as caught:
        read_text(f'{HEAD}{huge} = 1\n[[rules]]\nname = "{huge}"\nshell = "x"\ndepends_on = ["{huge}"]\n')
    assert {one.code for one in caught.value.diagnostics} >= {"unknown-key", "too-long"}
    assert len(str(caught.value)) < 3000


def test_the_example_of_the_quick_start_is_read_without_a_warning() -> None:
    file = os.path.join(os.path.dirname(__file__), "../../../examples/quickstart/main.oxoflow")
    assert read(file).warnings == ()
