"""`treadle completion SHELL`: a completion script, made by shtab from the real parsers."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator

from treadle.base.errors import OptionError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def execute(args: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise OptionError(
            "completion needs the package shtab", hint="pip install 'treadle[completion]'"
        ) from None
    parser = whole_parser()
    for action in _taking_files(parser):
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _taking_files(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of commands where a workflow or a pipeline may stand first."""
    for group in parser._actions:
        if isinstance(group, argparse._SubParsersAction):
            for sub in group.choices.values():
                yield from (one for one in sub._actions if one.dest in ("words", "file", "tasks"))


def whole_parser() -> argparse.ArgumentParser:
    """All commands in one parser: for completion and for the reference page, never to parse with."""
    from treadle.cli.main import COMMANDS
    from treadle.cli.options import add_common

    parser = argparse.ArgumentParser(prog="treadle", description="A workflow engine.")
    parser.add_argument("--version", "-V", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command")
    for name, (module, what) in COMMANDS.items():
        sub = commands.add_parser(name, help=what, description=what)
        add_common(sub)
        importlib.import_module(f"treadle.cli.{module}_command").configure(sub)
    return parser
