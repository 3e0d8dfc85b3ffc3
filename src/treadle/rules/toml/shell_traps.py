"""Traps in command text that are seen while reading: escapes of TOML, failures that a pipe hides."""

from __future__ import annotations

import re

from treadle.base.place import Place
from treadle.plan.task import Shell
from treadle.rules.toml.section import Section

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ERREXIT = re.compile(r"(?:^|[\s;&|({])set\s(?:[^\n;|&]{0,99}\s)?(?:-[A-Za-z]*e|-o\s+errexit)")
_PIPEFAIL = re.compile(r"(?:^|[\s;&|({])set\s[^\n;|&]{0,99}o\s+pipefail")
_SET = re.compile(r"set\s+[-+]")
# Everything in which `|`, `;` and line ends mean nothing; then the signs that do mean something.
_TOKEN = re.compile(
    r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<![^\s;|&(])\#[^\n]*|\|\||&&|;;|\|&?|;|\n|[^\\'\"\#|&;\n]+|.",
    re.DOTALL,
)
_HERE_DOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z0-9_.-]+))")

_HIDDEN = {
    "pipe": "this pipe hides the failure of all its commands but the last",
    "several": "of these commands only the failure of the last one counts",
}


def say_escape(section: Section, path: tuple[str | int, ...]) -> None:
    """Warn of the first TAB, newline or other control character that an escape made in a text."""
    section = section.home(*path)
    spot = section.spot.at(*path)
    source = section.findings.source
    raw = source[spot.start : spot.end]
    if not raw.startswith('"'):
        return
    for escape in _ESCAPE.finditer(raw):
        if _makes_control(escape):
            here = section.place(*path)
            line = here.line + source.count("\n", spot.start, spot.start + escape.start())
            section.findings.warn(
                "escape-in-shell",
                f"the escape {escape[0]} becomes a control character before the shell sees the text",
                Place(here.file, line, here.table, here.key),
                hint="write the text in '''...''', where a backslash stands for itself",
            )
            return


def _makes_control(escape: re.Match[str]) -> bool:
    if escape[4]:
        return escape[4] in "btnfre"
    code = int(escape[1] or escape[2] or escape[3], 16)
    return code < 32 or 127 <= code < 160


def warn_hidden(section: Section, text: str, shell: Shell, key: str) -> None:
    """Warn of a command text, that of `key`, in which a failure may pass unseen."""
    if not shell.strict and text and (why := hidden_failure(text, shell.prelude)):
        hint = "set strict_shell = true in [workflow], or begin the text with: set -euo pipefail"
        section.warn("unguarded-pipe", _HIDDEN[why], key, hint=hint)


def hidden_failure(text: str, prelude: str) -> str:
    """What in a command text lets a failure pass unseen: `pipe`, `several`, or an empty string.

    A pipe fails only as its last command does, unless pipefail is set; of several commands only the last
    one counts, unless errexit is set. Text in quotes, comments and here-documents does not count.
    """
    if not any(sign in text for sign in "|;\n"):
        return ""
    before = f"{prelude}\n{text}"
    pipefail, errexit = _PIPEFAIL.search(before), _ERREXIT.search(before)
    if pipefail and errexit:
        return ""
    pipes, commands = _shape(without_here_docs(text))
    if pipes and not pipefail:
        return "pipe"
    return "several" if commands > 1 and not errexit else ""


def _shape(text: str) -> tuple[bool, int]:
    """Whether a pipe stands in the text, and how many commands a `;` or a line end divides it into.

    `set -...` alone is no command here. A line that ends in `&&`, `||` or a pipe goes on.
    """
    pipes, commands, begun, goes_on = False, 0, "", False
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in (";", ";;") or (token == "\n" and not goes_on):
            commands += _counts(begun)
            begun = ""
        elif token in ("&&", "||", "|", "|&"):
            # `>|` overwrites; `a|b)` in a case is rare, and a warning more does no harm
            pipes = pipes or (token[0] == "|" and token != "||" and not begun.endswith(">"))
            begun += token
            goes_on = True
        elif token != "\n" and token[0] != "#" and not token.isspace() and token != "\\\n":
            begun += token
            goes_on = False
    return pipes, commands + _counts(begun)


def _counts(begun: str) -> bool:
    return bool(begun.strip()) and not _SET.match(begun.strip())


def without_here_docs(text: str) -> str:
    """The text without the bodies of its here-documents."""
    if "<<" not in text:
        return text
    kept: list[str] = []
    waiting: list[tuple[str, bool]] = []
    for line in text.split("\n"):
        if waiting:
            end, tabs = waiting[0]
            if (line.lstrip("\t") if tabs else line) == end:
                waiting.pop(0)
            continue
        kept.append(line)
        waiting = [
            (found[2] or found[3] or found[4], found[1] == "-")
            for found in _HERE_DOC.finditer(line.replace("<<<", "   "))
        ]
    return "\n".join(kept)
