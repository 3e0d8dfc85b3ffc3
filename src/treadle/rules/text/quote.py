"""How a value is written so that the shell reads exactly that value, by the place it stands in."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import assert_never

from msgspec import Struct


class Mode(StrEnum):
    """What the shell does with the text around a value, and so how the value has to be written."""

    WORD = "word"  # outside of quotes
    DOUBLE = "double"  # inside "..."
    SINGLE = "single"  # inside '...'
    ANSI = "ansi"  # inside $'...'
    PLAIN = "plain"  # nothing can be escaped soundly: only plain characters may stand here
    NUMBER = "number"  # arithmetic, where a name would be looked up and `a[$(cmd)]` would run
    COMMENT = "comment"
    REFUSED = "refused"  # no value can stand here


class Spot(Struct, frozen=True):
    """The place of one value in command text. `where` says it in words.

    `quoted`: an unknown `{word}` here is the shell's. `live`: `${NAME}` is expanded here. `start`: nothing
    of the shell word stands before the value. `command`: a reserved word or an assignment would be one
    here. `brace`: a brace expansion is open. `after_name`: `$name` stands directly before and would swallow
    the value. `redirect`: `<` or `>` follows directly, and a number would be a file descriptor. `test`:
    inside [[ ]], where it could be an operator or be evaluated. `ticks`: inside backticks, which take one
    layer of backslashes away. `delimiter`: the value could make this line the end of the here-document of
    that name.
    """

    mode: Mode
    where: str = ""
    quoted: bool = False
    live: bool = True
    start: bool = False
    command: bool = False
    brace: bool = False
    after_name: bool = False
    redirect: bool = False
    test: bool = False
    ticks: bool = False
    delimiter: str = ""


class UnfitError(Exception):
    """A hole cannot be filled: `code`, what is wrong and a way out, for a diagnostic.

    The message goes on after the placeholder that it is about: `{sample} has no value`.
    """

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(message)


Quote = Callable[[str], str]

_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_SAFE_PATH = re.compile(r"[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*")
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_IN_DOUBLE = re.compile(r'[\\"$`]')
_IN_TICKS = re.compile(r"[\\$`]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.ASCII)
# POSIX 2.4 and the reserved words that bash adds.
_RESERVED = frozenset({
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "time", "until", "while",
})  # fmt: skip


def unchanged(spot: Spot, path: bool) -> Callable[[str], object]:
    """A fast test that is true of ordinary values, which `quoter` would give back as they are."""
    special = spot.command or spot.brace or spot.after_name or spot.redirect or spot.test or spot.delimiter
    if special or spot.mode in (Mode.NUMBER, Mode.REFUSED):
        return lambda _: None
    return (_SAFE_PATH if path and spot.start else _SAFE).fullmatch


def quoter(spot: Spot, path: bool) -> Quote:
    """The function that writes a value for `spot`; a `path` that begins with a dash becomes `./-x`.

    It raises UnfitError where the value cannot be written soundly; so does this where none can be.
    """
    write = _writer(spot)
    guard = path and spot.start

    def quote(value: str) -> str:
        if _CONTROL.search(value):
            raise UnfitError(
                "control-character",
                f"is {value!r}, which holds a control character or is not text",
                "rename the file or mend the sheet that the value comes from",
            )
        text = write(f"./{value}" if guard and value.startswith("-") else value)
        return _IN_TICKS.sub(r"\\\g<0>", text) if spot.ticks else text

    return quote


def _writer(spot: Spot) -> Quote:
    match spot.mode:
        case Mode.WORD:
            return lambda value: _word(value, spot)
        case Mode.DOUBLE:
            lead = '""' if spot.after_name else ""
            return lambda value: lead + _IN_DOUBLE.sub(r"\\\g<0>", value)
        case Mode.SINGLE:
            return lambda value: value.replace("'", "'\\''")
        case Mode.ANSI:
            return lambda value: value.replace("\\", "\\\\").replace("'", "'\\'$'")
        case Mode.PLAIN:
            return lambda value: _plain(value, spot)
        case Mode.NUMBER:
            return lambda value: _number(value, spot)
        case Mode.COMMENT:
            return lambda value: value
        case Mode.REFUSED:
            raise _refused(spot)
        case _:
            assert_never(spot.mode)


def _word(value: str, spot: Spot) -> str:
    if spot.test and re.search(r"\[.*[$`]", value):
        # [[ x -eq VALUE ]] evaluates VALUE as arithmetic, and with it the $(...) in an index.
        raise _cannot(value, "in [[ ]]: bash could run what is in it")
    exposed = (
        spot.redirect
        or spot.after_name
        or not _SAFE.fullmatch(value)
        or (spot.test and not re.match(r"[A-Za-z0-9_./]", value))
        or (spot.brace and ("," in value or ".." in value))
        or (spot.command and (value in _RESERVED or _ASSIGNMENT.match(value)))
    )
    return "'" + value.replace("'", "'\\''") + "'" if exposed else value


def _plain(value: str, spot: Spot) -> str:
    if not _PLAIN.fullmatch(value) and (value or not spot.quoted):
        hint = "export it in the line before and read the variable here"
        if spot.live:
            hint = "assign it in the line before (name={...}) and write ${name} here"
        raise _cannot(value, f"{spot.where}: only letters, digits and _@%+=:,./- can", hint)
    if spot.delimiter and value in spot.delimiter:
        raise _cannot(
            value, "here: it could end the here-document", f"choose another word than {spot.delimiter}"
        )
    if spot.after_name and re.match(r"\w", value):
        raise _swallowed(value)
    return value


def _number(value: str, spot: Spot) -> str:
    if spot.after_name:
        raise _swallowed(value)
    if not _NUMBER.fullmatch(value):
        raise _cannot(value, f"{spot.where}: it is not a whole number")
    return value


def _cannot(value: str, where: str, hint: str = "") -> UnfitError:
    return UnfitError("cannot-quote", f"is {value!r}, which cannot stand {where}", hint)


def _swallowed(value: str) -> UnfitError:
    hint = "write ${name} instead of $name"
    return _cannot(value, "here: it would become part of the $name before it", hint)


def _refused(spot: Spot) -> UnfitError:
    hint = ""
    if "$" in spot.where or "backslash" in spot.where:
        hint = "for the text itself write {{name}}; for a backslash before a value, two backslashes"
    return UnfitError("cannot-quote", f"cannot stand {spot.where}", hint)


def secret(variable: str, spot: Spot) -> str:
    """The text that reads `variable` from the environment at `spot`; raises UnfitError where none does."""
    if spot.mode is Mode.REFUSED:
        raise _refused(spot)
    if not spot.live and spot.mode is not Mode.COMMENT:
        raise UnfitError(
            "secret-in-quotes",
            f"is sensitive, so it is read from a variable, which is not expanded {spot.where}",
            'put it in "..." or outside of quotes',
        )
    return f'"${{{variable}}}"' if spot.mode is Mode.WORD else f"${{{variable}}}"


def token(text: str, spot: Spot) -> str:
    """A value of plain characters that only an attempt knows (`text` is its token), at `spot`."""
    if spot.mode is Mode.REFUSED:
        raise _refused(spot)
    if spot.mode is Mode.WORD and (spot.redirect or spot.after_name):
        return f'"{text}"'
    if not spot.after_name:
        return text
    if spot.mode is not Mode.DOUBLE:
        raise _swallowed("a number")
    return f'""{text}'


def joiner_fits(text: str, spot: Spot) -> bool:
    """Whether the author's text of `sep=` or `each=` leaves the place as it is (ends no quotes or word)."""
    special = {
        Mode.WORD: "'\"\\$`;&|<>()#{}\n",
        Mode.DOUBLE: '"$`',
        Mode.SINGLE: "'",
        Mode.ANSI: "'\\",
        Mode.PLAIN: "'\"\\$`}\n",
        Mode.COMMENT: "\n",
    }.get(spot.mode)
    if special is None or any(one in text for one in special):
        return False
    if spot.ticks and any(one in text for one in "\\$`"):
        return False
    return not (spot.mode is Mode.DOUBLE and re.search(r"\\(?:\\|\Z)", text))
