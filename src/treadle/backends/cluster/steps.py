"""Python steps as jobs of a scheduler: each is the command of a worker, whose answer is a file.

A worker on a node holds the lease of its artifact by itself, so a step whose driver was killed goes on, and
the next driver waits for it as for anybody else's. One with inputs is taken over: what its job noted of them
is the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.backends.answers import read_answer
from treadle.backends.clients import CLIENT, current_client
from treadle.backends.cluster.backend import ClusterBackend
from treadle.backends.pair import Either
from treadle.backends.payload import encode, make_private_folder, worker_argv, write_payload
from treadle.backends.remote_steps import RemoteSteps
from treadle.base.errors import DiskError, StepError
from treadle.base.files import remove
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
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import Outcome
from treadle.steps.book import StepBook

if TYPE_CHECKING:
    from treadle.base.mask import Mask


class SteppedCluster:
    """A scheduler that runs steps, too: those of `book`. Everything else goes to `inner` as it is."""

    def __init__(
        self,
        inner: ClusterBackend,
        book: StepBook,
        *,
        unsafe_locks: bool = False,
        mask: Mask | None = None,
    ) -> None:
        self._inner = inner
        self._steps = RemoteSteps(book, unsafe_locks=unsafe_locks, mask=mask)
        self._sent: set[str] = set()
        self._adopted: set[str] = set()
        self._runs: dict[str, tuple[RunFolder, int]] = {}
        self._news = Either([inner.fileno(), self._steps.reader])

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def abilities(self) -> Abilities:
        return replace(self._inner.abilities, adopts_steps=True)

    def render_script(self, submission: Submission) -> str:
        return self._inner.render_script(submission)

    def preview(self, batch: Sequence[Submission]) -> list[tuple[str, list[str]]]:
        return self._inner.preview([one for one in batch if one.task.call is None])

    def fits_together(self, wanted: Sequence[Resources]) -> bool:
        return self._inner.fits_together(wanted)

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        answers: list[Accepted | Refused] = [Refused("")] * len(batch)
        ready: list[tuple[int, Submission]] = []
        for at, one in enumerate(batch):
            try:
                ready.append((at, one if one.task.call is None else self._as_job(one)))
            except (StepError, DiskError) as error:
                self._steps.refused(one, error)
                answers[at] = Refused(str(error))
        taken = self._inner.submit([one for _, one in ready]) if ready else []
        for (at, _), answer in zip(ready, taken, strict=True):
            answers[at] = answer
            if isinstance(answer, Accepted) and batch[at].task.call is not None:
                self._steps.began(batch[at], answer.job)
        return answers

    def _as_job(self, submission: Submission) -> Submission:
        """The command of a step's worker. Raises `StepError` for what cannot be sent, `DiskError`."""
        run = RunFolder(submission.log.rpartition("/logs/")[0])
        path, answer = run.payload(submission.n), run.result(submission.n)
        if (
            submission.name in self._sent
        ):  # it waited for someone else: what its first job left is not its end
            remove(run.job(submission.n, submission.task.id).root)
        self._sent.add(submission.name)
        self._runs[submission.name] = (run, submission.n)
        make_private_folder(run.payloads)
        write_payload(path, encode(self._steps.ordered(submission), answer), answer)
        env = {
            **submission.env,
            CLIENT: current_client().address,
            **self._steps.env(submission.task.id),
        }
        return replace(submission, task=_command(submission.task), argv=worker_argv(path), env=env)

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        reports = [self._told(one) for one in self._inner.poll(jobs)]
        reports += self._steps.take()
        for report in reports:
            if report.status is JobStatus.DEFERRED and report.outcome is None:
                self._steps.told(report)
        return reports

    def _told(self, report: JobReport) -> JobReport:
        """The report of a step's job tells what came of its function."""
        if report.outcome is None or not self._steps.holds(report.job):
            return report
        run, n = self._runs.pop(report.job)
        answer = read_answer(run.result(n))
        with suppress(DiskError):
            remove(run.payload(n))
            remove(run.result(n))
        if answer is not None and answer.holder is not None and report.job in self._adopted:
            answer = None  # the next attempt waits for whoever that is
        told = self._steps.settle(report.job, answer, report.outcome)
        return replace(told, job_id=report.job_id, written=report.written if answer is not None else None)

    def adopt(self, batch: Sequence[Adoptee]) -> list[Accepted | Refused]:
        commands = [
            one
            if one.submission.task.call is None
            else replace(one, submission=replace(one.submission, task=_command(one.submission.task)))
            for one in batch
        ]
        answers = self._inner.adopt(commands)
        for one, answer in zip(batch, answers, strict=True):
            if one.submission.task.call is not None and isinstance(answer, Accepted):
                self._runs[answer.job] = (one.run, one.submission.n)
                self._adopted.add(answer.job)
                self._steps.began(one.submission, answer.job)
        return answers

    def leave(self) -> None:
        self._inner.leave()

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        self._inner.cancel(jobs, force=force)
        for job in jobs:
            self._steps.cancel(job, force=force)

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return self._inner.accounting(jobs)

    def logs(self, job: str) -> list[str]:
        return self._inner.logs(job)

    def find(self, names: Sequence[str]) -> dict[str, str]:
        return self._inner.find(names)

    def remarks(self) -> list[Remark]:
        return self._inner.remarks()

    def fileno(self) -> int | None:
        return self._news.fileno()

    def next_timeout(self) -> float | None:
        wishes = [wish for wish in (self._inner.next_timeout(), self._steps.wait()) if wish is not None]
        return min(wishes, default=None)

    def close(self) -> None:
        self._news.close()
        self._steps.close()
        self._inner.close()


def _command(task: ScheduledTask) -> ScheduledTask:
    """A step as the scheduler's backend sees it: a command that reads files and declares no outputs."""
    return ScheduledTask(id=task.id, rule=task.rule, inputs=task.inputs, policy=task.policy, needs=task.needs)
