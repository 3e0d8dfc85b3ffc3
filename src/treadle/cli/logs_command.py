"""`treadle logs TASK`: what tasks wrote to stdout and stderr."""

from __future__ import annotations

import argparse
import os
import select
import sys
from typing import BinaryIO

from treadle.api.pipe import is_pipeline
from treadle.base.disk import disk_error
from treadle.base.errors import OptionError
from treadle.base.layout import RunFolder, StateFolder, private_log
from treadle.base.names import encode, nearest
from treadle.cli.printer import Printer
from treadle.cli.status_command import add_run, folder_of, run_folder, tally_of
from treadle.records.past import journaled_runs
from treadle.records.runs import is_live
from treadle.report.tally import Tally

SILENT = "printed nothing"
# Of steps without resources, timeout or variables of their own.
IN_THREAD = "steps that run in a thread print to stdout and stderr of the run itself"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="[FILE] [TASK]",
        help="a workflow or pipeline, whose folder is meant; then task ids, or names of rules or steps",
    )
    add_run(parser)
    parser.add_argument("--failed", action="store_true", help="of all tasks that failed")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as the task writes")
    parser.add_argument("-n", "--lines", type=int, default=0, metavar="N", help="only the last N lines")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    if args.tasks and (is_pipeline(args.tasks[0]) or args.tasks[0].endswith(".oxoflow")):
        file, _, entry = args.tasks.pop(0).partition(".py:")
        args.tasks += [entry] if entry else []
        args.workdir = args.workdir or folder_of(f"{file}.py" if entry else file)
    if not args.tasks and not args.failed:
        raise OptionError("logs needs a task", hint="or --failed for all that failed")
    found = _attempts(args)
    if args.json:
        printer.object({"schema": 1, "logs": [{"task": task, "log": path} for task, path in found]})
        return 0
    for task, path in found:
        if len(found) > 1:
            printer.data(printer.style(f"==> {task} <==", "bold"))
        sys.stdout.flush()
        if not (os.path.exists(path) or os.path.exists(private_log(path))):
            printer.talk(f"{task} has no log: {IN_THREAD}" if task.startswith("@") else f"{task} {SILENT}")
        end = _copy(path, args.lines)
        if args.follow and len(found) == 1:
            _follow(path, end, run_folder(args.workdir, args.run), task)
    return 0


def _attempts(args: argparse.Namespace) -> list[tuple[str, str]]:
    """(task, log path) of the last attempt of each task asked for, in the newest run that tried it."""
    folder = run_folder(args.workdir, args.run)
    tally = tally_of(folder)
    if args.failed:
        return [(one.task, _log(folder, one.n, one.run)) for one in tally.failures]
    found: list[tuple[str, str]] = []
    for name in args.tasks:
        hits = _hits(tally, folder, name)
        if not hits and args.run == "latest":
            hits = _earlier(args.workdir, folder, name)
        if not hits:
            near = nearest(name, tally.attempts)
            raise OptionError(
                f"no attempt of '{name}' is recorded", hint=f"did you mean '{near}'?" if near else ""
            )
        found += hits
    return found


def _hits(tally: Tally, folder: RunFolder, name: str) -> list[tuple[str, str]]:
    return [
        (task, _log(folder, numbers[-1], tally.origins.get(numbers[-1], "")))
        for task, numbers in tally.attempts.items()
        if task == name or task.split("/", 1)[0] == name or _is_step(task, name)
    ]


def _log(folder: RunFolder, n: int, run: str) -> str:
    """The log of an attempt; where its command wrote none, what the scheduler said of its job."""
    if run:
        folder = folder.beside(run)
    path = folder.attempt_log(n)
    if os.path.isdir(folder.jobs) and not (os.path.exists(private_log(path)) or _has_text(path)):
        from treadle.backends.cluster.find_logs import job_log  # local runs do without

        return job_log(folder, n) or path
    return path


def _has_text(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _is_step(task: str, name: str) -> bool:
    """Whether a name, or name with hash, is that of a step's task."""
    bare = encode(name.removeprefix("@"))
    return task.startswith("@") and bare in (task[1:], task[1:].rpartition("_")[0])


def _earlier(workdir: str, last: RunFolder, name: str) -> list[tuple[str, str]]:
    """The newest earlier run that tried the task: a later run may have found it up to date."""
    state = StateFolder(os.path.abspath(workdir or "."))
    for folder in reversed(journaled_runs(state)):
        if folder.run < last.run and (hits := _hits(tally_of(folder), folder, name)):
            return hits
    return []


def _copy(path: str, lines: int) -> int:
    """Copy a log to stdout (its last lines); returns the offset of its end."""
    log = _opened(path)
    if log is None:
        if os.path.exists(private_log(path)):
            sys.stderr.write("this task was given secrets: its log is shown, masked, once it has ended\n")
        return 0
    with log:
        if lines > 0:
            sys.stdout.buffer.write(b"".join(tail(path, lines)))
            log.seek(0, os.SEEK_END)
        else:
            while block := log.read(1 << 16):
                sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()
        return log.tell()


def _opened(path: str) -> BinaryIO | None:
    """The log, None where there is none. Raises `DiskError`: that of a task with secrets is private."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error("read the log", path, error) from error


def tail(path: str, lines: int) -> list[bytes]:
    """The last lines of a file, reading no more than its last 64 KiB."""
    with open(path, "rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - (1 << 16)))
        return log.read().splitlines(keepends=True)[-lines:]


def _follow(path: str, offset: int, folder: RunFolder, task: str) -> None:
    """Write what is added to the log until the task has settled, or nobody is left to settle it."""
    while True:
        settled = task in tally_of(folder).states or not is_live(folder)
        if log := _opened(path):
            with log:
                log.seek(offset)
                while block := log.read(1 << 16):
                    sys.stdout.buffer.write(block)
                sys.stdout.buffer.flush()
                offset = log.tell()
        if settled:
            return
        select.select([], [], [], 0.3)
