"""`ClusterBackend`: a scheduler as the place where attempts run.

    submit -> Submitter   waits for company, writes the folder, runs the command, sorts the answer
    poll   -> Poller      one question for all jobs, now and then
              Watch       files that jobs write, in between
              Accountant  once per job, in batches, or where an end hangs on it
              verdict     what all that means; only positive evidence ends a job

All of it lives on the loop's own thread; commands run aside and wake it. No one is asked twice at a time.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.backends.cluster.accounting import Accountant
from treadle.backends.cluster.adopt import Adopter
from treadle.backends.cluster.arrays import Waiting
from treadle.backends.cluster.cancel import Canceller
from treadle.backends.cluster.dialect import Phase, Silence
from treadle.backends.cluster.held import SUBMITTED, Held, Sent
from treadle.backends.cluster.link import Link
from treadle.backends.cluster.poll import Heard, Poller, Watch
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.status import write_status
from treadle.backends.cluster.submit import Draft, Submitter, find_names
from treadle.backends.cluster.verdict import Ended, InFlight, LookAgain, Where, verdict, withdraws
from treadle.backends.cluster.verdict_end import Reason, outcome
from treadle.backends.local_start import script_of
from treadle.base.errors import OptionError, SchedulerError
from treadle.base.layout import RunFolder
from treadle.engine.backend import (
    Abilities,
    Accepted,
    Adoptee,
    JobReport,
    JobStatus,
    Refused,
    Remark,
    Submission,
)
from treadle.engine.clock import Clock
from treadle.records.event import EndReason, Outcome

if TYPE_CHECKING:
    from treadle.base.mask import Mask
    from treadle.steps.book import StepBook

_SUSPECT = 3  # different tasks whose node failed, from which on the node is named
_TURNS = 8  # a verdict that asks to look again more often than this waits for the next turn
_REASON_PAUSE = 60.0  # seconds between two reasons of one job that are told: queues change their mind often


class ClusterBackend:
    """Runs attempts as jobs of the scheduler that `settings` name.

    `run` is the run whose folder jobs are kept in (None: found by their logs); `user` is who submits
    (empty: not asked by user). Raises `OptionError` for settings that cannot be.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        workdir: str,
        run: RunFolder | None = None,
        flowdir: str = "",
        user: str = "",
        book: StepBook | None = None,
        mask: Mask | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._link = link = Link(settings, workdir=workdir, user=user, clock=clock)
        if owned := link.dialect.owned(settings.extra_args):
            link.commands.close()
            raise OptionError(_owned_words(owned), hint="leave them out of 'extra_args'")
        self._book = book
        self._live: dict[int, Sent] = {}
        self._by_name: dict[str, Held] = {}
        self._changed: dict[int, Held] = {}
        self._news = False
        self._timers: list[tuple[float, int, Held]] = []
        self._late: dict[str, Outcome] = {}
        self._done_too_early: list[Held] = []
        self._failed_on: dict[str, set[str]] = {}
        self._submitter = Submitter(
            link, run=run, workdir=workdir, flowdir=flowdir, taken=self._taken, ended=self._not_taken
        )
        self._adopter = Adopter(link, self._taken, self._unknown)
        self._poller = Poller(link, self._sents, self._heard)
        self._watch = Watch(self._sents)
        self._accountant = Accountant(link, self._accounted)
        self._canceller = Canceller(link, self._poller.at_once)

    @property
    def name(self) -> str:
        return self._settings.backend

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            notifies=True,
            arrays=True,
            accounting=True,
            adoption=True,
            gpus=True,
            memory_limits=True,
            batch=True,
            latency=self._settings.latency_wait,
        )

    def render_script(self, submission: Submission) -> str:
        """A script for sh that runs the attempt by hand; `preview` shows what the scheduler gets."""
        return script_of(submission, submission.env)

    def preview(self, batch: Sequence[Submission]) -> list[tuple[str, list[str]]]:
        """The scripts and commands that would send these attempts, if they came together. Nothing is sent.

        What the site allows in one array is not asked for: the settings' bound counts.
        """
        return [(draft.script, list(draft.argv)) for draft in self.drafts(batch)]

    def drafts(self, batch: Sequence[Submission]) -> list[Draft]:
        """The same as whole submissions, with what a command reads from its standard input."""
        waiting, most = Waiting(0.0), self._submitter.chunk
        for one in batch:
            waiting.add(self._held(one), 0.0)
        found: list[Draft] = []
        while together := waiting.take(most, 0.0, alone=True):
            found.append(self._submitter.draft(together))
        return found

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        """Take the attempts in, under their names. What the scheduler says of them, and what it calls them,
        comes by `poll`."""
        now = self._link.now()
        answers = [self._take(submission, now) for submission in batch]
        self._submitter.advance(now)
        return answers

    def _take(self, submission: Submission, now: float) -> Accepted | Refused:
        task = submission.task
        if task.call is not None:
            return Refused(f"'{task.id}' is a step: steps do not run on {self.name} yet")
        if owned := self._link.dialect.owned(submission.resources.extra_args):
            return Refused(f"{_owned_words(owned)}\n  leave them out of 'extra_args'")
        held = self._held(submission)
        self._register(held)
        self._submitter.waiting.add(held, now)
        return Accepted(held.name)

    def _held(self, submission: Submission) -> Held:
        """An attempt with the partition that its request calls for."""
        if self._settings.partitions:
            from treadle.backends.cluster.configured import placed

            chosen = placed(self._settings, submission.resources)
            submission = replace(submission, resources=chosen)
        return Held(submission, self._settings)

    def _register(self, held: Held) -> None:
        self._by_name[held.name] = held
        if held.limit is not None and held.limit > (self._link.longest or 0):
            self._link.longest = held.limit

    def adopt(self, batch: Sequence[Adoptee]) -> list[Accepted | Refused]:
        """Take over attempts of earlier runs (see `Adopting`). What is not certain yet comes by `poll`."""
        refused = self._adopter.adopt(batch)
        for held in self._adopter.held():
            self._register(held)
        self._turn()
        return [
            Refused(refused[place]) if place in refused else Accepted(one.submission.name)
            for place, one in enumerate(batch)
        ]

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        """News of these jobs. Raises `SchedulerError` after an outage that was too long."""
        self._turn()
        if self._link.failure is not None:
            failure, self._link.failure = self._link.failure, None
            raise failure
        if not self._news:
            return []
        self._news = False
        asked = set(jobs)
        told = [held for held in self._changed.values() if held.name in asked]
        for held in told:
            del self._changed[id(held)]
        return [held.report() for held in told]

    def _turn(self) -> None:
        """Take in what was answered, and do what is due."""
        link = self._link
        link.commands.hand_back()
        now = link.now()
        began, ended = self._watch.advance(now, self._settings.poll_interval)
        for held in began:
            self._is_running(held)
        for held in ended:
            self._look(held, now)
            if held.ended is None:
                self._poller.soon()
        while self._timers and self._timers[0][0] <= now:
            held = heapq.heappop(self._timers)[2]
            if held.ended is None:
                self._look(held, now)
        self._submitter.advance(now)
        self._adopter.advance(now)
        self._poller.advance(now)
        self._accountant.advance(now)
        self._canceller.advance(now)

    def _sents(self) -> Iterable[Sent]:
        return list(self._live.values())

    def _tell(self, held: Held) -> None:
        self._changed[id(held)] = held
        self._news = True

    def _taken(self, sent: Sent) -> None:
        """The scheduler has a submission: a new one, or one of an earlier driver."""
        now = self._link.now()
        self._live[id(sent)] = sent
        for held in sent.held:
            self._register(held)
            self._tell(held)
            if held.cancelled and held.id:
                self._canceller.add(held)
            if held.row is None:  # it was adopted: what it left may be all that there is
                heapq.heappush(self._timers, (now, id(held), held))
        self._submitter.window.sent(len(sent.held))
        self._poller.soon()
        self._watch.soon(now)

    def _not_taken(self, held: Held, end: Outcome) -> None:
        """An attempt ended that no scheduler ever held."""
        held.ended = Ended(outcome=end, evidence="queue")
        held.submission = None
        self._tell(held)

    def _unknown(self, held: Held) -> None:
        """No source knows an attempt of an earlier driver, and it left nothing."""
        words = "no job of this name is known, and it left nothing behind"
        self._not_taken(held, Outcome(reason=EndReason.INTERRUPTED, message=words))

    def _shows(self, held: Held, found: InFlight) -> None:
        """It is in flight: tell that, where it is news."""
        if held.row is not None and held.row.state == SUBMITTED:
            return
        now = self._link.now()
        if found.status is held.status:
            if found.reason == held.shown or found.status is JobStatus.RUNNING:
                return
            if held.shown_at is not None and now - held.shown_at < _REASON_PAUSE:
                return
        elif held.status is JobStatus.RUNNING and found.status is JobStatus.PENDING and not held.requeued:
            return  # the queue is behind what we have seen
        held.status, held.shown, held.shown_at = found.status, found.reason, now
        self._tell(held)

    def _is_running(self, held: Held) -> None:
        if held.status is not JobStatus.RUNNING and held.ended is None:
            held.status, held.shown = JobStatus.RUNNING, ""
            self._tell(held)

    def _heard(self, heard: Heard) -> bool:
        """The queue's answer: what is new in it is judged."""
        now, news = self._link.now(), False
        for sent in self._sents():
            changed = False
            for held in sent.held:
                if held.ended is None and held.sent_at <= heard.asked and self._update(held, heard):
                    changed = True
                    self._judge(held, now)
            if changed:
                news = True
                if sent.live:
                    write_status(sent, self._link.clock.now())
        for held in self._done_too_early:
            row = heard.rows.get(held.id)
            if row is not None and row.phase is not Phase.ENDED:
                self._canceller.add(held)
        self._done_too_early.clear()
        self._canceller.heard(heard.asked)
        return news

    def _update(self, held: Held, heard: Heard) -> bool:
        """Take in what the queue says of one; whether that differs from what it said before."""
        row = heard.rows.get(held.id)
        if row is None:
            if not heard.whole or (held.row is None and held.over is not None):
                return False
            held.row = None
            held.over = heard.asked if held.over is None else held.over
            return True
        held.known = heard.asked
        if row == held.row:
            return False
        held.row = held.last = row
        if row.phase is Phase.ENDED:
            held.over = heard.asked if held.over is None else held.over
        else:
            held.over = None
        return True

    def _look(self, held: Held, now: float) -> None:
        if held.sent is not None:
            held.sent.look(held, now)
        self._judge(held, now)

    def _judge(self, held: Held, now: float) -> None:
        """What all that is known of it means."""
        for _ in range(_TURNS):
            facts = held.facts(now, self._poller.polled, self._accountant.there)
            found = verdict(facts, held.task, held.limit, self._settings)
            if isinstance(found, Ended):
                self._settle(held, found)
                return
            if isinstance(found, InFlight):
                self._shows(held, found)
                return
            if found.where is Where.ACCOUNTING:
                self._accountant.want(held, now if held.accounted is None else now + found.seconds)
                return
            if found.seconds > 0 or held.sent is None:
                break
            held.sent.look(held, now)
        pause = found.seconds if isinstance(found, LookAgain) else 0.0
        heapq.heappush(self._timers, (now + max(0.05, pause), id(held), held))

    def _settle(self, held: Held, ended: Ended) -> None:
        """It ended: once and for all, but for what accounting says later."""
        held.ended = ended
        self._accountant.want_figures(held)
        held.provisional = ended.provisional and self._accountant.wants(held)
        self._tell(held)
        self._submitter.window.ended()
        sent = held.sent
        assert sent is not None
        sent.live -= 1
        if not sent.live:
            del self._live[id(sent)]
            with suppress(OSError):
                os.unlink(sent.folder.status)
        if held.secret:
            with suppress(OSError):
                os.unlink(sent.folder.secrets(held.n))
        if ended.exclude:
            self._suspect(held, ended.exclude)
        if ended.remove:
            if ended.outcome.reason is EndReason.OK:
                self._done_too_early.append(held)
            else:
                self._canceller.add(held)

    def _suspect(self, held: Held, node: str) -> None:
        """A node failed: one that fails many tasks is named."""
        tasks = self._failed_on.setdefault(node, set())
        before = len(tasks)
        tasks.add(held.task.id)
        if len(tasks) == _SUSPECT > before:
            self._link.note("node_suspect", node=node, tasks=str(len(tasks)))

    def _accounted(self, asked: list[Held]) -> None:
        """Accounting was asked for these."""
        now = self._link.now()
        for held in asked:
            if held.ended is None:
                self._judge(held, now)
            else:
                self._figures(held, held.ended, now)

    def _figures(self, held: Held, before: Ended, now: float) -> None:
        """Accounting of one that has ended: its numbers, or contrary news."""
        account = held.account
        if account is None or not account.settled:
            if not self._accountant.want_figures(held):
                self._confirm(held, before.outcome)
            return
        facts = held.facts(now, self._poller.polled, True)
        if facts.row is not None and facts.row.phase is not Phase.ENDED:
            facts = replace(facts, row=None)
        facts = replace(facts, over=held.sent_at if facts.over is None else facts.over, looked=now)
        later = verdict(facts, held.task, held.limit, self._settings)
        if isinstance(later, Ended) and withdraws(before, later):
            self._confirm(held, later.outcome)
            return
        reason = Reason(before.outcome.reason, before.outcome.message)
        self._confirm(held, outcome(reason, held.witness.exit, account, held.last))

    def _confirm(self, held: Held, end: Outcome) -> None:
        """What stands from now on; a success that was told before hangs on it."""
        if held.provisional:
            assert held.ended is not None
            held.provisional = False
            held.ended = replace(held.ended, outcome=end, provisional=False)
            self._tell(held)
        else:
            self._late[held.name] = end

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        """End these jobs. The scheduler gives them what time it gives; `force` cannot shorten that."""
        for job in jobs:
            held = self._by_name.get(job)
            if held is None or held.ended is not None:
                continue
            held.cancelled = True
            if held.sent is not None:
                if held.id:
                    self._canceller.add(held)
            elif self._submitter.is_waiting(held):
                self._submitter.waiting.drop(held)
                self._not_taken(held, Outcome(reason=EndReason.CANCELLED))
        self._canceller.advance(self._link.now())

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        """Ends with what accounting has told of them since they were reported, each once."""
        return {job: self._late.pop(job) for job in jobs if job in self._late}

    def logs(self, job: str) -> list[str]:
        """The log of an attempt, and what the wrapper or the scheduler said beside it, if anything."""
        held = self._by_name.get(job)
        if held is None:
            return []
        found = [held.log]
        if held.sent is not None:
            beside = self._link.dialect.log_of(held.sent.folder.log, held.index)
            with suppress(OSError):
                if os.stat(beside).st_size:
                    found.append(beside)
        return found

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """What attempts are called here, for those that this backend holds; ids for others that the
        scheduler knows by name. Waits for it. Raises `SchedulerError` when it does not answer.

        Attempts of earlier drivers may be elements of arrays, which have one name: `adopt` is for them.
        """
        mine = {name: name for name in names if name in self._by_name}
        others = [name for name in names if name not in mine]
        if not others:
            return mine
        answer = find_names(self._link, others, 0.0)
        if isinstance(answer, Silence):
            raise SchedulerError(f"{self.name} does not tell which jobs it has: {answer.message}")
        return {**mine, **answer}

    def remarks(self) -> list[Remark]:
        """What happened to the backend itself since the last call."""
        return self._link.take_remarks()

    def counts(self) -> Counter[str]:
        """How often the scheduler was asked, by what for."""
        return Counter(
            submit=self._submitter.count, poll=self._poller.count, accounting=self._accountant.count
        )

    def fileno(self) -> int | None:
        return self._link.commands.reader

    def next_timeout(self) -> float | None:
        if self._news or self._link.failure is not None:
            return 0.0
        now = self._link.now()
        dues = [
            self._submitter.due(now),
            self._adopter.due(),
            self._poller.due(),
            self._watch.due(),
            self._accountant.due(),
            self._canceller.due(),
            self._timers[0][0] if self._timers else None,
        ]
        due = min((at for at in dues if at is not None), default=None)
        return None if due is None else max(0.0, due - now)

    def close(self) -> None:
        """Let a submission that is on its way come to its end, so that its id is written down; jobs stay."""
        self._submitter.finish()
        self._link.commands.close()


def _owned_words(owned: Sequence[str]) -> str:
    said = ", ".join(f"'{option}'" for option in owned)
    return f"'extra_args' must not have {said}: the engine sets that itself"
