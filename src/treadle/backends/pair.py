"""Two backends as one: this machine, and one other where jobs of a client run (and rules, if they are to).

A run has one loop, which sees one backend. Each attempt belongs to one part, by its task; job ids are those
of the parts.
"""

from __future__ import annotations

import math
import select
import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.base.errors import SchedulerError
from treadle.engine.backend import (
    Abilities,
    Accepted,
    Adoptee,
    ExecutorBackend,
    JobReport,
    Refused,
    Remark,
    Submission,
)
from treadle.engine.besides import adopt, joins_by, keep_line, leave, remarks_of, withdraw
from treadle.plan.task import Resources, ScheduledTask, Where
from treadle.records.event import Outcome


class PairBackend:
    """`local` and `other` in one run. `local_rules` names the rules that stay on this machine (None: all)."""

    def __init__(
        self,
        local: ExecutorBackend,
        other: ExecutorBackend,
        *,
        local_rules: Collection[str] | None = None,
    ) -> None:
        self._local = local
        self._other = other
        self._local_rules = None if local_rules is None else frozenset(local_rules)
        self._jobs: dict[str, tuple[ExecutorBackend, str]] = {}
        self._shown: dict[tuple[int, str], str] = {}
        self._due: dict[int, float] = {}
        self._failure: SchedulerError | None = None
        self._news = Either([local.fileno(), other.fileno()])
        here, there = local.abilities, other.abilities
        self._abilities = Abilities(
            notifies=here.notifies and there.notifies,
            arrays=there.arrays,
            accounting=there.accounting,
            adoption=there.adoption,
            gpus=here.gpus or there.gpus,
            memory_limits=here.memory_limits and there.memory_limits,
            batch=there.batch,
        )

    @property
    def name(self) -> str:
        return f"{self._local.name}+{self._other.name}"

    @property
    def abilities(self) -> Abilities:
        return self._abilities

    def part(self, task: ScheduledTask) -> ExecutorBackend:
        """The backend that runs this task."""
        if task.call is not None:
            return self._other if task.call.where is Where.CLIENT else self._local
        stays = self._local_rules is None or task.rule in self._local_rules
        return self._local if stays else self._other

    def render_script(self, submission: Submission) -> str:
        return self.part(submission.task).render_script(submission)

    @property
    def fits_together(self) -> Callable[[Sequence[Resources]], bool] | None:
        return joins_by(self._other)

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        answers: list[Accepted | Refused] = [Refused("")] * len(batch)
        for part in (self._local, self._other):
            chosen = [at for at, one in enumerate(batch) if self.part(one.task) is part]
            if chosen:
                for at, answer in zip(chosen, part.submit([batch[at] for at in chosen]), strict=True):
                    answers[at] = self._taken(part, answer)
        return answers

    def _taken(self, part: ExecutorBackend, answer: Accepted | Refused) -> Accepted | Refused:
        if isinstance(answer, Refused):
            return answer
        job = answer.job
        if job in self._jobs:  # a process of this machine, with the number of a job of the other
            job = f"{job}@{part.name}"
        self._know(part, answer.job, job)
        return Accepted(job, answer.started, answer.waits)

    def _know(self, part: ExecutorBackend, own: str, shown: str) -> None:
        self._jobs[shown] = (part, own)
        self._shown[id(part), own] = shown

    def adopt(self, batch: Sequence[Adoptee]) -> list[Accepted | Refused]:
        """Take over attempts of earlier runs (see `Adopting`): those of the other backend; no process of this
        machine outlives its driver."""
        answers: list[Accepted | Refused] = [Refused("it ended with its driver")] * len(batch)
        chosen = [at for at, one in enumerate(batch) if self.part(one.submission.task) is self._other]
        if chosen:
            found = adopt(self._other, [batch[at] for at in chosen])
            for at, answer in zip(chosen, found, strict=True):
                answers[at] = self._taken(self._other, answer)
        return answers

    def remarks(self) -> list[Remark]:
        """What there is to say of either (see `Remarking`)."""
        said: list[Remark] = []
        for part in (self._local, self._other):
            if (remarks := remarks_of(part)) is not None:
                said += remarks()
        return said

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        adopted = [job for job in jobs if job not in self._jobs]
        for job in adopted:  # only what outlives a driver can be
            self._know(self._other, job, job)
        reports: list[JobReport] = []
        failure, self._failure = self._failure, None
        for part in (self._local, self._other):
            if adopted or self._is_due(part):
                self._due.pop(id(part), None)
                try:
                    reports += [self._told(part, one) for one in part.poll(self._of(part, jobs))]
                except SchedulerError as error:
                    failure = error
        if failure is not None and not reports:
            raise failure
        self._failure = failure  # told once the ends are: nobody tells them again
        return reports

    def _told(self, part: ExecutorBackend, report: JobReport) -> JobReport:
        shown = self._shown[id(part), report.job]
        if report.outcome is not None and not report.provisional:
            del self._jobs[shown], self._shown[id(part), report.job]
        return report if shown == report.job else replace(report, job=shown)

    def _of(self, part: ExecutorBackend, jobs: Sequence[str]) -> list[str]:
        """Those of these jobs that a part has, by its own ids."""
        known = (self._jobs.get(job) for job in jobs)
        return [found[1] for found in known if found is not None and found[0] is part]

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        for part in (self._local, self._other):
            if chosen := self._of(part, jobs):
                part.cancel(chosen, force=force)

    def leave(self) -> None:
        """Wait no longer for the ends of jobs that outlive us."""
        leave(self._other)

    def keep_line(self, most: int) -> bool:
        """Run no more than `most` steps in threads at a time, the others wait; False: it cannot."""
        return bool(keep_line(self._local, most))

    def withdraw(self, jobs: Sequence[str]) -> None:
        """End those of these jobs that have not begun."""
        for part in (self._local, self._other):
            if chosen := self._of(part, jobs):
                withdraw(part, chosen)

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return {**self._local.accounting(jobs), **self._other.accounting(jobs)}

    def logs(self, job: str) -> list[str]:
        part, own = self._jobs.get(job, (self._other, job))
        return part.logs(own) or self._local.logs(job)

    def find(self, names: Sequence[str]) -> dict[str, str]:
        return {**self._local.find(names), **self._other.find(names)}

    def fileno(self) -> int | None:
        return self._news.fileno()

    def next_timeout(self) -> float | None:
        if self._failure is not None:
            return 0.0
        now = time.monotonic()
        for part in (self._local, self._other):
            if (wish := part.next_timeout()) is not None:
                self._due[id(part)] = min(self._due.get(id(part), now + wish), now + wish)
            else:
                self._due.pop(id(part), None)
        return max(0.0, min(self._due.values()) - now) if self._due else None

    def _is_due(self, part: ExecutorBackend) -> bool:
        """Whether a part has news, or its wish has come: the other one's must not make it ask its scheduler.

        A wish counts from when it was first told: many parts tell the same one each time.
        """
        return self._due.get(id(part), math.inf) <= time.monotonic() or _has_news(part)

    def close(self) -> None:
        self._news.close()
        self._local.close()
        self._other.close()


def _has_news(part: ExecutorBackend) -> bool:
    """Whether a part is to be polled: the other one's news must not make it ask its scheduler."""
    wish, fd = part.next_timeout(), part.fileno()
    return (wish is not None and wish <= 0) or (fd is not None and bool(select.select([fd], [], [], 0)[0]))


class Either:
    """A descriptor that is readable when one of several is (None among them: there is none of that one)."""

    def __init__(self, descriptors: Sequence[int | None]) -> None:
        found = [fd for fd in descriptors if fd is not None]
        self._both: Any = None  # an epoll, or a kqueue
        self._one = found[0] if len(found) == 1 else None
        if len(found) > 1:
            self._both = _joined(found)

    def fileno(self) -> int | None:
        return int(self._both.fileno()) if self._both is not None else self._one

    def close(self) -> None:
        if self._both is not None:
            self._both.close()


if sys.platform == "linux":

    def _joined(descriptors: Sequence[int]) -> select.epoll:
        made = select.epoll()
        for fd in descriptors:
            made.register(fd, select.EPOLLIN)
        return made

else:

    def _joined(descriptors: Sequence[int]) -> select.kqueue:
        made = select.kqueue()
        made.control([select.kevent(fd, select.KQ_FILTER_READ, select.KQ_EV_ADD) for fd in descriptors], 0)
        return made
