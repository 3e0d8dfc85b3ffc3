"""From attempts that wait to jobs that the scheduler has: one submission at a time, its answer sorted.

    wait for company -> write the folder -> run the command -> taken      id written down, told
                                                            -> transient  again, later
                                                            -> limit      wait for room
                                                            -> refused    those tasks fail, in its words
                                                            -> unclear    look for the name first

Nothing is submitted again whose name the scheduler may know. Where it took a job after all, whose name it did
not yet show, the wrapper refuses to begin an attempt a second time.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from treadle.backends.cluster.arrays import Batch, Waiting, elements_of, likeness
from treadle.backends.cluster.dialect import Answer, Limits, Request, Silence, Sort
from treadle.backends.cluster.held import FORMAT, Element, Elements, Held, Sent
from treadle.backends.cluster.link import Link
from treadle.backends.cluster.packs import lacks_limit, pack_size, together
from treadle.backends.cluster.script import files_of, render_job
from treadle.backends.cluster.window import Window
from treadle.backends.cluster.words import job_name
from treadle.base.errors import DiskError
from treadle.base.files import make_parents, write_whole
from treadle.base.layout import RunFolder
from treadle.engine.backend import Submission
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import EndReason, Outcome

_ARRAY_SIZE = 1000  # where the site does not say: SLURM's own default
_SUBMITTED = 1000
_LOOKS = (2.0, 4.0, 8.0)  # seconds before each look for a name that may come late
_ABOUT_ARRAYS = re.compile(r"\barray\b", re.IGNORECASE)


class Draft(Struct, frozen=True):
    """A submission, ready to be written and sent."""

    sent: Sent
    batch: Batch
    request: Request
    argv: tuple[str, ...]
    stdin: str
    script: str
    files: tuple[tuple[str, str, int], ...]


class Submitter:
    """Takes attempts, and tells `taken` of each submission that the scheduler has, `ended` of each attempt
    that it will not have."""

    def __init__(
        self,
        link: Link,
        *,
        run: RunFolder | None,
        workdir: str,
        flowdir: str,
        taken: Callable[[Sent], None],
        ended: Callable[[Held, Outcome], None],
    ) -> None:
        self._link = link
        self._run = run
        self._workdir = workdir
        self._flowdir = flowdir or workdir
        self._taken = taken
        self._ended = ended
        settings = link.settings
        self.waiting = Waiting(settings.poll_interval, self.pack)
        self._lacking: set[str] = set()  # rules whose packs have no size
        self.window = Window(settings.max_submitted or _SUBMITTED)
        # Those that may run at once: of an array that the scheduler throttles never more than `max_running`.
        self._running = Window(settings.max_running) if settings.max_running else None
        self.chunk = settings.max_array_size or _ARRAY_SIZE
        self._ready = False
        self._busy: Draft | None = None  # on its way, or looked for
        self._asking = False
        self._looks = 0
        self._look_at: float | None = None
        self._not_before = 0.0
        self.count = 0  # submissions that were tried

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is on its way."""
        return not self.waiting and self._busy is None

    def is_waiting(self, held: Held) -> bool:
        """Whether it could still be dropped; else it is on its way, or the scheduler has it."""
        return held.sent is None and not (self._busy is not None and held in self._busy.sent.held)

    def advance(self, now: float) -> None:
        """Submit what can be submitted, look for what is unclear."""
        if self._asking:
            return
        if self._busy is not None:
            if self._look_at is not None and now >= self._look_at:
                self._look(self._busy)
            return
        if not self.waiting or now < self._not_before:
            return
        if not self._ready:
            self._ask_limits()
            return
        room = self._room(now)
        if room:
            alone = self.window.in_flight == 0
            if batch := self.waiting.take(min(room, self.chunk), now, alone=alone):
                self._submit(batch)

    def due(self, now: float) -> float | None:
        """When `advance` has something to do, if nothing happens before."""
        if self._asking:
            return None
        if self._busy is not None:
            return self._look_at
        if not self.waiting:
            return None
        if now < self._not_before:
            return self._not_before
        if not self._ready:
            return now
        if self._room(now):
            return now if self.window.in_flight == 0 else self.waiting.due()
        return self.window.wait_until(now)

    def _room(self, now: float) -> int:
        """How many jobs may be submitted now. While none could run, an array may be longer than the bound on
        what runs, where the scheduler keeps that itself: it need not be asked for each that follows."""
        room, running = self.window.room(now), self._running
        if running is None or (self._link.dialect.throttles and not running.in_flight):
            return room
        return min(room, running.room(now))

    def took(self, sent: Sent) -> None:
        """The scheduler has a submission: ours, or one of an earlier driver."""
        self.window.sent(sent.jobs)
        if self._running is not None:
            self._running.sent(min(sent.jobs, self._running.most))

    def left(self, sent: Sent) -> None:
        """A job of a submission has left the queue."""
        self.window.ended()
        if self._running is not None and sent.jobs < self._running.most:
            self._running.ended()

    def _ask_limits(self) -> None:
        """Once: what the site allows. It need not answer."""
        link = self._link
        argv = link.dialect.limits()
        self._asking = True

        def ask() -> Limits:
            return link.dialect.limits_of(link.commands.run(argv)) if argv else Limits()

        link.commands.begin(ask, self._limits_known)

    def _limits_known(self, limits: Limits | BaseException) -> None:
        self._asking = False
        if isinstance(limits, BaseException):
            self._link.failed(limits)
            return
        self._ready = True
        settings = self._link.settings
        if limits.array_size is not None:
            asked = settings.max_array_size or limits.array_size
            self.chunk = max(1, min(asked, limits.array_size))
        if settings.max_submitted is None and limits.submitted:
            self.window.lower(min(_SUBMITTED, limits.submitted))

    def pack(self, held: Held) -> int:
        """How many attempts such as this one make a job."""
        submission, settings = held.submission, self._link.settings
        assert submission is not None
        rule = submission.task.rule
        if lacks_limit(submission, settings) and rule not in self._lacking:
            self._lacking.add(rule)
            self._link.note("not_packed", rule=rule)
        return pack_size(submission, settings)

    def _submit(self, batch: Batch) -> None:
        self._busy = draft = self.draft(batch)
        self._asking = True
        self._looks, self._look_at = 0, None
        self.count += 1
        link = self._link

        def send() -> Answer:
            _write(draft)
            return link.dialect.submitted(link.commands.run(draft.argv, draft.stdin))

        link.commands.begin(send, self._answered)

    def draft(self, batch: Batch) -> Draft:
        """The whole submission of attempts that go together, as text: nothing is written."""
        first = batch[0][0].submission
        assert first is not None
        dialect, settings = self._link.dialect, self._link.settings
        folder = self._run_of(first).job(first.n, first.task.id)
        size = len(batch) if len(batch) > 1 else 0
        like = likeness(batch[0])
        request = Request(
            name=name_of(first, settings.job_prefix, dialect.name_length),
            script=folder.script,
            log=folder.log,
            workdir=first.cwd,
            resources=self._request_of(batch),
            size=size,
            running=settings.max_running if size > settings.max_running else 0,
            comment=_comment(self._run_of(first).run, batch),
            exclude=batch[0][0].exclude,
            requeue=like.restartable,
            signal_before=like.signal_before,
        )
        elements = elements_of(batch, self._flowdir)
        argv, stdin = dialect.submit(request)
        for at, job in enumerate(batch, 1):
            for held in job:
                held.index, held.several = at if size else 0, len(job) > 1
        attempts = [held for job in batch for held in job]
        sent = Sent(folder, request.name, bool(size), self._link.clock.now(), attempts)
        told = Elements(
            FORMAT,
            sent.name,
            sent.array,
            sent.time,
            tuple(Element(held.n, held.index, held.name) for held in attempts),
        )
        files = [(file.path, file.text, file.mode) for file in files_of(elements, folder)]
        files.append((folder.elements, msgspec.json.encode(told).decode(), 0o666))
        script = render_job(elements, dialect, request, folder)
        return Draft(sent, batch, request, tuple(argv), stdin, script, tuple(files))

    def _request_of(self, batch: Batch) -> Resources:
        """What is asked for, with the partition that this calls for."""
        link = self._link
        jobs = [[held.submission for held in job if held.submission is not None] for job in batch]
        wanted = together(jobs, link.settings)
        if wanted.time_limit is not None:
            link.longest = max(wanted.time_limit, link.longest or 0)
        if link.settings.partitions:
            from treadle.backends.cluster.configured import placed

            return placed(link.settings, wanted)
        return wanted

    def _run_of(self, submission: Submission) -> RunFolder:
        """The run of an attempt: its log stands in it."""
        return self._run or RunFolder(os.path.dirname(os.path.dirname(submission.log)))

    def _answered(self, answer: Answer | BaseException) -> None:
        draft = self._busy
        assert draft is not None
        self._asking = False
        if isinstance(answer, DiskError):
            full = answer.diagnostics[0].code == "disk-full"
            self._end_all(draft, EndReason.DISK if full else EndReason.NEVER_STARTED, str(answer))
            return
        if isinstance(answer, BaseException):
            self._put_back(draft, whole=True)
            self._link.failed(answer)
            return
        self._sort(draft, answer)

    def _sort(self, draft: Draft, answer: Answer) -> None:
        link, size, now = self._link, len(draft.batch), self._link.now()
        if answer.sort is Sort.TRANSIENT:
            self._not_before = now + link.silent(answer.message)
            self._put_back(draft, whole=True)
            return
        if answer.sort is Sort.UNCLEAR:
            link.note("submission_unclear", name=draft.sent.name, message=answer.message)
            self._look_at = now
            return
        link.answered()
        if answer.sort is Sort.DONE:
            self._has_it(draft, answer.job)
        elif answer.sort is Sort.LIMIT:
            self.window.limited(now, size)
            link.note("submission_limited", message=answer.message, size=str(size))
            self._put_back(draft, whole=False)
        elif size > 1 and _ABOUT_ARRAYS.search(answer.message):
            self.chunk = max(1, size // 2)
            self._put_back(draft, whole=False)
        else:
            self._end_all(draft, EndReason.NEVER_STARTED, answer.message)

    def _has_it(self, draft: Draft, job: str) -> None:
        sent, dialect, now = draft.sent, self._link.dialect, self._link.now()
        self._busy, self._look_at = None, None
        sent.id = job
        try:
            write_whole(sent.folder.id, f"{job}\n".encode())
        except DiskError:  # the journal has it, and the name is there to be looked for
            pass
        for held in sent.held:
            held.took(sent, dialect.element(job, held.index) if sent.array else job, now)
        self._taken(sent)

    def _look(self, draft: Draft) -> None:
        """The answer was unclear: does the scheduler know the name?"""
        link, sent = self._link, draft.sent
        self._asking = True

        def look() -> dict[str, str] | Silence:
            return find_names(link, [sent.name], sent.time)

        link.commands.begin(look, self._looked)

    def _looked(self, found: dict[str, str] | Silence | BaseException) -> None:
        draft, link = self._busy, self._link
        assert draft is not None
        self._asking = False
        if isinstance(found, BaseException):
            link.failed(found)
            self._look_at = link.now() + _LOOKS[-1]
        elif isinstance(found, Silence):
            self._look_at = link.now() + link.silent(found.message)
        elif draft.sent.name in found:
            link.answered()
            self._has_it(draft, found[draft.sent.name])
        elif self._looks < len(_LOOKS):
            link.answered()
            self._look_at = link.now() + min(_LOOKS[self._looks], link.settings.poll_interval)
            self._looks += 1
        else:
            link.note("submitted_again", name=draft.sent.name)
            self._put_back(draft, whole=True)

    def finish(self) -> None:
        """Wait for a submission that is on its way, as long as a command may take."""
        until = time.monotonic() + self._link.settings.command_timeout + 1.0
        while self._busy is not None and self._asking and time.monotonic() < until:
            self._link.commands.wait(0.2)
            self._link.commands.hand_back()

    def _put_back(self, draft: Draft, *, whole: bool) -> None:
        self._busy, self._look_at = None, None
        for held in draft.sent.held:
            if held.cancelled:
                self._ended(held, Outcome(reason=EndReason.CANCELLED))
        self.waiting.put_back(draft.batch, whole=whole, now=self._link.now())

    def _end_all(self, draft: Draft, reason: EndReason, message: str) -> None:
        self._busy, self._look_at = None, None
        for held in draft.sent.held:
            self._ended(held, Outcome(reason=reason, message=message))


def find_names(link: Link, names: Sequence[str], since: float) -> dict[str, str] | Silence:
    """Ids of jobs (of arrays, the whole) by their names: the queue and accounting, both must have answered.

    For any thread.
    """
    found: dict[str, str] = {}
    for argv in link.dialect.find(names, link.user, since):
        answer = link.dialect.found(argv, link.commands.run(argv))
        if isinstance(answer, Silence):
            return answer
        for name, job in answer.items():
            found.setdefault(name, job)
    return {name: job for name, job in found.items() if name in set(names)}


def name_of(submission: Submission, prefix: str, longest: int) -> str:
    """The name of a job: the user's prefix and the rule around the attempt's own name, as far as they fit."""
    own = submission.name
    room = max(0, longest - len(own))
    before = (prefix if not prefix or prefix[0].isalpha() else f"t{prefix}")[:room]
    after = f".{_words(submission.task)}"[: room - len(before)]
    return job_name(f"{before}{own}{after if len(after) > 1 else ''}", longest)


def _words(task: ScheduledTask) -> str:
    return task.rule.lstrip("@")


def _comment(run: str, batch: Batch) -> str:
    first, count = batch[0][0].submission, sum(map(len, batch))
    assert first is not None
    if count == 1:
        return f"treadle {run} {first.task.id} attempt {first.attempt}"
    return f"treadle {run} {first.task.rule}, {count} tasks from {first.task.id}"


def _write(draft: Draft) -> None:
    """Put the submission's folder together; the script comes last."""
    script = draft.sent.folder.script
    make_parents(script)
    for path, text, mode in draft.files:
        write_whole(path, text.encode(), mode)
    write_whole(script, draft.script.encode())
