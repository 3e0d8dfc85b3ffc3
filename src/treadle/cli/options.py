"""Options that several commands share, and how the words of a command line become a Request."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from treadle.api.pipe import Request, is_pipeline
from treadle.base.errors import OptionError
from treadle.base.names import nearest
from treadle.cli.habits import meant
from treadle.rules.schema import BACKENDS

_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_DECLARED = re.compile(r"--[A-Za-z_][A-Za-z0-9_-]*")
_OPTION = re.compile(r"-(?![0-9.]+\Z)")  # a negative number is a value
_OVERRIDE = re.compile(r"([^=]+)\.([a-z_]+)=(.*)", re.DOTALL)


class SubcommandParser(argparse.ArgumentParser):
    """An argparse parser whose errors are OptionErrors, with the nearest option as a hint.

    Unknown `--key value` options are kept: they may be config keys that the workflow declares.
    """

    def __init__(self, **keywords: Any) -> None:
        # Each add_argument makes a formatter, and one without a width imports shutil to ask for it (2 ms).
        super().__init__(**keywords, formatter_class=partial(argparse.HelpFormatter, width=80))

    def format_help(self) -> str:
        self.formatter_class = argparse.HelpFormatter  # as wide as the terminal
        return super().format_help()

    def error(self, message: str) -> Any:
        _, unknown, words = message.partition("unrecognized arguments: ")
        of_workflow = any(action.dest == "words" for action in self._actions)
        hint = meant(words.split()[0]) if unknown and of_workflow else ""
        raise OptionError(message, hint=hint or f"{self.prog} --help lists the options")

    def parse(self, args: Sequence[str]) -> argparse.Namespace:
        """Parse; unknown options become `declared` pairs, where the command takes a workflow."""
        known = self.known_options()
        words, literal = _at_dashes(list(args))
        ours, theirs = split_declared(words, known)
        found = self.parse_intermixed_args(ours)
        if literal:
            self._add_words(found, literal)
        if theirs and not hasattr(found, "words"):
            name = f"--{theirs[0][0].replace('_', '-')}"
            raise OptionError(f"unknown option {name}", hint=nearest_option(name, known))
        found.declared = [(name, "true" if value is None else value) for name, value in theirs]
        found.bare = [name for name, value in theirs if value is None]
        found.known = known
        found.typed = [word.partition("=")[0] for word in ours if word.startswith("--")]
        return found

    def _add_words(self, found: argparse.Namespace, literal: list[str]) -> None:
        """Words after `--` are no options (argparse forgets that when it parses intermixed)."""
        many = [action.dest for action in self._actions if not action.option_strings and action.nargs == "*"]
        if not many:
            self.error(f"unrecognized arguments: {' '.join(literal)}")
        setattr(found, many[0], [*getattr(found, many[0]), *literal])

    def known_options(self) -> list[str]:
        """All long options of this command."""
        return [text for action in self._actions for text in action.option_strings if text.startswith("--")]


def _at_dashes(args: list[str]) -> tuple[list[str], list[str]]:
    """The words before `--` and those after it."""
    at = args.index("--") if "--" in args else len(args)
    return args[:at], args[at + 1 :]


def subcommand_parser(name: str, what: str) -> SubcommandParser:
    """The parser of one subcommand, with what all commands have."""
    parser = SubcommandParser(
        prog=f"treadle {name}", description=what[0].upper() + what[1:] + ".", allow_abbrev=False
    )
    add_common(parser)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """What every command has."""
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def add_workflow(parser: argparse.ArgumentParser, *, targets: str = "TARGET") -> None:
    """Arguments of every command that looks at a workflow."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar=f"[FILE] [{targets}] [KEY=VALUE]",
        help="a workflow file first (else main.oxoflow, or the only *.oxoflow here), or a Python file with "
        "steps (pipeline.py, pipeline.py:NAME); then names of rules or steps, task ids or files; and config "
        "values, or parameters of the pipeline's function",
    )
    parser.add_argument(
        "--workdir",
        default="",
        metavar="FOLDER",
        help="work folder (default: that of a workflow file; of a pipeline the current one)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a config value, or a parameter of the pipeline's function",
    )
    parser.add_argument(
        "--prefix",
        default="",
        metavar="PLACE",
        help="where artifacts of steps stand, a folder or a URL (default: TREADLE_PREFIX, else "
        ".treadle/artifacts in the work folder)",
    )
    parser.add_argument(
        "--samples",
        action="append",
        default=[],
        metavar="LIST",
        help="work on some samples: names, !name, first:N, ready, @sheet, +@sheet",
    )
    parser.add_argument("--strict", action="store_true", help="take warnings about the file as errors")
    parser.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="NAME",
        help="how to run here: profiles/NAME.toml beside the workflow, else the user's or the site's; of "
        "several the last counts most",
    )
    parser.add_argument(
        "--backend",
        default="",
        metavar="NAME",
        help=f"where to run: {', '.join(BACKENDS)}, or one that a package adds (default: what the profile "
        "says, else local)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="RULE.KEY=VALUE",
        help="set one of the resources of a rule for this time (align.memory=64G; also with a pattern)",
    )


def add_decision(parser: argparse.ArgumentParser) -> None:
    """Arguments that change what will run: the same for plan and run."""
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="NAME",
        help="take the rules of an included file as targets, with all that they need",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="run the named targets (else everything) whatever the records say",
    )
    parser.add_argument(
        "--no-cutoff", action="store_true", help="run all that is downstream, even of unchanged outputs"
    )
    parser.add_argument(
        "--adopt", action="store_true", help="take over outputs that nobody here has recorded"
    )
    parser.add_argument(
        "--overwrite-cohort",
        action="store_true",
        help="let a gather over a selection of samples overwrite the output made over all of them",
    )


def add_lock(parser: argparse.ArgumentParser) -> None:
    """Arguments of every command that takes the lock."""
    parser.add_argument("--wait", action="store_true", help="wait while another run holds the folder")
    parser.add_argument(
        "--assume-dead", action="store_true", help="take attempts of a run on another host as dead"
    )


def request_of(args: argparse.Namespace) -> Request:
    """Sort the words of the command line into file, targets and config values."""
    words: list[str] = list(args.words)
    file = ""
    if words and (words[0].endswith(".oxoflow") or is_pipeline(words[0])):
        file = words.pop(0)
    _check_words(file, words)
    settings = [word for word in words if _SETTING.match(word)]
    pairs = [split_setting(text) for text in [*args.config, *settings]] + list(args.declared)
    return Request(
        file=file,
        workdir=args.workdir,
        config=tuple(pairs),
        declared=tuple((name, _hint("--" + name, args.known)) for name, _ in args.declared),
        samples=tuple(args.samples),
        targets=tuple(word for word in words if not _SETTING.match(word)),
        bare=tuple(args.bare),
        typed=tuple(args.typed),
        modules=tuple(getattr(args, "module", ())),
        force=getattr(args, "force", False),
        cutoff=not getattr(args, "no_cutoff", False),
        adopt=getattr(args, "adopt", False),
        overwrite_cohort=getattr(args, "overwrite_cohort", False),
        strict=args.strict,
        prefix=args.prefix,
        profiles=tuple(args.profile),
        backend=args.backend,
        settings=tuple(map(_override, args.set)),
    )


def _check_words(file: str, words: Sequence[str]) -> None:
    """Refuse words that can only be meant otherwise. Raises OptionError."""
    if "" in words:
        raise OptionError("an empty word names nothing", hint="is a variable of your shell empty?")
    for word in words:
        if word.endswith(".oxoflow") and os.path.isfile(word):
            hint = f"'{file}' is the one that is read" if file else "the workflow file comes first"
            raise OptionError(f"'{word}' stands where a target or KEY=VALUE is wanted", hint=hint)


def nearest_option(name: str, known: Sequence[str]) -> str:
    """`did you mean '--samples'?`, or nothing; the dashes, which all options share, do not count."""
    found = nearest(name[2:], [one[2:] for one in known])
    return f"did you mean '--{found}'?" if found else ""


def _hint(name: str, known: Sequence[str]) -> str:
    return meant(name.replace("_", "-")) or nearest_option(name, known)


def split_setting(text: str) -> tuple[str, str]:
    """`KEY=VALUE` as a pair; raises OptionError when it is not one."""
    key, equals, value = text.partition("=")
    if not equals or not _SETTING.match(text):
        raise OptionError(f"'{text}' is not KEY=VALUE", hint="KEY is a config key: letters, digits and _")
    return key, value


def _override(text: str) -> tuple[str, str, str]:
    """`RULE.KEY=VALUE` as its parts; raises OptionError."""
    found = _OVERRIDE.fullmatch(text)
    if found is None:
        raise OptionError(f"--set: '{text}' is not RULE.KEY=VALUE", hint="such as align.memory=64G")
    return found[1], found[2], found[3]


def split_declared(words: list[str], known: Sequence[str]) -> tuple[list[str], list[tuple[str, str | None]]]:
    """Take `--key value`, `--key=value` and `--flag` (None) that are not ours out of the words, as pairs."""
    ours: list[str] = []
    theirs: list[tuple[str, str | None]] = []
    while words:
        word = words.pop(0)
        name, equals, text = word.partition("=")
        value: str | None = text
        if name in known or not _DECLARED.fullmatch(name):
            ours.append(word)
            continue
        if not equals:
            value = words.pop(0) if words and not _OPTION.match(words[0]) else None
        theirs.append((name[2:].replace("-", "_"), value))
    return ours, theirs
