"""`treadle run`: run what must run."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from treadle.api.pipe import Request, View, is_pipeline
from treadle.api.run import RunOptions, RunReport, run
from treadle.api.session import Recovered
from treadle.base.errors import OptionError, TreadleError
from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.base.units import format_duration, parse_duration, parse_size
from treadle.cli.again import Again
from treadle.cli.findings import folded
from treadle.cli.live import Watcher, last_words, run_object, watcher
from treadle.cli.login_node import is_large, scheduler_here, words_of_login_node
from treadle.cli.options import add_decision, add_lock, add_workflow, request_of
from treadle.cli.preview import hours_at_stake, summary_lines
from treadle.cli.printer import Printer
from treadle.cli.words import before_run, count, diagnostic_lines, listed, shortened
from treadle.decide.reason import Verdict
from treadle.engine.news import Interrupt
from treadle.records.event import End, Event, TaskSettled
from treadle.records.lock import LockNews
from treadle.report.tally import Tally

if TYPE_CHECKING:
    from treadle.base.place import Diagnostic
    from treadle.steps.book import StepBook

T = TypeVar("T")

DETACHED, DRIVER = "TREADLE_DETACHED", "TREADLE_DRIVER"  # what `background` and `driver_job` tell us by
ASK_FROM = 3600.0  # seconds of finished work that would be done again before a person is asked


def configure(parser: argparse.ArgumentParser) -> None:
    add_workflow(parser)
    add_decision(parser)
    parser.add_argument(
        "-j",
        "--jobs",
        metavar="N",
        help="CPUs that tasks may use together (default: those of this process), and how many steps may run "
        "at a time",
    )
    parser.add_argument(
        "--max-concurrent", metavar="N", help="how many Python steps may run at a time (default: as -j)"
    )
    parser.add_argument("--memory", metavar="SIZE", help="memory that tasks may ask for together")
    parser.add_argument(
        "-k",
        "--keep-going",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="go on with what a failure leaves (a pipeline does, unless --no-keep-going)",
    )
    parser.add_argument("--fail-fast", action="store_true", help="at the first failure cancel what runs")
    parser.add_argument("--max-failures", metavar="N", help="stop after N failures")
    parser.add_argument(
        "--grace",
        default="10s",
        metavar="TIME",
        help="how long a task that is cancelled has between SIGTERM and SIGKILL (default: %(default)s)",
    )
    parser.add_argument("--keep-temporary", action="store_true", help="delete no temporary outputs")
    parser.add_argument(
        "--on-interrupt",
        choices=[how.value for how in Interrupt],
        metavar="HOW",
        help="what Ctrl-C and SIGTERM mean: cancel what runs, detach (jobs of a scheduler go on, and the "
        "next run takes them over), or wait for what runs (default: cancel; when the terminal goes away, "
        "detach)",
    )
    parser.add_argument(
        "--detach", action="store_true", help="go on in the background; it says what it says to driver.log"
    )
    parser.add_argument(
        "--as-job",
        action="store_true",
        help="drive the run from a small job of the scheduler, which hands in the next one before its limit",
    )
    add_lock(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def execute(args: argparse.Namespace) -> int:
    printer = Printer(quiet=args.quiet, json=args.json)
    request, options = request_of(args), options_of(args)
    if args.as_job or args.detach:
        from treadle.cli.drivers import elsewhere

        return elsewhere(args, request, printer)
    if os.environ.get(DRIVER):
        from treadle.cli.drivers import as_a_job

        return as_a_job(args, request, options, printer)
    apart = DETACHED in os.environ
    return drive(args, request, options, printer, apart=apart).exit_code


def drive(
    args: argparse.Namespace, request: Request, options: RunOptions, printer: Printer, *, apart: bool = False
) -> RunReport:
    """Run in this process, and say what came of it; `apart`: nobody watches, what is said goes to a log."""
    front = Front(args, printer, apart=apart)
    began = time.monotonic()
    with aside(args.json and not apart):  # who started us in the background must not wait for our stdout
        if is_pipeline(request.file):
            from treadle.api.pipeline_run import run_pipeline

            report = run_pipeline(request, options, front)
        else:
            report = run(request, options, front)
    if args.json:
        found = run_object(front.tally or tally_of(report.view), report.exit_code)
        printer.object({**found, **_errors_object(report.errors)})
    elif front.tally is not None:
        seconds = time.monotonic() - began
        for line in last_words(front.tally, printer, seconds, front.again, report.folder):
            printer.talk(front.mask.text(line)) if report.exit_code == 0 else printer.problem(
                front.mask.text(line)
            )
    if report.removed:
        removed = count(len(report.removed), "temporary output")
        printer.talk(f"{removed} removed that nobody needs any more: {listed(report.removed, 3)}")
    if report.declined:
        printer.problem("nothing was run")
    for error in report.errors:
        tell_stream_error(error, printer)
    return report


@contextmanager
def aside(wanted: bool) -> Iterator[None]:
    """Let all that is written to stdout go to stderr while the block lasts: steps run in this process, and
    what they print must not get into the JSON."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _errors_object(errors: Sequence[BaseException]) -> dict[str, Any]:
    found = [
        shortened(one) for error in errors if isinstance(error, TreadleError) for one in error.diagnostics
    ]
    return {"errors": found} if found else {}


def tell_stream_error(error: BaseException, printer: Printer) -> None:
    """What went wrong with the steps that were still to come."""
    if not isinstance(error, TreadleError):
        raise error
    for one in error.diagnostics:
        printer.problem(diagnostic_lines(one, printer))


def options_of(args: argparse.Namespace) -> RunOptions:
    """How to run, from the command line; raises OptionError for numbers that make no sense."""
    return RunOptions(
        jobs=_read("-j", args.jobs, _number),
        memory=_read("--memory", args.memory, parse_size),
        keep_going=_keeps_going(args),
        fail_fast=args.fail_fast,
        max_failures=_read("--max-failures", args.max_failures, _number),
        max_concurrent=_read("--max-concurrent", args.max_concurrent, _number),
        keep_temporary=args.keep_temporary,
        grace=_read("--grace", args.grace, partial(parse_duration, zero=True)) or 0.0,
        wait=args.wait,
        assume_dead=args.assume_dead,
        on_interrupt=Interrupt(args.on_interrupt) if args.on_interrupt else None,
        patient=sys.stdin.isatty() and sys.stderr.isatty(),
        argv=tuple(sys.argv[1:]),
    )


def _keeps_going(args: argparse.Namespace) -> bool:
    """What was said; else a pipeline goes on, unless it was said when to stop."""
    if args.keep_going is not None:
        return bool(args.keep_going)
    words = args.words
    return bool(words) and is_pipeline(words[0]) and not args.fail_fast and args.max_failures is None


def _read(option: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    """The value of an option, None where it was not given."""
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise OptionError(f"{option}: {error}") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise ValueError(f"'{text}' is not a whole number from 1 up")
    return int(text)


def tally_of(view: View) -> Tally:
    """What a decision by which nothing was run adds up to."""
    tally = Tally()
    verdicts = [answer.verdict for answer in view.decision.answers.values()]
    tally.ends[End.UP_TO_DATE] = verdicts.count(Verdict.UP_TO_DATE)
    tally.ends[End.SKIPPED] = verdicts.count(Verdict.SKIPPED)
    return tally


def _yes(question: str) -> bool:
    """Ask whoever sits there."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


class Front:
    """The person in front of a run: hears what is said, is asked, watches."""

    def __init__(self, args: argparse.Namespace, printer: Printer, *, apart: bool = False) -> None:
        self.args = args
        self.apart = apart
        self.printer = printer
        self.again = Again.of(args)
        self.mask = Mask()
        self.watcher: Watcher | None = None
        self.book: StepBook | None = None
        self.stream = False
        self.name = ""
        self.told: set[Diagnostic] = set()

    @property
    def tally(self) -> Tally | None:
        """What the run added up to; None when there was none."""
        return self.watcher.tally if self.watcher else None

    def say(self, news: LockNews | Recovered) -> None:
        """A word while nothing runs yet: a lock waited for or taken over, a killed run mended."""
        self.printer.talk(before_run(news))

    def hear(self, view: View) -> None:
        """More steps came: what is to be known of them is told once."""
        for warning in dict.fromkeys(view.warnings):
            if warning not in self.told:
                self.told.add(warning)
                self.printer.talk(diagnostic_lines(warning, self.printer))

    def agree(self, view: View, mask: Mask) -> bool:
        """Show what will run; ask when much finished work would be done again."""
        self.mask, self.book, self.stream, self.name = mask, view.book, view.stream, view.plan.name
        self.told.update(view.warnings)
        for warning in folded(view.warnings):
            self.printer.talk(diagnostic_lines(warning, self.printer))
        for line in summary_lines(view, self.printer, self.again):
            self.printer.talk(mask.text(line))
        again = hours_at_stake(view)
        question = "Run it here? [y/N] " if self._is_for_a_scheduler(view, again) else ""
        if again >= ASK_FROM:
            question = f"this does {format_duration(round(again))} of finished work again. Go on? [y/N] "
        if not question or self.args.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        return _yes(question)

    def _is_for_a_scheduler(self, view: View, again: float) -> bool:
        """Whether this is a large run on a machine that submits to a scheduler; then that is said."""
        known = self.args.backend or (view.workflow.cluster is not None and view.workflow.cluster.backend)
        if known or not is_large(view, again) or not (scheduler := scheduler_here()):
            return False
        self.printer.talk(words_of_login_node(scheduler, len(view.decision.to_run())))
        return True

    def open(self, folder: RunFolder) -> None:
        """The run has begun; from here on everything is meant from the work folder.

        Being there also makes tasks start at less cost (`base.proc.spawn`).
        """
        gc.freeze()  # else the first thing it did were to walk over the plan and all modules
        gc.enable()  # a run may last for days
        if self.apart:
            from treadle.cli.background import turn_away

            turn_away(folder)
            self.printer = Printer(quiet=self.printer.quiet, json=self.printer.json)
        os.chdir(os.path.dirname(os.path.dirname(os.path.dirname(folder.root))))
        self.watcher = watcher(self.printer, self.mask, self.again)
        if self.book is not None:
            self.watcher.errors = self.book.errors
        self.watcher.tally.lean, self.watcher.tally.workflow = self.stream, self.name
        self.watcher.open(folder)

    def feed(self, events: Sequence[Event]) -> None:
        """What just happened."""
        assert self.watcher is not None
        self.watcher.feed(events)
        if self.stream and self.book is not None:  # it may be endless, so what has ended is forgotten
            for event in events:
                if type(event) is TaskSettled:
                    self.book.drop(event.task)

    def close(self) -> None:
        """Nothing more will happen."""
        if self.watcher is not None:
            self.watcher.close()
