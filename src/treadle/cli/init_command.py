"""`treadle init`: start a workflow from a template; never overwrites a file."""

from __future__ import annotations

import argparse
import os
from importlib import resources

from treadle.base.errors import DiskError, OptionError
from treadle.base.names import did_you_mean
from treadle.cli.printer import Printer

TEMPLATES = {
    "minimal": "one rule, one file",
    "samples": "a sheet of samples, one task each, then a gather",
    "pairs": "tumour and normal, pair by pair",
    "discovery": "samples that are found among the files",
    "scatter": "a rule in pieces, gathered again",
    "modules": "a workflow in several files",
    "cluster": "a profile for a scheduler",
    "python": "rules that run Python scripts",
    "pipeline": "Python steps",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", help="where to put it (default: here)")
    parser.add_argument(
        "--template",
        default="minimal",
        metavar="NAME",
        help="; ".join(f"{name}: {what}" for name, what in TEMPLATES.items()),
    )


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    if args.template not in TEMPLATES:
        hint = did_you_mean(args.template, TEMPLATES) or f"there are {', '.join(TEMPLATES)}"
        raise OptionError(f"no template '{args.template}'", hint=hint)
    files = template_files(args.template)
    taken = [name for name in files if os.path.lexists(os.path.join(args.folder, name))]
    if taken:
        raise OptionError(
            f"{os.path.join(args.folder, taken[0])} is already there, and init overwrites nothing",
            hint="choose an empty folder: treadle init FOLDER",
        )
    try:
        for name, content in files.items():
            path = os.path.join(args.folder, name)
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "xb") as file:
                file.write(content)
    except OSError as error:
        raise DiskError(f"cannot write {error.filename}: {error.strerror}") from None
    if args.json:
        printer.object({"schema": 1, "folder": args.folder, "files": list(files)})
        return 0
    for name in files:
        printer.data(os.path.normpath(os.path.join(args.folder, name)))
    where = "" if args.folder == "." else f"cd {args.folder} && "
    named = "" if "main.oxoflow" in files else f" {min(files)}"
    printer.talk(f"now: {where}treadle plan{named}, then treadle run{named}")
    return 0


def template_files(template: str) -> dict[str, bytes]:
    """Relative path -> content of every file of a template."""
    found: dict[str, bytes] = {}
    stack = [(resources.files("treadle.cli").joinpath("templates", template), "")]
    while stack:
        folder, prefix = stack.pop()
        for entry in folder.iterdir():
            if entry.name in ("__pycache__", "__init__.py"):
                continue
            if entry.is_dir():
                stack.append((entry, f"{prefix}{entry.name}/"))
            else:
                found[prefix + entry.name] = entry.read_bytes()
    return dict(sorted(found.items()))
