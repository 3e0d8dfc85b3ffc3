"""From the end of a job to news for the machine: outputs looked at or set aside, logs, evidence."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from treadle.base.errors import DiskError
from treadle.base.files import disk_error, make_parents, protect, write_whole
from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.engine.aside import Aside
from treadle.engine.attempt import Attempt
from treadle.engine.backend import ExecutorBackend, Witnessed
from treadle.engine.besides import parts_of
from treadle.engine.check import Contents, Eyes, Made
from treadle.engine.discoveries import Discoveries
from treadle.engine.inbox import Inbox
from treadle.engine.news import Ended
from treadle.engine.scribe import is_full
from treadle.engine.slate import set_aside_made
from treadle.engine.witness import moved_inputs, seen_by_job
from treadle.plan.paths import is_url
from treadle.plan.task import Call, ScheduledTask
from treadle.records.event import EndReason, Outcome

_TOLD = (EndReason.APP, EndReason.OOM, EndReason.TIME)
_SHOWN = 5
_BLOCK = 1 << 20
_DOOMED = "an earlier driver, which had to give its backend up, had it cancelled"
_FIRST_LOOK = 0.1  # seconds; the pauses between looks at files that have not arrived double

# Call something after so many seconds.
Later = Callable[[float, Callable[[], None]], None]


class Concluder:
    """Ends attempts, for one run. `spare_logs` gets those of attempts that ended well here: who begins the
    next one may take them, if they are empty."""

    def __init__(
        self,
        *,
        run: RunFolder,
        backend: ExecutorBackend,
        eyes: Eyes,
        mask: Mask,
        aside: Aside[Contents],
        inbox: Inbox,
        later: Later,
        spare_logs: list[str],
        discoveries: Discoveries | None = None,
    ) -> None:
        self._later = later
        self._spare_logs = spare_logs
        self._discoveries = discoveries
        if discoveries is not None:
            discoveries.fail = self._fail
        self._run = run
        self._backend = backend
        self._part = parts_of(backend)
        self._eyes = eyes
        self._mask = mask
        self._aside = aside
        self._inbox = inbox
        self.full: set[str] = set()  # folders whose file systems were full when attempts failed

    def accepted(self, attempt: Attempt) -> None:
        """The job began: let the rule's log be the attempt's own, where the command does not write it."""
        task = attempt.task
        if not task.log or task.log_named:
            return
        if task.command.secrets:  # it is copied once its secrets are masked
            attempt.copies_log = True
            return
        try:
            os.link(attempt.folder.attempt_log(attempt.n), self._eyes.place(task.log))
        except OSError:  # another file system, or one without links
            attempt.copies_log = True

    def end(
        self,
        attempt: Attempt,
        outcome: Outcome,
        written: Witnessed | None = None,
        *,
        doubted: bool = False,
    ) -> None:
        """A job ended. The machine is told at once, or once its files have arrived, or large contents have
        been read aside.

        `written` is what the job noted of its files; `doubted`: its success may be taken back. Of a step
        without inputs the artifact's own record is all the evidence.
        """
        task = attempt.task
        if task.call is not None and not task.inputs and outcome.reason is EndReason.OK:
            if task.finds and self._discoveries is not None:
                self._discoveries.ended(attempt, outcome, None, doubted)
            else:
                self._inbox.tell(Ended(task.id, attempt.n, outcome))
            return
        if attempt.task.command.secrets:
            self._mask_log(attempt)
        if attempt.copies_log:
            self._copy_log(attempt)
        if attempt.anew and outcome.reason is EndReason.OK:
            outcome = replace(outcome, reason=EndReason.CANCELLED)
        if attempt.doomed and outcome.reason is EndReason.CANCELLED:  # nobody of this run wanted that
            outcome = replace(outcome, reason=EndReason.INTERRUPTED, message=outcome.message or _DOOMED)
        if outcome.reason is not EndReason.OK:
            self._fail(attempt, outcome)
            return
        self._look(attempt, outcome, written, doubted, _FIRST_LOOK)

    def _look(
        self,
        attempt: Attempt,
        outcome: Outcome,
        written: Witnessed | None,
        doubted: bool,
        pause: float,
        waited: float = 0.0,
    ) -> None:
        """Look at what a success left; where that has not arrived on this machine, look again later."""
        try:
            before, late = attempt.before, False
            if attempt.after:  # made in the same job meanwhile
                before = self._eyes.before(attempt.task)
                late = written is not None and bool(moved_inputs(attempt.task, before, written))
            if (attempt.adopted or attempt.after) and written is not None:
                before = seen_by_job(attempt.task, before, written)
            made = self._eyes.after(attempt.task, before, attempt.standing, attempt.slate.foreign, written)
            if made.missing or made.lagging or late:
                latency = self._part(attempt.task).abilities.latency
                if waited < latency:
                    pause = min(pause, latency - waited)
                    again = partial(
                        self._look_again, attempt, outcome, written, doubted, 2 * pause, waited + pause
                    )
                    self._later(pause, again)
                    return
            if made.missing:
                self._fail(attempt, _failed(outcome, _missing(made.missing)))
            elif made.is_small:
                self._succeed(attempt, outcome, made, made.read(), doubted)
            else:
                self._aside.begin(made.read, partial(self._was_read, attempt, outcome, made, doubted))
        except DiskError as error:
            self._fail(attempt, _failed(outcome, str(error)))

    def _look_again(
        self,
        attempt: Attempt,
        outcome: Outcome,
        written: Witnessed | None,
        doubted: bool,
        pause: float,
        waited: float,
    ) -> None:
        """List the folders first, so that a network file system does not answer from memory."""
        for folder in {os.path.dirname(self._eyes.place(path)) for path in attempt.task.outputs}:
            with suppress(OSError):
                os.listdir(folder)
        self._look(attempt, outcome, written, doubted, pause, waited)

    def _was_read(
        self,
        attempt: Attempt,
        outcome: Outcome,
        made: Made,
        doubted: bool,
        read: Contents | BaseException,
    ) -> None:
        if isinstance(read, DiskError):
            self._fail(attempt, _failed(outcome, str(read)))
        elif isinstance(read, BaseException):
            raise read
        else:
            self._succeed(attempt, outcome, made, read, doubted)

    def _succeed(
        self,
        attempt: Attempt,
        outcome: Outcome,
        made: Made,
        read: Contents,
        doubted: bool = False,
    ) -> None:
        task = attempt.task
        evidence = self._eyes.evidence(made, read, attempt.whole, attempt.lost)
        if attempt.lost:
            told = ", ".join(attempt.lost[:_SHOWN])
            more = str(len(attempt.lost) - _SHOWN) if len(attempt.lost) > _SHOWN else ""
            self._inbox.note("partial_result", task.id, lost=told, more=more)
        for path in made.untouched:
            self._inbox.note("output_untouched", task.id, path=path)
        for path in evidence.stale:
            self._inbox.note("input_changed", task.id, path=path)
        if task.benchmark:
            self._write_benchmark(attempt, outcome)
        if task.protected and not attempt.lost:  # what is partial is to be made again
            self._protect(task)
        if not doubted:
            self._leave_log(attempt)
        if task.finds and self._discoveries is not None:
            self._discoveries.ended(attempt, outcome, evidence, doubted)
        else:
            self._inbox.tell(Ended(task.id, attempt.n, outcome, evidence, doubted))

    def _leave_log(self, attempt: Attempt) -> None:
        """Where nothing was printed, the next attempt on this machine may have the log."""
        sent = attempt.submission
        if sent is None or sent.private_log or attempt.task.log or attempt.adopted or attempt.task.call:
            return
        if not self._part(attempt.task).abilities.batch:
            self._spare_logs.append(sent.log)

    def _protect(self, task: ScheduledTask) -> None:
        """Make read-only what is to be so, before it is known that the task succeeded."""
        for path in task.protected:
            try:
                protect(self._eyes.place(path))
            except DiskError as error:
                self._inbox.note("not_protected", task.id, problem=str(error))

    def _fail(self, attempt: Attempt, outcome: Outcome) -> None:
        task = attempt.task
        if outcome.reason is EndReason.APP and (full := self._full_folders(attempt)):
            self.full.update(full)
            message = outcome.message or f"hardly anything is free on the file system of '{full[0]}'"
            outcome = replace(outcome, reason=EndReason.DISK, message=message)
        if task.outputs and not task.policy.resumable:
            self.clear(attempt)
        if outcome.reason in _TOLD:
            self._write_script(attempt)
        self._inbox.tell(Ended(task.id, attempt.n, outcome))

    def clear(self, attempt: Attempt) -> None:
        """Set aside what an attempt made that is no success."""
        task = attempt.task
        try:
            for moved in set_aside_made(task.outputs, attempt.standing, self._eyes.workdir):
                self._inbox.note("set_aside", task.id, path=moved.path, aside=moved.aside)
        except DiskError as error:
            self._inbox.note("not_set_aside", task.id, problem=str(error))

    def _full_folders(self, attempt: Attempt) -> list[str]:
        """Folders that this attempt wrote to, or ours, whose file system is full."""
        folders = {os.path.dirname(self._eyes.place(path)) for path in attempt.task.outputs}
        if attempt.scratch:
            folders.add(attempt.scratch)
        if attempt.task.call is not None:
            folders.add(self._written_by(attempt.task.call))
        return [folder for folder in [self._run.root, *sorted(folders)] if is_full(folder)]

    def _written_by(self, call: Call) -> str:
        """The folder in which a step writes: what goes to a URL is staged on this machine."""
        if not is_url(call.path):
            return os.path.dirname(self._eyes.place(call.path))
        from treadle.steps.staging import staging_base  # hardly ever so

        return staging_base()

    def _write_script(self, attempt: Attempt) -> None:
        """The attempt as a script to run by hand, for whoever looks into the failure."""
        path = self._run.attempt_text(attempt.n)
        if attempt.submission is None or attempt.adopted:
            return
        if os.path.exists(path):  # it is there: the text was too long
            return
        if not os.path.isdir(self._run.root):  # somebody removed it: it must not come back with this in it
            return
        try:
            make_parents(path)
            text = self._mask.text(self._backend.render_script(attempt.submission))
            write_whole(path, text.encode(), 0o600 if attempt.submission.private_log else 0o666)
        except DiskError:
            pass  # the failure itself is what counts

    def _write_benchmark(self, attempt: Attempt, outcome: Outcome) -> None:
        usage = outcome.usage
        figures = (usage.wall, usage.cpu, usage.memory)
        line = "\t".join("NA" if figure is None else f"{round(figure, 3)}" for figure in figures)
        try:
            write_whole(
                self._eyes.place(attempt.task.benchmark),
                f"wall_seconds\tcpu_seconds\tpeak_memory_bytes\n{line}\n".encode(),
            )
        except DiskError as error:
            self._inbox.note("not_written", attempt.task.id, problem=str(error))

    def _mask_log(self, attempt: Attempt) -> None:
        problem = mask_log(attempt.folder, attempt.n, self._mask)
        if problem:
            self._inbox.note("not_written", attempt.task.id, problem=problem)

    def _copy_log(self, attempt: Attempt) -> None:
        source, target = attempt.folder.attempt_log(attempt.n), self._eyes.place(attempt.task.log)
        try:
            if not (attempt.adopted and os.path.exists(target) and os.path.samefile(source, target)):
                _copy(source, target)
        except FileNotFoundError:
            pass  # it never began to write
        except OSError as error:
            self._inbox.note("not_written", attempt.task.id, problem=str(disk_error("write", target, error)))


def mask_log(run: RunFolder, n: int, mask: Mask) -> str:
    """Put the log of an attempt that held secrets in its place, masked; what went wrong, or nothing."""
    private, log = run.private_log(n), run.attempt_log(n)
    try:
        mask.copy(private, log)
        os.unlink(private)
    except FileNotFoundError:
        pass  # it never began to write, or was masked already
    except OSError as error:
        return str(disk_error("write", log, error))
    return ""


def _failed(outcome: Outcome, message: str) -> Outcome:
    return replace(outcome, reason=EndReason.APP, message=message)


def _missing(paths: tuple[str, ...]) -> str:
    told = ", ".join(paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"it ended with exit code 0 but did not make {told}{more}"


def _copy(source: str, target: str) -> None:
    mode = os.stat(source).st_mode & 0o777  # that of a log which held secrets is its owner's alone
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with open(source, "rb", buffering=0) as log, open(fd, "wb", buffering=0) as copy:
        while block := log.read(_BLOCK):
            view = memoryview(block)
            while view:
                view = view[copy.write(view) :]
