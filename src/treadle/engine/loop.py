"""The loop around the machine: collect news, handle, write, obey; and wait without polling.

    signals, timers, ends of jobs, contents read aside  ->  news
    machine.handle(news)                                ->  events, commands
    records.write(events)                                   all in one write, before anything is obeyed
    obey(commands)                                          starts of one turn are one batch
    listener(events)

When events cannot be written (a full disk), the starts among the commands are not obeyed but told to
the machine as failed for the disk; the events wait and are written first of all once there is space.
"""

from __future__ import annotations

import contextlib
import gc
import selectors
import signal
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from treadle.base.errors import DiskError, PlanError, SchedulerError
from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.base.proc import usable_memory
from treadle.decide.evidence import examine
from treadle.decide.reason import Decision, InputChanged, NeverRan
from treadle.engine.aside import Aside
from treadle.engine.attempt import Attempt
from treadle.engine.backend import Accepted, ExecutorBackend, JobReport, JobStatus, Submission
from treadle.engine.budget import impossible
from treadle.engine.check import SMALL, Eyes
from treadle.engine.clock import Clock, RealClock, Timers
from treadle.engine.compose import Place
from treadle.engine.conclude import Concluder, is_full
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    DiskFine,
    DiskFull,
    Elapsed,
    Ended,
    Examine,
    Examined,
    Finish,
    InFlight,
    Interrupt,
    Interrupted,
    Launch,
    News,
    Opened,
    Order,
    Refused,
    RemoveTemporary,
    Running,
    Started,
    Wait,
    WatchDisk,
)
from treadle.engine.options import Beating, DriveOptions, DriveResult, Failure, Listener, Records
from treadle.engine.prepare import Preparer
from treadle.engine.signals import Signals, Wake, exit_code_of
from treadle.engine.slate import EMPTY
from treadle.engine.state import Machine
from treadle.engine.unneeded import Undertaker
from treadle.plan.task import ScheduledPlan
from treadle.records.event import (
    EndReason,
    Event,
    Evidence,
    FileRecord,
    Noticed,
    Outcome,
    OutputEvicted,
    RunEnded,
    evidence_key,
)
from treadle.records.past import Past

__all__ = ["DriveOptions", "DriveResult", "Failure", "drive"]

SYNC_AFTER = 2.0
BEAT_AFTER = 15.0
LOOK_AT_DISK = 10.0
DISK_PATIENCE = 600.0

_WAKE, _BACKEND = "wake", "backend"


def drive(
    plan: ScheduledPlan,
    decision: Decision,
    past: Past,
    backend: ExecutorBackend,
    records: Records,
    options: DriveOptions,
    *,
    run: RunFolder,
    workdir: str,
    flowdir: str = "",
    secrets: Mapping[str, str] | None = None,
    mask: Mask | None = None,
    lock: Beating | None = None,
    listener: Listener | None = None,
    clock: Clock | None = None,
    known: Mapping[str, FileRecord | None] | None = None,
    digest: str = "",
    adopted: Mapping[str, InFlight] | None = None,
) -> DriveResult:
    """Carry out a decision: everything that will run runs, and is recorded.

    `workdir` and `flowdir` are absolute; `secrets` are values by the variable that holds them; `known`
    are records of files whose contents were read already (`Facts.records`); `digest` is the plan's.
    `listener` hears the events of each turn after they were written.

    Raises `PlanError` before anything starts when a task needs a GPU that is not here, `LockError` when
    the lock is lost. Whatever is raised, no local attempt is left running.
    """
    driver = _Driver(
        plan=plan,
        past=past,
        backend=backend,
        records=records,
        options=options,
        run=run,
        place=Place(workdir, flowdir or workdir, options.memory or usable_memory()),
        secrets=secrets or {},
        mask=mask or Mask(),
        lock=lock,
        listener=listener or (lambda events: None),
        clock=clock or RealClock(),
        known=known or {},
    )
    to_run = (plan.tasks[task] for task in decision.to_run())
    refused = impossible(options.budget(plan.pools), to_run)
    if refused:
        raise PlanError(refused)
    return driver.run(Opened(plan, decision, digest, adopted or {}))


class _Driver:
    """One run. `_news` are for the next turn, `_notes` events of our own for its write."""

    def __init__(
        self,
        *,
        plan: ScheduledPlan,
        past: Past,
        backend: ExecutorBackend,
        records: Records,
        options: DriveOptions,
        run: RunFolder,
        place: Place,
        secrets: Mapping[str, str],
        mask: Mask,
        lock: Beating | None,
        listener: Listener,
        clock: Clock,
        known: Mapping[str, FileRecord | None],
    ) -> None:
        self._plan = plan
        self._past = past
        self._backend = backend
        self._records = records
        self._options = options
        self._run_folder = run
        self._place = place
        self._lock = lock
        self._listener = listener
        self._clock = clock
        self._machine = Machine(options.settings(), options.budget(plan.pools))
        self._wake = Wake()
        self._signals = Signals(self._wake)
        self._timers = Timers()
        self._aside: Aside[Any] = Aside(self._wake.ring)
        self._eyes = Eyes(place.workdir, place.flowdir, known)
        self._undertaker = Undertaker(plan.name, past, self._eyes)
        self._news: list[News] = []
        self._notes: list[Event] = []
        self._unwritten: list[Event] = []
        self._burials: list[OutputEvicted] = []
        self._jobs: dict[str, Attempt] = {}
        self._poll_due = False
        self._sync_due = False
        self._disk_until = 0.0  # when a full disk is given up; 0: it is not watched
        self._gave_up = False  # waiting for space
        self._signalled = False
        self._exit: int | None = None
        self._preparer = Preparer(
            run=run,
            place=place,
            plan=plan.name,
            backend=backend.name,
            past=past,
            eyes=self._eyes,
            secrets=secrets,
            grace=options.grace,
        )
        self._concluder = Concluder(
            run=run,
            backend=backend,
            eyes=self._eyes,
            mask=mask,
            aside=self._aside,
            tell=self._news.append,
            note=self._note,
        )

    def run(self, opened: Opened) -> DriveResult:
        """Turn by turn, until the machine says that the run is over."""
        self._news.append(opened)
        selector = selectors.DefaultSelector()
        selector.register(self._wake.reader, selectors.EVENT_READ, _WAKE)
        backend_fd = self._backend.fileno()
        if backend_fd is not None:
            selector.register(backend_fd, selectors.EVENT_READ, _BACKEND)
        gc.freeze()  # the plan stays: the collector need not walk over it again and again
        try:
            with self._signals:
                self._adopt(opened)
                self._beat()
                while not self._is_over():
                    self._collect()
                    if self._exit is None:
                        self._turn()
                    if not self._is_over():
                        self._wait(selector)
                self._sync()
        except BaseException:
            self._abandon()
            raise
        finally:
            gc.unfreeze()
            selector.close()
            self._aside.close()
            self._wake.close()
        return self._result()

    def _is_over(self) -> bool:
        """The machine is done, and its last events are written, or given up: the next run finds out from
        the journal how far we came."""
        return self._exit is not None and (not self._unwritten or self._gave_up)

    # A turn

    def _collect(self) -> None:
        for number in self._signals.take():
            self._on_signal(number)
        self._timers.fire(self._clock.monotonic())
        self._aside.hand_back()
        if self._poll_due:
            self._poll_due = False
            self._poll()

    def _turn(self) -> None:
        if not self._news and not self._notes:
            return
        now = self._clock.now()
        batch = self._news.copy()
        self._news.clear()  # the list itself is known to others
        turn = self._machine.handle(batch, now)
        events = self._notes + turn.events
        self._notes = []
        starting: list[Attempt] = []
        for command in turn.commands:
            match command:
                case Launch():
                    events.append(self._intent(command, now, starting))
                case RemoveTemporary():
                    burial = self._undertaker.bury(command, now)
                    if burial is not None:
                        self._burials.append(burial)
                        events.append(burial)
                case _:
                    pass
        _put_end_last(events)
        written = self._write(events)
        self._obey(turn.commands)
        if written:
            self._remove_buried()
            self._start(starting)
        else:
            for attempt in starting:
                self._on_no_space(attempt, "the journal could not be written")
        if events:
            self._listener(events)

    def _write(self, events: list[Event], *, again: bool = False) -> bool:
        """Write; False: the disk refuses, and they wait. While some wait only `again` tries the disk."""
        pending = self._unwritten + events
        if not pending:
            return True
        if self._unwritten and not again:
            self._unwritten = pending
            return False
        try:
            self._records.write(pending)
        except DiskError:
            if not self._unwritten:
                self._news.append(DiskFull())
                self._watch_disk()
            self._unwritten = pending
            return False
        self._unwritten = []
        if not self._sync_due:
            self._sync_due = True
            self._timers.add(self._clock.monotonic() + SYNC_AFTER, self._sync)
        return True

    def _sync(self) -> None:
        self._sync_due = False
        try:
            self._records.sync()
        except DiskError:
            self._sync_due = True
            self._timers.add(self._clock.monotonic() + SYNC_AFTER, self._sync)

    def _obey(self, commands: Sequence[Order]) -> None:
        for command in commands:
            match command:
                case Examine():
                    self._examine(command)
                case Cancel():
                    self._cancel(command)
                case Wait():
                    at = self._clock.monotonic() + command.seconds
                    self._timers.add(at, partial(self._news.append, Elapsed(command.task)))
                case WatchDisk():
                    self._watch_disk()
                case Finish():
                    self._exit = command.exit_code
                case _:
                    pass  # launches and removals come after their events

    def _wait(self, selector: selectors.BaseSelector) -> None:
        """Wait until something happens, or something is due."""
        now = self._clock.monotonic()
        timeout: float | None = 0.0
        if self._exit is not None or not (self._news or self._notes):
            due = self._timers.next()
            timeout = None if due is None else max(0.0, due - now)
        wish = self._backend.next_timeout()
        if wish is not None and (timeout is None or wish <= timeout):
            timeout = wish
            self._poll_due = True
        for what in self._clock.wait(selector, timeout):
            if what is _BACKEND:
                self._poll_due = True
            else:
                self._wake.drain()

    # Attempts

    def _intent(self, launch: Launch, now: float, starting: list[Attempt]) -> Event:
        try:
            attempt, event = self._preparer.intent(launch, now)
        except DiskError as error:
            self._news.append(Refused(launch.task.id, launch.n, str(error)))
            return self._preparer.submitted(launch, now)
        starting.append(attempt)
        return event

    def _start(self, attempts: list[Attempt]) -> None:
        batch: list[Submission] = []
        ready: list[Attempt] = []
        for attempt in attempts:
            try:
                submission, moved = self._preparer.submission(attempt)
            except DiskError as error:
                if error.diagnostics[0].code == "disk-full":
                    self._on_no_space(attempt, str(error))
                else:
                    self._news.append(Refused(attempt.task.id, attempt.n, str(error)))
                continue
            for one in moved:
                self._note("set_aside", attempt.task.id, path=one.path, aside=one.aside)
            batch.append(submission)
            ready.append(attempt)
        if not batch:
            return
        if self._backend.abilities.batch:
            self._sync()
        try:
            answers = self._backend.submit(batch)
        except SchedulerError as error:
            self._news.append(BackendFailed(str(error)))
            lost = Outcome(reason=EndReason.LOST, message=str(error))
            self._news.extend(Ended(attempt.task.id, attempt.n, lost) for attempt in ready)
            return
        for attempt, answer in zip(ready, answers, strict=True):
            if isinstance(answer, Accepted):
                attempt.job = answer.job
                self._jobs[answer.job] = attempt
                self._concluder.accepted(attempt)
                running = attempt.running = not self._backend.abilities.batch
                self._news.append(Started(attempt.task.id, attempt.n, answer.job, answer.started, running))
            else:
                self._news.append(Refused(attempt.task.id, attempt.n, answer.message))

    def _on_no_space(self, attempt: Attempt, message: str) -> None:
        outcome = Outcome(reason=EndReason.DISK, message=message)
        self._news.append(Ended(attempt.task.id, attempt.n, outcome))

    def _adopt(self, opened: Opened) -> None:
        for task, job in opened.adopted.items():
            held = opened.plan.tasks[task]
            attempt = Attempt(held, job.attempt, job.n, held.resources, EMPTY)
            attempt.job = job.job
            attempt.before = self._eyes.before(held)
            self._jobs[job.job] = attempt
        self._poll_due = bool(self._jobs)

    def _poll(self) -> None:
        if not self._jobs:
            return
        try:
            reports = self._backend.poll(list(self._jobs))
        except SchedulerError as error:
            self._news.append(BackendFailed(str(error)))
            return
        for report in reports:
            self._hear(report)

    def _hear(self, report: JobReport) -> None:
        attempt = self._jobs.get(report.job)
        if attempt is None:
            return
        if report.status is JobStatus.RUNNING and not attempt.running:
            attempt.running = True
            self._news.append(Running(attempt.task.id, attempt.n))
        elif report.outcome is not None:
            del self._jobs[report.job]
            self._concluder.end(attempt, report.outcome)

    def _cancel(self, command: Cancel) -> None:
        try:
            self._backend.cancel(command.jobs, force=command.force)
        except SchedulerError as error:
            self._news.append(BackendFailed(str(error)))
        self._poll_due = True

    def _abandon(self) -> None:
        """We cannot go on: leave no process behind. Jobs that outlive a driver are left to the next one."""
        if self._backend.abilities.adoption:
            return
        with contextlib.suppress(Exception):
            until = time.monotonic() + 5.0
            self._backend.cancel(list(self._jobs), force=True)
            while self._jobs and time.monotonic() < until:
                for report in self._backend.poll(list(self._jobs)):
                    if report.outcome is not None:
                        self._jobs.pop(report.job, None)
                time.sleep(0.01)

    # Cut-off and temporary outputs

    def _examine(self, command: Examine) -> None:
        task = command.task
        evidence = self._past.evidence(evidence_key(self._plan.name, task.id, task.outputs))
        if evidence is None:
            self._news.append(Examined(task.id, command.round, (NeverRan(),)))
            return
        work = partial(
            examine,
            task,
            evidence,
            self._place.workdir,
            self._place.flowdir,
            known=self._eyes.known,
            tombstone=self._undertaker.tombstone,
        )
        then = partial(self._on_examined, command, evidence)
        try:
            large = self._eyes.unread_bytes(task) > SMALL
        except DiskError:
            large = True  # the error is told where the work is done
        if large:
            self._aside.begin(work, then)
        else:
            try:
                then(work())
            except DiskError as error:
                then(error)

    def _on_examined(self, command: Examine, old: Evidence, found: Any) -> None:
        task = command.task.id
        if isinstance(found, DiskError):
            # What cannot be read cannot be shown to be unchanged; the attempt will tell what is wrong.
            self._news.append(Examined(task, command.round, (InputChanged(path="", how="stat"),)))
            return
        if isinstance(found, BaseException):
            raise found
        reasons, evidence = found
        self._eyes.learn((*evidence.inputs, *evidence.outputs))
        fresh = None if evidence is old else evidence
        self._news.append(Examined(task, command.round, reasons, fresh))

    def _remove_buried(self) -> None:
        burials, self._burials = self._burials, []
        for burial in burials:
            try:
                self._undertaker.remove(burial)
            except DiskError as error:
                self._note("not_removed", burial.task, problem=str(error))

    # Signals, disk, lock

    def _on_signal(self, number: int) -> None:
        """The first one as it was asked for, any further one at once."""
        how = self._options.on_interrupt
        if how is None:
            leaves = number == signal.SIGHUP and self._backend.abilities.adoption
            how = Interrupt.DETACH if leaves else Interrupt.CANCEL
        if self._signalled:
            how = Interrupt.CANCEL
        self._signalled = True
        self._gave_up = self._gave_up or bool(self._unwritten)  # nobody wants to wait for space now
        self._news.append(Interrupted(how, exit_code_of(number)))

    def _watch_disk(self) -> None:
        if not self._disk_until:
            now = self._clock.monotonic()
            self._disk_until = now + DISK_PATIENCE
            self._timers.add(now + LOOK_AT_DISK, self._look_at_disk)

    def _look_at_disk(self) -> None:
        """Whether there is space again, for the journal and for what attempts write."""
        now = self._clock.monotonic()
        full = {*self._concluder.full, self._run_folder.root}
        if self._write([], again=True) and not any(map(is_full, sorted(full))):
            self._disk_until = 0.0
            self._concluder.full.clear()
            self._news.append(DiskFine())
        elif now < self._disk_until or self._options.patient:
            self._timers.add(now + LOOK_AT_DISK, self._look_at_disk)
        else:
            self._disk_until = 0.0
            self._gave_up = True
            self._news.append(DiskFull(gave_up=True))

    def _beat(self) -> None:
        if self._lock is not None:
            self._lock.beat()
            self._timers.add(self._clock.monotonic() + BEAT_AFTER, self._beat)

    # Talk

    def _note(self, code: str, task: str = "", **values: str) -> None:
        self._notes.append(Noticed(time=self._clock.now(), code=code, task=task, values=values))

    def _result(self) -> DriveResult:
        machine = self._machine
        assert self._exit is not None
        return DriveResult(
            exit_code=3 if self._unwritten and self._exit < 128 else self._exit,
            counts={end.value: count for end, count in machine.counts.items() if count},
            failures=tuple(
                Failure(
                    task=event.task,
                    attempt=event.attempt,
                    n=event.n,
                    outcome=event.outcome,
                    log=self._run_folder.attempt_log(event.n),
                )
                for event in machine.failures.values()
            ),
            blocked=dict(machine.blocked),
        )


def _put_end_last(events: list[Event]) -> None:
    """Nothing may come after the end of the run."""
    for at in range(len(events) - 2, -1, -1):
        if type(events[at]) is RunEnded:
            events.append(events.pop(at))
            return
        if type(events[at]) is not OutputEvicted:
            return
