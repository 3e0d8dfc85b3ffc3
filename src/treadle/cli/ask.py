"""Asking before something is deleted: the list, the question, and no answer where nobody sits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from treadle.base.errors import OptionError
from treadle.cli.printer import Printer

SHOWN = 20


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Arguments of commands that delete."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("-n", "--dry-run", action="store_true", help="list everything, delete nothing")


def agreed(question: str, paths: Sequence[str], args: argparse.Namespace, printer: Printer) -> bool:
    """List what will go and ask; a dry run is never agreed to.

    Raises `OptionError` when nobody can answer.
    """
    if args.dry_run:
        return False
    if args.yes:
        return True
    for path in paths[:SHOWN]:
        printer.problem(f"  {path}")
    if len(paths) > SHOWN:
        printer.problem(f"  and {len(paths) - SHOWN} more (--dry-run lists all)")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise OptionError("this deletes, and nobody is here to be asked", hint="-y deletes without asking")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
