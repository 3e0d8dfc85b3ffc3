"""Sheets: TSV, CSV and JSON files as columns of text, with the line of each row."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.base.files import read_regular
from treadle.base.place import Place
from treadle.rules.toml.section import Findings, clip

_BOOKS = frozenset({".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"})
# One text, several (a JSON list), or None where the row has no value.
Cell = str | tuple[str, ...] | None


class Sheet(Struct, frozen=True):
    """A table read from `file` (as typed): each column with a cell for every row.

    `lines` gives the line of each row; in `json`, which has none, its number in the list.
    """

    file: str
    columns: Mapping[str, Sequence[Cell]]
    lines: Sequence[int]
    json: bool = False

    def place(self, row: int, column: str = "") -> Place:
        """Where a row stands."""
        if self.json:
            return Place(self.file, 0, "", f"[{row}].{column}" if column else f"[{row}]")
        return Place(self.file, self.lines[row], "", column)


def read_sheet(path: str, folder: str, findings: Findings, named: Place) -> Sheet | None:
    """The sheet at `path`, relative to `folder`; `named` is the place that names it.

    `.tsv` and `.tab` are divided by tabs, `.csv` by commas, `.json` is a list of objects; anything else
    is looked at. A line that begins with `#` is a comment. None, with findings, where it cannot be read.
    """
    text = _text(path, folder, findings, named)
    if text is None:
        return None
    kind = _kind(path, text)
    if kind == "json":
        return _json_sheet(path, text, findings)
    return _lined_sheet(path, text, "\t" if kind == "tsv" else ",", findings)


def _text(path: str, folder: str, findings: Findings, named: Place) -> str | None:
    try:
        data = read_regular(os.path.join(folder, path))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        hint = f"sheets are looked for in the workflow's folder, {folder}"
        findings.error("no-sheet", f"the sheet '{clip(path)}' cannot be read: {why}", named, hint)
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if os.path.splitext(path)[1].lower() in _BOOKS:
            message = f"the sheet '{clip(path)}' is a file of a spreadsheet program, not text"
            findings.error("not-text", message, named, "save it as TSV or CSV there, and name that file")
            return None
        line = data.count(b"\n", 0, error.start) + 1
        findings.error("not-utf8", "this sheet is not UTF-8 text", Place(path, line), "save it as UTF-8")
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _kind(path: str, text: str) -> str:
    ending = os.path.splitext(path)[1].lower()
    if ending in (".tsv", ".tab"):
        return "tsv"
    if ending in (".csv", ".json"):
        return ending[1:]
    if text.lstrip().startswith(("[", "{")):
        return "json"
    header = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    return "tsv" if "\t" in header else "csv"


def _lined_sheet(path: str, text: str, divider: str, findings: Findings) -> Sheet | None:
    read = _rows(path, text, divider, findings)
    if read is None:
        return None
    rows, lines = read
    if not rows:
        hint = "a line that begins with # is a comment" if "#" in text else ""
        findings.error(
            "empty-sheet", "this sheet has no line with the names of its columns", Place(path), hint
        )
        return None
    header, first = [cell.strip() for cell in rows.pop(0)], lines.pop(0)
    while not header[-1]:
        header.pop()
    if not _columns_ok(header, Place(path, first), findings):
        return None
    _make_even(path, rows, lines, len(header), findings)
    cells = zip(*rows) if rows else [()] * len(header)
    return Sheet(
        path, {name: [cell or None for cell in column] for name, column in zip(header, cells)}, lines
    )


def _rows(path: str, text: str, divider: str, findings: Findings) -> tuple[list[list[str]], list[int]] | None:
    """All rows that hold something, and their lines (of a quoted cell with line ends: the last). Blanks
    around cells are left out, those within quotes are not."""
    import csv

    source = [f"{line}\n" if line[:1] != "#" else "\n" for line in text.split("\n")]
    reader = csv.reader(source, delimiter=divider, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    begin = 0
    try:
        for row in reader:
            if "".join(row).strip():
                bare = [cell.strip() for cell in row]
                rows.append(bare if bare == row else _bare(row, "".join(source[begin : reader.line_num])))
                lines.append(reader.line_num)
            begin = reader.line_num
    except csv.Error as error:
        message = f"this row cannot be read: {error}"
        findings.error("bad-sheet", message, Place(path, reader.line_num), "a quote may not be closed")
        return None
    return rows, lines


def _bare(row: list[str], text: str) -> list[str]:
    """The row, read from `text`, without blanks around the cells that stand there without quotes: csv does
    not tell which these are."""
    cells: list[str] = []
    at = 0
    for cell in row:
        quoted = text[at : at + 1] == '"'
        at += len(cell) + (cell.count('"') + 2 if quoted else 0) + 1  # a quote in quotes is doubled
        cells.append(cell if quoted else cell.strip())
    return cells


def _make_even(path: str, rows: list[list[str]], lines: list[int], width: int, findings: Findings) -> None:
    """Bring all rows to one width; those that do not have it are reported, but for empty cells at the end."""
    for at, row in enumerate(rows):
        if len(row) != width:
            if len(row) < width or "".join(row[width:]).strip():
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                message = f"{cells} in this row, {width} in the header"
                hint = "a cell without a value still needs its divider"
                findings.error("ragged-sheet", message, Place(path, lines[at]), hint)
            rows[at] = (row + [""] * width)[:width]


def _columns_ok(columns: Sequence[str], place: Place, findings: Findings) -> bool:
    twice = [column for column, count in Counter(columns).items() if column and count > 1]
    nameless = [str(at + 1) for at, column in enumerate(columns) if not column]
    for column in twice:
        findings.error("bad-sheet", f"two columns are named '{clip(column)}'", place)
    if nameless:
        what = "has no name" if len(nameless) == 1 else "have no names"
        findings.error("bad-sheet", f"column {clip(', '.join(nameless))} {what}", place)
    return not twice and not nameless


def _json_sheet(path: str, text: str, findings: Findings) -> Sheet | None:
    listed = _json(path, text, findings)
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        findings.error("bad-sheet", "a JSON sheet is a list of objects, one for each row", Place(path))
        return None
    records = [_flat(each) for each in listed]
    for at, record in enumerate(records):
        for key, value in record.items():
            if value is not None and not isinstance(value, str | tuple):
                place = Place(path, 0, "", f"[{at}].{clip(key)}")
                findings.error("wrong-type", "a text, a number or a list of texts is wanted here", place)
                record[key] = None
    names = dict.fromkeys(key for record in records for key in record)
    columns = {name: [record.get(name) or None for record in records] for name in names}
    return Sheet(path, columns, range(len(records)), json=True)


def _json(path: str, text: str, findings: Findings) -> Any:
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return made

    def never(word: str) -> None:
        raise ValueError(f"{word} is not a value")

    try:
        return json.loads(text, object_pairs_hook=once, parse_float=str, parse_int=str, parse_constant=never)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        why = getattr(error, "msg", None) or str(error)
        findings.error("bad-sheet", f"this is not JSON: {why}", Place(path, line))
        return None


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the keys of its `metadata` beside its own; booleans as text, lists as tuples."""
    metadata = record.pop("metadata") if isinstance(record.get("metadata"), dict) else {}
    return {key: _cell(value) for key, value in {**metadata, **record}.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return value
