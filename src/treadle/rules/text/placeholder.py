"""Where `{...}` stands in a text, and which of it has the form of a placeholder; nothing is looked up."""

from __future__ import annotations

import re

from msgspec import Struct

from treadle.rules.schema import Value

# Runs of braces around a text without braces; `_FORM` then says whether that text is ours.
_BRACES = re.compile(r"(\{+)([A-Za-z_][^{}]*)(\}+)")
_FORM = re.compile(
    r"""(?P<root>[A-Za-z_]\w*)
        (?:\.(?P<attr>[\w-]+(?:\.[\w-]+)*))?
        (?:\[(?P<index>[0-9]{1,9})\])?
        (?::(?P<option>sep|each)=(?P<text>.*))?""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_STEP = re.compile(r"step\.(?P<name>[^\s{}\[\]:\"'\\]+)")  # names of steps may hold more: `{step.data/raw}`
_ODD = re.compile(r"(?P<root>[A-Za-z_]\w*)[.\[:!]", re.ASCII)


class Mark(Struct, frozen=True):
    """One `{...}` that has the form of a placeholder.

    `{root.attr[index]:option=text}`, of which only `root` is always there. `braces` is how many stand
    on each side: one makes a placeholder, two a literal one, three a value in braces. `odd`: it begins
    like a placeholder but does not go on like one (`{input[-1]}`).
    """

    source: str
    root: str
    attr: str = ""
    index: int | None = None
    option: str = ""
    text: str = ""
    braces: int = 1
    odd: bool = False

    @property
    def bare(self) -> bool:
        """Nothing but a name stands inside."""
        return not (self.attr or self.option or self.odd or self.index is not None)

    @property
    def literal(self) -> str:
        """What an even number of braces stands for: half of them, and the name."""
        half = self.braces // 2
        return "{" * half + self.source[self.braces : -self.braces] + "}" * half


def scan(text: str) -> list[str | Mark]:
    """Cut `text` into plain pieces and marks; joined again (a mark by its `source`) they are the text.

    `${name}` is the shell's and stays plain text.
    """
    pieces: list[str | Mark] = []
    done = 0
    for found in _BRACES.finditer(text):
        left, body, right = found.groups()
        start = found.start()
        if len(left) == 1 and start and text[start - 1] == "$":
            continue
        count = min(len(left), len(right))
        mark = _mark(body, count)
        if mark is None:
            continue
        start = found.start(2) - count
        if start > done:
            pieces.append(text[done:start])
        pieces.append(mark)
        done = found.end(2) + count
    if done < len(text):
        pieces.append(text[done:])
    return pieces


def _mark(body: str, braces: int) -> Mark | None:
    source = "{" * braces + body + "}" * braces
    form = _FORM.fullmatch(body)
    if form is None:
        if step := _STEP.fullmatch(body):
            return Mark(source, "step", step["name"], braces=braces)
        odd = _ODD.match(body)
        return Mark(source, odd["root"], braces=braces, odd=True) if odd else None
    index = form["index"]
    return Mark(
        source,
        form["root"],
        form["attr"] or "",
        None if index is None else int(index),
        form["option"] or "",
        form["text"] or "",
        braces,
    )


def spelled(value: Value, joiner: str = " ") -> str:
    """A value of config or params as text: `true` and `false`, floats as written, arrays joined."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return joiner.join(spelled(one) for one in value)
    return str(value)


def one_slip_away(word: str, known: str) -> bool:
    """Whether one typing error makes `word` of `known`: a letter too many, missing, wrong or swapped.

    Words under four letters are too much like each other to tell, and count as different.
    """
    if word == known or min(len(word), len(known)) < 4 or abs(len(word) - len(known)) > 1:
        return False
    short, long = sorted((word, known), key=len)
    at = next((n for n, (a, b) in enumerate(zip(short, long)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    rest, other = short[at:], long[at:]
    return rest[1:] == other[1:] or (rest[:2] == other[:2][::-1] and rest[2:] == other[2:])
