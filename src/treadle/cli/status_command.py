"""`treadle status`: how the last run went, or how a run that is on goes."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from treadle.api.pipe import is_pipeline
from treadle.base.errors import OptionError
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.units import format_duration
from treadle.cli.again import Again
from treadle.cli.live import has_log, log_of
from treadle.cli.printer import Printer
from treadle.cli.words import RUN_STATES, count, ends_of, listed, notice, outcome
from treadle.records.event import End
from treadle.records.journal import read_journal
from treadle.records.past import journaled_runs
from treadle.report.runs import KeptRun, RunState, kept_runs, run_state
from treadle.report.tally import Tally

if TYPE_CHECKING:
    from treadle.api.drivers import WaitingDriver

_COLOURS = {RunState.DONE: "green", RunState.RUNNING: "cyan", RunState.FAILED: "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="", metavar="FILE", help="a workflow or pipeline: its folder is meant"
    )
    add_run(parser)
    parser.add_argument(
        "--resources",
        action="store_true",
        help="what each rule took (memory, CPUs, waiting, running) against what it asked for",
    )
    parser.add_argument("--runs", action="store_true", help="list the runs that are kept, the newest first")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Arguments of commands that read the records of a run."""
    parser.add_argument("--workdir", default="", metavar="FOLDER", help="work folder (default: here)")
    parser.add_argument("--run", default="latest", metavar="RUN", help="a run id (default: the last one)")


def folder_of(file: str) -> str:
    """The work folder of a workflow or pipeline, as typed; empty: the current one. Raises OptionError."""
    if not file or is_pipeline(file):
        return ""
    if not file.endswith(".oxoflow"):
        hint = "treadle logs TASK tells of a task"
        raise OptionError(f"'{file}' is no workflow and no pipeline", hint=hint)
    return os.path.dirname(file)


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    args.workdir = args.workdir or folder_of(args.file)
    if args.runs:
        return _list_runs(args, printer)
    waiting = _waiting_driver(args)
    if waiting is not None and not journaled_runs(StateFolder(os.path.abspath(args.workdir or "."))):
        return _nothing_but(waiting, printer, Again(workdir=args.workdir))
    folder = run_folder(args.workdir, args.run)
    if args.resources:
        return _resources(folder, printer)
    tally = tally_of(folder)
    if args.json:
        from treadle.records.job import jobs_of  # only here

        jobs = jobs_of(read_journal(folder.events).events, folder)
        printer.object({**_object(tally, folder), "driver": waiting, "jobs": jobs})
    else:
        for line in _lines(tally, folder, printer, Again(workdir=args.workdir)):
            printer.data(line)
        if waiting is not None:
            printer.data(_to_come(waiting))
    return 0


def _waiting_driver(args: argparse.Namespace) -> WaitingDriver | None:
    """A job that is to drive the next run."""
    state = StateFolder(os.path.abspath(args.workdir or "."))
    if args.run != "latest" or args.resources or not state.driver_names():
        return None
    from treadle.api.drivers import waiting_driver  # only here

    return waiting_driver(state)


def _nothing_but(waiting: WaitingDriver, printer: Printer, again: Again) -> int:
    """No run has begun, but one is to."""
    if printer.json:
        printer.object({"schema": 1, "run": "", "driver": waiting})
    else:
        printer.data(_to_come(waiting))
        printer.talk(f"  {again.records('cancel')} ends it")
    return 0


def _to_come(waiting: WaitingDriver) -> str:
    return f"the next run is to be driven by job {waiting.job} on {waiting.backend}, which has not begun it"


def _resources(folder: RunFolder, printer: Printer) -> int:
    """What the attempts of a run took."""
    from treadle.cli.usage_lines import usage_lines  # only here
    from treadle.records.job import jobs_of
    from treadle.report.usage import requests_of, usage_of

    found = usage_of(jobs_of(read_journal(folder.events).events, folder), requests_of(folder))
    if printer.json:
        printer.object({"schema": 1, "run": folder.run, "rules": found})
        return 0
    for line in usage_lines(found, printer) if found else ():
        printer.data(line)
    if not found:
        printer.talk("no attempt of this run has ended")
    return 0


def _list_runs(args: argparse.Namespace, printer: Printer) -> int:
    state = StateFolder(os.path.abspath(args.workdir or "."))
    runs = kept_runs(state)
    if args.json:
        printer.object({"schema": 1, "runs": runs})
        return 0
    for line in _run_lines(runs, printer):
        printer.data(line)
    if not runs:
        printer.talk(f"no run is recorded in {state.workdir}")
    return 0


def run_folder(workdir: str, run: str) -> RunFolder:
    """The folder of a run; raises OptionError when there is none.

    One that begins just now, or died before its first line, has nothing to tell as yet.
    """
    state = StateFolder(os.path.abspath(workdir or "."))
    known = [folder.run for folder in journaled_runs(state)]
    if run == "latest":
        last = os.path.basename(os.path.realpath(state.latest))
        if last in known:
            return state.run(last)
        if known:
            return state.run(known[-1])
        raise OptionError(f"no run is recorded in {state.workdir}", hint="treadle run; or name --workdir")
    matches = [name for name in known if name == run or name.endswith(run)]
    if len(matches) != 1:
        raise OptionError(f"no run '{run}'", hint=f"there are: {listed(reversed(known), 8) or 'none'}")
    return state.run(matches[0])


def tally_of(folder: RunFolder) -> Tally:
    """All that the journal of a run adds up to."""
    tally = Tally()
    tally.feed(read_journal(folder.events).events)
    return tally


def _object(tally: Tally, folder: RunFolder) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": tally.run,
        "workflow": tally.workflow,
        "started": tally.started,
        "ended": tally.ended,
        "exit_code": None if tally.mended else tally.exit_code,
        "state": run_state(folder, None if tally.ended is None else tally.exit_code, mended=tally.mended),
        "rounds": tally.rounds,
        "counts": {
            "tasks": tally.tasks,
            **{end.value: number for end, number in tally.ends.items()},
        },
        "running": [
            {
                "task": one.task,
                "attempt": one.attempt,
                "since": one.since,
                "log": log_of(folder, one.n, one.run),
            }
            for one in tally.running
        ],
        "waiting": [
            {"task": one.task, "attempt": one.attempt, "job": one.job, "reason": one.reason}
            for one in tally.waiting
        ],
        "failed": [
            {"task": one.task, "outcome": one.outcome, "log": log_of(folder, one.n, one.run)}
            for one in tally.failures
        ],
        "blocked": tally.blocked,
        "partial": [one.task for one in tally.partial],
    }


def _lines(tally: Tally, folder: RunFolder, printer: Printer, again: Again) -> Iterator[str]:
    now = time.time()
    state = run_state(folder, None if tally.ended is None else tally.exit_code, mended=tally.mended)
    yield f"{printer.style(tally.workflow, 'bold')}  run {tally.run}  {_state(tally, state)}"
    if tally.started and (tally.ended or state is RunState.RUNNING):
        seconds = (tally.ended or now) - tally.started
        yield f"  {format_duration(max(round(seconds, 1), 0.1))} since the start"
    ends = ends_of(tally.workflow)
    numbers = [f"{number} {ends[end]}" for end, number in tally.ends.items() if number]
    left = tally.will_run - tally.settled
    if left > 0 and tally.ended is None:
        numbers.append(f"{left} to go")
    yield f"  {count(tally.tasks, 'task')}: {', '.join(numbers) or 'nothing yet'}"
    if tally.rounds > 1:
        yield f"  {tally.rounds} rounds: more work came while the run was on"
    for trying in tally.running if tally.ended is None else []:
        since = format_duration(max(round(now - (trying.since or now), 1), 0.1))
        running = state is RunState.RUNNING
        yield f"  running {trying.task} for {since}" if running else f"  was at work on {trying.task}"
    yield from _waiting(tally) if tally.ended is None else ()
    for failure in tally.failures:
        yield printer.style(f"  {failure.task} {outcome(failure.outcome)}", "red")
        if blocked := tally.blocked.get(failure.task):
            yield f"    blocks {count(len(blocked), 'task')}: {listed(blocked, 3)}"
        if has_log(folder, failure):
            yield f"    {again.records('logs', failure.task)}"
    for one in tally.partial:
        yield printer.style(f"  {notice(one).removeprefix('warning: ')}", "yellow")


def _waiting(tally: Tally) -> Iterator[str]:
    """What stands in the queue of a scheduler, by the reason that it gives."""
    reasons: dict[str, list[str]] = {}
    for one in tally.waiting:
        reasons.setdefault(one.reason, []).append(one.task)
    for reason, tasks in sorted(reasons.items(), key=lambda item: -len(item[1])):
        why = f" ({reason})" if reason and reason != "None" else ""
        yield f"  {count(len(tasks), 'task waits', 'tasks wait')} in the queue{why}: {listed(tasks, 3)}"


def _state(tally: Tally, state: RunState) -> str:
    if tally.left and tally.ended is None and state is not RunState.RUNNING:
        them = "it" if tally.left == 1 else "them"
        return f"left {count(tally.left, 'job')} at work; treadle run takes {them} over"
    if state is RunState.KILLED:
        rest = "what it had finished is recorded" if tally.mended else "treadle run goes on from there"
        return f"{RUN_STATES[state]}; {rest}"
    return RUN_STATES[state]


def _run_lines(runs: list[KeptRun], printer: Printer) -> Iterator[str]:
    """One line for each run: id, when, which workflow, how it ended, what it did."""
    width = max((len(one.workflow) for one in runs), default=0)
    for one in runs:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started)) if one.started else "?" * 16
        state = printer.style(f"{RUN_STATES[one.state]:<11}", _COLOURS.get(one.state, "yellow"))
        counts = ", ".join(
            f"{one.counts[end]} {ends_of(one.workflow)[end]}" for end in End if one.counts.get(end)
        )
        yield f"{one.run}  {when}  {one.workflow:<{width}}  {state}  {counts or 'nothing yet'}"
