"""`treadle unlock`: remove a lock that was left behind; reads no workflow."""

from __future__ import annotations

import argparse
import os

from treadle.base.errors import OptionError
from treadle.base.layout import StateFolder
from treadle.cli.printer import Printer
from treadle.records.lock import told, unlock


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workdir", default="", metavar="FOLDER", help="work folder (default: here)")
    parser.add_argument("--force", action="store_true", help="even if its holder seems to be alive")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    state = StateFolder(os.path.abspath(args.workdir or "."))
    if not os.path.isdir(state.workdir):
        raise OptionError(f"the work folder {state.workdir} does not exist", hint="mend --workdir")
    owner = unlock(state, force=args.force)
    if args.json:
        printer.object({"schema": 1, "workdir": state.workdir, "removed": owner})
    elif owner is None:
        printer.talk(f"{state.workdir} is not locked")
    else:
        printer.talk(f"removed the lock of {told(owner)}")
    return 0
