"""`ClusterBackend`: a scheduler as the place where attempts run.

    submit -> Submitter   waits for company, writes the folder, runs the command, sorts the answer
    adopt  -> Adopter     finds what earlier drivers have left with the scheduler
    poll   -> Follower    asks, looks and judges until each attempt has ended

All of it lives on the loop's own thread; commands run aside and wake it. No one is asked twice at a time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from treadle.backends.cluster.adopt import Adopter
from treadle.backends.cluster.arrays import Waiting
from treadle.backends.cluster.dialect import Silence
from treadle.backends.cluster.follow import Follower
from treadle.backends.cluster.held import Held, Sent, by_job
from treadle.backends.cluster.link import Link
from treadle.backends.cluster.packs import fits
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.submit import Draft, Submitter, find_names
from treadle.backends.cluster.verdict import Ended
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
from treadle.plan.task import Resources
from treadle.records.event import EndReason, Outcome

if TYPE_CHECKING:
    from treadle.base.mask import Mask


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
        mask: Mask | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._link = link = Link(settings, workdir=workdir, user=user, clock=clock)
        if owned := link.dialect.owned(settings.extra_args):
            link.commands.close()
            raise OptionError(_owned_words(owned), hint="leave them out of 'extra_args'")
        self._by_name: dict[str, Held] = {}
        self._changed: dict[int, Held] = {}
        self._news = False
        self._submitter = Submitter(
            link, run=run, workdir=workdir, flowdir=flowdir, taken=self._taken, ended=self._not_taken
        )
        self._adopter = Adopter(link, self._taken, self._unknown)
        self._follower = Follower(link, self._tell, self._submitter.left)

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

    def fits_together(self, wanted: Sequence[Resources]) -> bool:
        """Whether one job can be had for these, one after the other."""
        return fits(wanted, self._settings)

    def preview(self, batch: Sequence[Submission]) -> list[tuple[str, list[str]]]:
        """The scripts and commands that would send these attempts, if they came together. Nothing is sent.

        What the site allows in one array is not asked for: the settings' bound counts.
        """
        return [(draft.script, list(draft.argv)) for draft in self.drafts(batch)]

    def drafts(self, batch: Sequence[Submission]) -> list[Draft]:
        """The same as whole submissions, with what a command reads from its standard input."""
        waiting, most = Waiting(0.0, self._submitter.pack), self._submitter.chunk
        for job in by_job([Held(one, self._settings) for one in batch]):
            waiting.add(job, 0.0)
        found: list[Draft] = []
        while together := waiting.take(most, 0.0, alone=True):
            found.append(self._submitter.draft(together))
        return found

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        """Take the attempts in, under their names. What the scheduler says of them, and what it calls them,
        comes by `poll`."""
        now = self._link.now()
        taken: list[Held] = []
        answers = [self._take(submission, taken) for submission in batch]
        for job in by_job(taken):
            self._submitter.waiting.add(job, now)
        self._submitter.advance(now)
        return answers

    def _take(self, submission: Submission, taken: list[Held]) -> Accepted | Refused:
        task = submission.task
        if task.call is not None:
            return Refused(f"'{task.id}' is a step: steps do not run on {self.name} yet")
        if owned := self._link.dialect.owned(submission.resources.extra_args):
            return Refused(f"{_owned_words(owned)}\n  leave them out of 'extra_args'")
        held = Held(submission, self._settings)
        self._register(held)
        taken.append(held)
        return Accepted(held.name)

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
        """News of these jobs. Raises `SchedulerError` after an outage that was too long; once more when jobs
        could be asked for their end after that, and still nothing is heard."""
        self._turn()
        if not self._news:
            self._fail()
            return []
        self._news = False
        asked = set(jobs)
        told = [held for held in self._changed.values() if held.name in asked]
        for held in told:
            del self._changed[id(held)]
        return [held.report() for held in told]

    def _fail(self) -> None:
        """Raise what made the run impossible; not while jobs are told to end."""
        link = self._link
        if link.failure is not None and not self._follower.cancelling:
            failure, link.failure, link.leaving = link.failure, None, True
            raise failure

    def _turn(self) -> None:
        """Take in what was answered, and do what is due."""
        link = self._link
        link.commands.hand_back()
        now = link.now()
        self._follower.advance(now)
        self._submitter.advance(now)
        self._adopter.advance(now)

    def _tell(self, held: Held) -> None:
        self._changed[id(held)] = held
        self._news = True

    def _taken(self, sent: Sent) -> None:
        """The scheduler has a submission: a new one, or one of an earlier driver."""
        for held in sent.held:
            self._register(held)
            self._tell(held)
        self._submitter.took(sent)
        self._follower.follow(sent)

    def _not_taken(self, held: Held, end: Outcome) -> None:
        """An attempt ended that no scheduler ever held."""
        held.ended = Ended(outcome=end, evidence="queue")
        held.submission = None
        self._tell(held)

    def _unknown(self, held: Held) -> None:
        """No source knows an attempt of an earlier driver, and it left nothing."""
        words = "no job of this name is known, and it left nothing behind"
        self._not_taken(held, Outcome(reason=EndReason.INTERRUPTED, message=words))

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        """End these jobs. The scheduler gives them what time it gives; `force` cannot shorten that."""
        there: list[Held] = []
        for job in jobs:
            held = self._by_name.get(job)
            if held is None or held.ended is not None:
                continue
            held.cancelled = True
            if held.sent is not None and held.id:
                there.append(held)
            elif held.sent is None and self._submitter.is_waiting(held):
                self._submitter.waiting.drop(held)
                self._not_taken(held, Outcome(reason=EndReason.CANCELLED))
            elif self._link.leaving:
                held.status, held.shown = JobStatus.ENDING, "not heard: whether it was submitted is not known"
                self._tell(held)
        self._follower.cancel(there)

    def leave(self) -> None:
        """Fail within seconds, whatever answers; of what is in flight it is told how it stands."""
        if not self._link.leaving:
            self._follower.leave([held for held in self._by_name.values() if held.ended is None])
            self._turn()

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        """Ends with what accounting has told of them since they were reported, each once."""
        late = self._follower.late
        return {job: late.pop(job) for job in jobs if job in late}

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

    @property
    def was_asked(self) -> bool:
        """Whether the queue has been asked for jobs, and has answered, or has failed to."""
        return self._follower.poller.asked

    def counts(self) -> Counter[str]:
        """How often the scheduler was asked, by what for."""
        return Counter(
            submit=self._submitter.count,
            poll=self._follower.poller.count,
            accounting=self._follower.accountant.count,
        )

    def fileno(self) -> int | None:
        return self._link.commands.reader

    def next_timeout(self) -> float | None:
        if self._news or (self._link.failure is not None and not self._follower.cancelling):
            return 0.0
        now = self._link.now()
        dues = [self._submitter.due(now), self._adopter.due(), *self._follower.due()]
        due = min((at for at in dues if at is not None), default=None)
        return None if due is None else max(0.0, due - now)

    def close(self) -> None:
        """Let a submission that is on its way come to its end, so that its id is written down, and a job go
        that can never start; other jobs stay."""
        self._submitter.finish()
        self._follower.finish()
        self._link.commands.close()


def _owned_words(owned: Sequence[str]) -> str:
    said = ", ".join(f"'{option}'" for option in owned)
    return f"'extra_args' must not have {said}: the engine sets that itself"
