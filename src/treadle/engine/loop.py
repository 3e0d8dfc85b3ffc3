"""The loop around the machine: collect news, handle, write, obey; and wait without polling.

    signals, timers, ends of jobs, contents read aside  ->  news
    machine.handle(news)                                ->  events, commands
    scribe.write(events)                                    all in one write, before anything is obeyed
    obey(commands)                                          starts of one turn are one batch
    listener(events)

When events cannot be written (a full disk), the starts among the commands are not obeyed but told to
the machine as failed for the disk; the events wait and are written first of all once there is space.
"""

from __future__ import annotations

import gc
import selectors
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

from msgspec.structs import replace

from treadle.base.errors import DiskError, PlanError
from treadle.base.layout import RunFolder
from treadle.base.mask import Mask
from treadle.base.proc import usable_memory
from treadle.decide.reason import Decision
from treadle.engine.aside import Aside
from treadle.engine.backend import ExecutorBackend
from treadle.engine.besides import joins_by, keep_line
from treadle.engine.budget import impossible
from treadle.engine.check import Eyes
from treadle.engine.clock import Clock, RealClock, Timers
from treadle.engine.compose import Place
from treadle.engine.conclude import Concluder
from treadle.engine.cutoff import Examiner
from treadle.engine.discoveries import Discoveries, Grower
from treadle.engine.feed import Feed
from treadle.engine.inbox import Inbox
from treadle.engine.jobs import Jobs
from treadle.engine.news import (
    Cancel,
    Elapsed,
    Examine,
    Finish,
    InFlight,
    Interrupt,
    Interrupted,
    Launch,
    Leave,
    Opened,
    Order,
    RemoveTemporary,
    Wait,
    WatchDisk,
)
from treadle.engine.node import Fewer
from treadle.engine.options import Beating, DriveOptions, DriveResult, Failure, Listener, Records
from treadle.engine.prepare import Preparer
from treadle.engine.scribe import Scribe
from treadle.engine.signals import Signals, Wake, exit_code_of
from treadle.engine.source import Source
from treadle.engine.state import Machine
from treadle.engine.unneeded import Undertaker
from treadle.plan.task import ScheduledPlan
from treadle.records.event import Event, FileRecord, OutputEvicted, RunDetached, RunEnded
from treadle.records.past import Past

__all__ = ["BackendDriver", "DriveOptions", "DriveResult", "Failure", "drive"]

BEAT_AFTER = 15.0
ECHO = 1.0  # seconds in which SIGTERM that comes again to our own job is the same one
NEAR_END = 600.0  # seconds before the end of our own job, in which SIGTERM is told by the scheduler
_GARBAGE = 10_000  # new objects from one collection to the next
_WAKE, _BACKEND = "wake", "backend"


class Wiring(TypedDict, total=False):
    """What a run may be driven with besides: see `BackendDriver`."""

    flowdir: str
    secrets: Mapping[str, str] | None
    mask: Mask | None
    lock: Beating | None
    listener: Listener | None
    clock: Clock | None
    known: Mapping[str, FileRecord | None] | None
    digest: str
    adopted: Mapping[str, InFlight] | None
    after: int
    source: Source | None
    fewer: Fewer | None
    grower: Grower | None


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
    **wiring: Unpack[Wiring],
) -> DriveResult:
    """Carry out a decision: everything that will run runs, and is recorded. See `BackendDriver`."""
    driver = BackendDriver(
        plan, decision, past, backend, records, options, run=run, workdir=workdir, **wiring
    )
    return driver.run()


class BackendDriver:
    """Carries out a decision through a backend: everything that will run runs, and is recorded.

    It never decides what to run. `workdir` and `flowdir` are absolute; `secrets` are values by the variable
    that holds them; `known` are records of files whose contents were read already (`Facts.records`);
    `digest` is the plan's; `adopted` are jobs of earlier runs that may still live, and `after` the largest
    number of an attempt of theirs, adopted or not. `listener` hears the events
    of each turn after they were written. `source` brings further batches while the run goes on, which is
    not over before that is done; `grower` the larger plans that come of what checkpoint tasks find. `fewer`
    fills in gathers that go on without some of their inputs (None: there are none).
    """

    def __init__(
        self,
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
        after: int = 0,
        source: Source | None = None,
        fewer: Fewer | None = None,
        grower: Grower | None = None,
    ) -> None:
        self._opened = Opened(plan, decision, digest, adopted or {}, source is not None, after)
        self._backend = backend
        self._options = options
        self._run_folder = run
        self._lock = lock
        self._listener = listener or _deaf
        self._clock = clock = clock or RealClock()
        ahead = keep_line(backend, options.max_concurrent)
        self._budget = replace(options.budget(plan), ahead=ahead)
        self._machine = Machine(options.settings(), self._budget, fewer, joins_by(backend))
        self._inbox = inbox = Inbox(clock)
        self._wake = Wake()
        self._signals = Signals(self._wake)
        self._timers = Timers()
        self._aside: Aside[Any] = Aside(self._wake.ring)
        self._feed = Feed(source, self._machine, inbox) if source is not None else None
        memory = options.memory or usable_memory()
        place = Place(workdir, flowdir or workdir, memory, options.scratch_dir)
        self._eyes = eyes = Eyes(place.workdir, place.flowdir, known or {})
        self._undertaker = Undertaker(plan.name, past, eyes)
        self._discoveries = discoveries = (
            Discoveries(
                grower,
                self._machine,
                inbox,
                eyes.learn,
                lock.beat if lock is not None else _still,
                clock,
                self._timers,
            )
            if grower is not None
            else None
        )
        self._burials: list[OutputEvicted] = []
        self._signalled = False
        self._left = False  # what was asked for last is to leave jobs at work
        self._terminated: float | None = None  # when SIGTERM was last heard, where we are a job
        self._exit: int | None = None
        self._examiner = Examiner(
            plan=plan.name,
            past=past,
            eyes=eyes,
            undertaker=self._undertaker,
            aside=self._aside,
            inbox=inbox,
            discoveries=discoveries,
        )
        spare_logs: list[str] = []
        preparer = Preparer(
            run=run,
            place=place,
            plan=plan.name,
            backend=backend,
            past=past,
            eyes=eyes,
            secrets=secrets or {},
            grace=options.grace,
            spare_logs=spare_logs,
        )
        concluder = Concluder(
            run=run,
            backend=backend,
            eyes=eyes,
            mask=mask or Mask(),
            aside=self._aside,
            inbox=inbox,
            later=lambda pause, then: self._timers.add(clock.monotonic() + pause, then),
            spare_logs=spare_logs,
            discoveries=discoveries,
        )
        self._jobs = Jobs(backend, preparer, concluder, inbox)
        self._scribe = Scribe(
            records,
            clock=clock,
            timers=self._timers,
            inbox=inbox,
            folders=lambda: [run.root, *sorted(concluder.full)],
            patient=options.patient,
        )

    def run(self) -> DriveResult:
        """Turn by turn, until the machine says that the run is over. Only once.

        May be called in any thread: signals are heard in the main one alone.

        Raises `PlanError` before anything starts when a task needs a GPU that is not here, `LockError` when
        the lock is lost. Whatever is raised, no local attempt is left running.
        """
        opened = self._opened
        tasks = map(opened.plan.tasks.__getitem__, opened.decision.to_run())
        if refused := impossible(self._budget, tasks):
            self._wake.close()
            raise PlanError(refused)
        self._inbox.tell(opened)
        selector = selectors.DefaultSelector()
        selector.register(self._wake.reader, selectors.EVENT_READ, _WAKE)
        backend_fd = self._backend.fileno()
        if backend_fd is not None:
            selector.register(backend_fd, selectors.EVENT_READ, _BACKEND)
        gc.freeze()  # the plan stays: the collector need not walk over it again and again
        often = gc.get_threshold()
        gc.set_threshold(_GARBAGE, *often[1:])  # events stay, too, and what passes makes no rings
        try:
            with self._signals:
                self._jobs.adopt(opened.adopted, opened.plan, self._eyes)
                self._beat()
                if self._feed is not None:
                    self._feed.start(self._wake.ring)
                while not self._is_over():
                    self._collect()
                    if self._exit is None:
                        self._turn()
                    if not self._is_over():
                        self._wait(selector)
                self._scribe.sync()
            self._jobs.abandon()  # where the backend failed, ends of our own processes may not have been seen
        except BaseException:
            self._jobs.abandon()
            raise
        finally:
            gc.set_threshold(*often)
            gc.unfreeze()
            if self._feed is not None:
                self._feed.stop()
            selector.close()
            self._aside.close()
            self._wake.close()
        return self._result()

    def _is_over(self) -> bool:
        """The machine is done, and its last events are written, or given up: the next run finds out from
        the journal how far we came."""
        return self._exit is not None and (not self._scribe.waiting or self._scribe.gave_up)

    def _collect(self) -> None:
        for number in self._signals.take():
            self._on_signal(number)
        self._timers.fire(self._clock.monotonic())
        self._aside.hand_back()
        if self._jobs.poll_due:
            self._jobs.poll()
        if self._feed is not None:
            self._feed.take()
        if self._discoveries is not None:
            self._discoveries.settle()

    def _turn(self) -> None:
        if not self._inbox:
            return
        now = self._clock.now()
        news, notes = self._inbox.take()
        turn = self._machine.handle(news, now)
        events = notes + turn.events + self._intents(turn.commands, now)
        _put_end_last(events)
        written = self._scribe.write(events)
        for command in turn.commands:
            self._obey(command)
        if written:
            self._remove_buried()
            if self._jobs.intended and self._backend.abilities.batch:
                self._scribe.sync()
            self._jobs.start()
        else:
            self._jobs.drop("the journal could not be written")
        if events:
            self._listener(events)
        if self._feed is not None:
            self._feed.heard(turn.events)
        if self._discoveries is not None:
            self._discoveries.heard(turn.events)
            self._discoveries.settle()

    def _intents(self, commands: list[Order], now: float) -> list[Event]:
        """What must be written before the commands are obeyed."""
        events: list[Event] = []
        for command in commands:
            if type(command) is Launch:
                intent = self._jobs.intend(command, now)
                if intent is not None:
                    events.append(intent)
            elif type(command) is RemoveTemporary:
                burial = self._undertaker.bury(command, now)
                if burial is not None:
                    self._burials.append(burial)
                    events.append(burial)
        return events

    def _obey(self, command: Order) -> None:
        match command:
            case Launch() | RemoveTemporary():
                pass  # once their events are written
            case Examine():
                self._examiner.begin(command)
            case Cancel():
                self._jobs.cancel(command)
            case Leave():
                self._jobs.leave()
            case Wait():
                at = self._clock.monotonic() + command.seconds
                self._timers.add(at, partial(self._inbox.tell, Elapsed(command.task)))
            case WatchDisk():
                self._scribe.watch()
            case Finish():
                self._exit = command.exit_code

    def _remove_buried(self) -> None:
        burials, self._burials = self._burials, []
        for burial in burials:
            try:
                self._undertaker.remove(burial)
            except DiskError as error:
                self._inbox.note("not_removed", burial.task, problem=str(error))

    def _wait(self, selector: selectors.BaseSelector) -> None:
        """Wait until something happens, or something is due."""
        timeout: float | None = 0.0
        if self._exit is not None or not self._inbox:
            due = self._timers.next()
            timeout = None if due is None else max(0.0, due - self._clock.monotonic())
        wish = self._backend.next_timeout()
        if wish is not None and (timeout is None or wish <= timeout):
            timeout = wish
            self._jobs.poll_due = True
        for what in self._clock.wait(selector, timeout):
            if what is _BACKEND:
                self._jobs.poll_due = True
            else:
                self._wake.drain()

    def _on_signal(self, number: int) -> None:
        """The first one as it was asked for, any further one at once; but who is to leave jobs at work, and
        hears that again, leaves them."""
        how = self._options.on_interrupt
        leaves = how is None and self._leaves(number)
        if self._is_echo(number) or (leaves and self._left):
            return
        if how is None:
            how = Interrupt.DETACH if leaves else Interrupt.CANCEL
        if self._signalled:
            how = Interrupt.CANCEL
        self._signalled, self._left = True, how is Interrupt.DETACH
        if self._scribe.waiting:
            self._scribe.gave_up = True  # nobody wants to wait for space now
        self._inbox.tell(Interrupted(how, exit_code_of(number)))

    def _is_echo(self, number: int) -> bool:
        """Whether SIGTERM is heard a second time: a scheduler tells every process of our own job, and the
        wrapper around us passes it on."""
        if number != signal.SIGTERM or self._options.until is None:
            return False
        before, self._terminated = self._terminated, self._clock.monotonic()
        return before is not None and self._terminated - before < ECHO

    def _leaves(self, number: int) -> bool:
        """Whether jobs are left where they are: the terminal went away, or our own job is near its end."""
        if not self._backend.abilities.adoption:
            return False
        until = self._options.until
        return number == signal.SIGHUP or (
            number == signal.SIGTERM and until is not None and self._clock.now() > until - NEAR_END
        )

    def _beat(self) -> None:
        if self._lock is not None:
            self._lock.beat()
            self._timers.add(self._clock.monotonic() + BEAT_AFTER, self._beat)

    def _result(self) -> DriveResult:
        machine = self._machine
        assert self._exit is not None
        failures = (
            Failure(
                task=event.task,
                attempt=event.attempt,
                n=event.n,
                outcome=event.outcome,
                log=self._folder_of(event.run).attempt_log(event.n),
            )
            for event in machine.failures.values()
        )
        return DriveResult(
            exit_code=3 if self._scribe.waiting and self._exit < 128 else self._exit,
            counts={end.value: count for end, count in machine.counts.items() if count},
            failures=tuple(failures),
            blocked=dict(machine.blocked),
            detached=machine.left,
        )

    def _folder_of(self, run: str) -> RunFolder:
        return self._run_folder.beside(run) if run else self._run_folder


def _still() -> None:
    """Without a lock there is nothing to show."""


def _deaf(events: Sequence[Event]) -> None:
    """The listener of a run that nobody listens to."""


def _put_end_last(events: list[Event]) -> None:
    """Nothing may come after the end of the run; only tombstones can, by the order in which we collect."""
    at = len(events) - 1
    while at >= 0 and type(events[at]) is OutputEvicted:
        at -= 1
    if at >= 0 and isinstance(events[at], RunEnded | RunDetached):
        events.append(events.pop(at))
