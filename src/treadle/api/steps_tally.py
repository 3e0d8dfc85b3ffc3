"""What happened to the steps of a run, as it happens: the report and the errors are made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.api.session import Recovered
from treadle.api.steps_report import AttemptError, RunReport, StepReport, StepRunError, failure_message
from treadle.api.view import View
from treadle.base.errors import SchedulerError, StepError, TreadleError, WorldError
from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.decide.reason import Answer, BlockedBy, FailedBefore, Verdict
from treadle.records.event import End, Event, Noticed, Outcome, TaskSettled
from treadle.records.lock import LockNews

if TYPE_CHECKING:
    from treadle.steps.book import StepBook

_BAD = (End.FAILED, End.BLOCKED, End.CANCELLED)
_GIVEN_UP = ("backend_failed", "disk_full")


class StepTally:
    """Listens to a run of steps. Of a stream it keeps the lines of what failed or was blocked, and counts."""

    def __init__(
        self, book: StepBook, *, streamed: bool = False, warn: Callable[[str], None] = lambda text: None
    ) -> None:
        self.folder: RunFolder | None = None
        self._book = book
        self._warn = warn
        self.streamed = streamed
        self._views: list[View] = []
        self._ends: dict[str, TaskSettled] = {}
        self._taken: set[str] = set()  # tasks that came to what another run had made meanwhile
        self._lines: list[StepReport] = []
        self._counts: dict[str, int] = {}
        self._errors: list[Exception] = []
        self._world: list[WorldError] = []

    # As a front of the run

    def say(self, news: LockNews | Recovered) -> None:
        """A script is not told of what happened before."""

    def agree(self, view: View, mask: Mask) -> bool:
        return True

    def open(self, folder: RunFolder) -> None:
        self.folder = folder

    def close(self) -> None:
        pass

    def enter(self, view: View) -> None:
        """These steps are part of the run from now on."""
        if not self.streamed:
            self._views.append(view)
            return
        for task, answer in view.decision.answers.items():
            if answer.verdict is not Verdict.WILL_RUN:
                line = _line(view, task, answer, None)
                self._count(line.state)
                if line.state in _BAD:
                    self._keep(line, answer)

    def feed(self, events: Sequence[Event]) -> None:
        for event in events:
            if type(event) is TaskSettled:
                self._settled(event)
            elif type(event) is Noticed:
                if event.code == "result_taken" and not self.streamed:
                    self._taken.add(event.task)
                elif event.code in _GIVEN_UP:
                    self._world.append(_given_up(event))
                elif event.code == "disk_waiting":
                    with suppress(UserWarning):  # made an error by a person's filters: the run goes on
                        self._warn("the disk is full: the run waits for space, and starts nothing meanwhile")

    def _settled(self, event: TaskSettled) -> None:
        if not self.streamed:
            self._ends[event.task] = event
            return
        self._count(event.state.value)
        if event.state in _BAD:
            line = StepReport(
                step=step_name(event.task),
                state=event.state.value,
                path=self._book[event.task].path if event.task in self._book else "",
                attempts=event.attempt,
                seconds=_seconds(event.outcome),
                error=self._told(event),
            )
            self._lines.append(line)
            if event.state is End.FAILED:
                self._errors.append(self._error(line, event))
            self._book.drop(event.task)

    def _count(self, state: str) -> None:
        self._counts[state] = self._counts.get(state, 0) + 1

    def _keep(self, line: StepReport, answer: Answer) -> None:
        self._lines.append(line)
        if line.state == End.FAILED:
            self._errors.append(failed_before(line, answer))

    # What came of it

    def report(self, *, dry_run: bool = False, truncated: bool = False) -> RunReport:
        """The whole, as it stands now."""
        if not self.streamed:
            self._lines, self._counts, self._errors = [], {}, []
            for view in self._views:
                for task, line, answer in self._view_lines(view, dry_run):
                    self._count(line.state)
                    self._lines.append(line)
                    if line.state == End.FAILED:
                        end = self._ends.get(task)
                        failed = failed_before(line, answer) if end is None else self._error(line, end)
                        self._errors.append(failed)
        return RunReport(
            steps=tuple(self._lines),
            counts=dict(sorted(self._counts.items())),
            run=self.folder.run if self.folder else "",
            dry_run=dry_run,
            streamed=self.streamed,
            truncated=truncated,
            warnings=tuple(dict.fromkeys(one for view in self._views for one in view.warnings)),
        )

    def raise_failures(self, report: RunReport, others: Sequence[BaseException] = ()) -> None:
        """Raise `StepRunError` when anything failed; `others` are errors that no step raised."""
        more = [*self._world, *map(_as_exception, others)]
        if not (self._errors or more):
            return
        raise StepRunError(failure_message(report, more), [*self._errors, *more], report)

    def _view_lines(self, view: View, dry_run: bool) -> Iterator[tuple[str, StepReport, Answer]]:
        for task, answer in view.decision.answers.items():
            event = self._ends.get(task)
            told = self._told(event) if event is not None else ""
            line = _line(view, task, answer, event, dry_run, told)
            yield task, replace(line, reason="taken") if task in self._taken else line, answer

    def _told(self, event: TaskSettled) -> str:
        """A line about how a step failed."""
        if event.state is not End.FAILED or event.outcome is None:
            return ""
        return _outcome(event.outcome).partition("\n")[0]

    def _error(self, line: StepReport, event: TaskSettled) -> Exception:
        """The exception that ended a step, with a note that names the step."""
        error = self._book.errors.get(event.task)
        if error is None:
            return AttemptError(f"step {line.step}: {line.error}", hint=self._hint(event))
        if not isinstance(error, Exception):
            return _as_exception(error, f"step {line.step}: ")
        if not isinstance(error, TreadleError):
            error.add_note(f"in step {line.step}, attempt {event.attempt} ({line.path})")
        return error

    def _hint(self, event: TaskSettled) -> str:
        if self.folder is None or not event.n:
            return ""
        log = self.folder.attempt_log(event.n)
        return f"its log: {log}" if os.path.exists(log) else ""


def step_name(task: str) -> str:
    """The name with hash of a step, from the id of its task."""
    if "%" not in task:
        return task[1:]
    from urllib.parse import unquote

    return unquote(task[1:])


def failed_before(line: StepReport, answer: Answer) -> StepError:
    """The error of a step that failed before and was not to be tried again."""
    reason = answer.reasons[0]
    assert isinstance(reason, FailedBefore)
    return StepError(
        f"step {line.step} failed before, as {reason.record} tells"
        + (f": {reason.error}" if reason.error else ""),
        hint="mend it and run with force_run_failed=True, or remove that file",
        code="failed-before",
    )


def _line(
    view: View, task: str, answer: Answer, event: TaskSettled | None, dry_run: bool = False, error: str = ""
) -> StepReport:
    call = view.plan.tasks[task].call
    path = "" if call is None else call.path if "://" in call.path else os.path.join(view.workdir, call.path)
    state, reason = _state(answer, event, dry_run), _reason(answer)
    if event is None:
        said = answer.reasons[0] if answer.reasons else None
        error = said.error if isinstance(said, FailedBefore) else ""
        return StepReport(
            step=call.step + task[task.rindex("_") :] if call is not None else task,
            state=state,
            reason=reason,
            path=path,
            error=error,
            reasons=answer.reasons,
        )
    return StepReport(
        step=call.step + task[task.rindex("_") :] if call is not None else task,
        state=state,
        reason=reason,
        path=path,
        attempts=event.attempt,
        seconds=_seconds(event.outcome),
        error=error,
        reasons=answer.reasons,
    )


def _state(answer: Answer, event: TaskSettled | None, dry_run: bool) -> str:
    if event is not None:
        return event.state.value
    if answer.verdict is Verdict.WILL_RUN:
        return Verdict.WILL_RUN.value if dry_run else End.CANCELLED.value
    if answer.verdict is Verdict.SKIPPED and answer.reasons:
        match answer.reasons[0]:
            case FailedBefore():
                return End.FAILED.value
            case BlockedBy():
                return End.BLOCKED.value
    return answer.verdict.value


def _reason(answer: Answer) -> str:
    """The main reason in a word, else the note of what is up to date."""
    if not answer.reasons:
        return answer.note
    tag = type(answer.reasons[0]).__struct_config__.tag
    return tag if isinstance(tag, str) else ""


def _seconds(outcome: Outcome | None) -> float | None:
    if outcome is None:
        return None
    if outcome.usage.wall is not None:
        return outcome.usage.wall
    if outcome.start is None or outcome.end is None:
        return None
    return max(0.0, outcome.end - outcome.start)


def _outcome(outcome: Outcome) -> str:
    """How an attempt ended of which there is no exception."""
    if outcome.message:
        return outcome.message
    if outcome.signal:
        return f"its process was ended by signal {outcome.signal} ({outcome.reason})"
    if outcome.exit_code:
        return f"its process ended with exit code {outcome.exit_code} ({outcome.reason})"
    return str(outcome.reason)


def _in_a_line(error: BaseException) -> str:
    name = type(error).__qualname__
    text = str(error)
    return f"{name}: {text}" if text else name


def _as_exception(error: BaseException, who: str = "") -> Exception:
    """`SystemExit` and its like cannot stand in a group of exceptions: an error of ours caused by it."""
    if isinstance(error, Exception):
        return error
    made = AttemptError(f"{who}{_in_a_line(error)}")
    made.__cause__ = error
    return made


def _given_up(event: Noticed) -> WorldError:
    if event.code == "disk_full":
        return WorldError("the disk stayed full: the run was given up", hint="free some space and run again")
    return SchedulerError(f"the backend failed: {event.values.get('message', '')}")
