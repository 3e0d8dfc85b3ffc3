"""Messy sheets and pairs: told what and where."""

from __future__ import annotations

import os

import pytest
from story_bad_input import Case, is_told, refused, rule


def sheet(name: str, content: str | bytes, *told: tuple[str, str]) -> Case:
    """A workflow over one sheet that is wrong."""
    text = f'[[tables]]\nname = "t"\nfile = "{name}"\n' + rule("a", 'output = ["{s}.txt"]\n')
    return Case(text, list(told), files=((name, content),))


SHEETS = {
    "a quote that is not closed": sheet(
        "s.csv", 's,t\n"a,b\nc,d\n', ("s.csv:4", "a quote may not be closed")
    ),
    "a quote in the middle": sheet("s.csv", 's,t\n"x"y,z\n', ("s.csv:2", "this row cannot be read")),
    "rows of other lengths": sheet(
        "s.csv", "s,t\na\nb,c,d\n", ("s.csv:2", "1 cell in this row"), ("s.csv:3", "3 cells in this row")
    ),
    "columns": sheet(
        "s.csv", "s,,s\na,b,c\n", ("s.csv:1", "two columns are named 's'"), ("s.csv:1", "column 2")
    ),
    "nothing in it": sheet("s.csv", "", ("s.csv", "no line with the names of its columns")),
    "not UTF-8": sheet("s.tsv", b"s\nM\xfcller\n", ("s.tsv:2", "not UTF-8")),
    "a control character": sheet(
        "s.tsv", "s\na\x07b\n", ("s.tsv:2", "'a\\x07b' of 's' holds a control character")
    ),
    "a NUL": sheet("s.tsv", "s\na\0b\n", ("s.tsv:2", "control character")),
    "broken JSON": sheet("s.json", '[{"s": 1},]', ("s.json:1", "this is not JSON")),
    "JSON of another shape": sheet("s.json", '{"s": 1}', ("s.json", "a list of objects")),
    "JSON cells": sheet("s.json", '[{"s": {"x": 1}}]', ("s.json", "a text, a number or a list of texts")),
    "a spreadsheet": sheet("s.xlsx", b"PK\x03\x04\xff\xfe\x80", ("main.oxoflow:6", "save it as TSV or CSV")),
    "not there": Case(
        '[[tables]]\nname = "t"\nfile = "no.tsv"\n' + rule("a", 'output = ["{s}.txt"]\n'),
        [("main.oxoflow:6 [tables.t.file]", "the sheet 'no.tsv' cannot be read")],
    ),
    "pairs": Case(
        '[[pairs]]\npair_id = "p"\n[[pairs]]\nexperiment = "c"\n[[pairs]]\npair_id = "q"\nexperiment = "c"\n'
        'tumor = "d"\nfoo = 1\n[[pairs]]\npair_id = "r"\nexperiment = "e"\n[[pairs]]\npair_id = "r"\n'
        'experiment = "f"\n' + rule("a", 'output = ["{pair_id}.txt"]\n'),
        [
            ("main.oxoflow:4 [pairs.p]", "no experiment"),
            ("main.oxoflow:6 [pairs[1]]", "no pair_id"),
            ("main.oxoflow:11 [pairs.q.tumor]", "mean the same"),
            ("main.oxoflow:12 [pairs.q.foo]", "not a field of a pair"),
            ("main.oxoflow:16 [pairs.r]", "given before with other content"),
        ],
    ),
}


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_that_cannot_be_read_are_told(folder, name):
    is_told(folder, SHEETS[name])


def test_a_sheet_that_is_a_pipe_is_not_waited_for(folder):
    folder.flow('[[tables]]\nname = "t"\nfile = "s.tsv"\n' + rule("a", 'output = ["{s}.txt"]\n'))
    os.mkfifo(folder / "s.tsv")
    (error,), _ = refused(folder)
    assert "it is a pipe or a device, not a file" in error["message"]
