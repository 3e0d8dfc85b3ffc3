"""Steps that run as jobs of another backend: their orders, what came of them, and the leases of others."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.backends.answers import Answer
from treadle.backends.local_steps import LocalSteps
from treadle.backends.payload import encode
from treadle.engine.backend import JobReport, JobStatus, Submission
from treadle.records.event import Outcome
from treadle.steps.order import Order
from treadle.steps.where import env_of


class RemoteSteps(LocalSteps):
    """As for workers of this machine, but that the answer comes by whatever way the backend has."""

    def order(self, submission: Submission) -> bytes:
        """The payload of a step: its order and its function. Raises `StepError` for what cannot be sent."""
        entry = self._book[submission.task.id]
        self._origins.ask(submission.cwd)
        order = self._order(submission, entry, tells=True)
        return encode(order, "")

    def ordered(self, submission: Submission) -> Order:
        """The order of a step for a worker that answers by a file."""
        self._origins.ask(submission.cwd)
        return self._order(submission, self._book[submission.task.id])

    def env(self, task: str) -> Mapping[str, str]:
        """The variables that a step asks for."""
        return env_of(self._book[task].spec)

    def settle(self, job: str, answer: Answer | None, outcome: Outcome) -> JobReport:
        """What is to be told of the job of a step that ended so, with what it answered (None: nothing)."""
        submission = self._held.get(job)
        if submission is None or submission.task.id not in self._book:
            return JobReport(job=job, status=JobStatus.ENDED, outcome=outcome)
        if answer is None:
            return self._died(job, submission, outcome)
        if answer.holder is not None:
            return self._deferred(job, answer.holder)
        return self._answered(job, submission, answer, outcome)

    def __contains__(self, task: str) -> bool:
        """Whether the book has a step for this task."""
        return task in self._book

    def holds(self, job: str) -> bool:
        """Whether this is the job of a step that has not ended."""
        return job in self._held
