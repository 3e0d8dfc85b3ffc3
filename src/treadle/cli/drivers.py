"""Where the driver of a run lives, if not in front: in the background, or in a job of the scheduler."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.api.pipe import Request, is_pipeline
from treadle.api.run import RunOptions
from treadle.base.errors import OptionError
from treadle.cli.again import Again
from treadle.cli.printer import Printer
from treadle.cli.run_command import DRIVER, drive

if TYPE_CHECKING:
    from treadle.api.driver_job import DriverJob


def elsewhere(args: argparse.Namespace, request: Request, printer: Printer) -> int:
    """Let another process drive the run: one in the background, or a job."""
    if args.as_job and args.detach:
        raise OptionError("--detach and --as-job are two places for one driver", hint="choose one of them")
    words = [word for word in sys.argv[2:] if word not in ("--as-job", "--detach")]
    if args.detach:
        from treadle.cli.background import detach  # only here

        return detach(words, printer, Again.of(args))
    from treadle.api.driver_job import submit_driver

    if is_pipeline(request.file):
        raise OptionError("--as-job is for workflow files", hint="--detach runs a pipeline in the background")
    given = [word for word in ("--yes", "--wait") if word not in words]
    _tell_driver(submit_driver(request, [*words, *given]), printer, Again.of(args))
    return 0


def _tell_driver(driver: DriverJob, printer: Printer, again: Again) -> None:
    if printer.json:
        printer.object({"schema": 1, "job": driver.job, "backend": driver.backend, "log": driver.log})
        return
    printer.talk(f"the run is driven by job {driver.job} on {driver.backend}")
    printer.talk(f"  {again.records('status')} tells how it goes; what it says at first: {driver.log}")


def as_a_job(args: argparse.Namespace, request: Request, options: RunOptions, printer: Printer) -> int:
    """We are a driver that is a job: before its time is over, the next one is handed in."""
    from treadle.api.driver_job import leave_in_time, submit_driver, time_left

    left = time_left()
    if left is None:
        raise OptionError(f"{DRIVER} is not a number of seconds", hint="leave it unset: --as-job sets it")
    del os.environ[DRIVER]  # what runs on this machine is not such a driver
    timer = leave_in_time(left)
    report = drive(args, request, replace(options, until=time.time() + left), printer, apart=True)
    if timer.is_alive() or report.exit_code != 143:
        timer.cancel()
        return report.exit_code
    _tell_driver(submit_driver(request, sys.argv[2:]), printer, Again.of(args))
    return 0
