"""`treadle cancel`: cancel what the last run has in flight, and see that it is gone."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.api.cancel import Cancellation, cancel
from treadle.base.layout import StateFolder
from treadle.cli.printer import Printer
from treadle.cli.status_command import add_run, folder_of, run_folder
from treadle.cli.words import count, listed
from treadle.records.past import journaled_runs

if TYPE_CHECKING:
    from treadle.api.drivers import EndedDrivers


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="", metavar="FILE", help="a workflow or pipeline: its folder is meant"
    )
    add_run(parser)
    parser.add_argument("--assume-dead", action="store_true", help="take a driver on another host as dead")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    workdir = os.path.abspath(args.workdir or folder_of(args.file) or ".")
    state = StateFolder(workdir)

    def say(what: str, value: str) -> None:
        if what == "driver":
            printer.talk(f"ending the driver of run {folder.run} (process {value})")
        else:
            printer.talk(f"cancelling {count(int(value), 'job')}")

    drivers = _drivers(state, printer) if args.run == "latest" else None
    if drivers is not None and drivers.jobs.gone + len(drivers.jobs.left) and not journaled_runs(state):
        done = Cancellation(run="")
    else:
        folder = run_folder(workdir, args.run)
        dead = args.assume_dead or (drivers is not None and drivers.began)
        done = cancel(folder, workdir=workdir, assume_dead=dead, say=say)
    if drivers is not None:
        done = replace(
            done,
            drivers=drivers.jobs.gone,
            left=(*drivers.jobs.left, *done.left),
            command="; ".join(filter(None, (drivers.jobs.command, done.command))),
        )
    if args.json:
        printer.object({"schema": 1, **{name: getattr(done, name) for name in done.__struct_fields__}})
    elif done.left:
        printer.problem(_left(done))
    else:
        printer.talk(_gone(done))
    return 3 if done.left else 0


def _drivers(state: StateFolder, printer: Printer) -> EndedDrivers | None:
    """What became of drivers that are jobs; None: there are none."""
    if not state.driver_names():
        return None
    from treadle.api.drivers import end_drivers  # only here

    def told(live: int) -> None:
        if live:
            printer.talk(f"ending {count(live, 'driver')} that {'is a job' if live == 1 else 'are jobs'}")

    return end_drivers(state, told)


def _gone(done: Cancellation) -> str:
    if done.drivers and not done.run:
        return f"{count(done.drivers, 'driver')} cancelled, before any run began"
    if done.gone:
        return (
            f"{count(done.gone, 'job')} of run {done.run} cancelled: {done.backend} has none of them any more"
        )
    if done.stopped:
        return f"run {done.run} was stopped; nothing of it is left"
    return f"nothing of run {done.run} is in flight"


def _left(done: Cancellation) -> str:
    number, of = count(len(done.left), "job"), f" of run {done.run}" if done.run else ""
    return (
        f"error: {number}{of} could not be cancelled: {listed(done.left)}\n"
        f"  to try it by hand: {done.command}"
    )
