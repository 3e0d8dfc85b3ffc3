"""From what the scheduler has taken to its end: polls, files, accounting, and the verdict on all of it.

Poller      one question for all jobs, now and then
Watch       files that jobs write, in between
Accountant  once per job, in batches, or where an end hangs on it
verdict     what all that means; only positive evidence ends a job
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec.structs import replace

from treadle.backends.cluster.accounting import Accountant
from treadle.backends.cluster.cancel import Canceller
from treadle.backends.cluster.dialect import Phase
from treadle.backends.cluster.held import SUBMITTED, Held, Sent
from treadle.backends.cluster.link import Link
from treadle.backends.cluster.poll import DoneInQueue, Heard, Poller, Watch
from treadle.backends.cluster.status import write_status
from treadle.backends.cluster.verdict import Ended, InFlight, LookAgain, Where, verdict, withdraws
from treadle.backends.cluster.verdict_end import Reason, outcome
from treadle.engine.backend import JobStatus
from treadle.records.event import EndReason, Outcome

_SUSPECT = 3  # different tasks whose node failed, from which on the node is named
_TURNS = 8  # a verdict that asks to look again more often than this waits for the next turn
_ITS_TURN = "its job runs, and others in it come first"
_REASON_PAUSE = 60.0  # seconds between two reasons of one job that are told: queues change their mind often


class Follower:
    """Follows submissions to the ends of their attempts. `tell` hears of each attempt with news, `left` of
    each job that has left the queue for good, by its submission."""

    def __init__(self, link: Link, tell: Callable[[Held], None], left: Callable[[Sent], None]) -> None:
        self._link = link
        self._settings = link.settings
        self._tell = tell
        self._left = left
        self._live: dict[int, Sent] = {}
        self._timers: list[tuple[float, int, Held]] = []
        self._done = DoneInQueue()
        self._failed_on: dict[str, set[str]] = {}
        self.late: dict[str, Outcome] = {}  # what accounting told of attempts after their ends were told
        self.poller = Poller(link, self._sents, self._heard)
        self._watch = Watch(self._sents)
        self.accountant = Accountant(link, self._accounted)
        self._canceller = Canceller(link, self.poller.at_once, tell)

    def follow(self, sent: Sent) -> None:
        """The scheduler has a submission: a new one, or one of an earlier driver."""
        now = self._link.now()
        self._live[id(sent)] = sent
        for held in sent.held:
            if held.cancelled and held.id:
                self._canceller.add(held)
            if held.row is None:  # it was adopted: what it left may be all that there is
                heapq.heappush(self._timers, (now, id(held), held))
        self.poller.soon()
        self._watch.soon(now)

    def cancel(self, some: Iterable[Held]) -> None:
        """Have these cancelled."""
        for held in some:
            self._canceller.add(held)
        self._canceller.advance(self._link.now())

    def leave(self, left: list[Held]) -> None:
        """Somebody wants to be gone at once: these are in flight."""
        self._canceller.leave(left)

    @property
    def cancelling(self) -> bool:
        """Whether the scheduler is being told to end jobs."""
        return self._canceller.asking

    def finish(self) -> None:
        """Cancel what is still to be cancelled: nobody comes after us."""
        self._canceller.finish()

    def advance(self, now: float) -> None:
        """Do what is due."""
        began, ended = self._watch.advance(now, self._settings.poll_interval)
        for held in began:
            self._is_running(held)
        for held in ended:
            self._look(held, now)
            if held.ended is None:
                self.poller.soon()
        while self._timers and self._timers[0][0] <= now:
            held = heapq.heappop(self._timers)[2]
            if held.ended is None:
                self._look(held, now)
        self.poller.advance(now)
        self.accountant.advance(now)
        self._canceller.advance(now)

    def due(self) -> list[float | None]:
        """When there is something to do."""
        return [
            self.poller.due(),
            self._watch.due(),
            self.accountant.due(),
            self._canceller.due(),
            self._timers[0][0] if self._timers else None,
        ]

    def _sents(self) -> Iterable[Sent]:
        return list(self._live.values())

    def _shows(self, held: Held, found: InFlight) -> None:
        """It is in flight: tell that, where it is news."""
        if held.row is not None and held.row.state == SUBMITTED:
            return
        if found.status is JobStatus.RUNNING and held.several and not held.begun:
            found = InFlight(JobStatus.PENDING, _ITS_TURN)
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
        for held in self._done.still_waiting(heard):
            self._canceller.add(held)
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
            facts = held.facts(now, self.poller.polled, self.accountant.there)
            found = verdict(facts, held.task, held.limit, self._settings)
            if isinstance(found, Ended):
                self._settle(held, found)
                return
            if isinstance(found, InFlight):
                self._shows(held, found)
                return
            if found.where is Where.ACCOUNTING:
                self.accountant.want(held, now if held.accounted is None else now + found.seconds)
                return
            if found.seconds > 0 or held.sent is None:
                break
            held.sent.look(held, now)
        pause = found.seconds if isinstance(found, LookAgain) else 0.0
        heapq.heappush(self._timers, (now + max(0.05, pause), id(held), held))

    def _settle(self, held: Held, ended: Ended) -> None:
        """It ended: once and for all, but for what accounting says later."""
        held.ended = ended
        self.accountant.want_figures(held)
        held.provisional = ended.provisional and self.accountant.wants(held)
        self._tell(held)
        sent = held.sent
        assert sent is not None
        if sent.ended(held):
            self._left(sent)
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
                self._done.add(held, self._link.now())
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
            if not self.accountant.want_figures(held):
                self._confirm(held, before.outcome)
            return
        facts = held.facts(now, self.poller.polled, True)
        if facts.row is not None and facts.row.phase is not Phase.ENDED:
            facts = replace(facts, row=None)
        facts = replace(facts, over=held.sent_at if facts.over is None else facts.over, looked=now)
        later = verdict(facts, held.task, held.limit, self._settings)
        ours = held.asked > 0 and isinstance(later, Ended) and later.outcome.reason is EndReason.CANCELLED
        if isinstance(later, Ended) and withdraws(before, later) and not ours:
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
            self.late[held.name] = end
