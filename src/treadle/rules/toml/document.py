"""A workflow file as TOML values, with the line of each; what cannot be read is told in plain words."""

from __future__ import annotations

import os
import re
from typing import Any

import tomli
from msgspec import Struct

from treadle.base.errors import WorkflowError
from treadle.base.files import read_regular
from treadle.base.names import did_you_mean
from treadle.base.place import Place
from treadle.rules.schema import Spelled
from treadle.rules.toml.lines import Spot, locate
from treadle.rules.toml.section import clip

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# What the parser says -> our code, our words (empty: the parser's), and the way out.
_SYNTAX = (
    (
        re.compile(r"Unescaped '\\'|Invalid hex value|Escaped character is not"),
        "bad-escape",
        "a backslash stands here that is no escape of TOML",
        "in \"...\" a backslash begins an escape: write it twice, or put the text in '...' or '''...'''",
    ),
    (
        re.compile("Cannot overwrite a value|Duplicate inline"),
        "duplicate-key",
        "this key is there already",
        "keep one of them; an array of tables is written [[rules]] each time",
    ),
    (
        re.compile("Cannot declare|Cannot mutate|Cannot redefine"),
        "duplicate-table",
        "this table is there already",
        "keep one of them; an array of tables is written [[rules]] each time",
    ),
    (re.compile("Invalid value"), "toml-syntax", "", 'a text stands in quotes: key = "text"'),
    (
        re.compile("Unterminated string|Illegal character"),
        "toml-syntax",
        "",
        "a quote may not be closed; a text over several lines stands in '''...'''",
    ),
    (re.compile("Unclosed"), "toml-syntax", "", "a bracket is not closed"),
    (
        re.compile("Expected '='"),
        "toml-syntax",
        "",
        "a line is key = value, or a [table]; a text over several lines stands in '''...'''",
    ),
)


class Document(Struct, frozen=True):
    """The text of a file, its values, and where each of them stands."""

    file: str
    text: str
    values: dict[str, Any]
    spots: Spot


def load(file: str, path: str = "") -> Document:
    """Read and parse the file that a person would call `file`; it stands at `path` (default: there).

    Raises WorkflowError.
    """
    return parse(decoded(content(file, path), file), file)


def content(file: str, path: str = "") -> bytes:
    """The bytes of the file at `file`, or of the one at `path` that is called so. Raises WorkflowError."""
    try:
        file.encode()
        return read_regular(path or file)
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None


def _unreadable(file: str, error: OSError | ValueError) -> WorkflowError:
    shown = clip(file, 200)
    if isinstance(error, UnicodeEncodeError):
        return WorkflowError(f"the path '{shown}' is not UTF-8 text", hint="rename it", code="not-utf8")
    if isinstance(error, FileNotFoundError):
        return WorkflowError(f"there is no file '{shown}'", hint=_files_beside(file), code="no-file")
    if isinstance(error, IsADirectoryError):
        hint = "name a file in it; workflow files end in .oxoflow"
        return WorkflowError(f"'{shown}' is a folder, not a workflow file", hint=hint, code="cannot-read")
    why = getattr(error, "strerror", None) or str(error)
    return WorkflowError(f"'{shown}' cannot be read: {why}", code="cannot-read")


def _files_beside(file: str) -> str:
    folder, name = os.path.split(file)
    try:
        found = sorted(other for other in os.listdir(folder or ".") if other.endswith(".oxoflow"))
    except (OSError, ValueError):
        return ""
    if guess := did_you_mean(name, found):
        return guess
    return f"workflow files there: {', '.join(map(clip, found[:5]))}" if found else ""


def decoded(data: bytes, file: str) -> str:
    """The text of a file, without the mark that some editors put first. Raises WorkflowError."""
    if data.startswith(_UTF16):
        hint = "save it as UTF-8"
        raise WorkflowError("this file is UTF-16 text", place=Place(file), hint=hint, code="not-utf8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the byte 0x{data[error.start]:02x} on this line is not UTF-8 text"
        place, hint = Place(file, line), "save the file as UTF-8"
        raise WorkflowError(message, place=place, hint=hint, code="not-utf8") from None


def parse(text: str, file: str) -> Document:
    """Parse the text of a workflow file. Raises WorkflowError at the first error of syntax."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        message = "a NUL character stands on this line: this is no text file, or a damaged one"
        raise WorkflowError(message, place=Place(file, line), code="nul-character")
    try:
        values = tomli.loads(text, parse_float=_float)
    except tomli.TOMLDecodeError as error:
        raise _syntax_error(error, text, file) from None
    except RecursionError:
        message, hint = "lists or tables are nested too deep in this file", "a few levels are the most"
        raise WorkflowError(message, place=Place(file), hint=hint, code="too-deep") from None
    except ValueError:  # more digits than Python reads
        message, hint = "a whole number in this file has thousands of digits", "64 bits are the most"
        raise WorkflowError(message, place=Place(file), hint=hint, code="toml-syntax") from None
    return Document(file, text, values, locate(text))


def _float(text: str) -> Spelled:
    return Spelled(text.replace("_", ""))  # `1_000.5` is spelling for TOML, not for a command


def _syntax_error(error: tomli.TOMLDecodeError, text: str, file: str) -> WorkflowError:
    said = next((rest for pattern, *rest in _SYNTAX if pattern.search(error.msg)), ["toml-syntax", "", ""])
    code, words, hint = said
    line = text[text.rfind("\n", 0, error.pos) + 1 :].partition("\n")[0].strip()
    shown = f": {clip(line, 80)}" if line else ""
    message = f"{words or clip(error.msg, 120)} (column {error.colno}){shown}"
    return WorkflowError(message, place=Place(file, error.lineno), hint=hint, code=code)
