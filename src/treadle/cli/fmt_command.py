"""`treadle fmt`: workflow files and profiles in one layout; comments and values stay as they are."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from treadle.api.pipe import find_file
from treadle.base.errors import DiskError, WorkflowError
from treadle.base.files import write_whole
from treadle.base.place import Diagnostic
from treadle.cli.printer import Printer
from treadle.cli.words import count, diagnostic_lines, shortened


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="workflow files and profiles (default: the file that run takes); -: from stdin to stdout",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; list the files that would change, and exit with 1",
    )
    parser.add_argument("--diff", action="store_true", help="write nothing; show what would change")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    if args.files == ["-"]:
        return _through(sys.stdin.buffer.read())
    changed: list[str] = []
    errors: list[Diagnostic] = []
    files = args.files or [find_file("")]
    for file in files:
        try:
            before, after = _both(file)
        except WorkflowError as error:
            errors += error.diagnostics
            continue
        if before == after:
            continue
        changed.append(file)
        if args.diff and not args.json:
            printer.data("\n".join(_difference(file, before, after)))
        elif not args.check and not args.diff:
            _write(file, after)
    if args.json:
        found = [shortened(one) for one in errors]
        printer.object({"schema": 1, "changed": changed, "errors": found})
    else:
        _say(printer, changed, errors, args)
    return 2 if errors else int(bool(args.check and changed))


def _say(printer: Printer, changed: list[str], errors: list[Diagnostic], args: argparse.Namespace) -> None:
    if not args.diff:
        for file in changed:
            printer.data(file)
    for one in errors:
        printer.problem(diagnostic_lines(one, printer))
    if changed:
        verb = "would change" if args.check or args.diff else "changed"
        printer.talk(f"{count(len(changed), 'file')} {verb}")
    elif not errors:
        printer.talk("nothing to change")


def _through(data: bytes) -> int:
    from treadle.rules.toml.document import decoded
    from treadle.rules.toml.format import formatted

    sys.stdout.write(formatted(decoded(data, "stdin"), "stdin"))
    return 0


def _both(file: str) -> tuple[bytes, bytes]:
    """The content of a file, and what it would be. Raises WorkflowError."""
    from treadle.rules.toml.document import content, decoded
    from treadle.rules.toml.format import formatted

    before = content(file)
    return before, formatted(decoded(before, file), file).encode()


def _write(file: str, content: bytes) -> None:
    """Write aside and rename, where a link leads to, with the permissions that the file has."""
    target = os.path.realpath(file)
    try:
        mode = os.stat(target).st_mode & 0o7777
        write_whole(target, content, mode)
        os.chmod(target, mode)  # the umask may have taken some of it
    except OSError as error:
        raise DiskError(f"cannot write {file}: {error.strerror}") from None


def _difference(file: str, before: bytes, after: bytes) -> Iterator[str]:
    import difflib

    old, new = (text.decode("utf-8-sig").splitlines() for text in (before, after))
    yield from difflib.unified_diff(old, new, file, f"{file} (formatted)", lineterm="")
