"""`script`: a program file with arguments, started by the interpreter of its kind and never by a shell."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from treadle.base.place import Diagnostic, Place
from treadle.plan.paths import normal
from treadle.plan.tokens import FLOWDIR
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Rule
from treadle.rules.text.command import ArgvTemplate, Filling, Known
from treadle.rules.text.placeholder import Mark, scan

# What runs a file, by its ending. Documents are carried out in the work folder, which the paths of a rule are
# seen from (a notebook always is in its own folder); the copy of a notebook on disk stays as it is.
INTERPRETERS = {
    ".py": "python3",
    ".R": "Rscript",
    ".r": "Rscript",
    ".sh": "bash",
    ".bash": "bash",
    ".jl": "julia",
    ".pl": "perl",
    ".rb": "ruby",
    ".qmd": "quarto render --execute-dir .",
    ".Rmd": "Rscript -e 'rmarkdown::render(commandArgs(TRUE)[1], knit_root_dir = getwd())'",
    ".ipynb": "jupyter execute",
}


class Script(Struct, frozen=True):
    """A parsed `script`. `interpreter` is the rule's own (empty: by the ending of the file); `home` is the
    folder that the file is seen from (token form)."""

    template: ArgvTemplate
    interpreter: tuple[str, ...]
    by_ending: Mapping[str, str]
    place: Place
    home: str = FLOWDIR

    def argv(self, filling: Filling, problems: list[Diagnostic]) -> tuple[tuple[str, ...], str]:
        """The words of one task's script, the interpreter first, and the path of its file (token form)."""
        words = self.template.render(filling, problems)
        if not words:
            return (), ""
        if not words[0]:
            hint = "begin it with the path of the script"
            problem = Diagnostic(
                "no-script", "the text of 'script' begins with an empty word", self.place, hint
            )
            if problem not in problems:
                problems.append(problem)
            return (), ""
        file = located(words[0], self.home)
        before = self.interpreter or self._by_ending(words[0], problems)
        return (*before, file, *words[1:]), file

    def _by_ending(self, path: str, problems: list[Diagnostic]) -> tuple[str, ...]:
        ending = posixpath.splitext(path)[1]
        found = self.by_ending.get(ending)
        if found is not None or not ending:  # a file without an ending starts by itself
            return _words(found or "")
        hint = f'say interpreter = "..." in the rule, or give "{ending}" in [workflow.interpreter_map]'
        message = f"nothing is known to run a script that ends in '{ending}'"
        problem = Diagnostic("no-interpreter", message, self.place, hint)
        if problem not in problems:
            problems.append(problem)
        return ()


def located(path: str, home: str) -> str:
    """Where a script lies: absolute as the author wrote it, else seen from `home`."""
    return path if path.startswith("/") else f"{home}/{normal(path)}"


def read_script(
    rule: Rule, known: Known, paths: PathText, interpreters: Mapping[str, str], problems: list[Diagnostic]
) -> Script:
    """Parse the `script` of a rule; `interpreters` are those of `[workflow]`, by ending."""
    by_ending = INTERPRETERS | {"." + ending.removeprefix("."): text for ending, text in interpreters.items()}
    own = paths.fill_config(rule.interpreter, rule.at("interpreter")) or ""
    for text, key in ((own, "interpreter"), *((text, "script") for text in interpreters.values())):
        try:
            _words(text)
        except ValueError as error:
            problems.append(Diagnostic("bad-interpreter", f"the interpreter {text}: {error}", rule.at(key)))
            return Script(ArgvTemplate.parse("", known, rule.place, []), (), {}, rule.place)
    template = ArgvTemplate.parse(rule.script, known, rule.at("script"), problems)
    return Script(template, _words(own), by_ending, rule.at("script"), rule.pin or FLOWDIR)


@lru_cache(maxsize=64)
def _words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


def fixed_file(rule: Rule, script: Script) -> str:
    """The path of the script file as written where no placeholder stands in it, else an empty text."""
    first = rule.script.split(maxsplit=1)[0] if rule.script.strip() else ""
    if any(isinstance(piece, Mark) and piece.root != "config" for piece in scan(first)):
        return ""
    words = script.template.render(Filling(), [])
    return words[0] if words else ""
