"""A run as a person watches it: a bar at a terminal, plain lines in a pipe, nothing with --quiet."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.base.units import format_duration
from treadle.cli.again import Again
from treadle.cli.printer import Printer
from treadle.cli.streams import Lasting
from treadle.cli.words import ENDS, count, ends_of, listed, notice, outcome, visible
from treadle.records.event import AttemptEnded, End, Event, Noticed, TaskSettled
from treadle.report.tally import Failure, Tally

if TYPE_CHECKING:
    from rich.console import RenderableType

LAST_LINES = 10  # of the log of a failed task
WIDEST = 300  # characters of each of them
MOST_LINES = 30  # of the traceback of a step that failed


class Watcher(Protocol):
    """What the driver tells its events to. `errors` are the exceptions that ended steps, by task id."""

    tally: Tally
    errors: Mapping[str, BaseException]

    def open(self, folder: RunFolder) -> None:
        """The run has a folder now."""
        ...

    def feed(self, events: Sequence[Event]) -> None:
        """What just happened."""
        ...

    def close(self) -> None:
        """Nothing more will happen."""
        ...


class PlainWatcher:
    """One line for each task that ended, with the failure's last log lines at once."""

    def __init__(self, printer: Printer, mask: Mask, again: Again) -> None:
        self.tally = Tally()
        self.printer = printer
        self.mask = mask
        self.again = again
        self.errors: Mapping[str, BaseException] = {}
        self.folder: RunFolder | None = None

    def open(self, folder: RunFolder) -> None:
        self.folder = folder
        self.tally.run = folder.run

    def feed(self, events: Sequence[Event]) -> None:
        lines: list[str] = []
        for event in events:  # one by one, so that each line has the count of its own moment
            self.tally.feed((event,))
            lines += self.lines_of(event)
        if lines:
            self.write(lines)

    def write(self, lines: list[str]) -> None:
        self.printer.talk(self.mask.text("\n".join(lines)))

    def lines_of(self, event: Event) -> list[str]:
        """What is said about one event."""
        match event:
            case TaskSettled(state=End.SUCCEEDED):
                wall = event.outcome.usage.wall if event.outcome else None
                took = f" ({format_duration(round(wall, 1))})" if wall and wall >= 0.1 else ""
                return [f"{self._counter()} done {event.task}{took}"]
            case TaskSettled(state=End.FAILED):
                return self.failure_lines(event)
            case TaskSettled(state=End.UNCHANGED):
                return [f"{self._counter()} unchanged {event.task}"]
            case AttemptEnded():
                again = f"; again in {format_duration(event.retry_in)}" if event.retry_in else "; again"
                return [f"{event.task} {outcome(event.outcome)}{again}"]
            case Noticed():
                return [notice(event)]
        return []

    def failure_lines(self, event: TaskSettled) -> list[str]:
        """A failure at once: what, the last lines of its log, and the way to see more."""
        style = self.printer.style
        error = self.errors.get(event.task)
        how = outcome(event.outcome)
        if error is not None:
            how = how.removeprefix("failed: ")
        lines = [style(f"{self._counter()} failed {event.task}: {how}", "red", err=True)]
        if error is not None:
            from treadle.api.user_code import exception_lines

            told = "\n".join(exception_lines(error)).splitlines()[1:]  # the first one was said just now
            lines += [style(f"    {visible(line)}", "dim", err=True) for line in told[-MOST_LINES:]]
        elif self.folder is not None and event.n:
            log = log_of(self.folder, event.n, event.run)
            lines += [style(f"    {line}", "dim", err=True) for line in log_end(log)]
        if self.folder is not None and event.n and os.path.exists(log_of(self.folder, event.n, event.run)):
            lines.append(f"    more: {self.again.records('logs', event.task)}")
        return lines

    def _counter(self) -> str:
        width = len(str(self.tally.will_run))
        return f"[{self.tally.settled:>{width}}/{self.tally.will_run}]"

    def close(self) -> None:
        pass


class QuietWatcher(PlainWatcher):
    """Keeps the count and says nothing."""

    def feed(self, events: Sequence[Event]) -> None:
        self.tally.feed(events)


class TerminalWatcher(PlainWatcher):
    """A bar with counts, what runs now, rate and time left; failures stay above it."""

    def __init__(self, printer: Printer, mask: Mask, again: Again) -> None:
        super().__init__(printer, mask, again)
        from rich.console import Console
        from rich.live import Live

        self.began = time.monotonic()
        self.live = Live(
            get_renderable=self.render,
            console=Console(
                file=Lasting(sys.stderr),  # type: ignore[arg-type]
                highlight=False,
                no_color=not printer.err_colour,
            ),
            refresh_per_second=5,
            transient=True,
        )
        self.live.start()

    def lines_of(self, event: Event) -> list[str]:
        if isinstance(event, TaskSettled) and event.state is not End.FAILED:
            return []
        return super().lines_of(event)

    def write(self, lines: list[str]) -> None:
        from rich.text import Text

        self.live.console.print(Text.from_ansi(self.mask.text("\n".join(lines))))

    def render(self) -> RenderableType:
        from rich.text import Text

        return Text(self.mask.text("\n".join(self.screen())), no_wrap=True, overflow="ellipsis")

    def screen(self) -> list[str]:
        """The lines under the failures: a bar, and the oldest attempts that run."""
        tally = self.tally
        seconds = time.monotonic() - self.began
        done, every = tally.settled, max(tally.will_run, 1)
        filled = min(30 * done // every, 30)
        bar = "━" * filled + "─" * (30 - filled)
        parts = [f"{bar} {done}/{tally.will_run}"]
        parts += [f"{tally.ends[end]} {ENDS[end]}" for end in (End.FAILED, End.BLOCKED) if tally.ends[end]]
        running = tally.running
        parts.append(f"{len(running)} running")
        if waiting := tally.waiting:
            parts.append(f"{len(waiting)} waiting")
        if done and seconds > 1:
            rate = done / seconds
            parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
            parts.append(f"{format_duration(max(1, round((tally.will_run - done) / rate)))} left")
        now = time.time()
        lines = ["  ".join(parts)]
        lines += [
            f"  {one.task}  {format_duration(max(1, round(now - (one.since or now))))}" for one in running[:5]
        ]
        if len(running) > 5:
            lines.append(f"  and {len(running) - 5} more")
        return lines

    def close(self) -> None:
        self.live.stop()


def watcher(printer: Printer, mask: Mask, again: Again) -> Watcher:
    """The watcher that fits where stderr goes."""
    if printer.quiet:
        return QuietWatcher(printer, mask, again)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":  # NO_COLOR is about colour alone
        return TerminalWatcher(printer, mask, again)
    return PlainWatcher(printer, mask, again)


def has_log(folder: RunFolder | None, failure: Failure) -> bool:
    """Whether there is a log to look at: a step in a thread of the run has none."""
    if folder is None or not failure.task.startswith("@"):
        return True
    return os.path.exists(log_of(folder, failure.n, failure.run))


def log_of(folder: RunFolder, n: int, run: str) -> str:
    """The log of an attempt; of one that was taken over it stands in the run that submitted it."""
    return (folder.beside(run) if run else folder).attempt_log(n)


def log_end(path: str) -> list[str]:
    """The last lines of a log, as text without control characters."""
    from treadle.cli.logs_command import tail

    try:
        lines = tail(path, LAST_LINES)
    except OSError:
        return []
    text = [_cut(line.decode("utf-8", "replace").rstrip("\r\n")) for line in lines]
    return ["".join(c if c.isprintable() or c == "\t" else "?" for c in line) for line in text]


def _cut(line: str) -> str:
    """What matters of a long line is how it begins, and of a progress bar how it ends."""
    half = WIDEST // 2
    return line if len(line) <= WIDEST else f"{line[:half]} ... {line[-half:]}"


def last_words(
    tally: Tally,
    printer: Printer,
    seconds: float,
    again: Again,
    folder: RunFolder | None = None,
) -> list[str]:
    """The end of a run: what was done; what failed, why, what it blocked, and how to look further.

    `folder` is the run's, to see which attempts have a log: steps in threads have none.
    """
    ends = ends_of(tally.workflow)
    numbers = [f"{number} {ends[end]}" for end, number in tally.ends.items() if number]
    if tally.left:
        numbers.append(f"{count(tally.left, 'job')} left at work")
    lines = [f"{', '.join(numbers) or 'nothing was run'} in {format_duration(max(0.1, round(seconds, 1)))}"]
    if tally.left:
        lines.append("the same command again takes over what is at work; treadle cancel ends it")
    for failure in tally.failures[:20]:
        lines.append(printer.style(f"{failure.task} {outcome(failure.outcome)}", "red", err=True))
        if blocked := tally.blocked.get(failure.task):
            lines.append(f"  blocked {count(len(blocked), 'task')}: {listed(blocked, 3)}")
        attempt = f"try: {again.workflow('exec', failure.task)}"
        look = f"look: {again.records('logs', failure.task)}    " if has_log(folder, failure) else ""
        lines.append(f"  {look}{attempt}")
    if len(tally.failures) > 20:
        lines.append(f"and {len(tally.failures) - 20} more failed: {again.records('status')}")
    return lines


def run_object(tally: Tally, exit_code: int) -> dict[str, Any]:
    """The one JSON object of `run --json`; `run` is empty when nothing had to run."""
    return {
        "schema": 1,
        "run": tally.run,
        "exit_code": exit_code,
        "counts": {end.value: number for end, number in tally.ends.items()},
        "failed": [{"task": one.task, "outcome": one.outcome} for one in tally.failures],
        "blocked": tally.blocked,
    }
