"""Ray as a backend: each attempt is a detached actor, named as the attempt is.

Ray ends a driver's tasks, and its plain actors, with the driver. A detached actor is the cluster's own: it
works on when the driver is killed, and any later run finds it by its name. All news are callbacks of Ray's,
which wake the loop through a descriptor: nothing is polled.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from treadle.backends.ray_cluster import RayCluster, ray_options
from treadle.backends.ray_errors import outcome_of
from treadle.backends.ray_launch import RayLauncher
from treadle.backends.ray_places import RayPlaces, attempt_of, launch_of
from treadle.backends.ray_ticket import Told, decode_told, encode_told
from treadle.backends.remote_steps import RemoteSteps
from treadle.backends.step_ends import maker_of
from treadle.base.errors import DiskError, StepError
from treadle.base.files import make_parents, write_whole
from treadle.base.mask import Mask
from treadle.engine.backend import Abilities, Accepted, JobReport, JobStatus, Refused, Submission
from treadle.plan.task import ScheduledTask
from treadle.records.event import EndReason, Outcome
from treadle.steps.book import StepBook

_MARGIN = 5.0  # seconds beyond the grace for an actor to tell of its end
_AGAIN = 1.0  # seconds until an actor that could not be reached is asked again
_GRACE = 10.0  # of an adopted attempt
_DOUBT = 2.0  # seconds for a beginning to be heard of
_WAITS, _BEGAN, _TOLD, _ASK, _KILL = "waits", "began", "told", "ask", "kill"


class Held:
    """One attempt as the driver knows it. `submission` is None for one that an earlier driver made."""

    __slots__ = ("actor", "began", "cancelled", "job", "refs", "submission")

    def __init__(self, job: str, actor: Any, submission: Submission | None) -> None:
        self.job = job
        self.actor = actor
        self.submission = submission
        self.refs: list[Any] = []
        self.began = False
        self.cancelled = False

    @property
    def grace(self) -> float:
        """Seconds between SIGTERM and SIGKILL."""
        return self.submission.grace if self.submission is not None else _GRACE


class RayBackend:
    """Runs attempts on a Ray cluster. `workdir` is where runs are found whose attempts are to be adopted.

    `pools` are the counted resources that the run itself counts; others are asked of the cluster.
    """

    def __init__(
        self,
        cluster: RayCluster,
        *,
        book: StepBook | None = None,
        workdir: str = "",
        unsafe_locks: bool = False,
        mask: Mask | None = None,
        pools: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self._workdir = workdir or os.getcwd()
        self._book = book if book is not None else StepBook()
        self._steps = RemoteSteps(self._book, unsafe_locks=unsafe_locks, mask=mask)
        self._launcher = RayLauncher(cluster, self._steps, pools)
        self._places = RayPlaces(self._workdir)
        self._held: dict[str, Held] = {}
        self._logs: dict[str, str] = {}
        self._arrived: deque[tuple[str, str, Any]] = deque()
        self._timers: dict[str, tuple[float, str]] = {}
        self._abilities = Abilities(
            notifies=True, adoption=not cluster.owned, gpus=True, memory_limits=False, batch=True
        )

    @property
    def name(self) -> str:
        return "ray"

    @property
    def abilities(self) -> Abilities:
        return self._abilities

    def render_script(self, submission: Submission) -> str:
        """A script for sh that runs a command by hand; of a step, what would be asked of Ray."""
        from treadle.backends.local_start import script_of

        asked = ", ".join(
            f"{key}={value}" for key, value in sorted(ray_options(submission.resources, []).items())
        )
        head, _, rest = script_of(submission, submission.env).partition("\n")
        return f"{head}\n# Ray actor {submission.name}: {asked}\n{rest}"

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        self._cluster.join()
        nodes = self._cluster.nodes()
        return [self._submit(submission, nodes) for submission in batch]

    def _submit(self, submission: Submission, nodes: Sequence[dict[str, float]]) -> Accepted | Refused:
        job = self._name(submission.name)
        try:
            actor, waits_for = self._launcher.launch(submission, job, nodes)
        except (StepError, DiskError) as error:
            return Refused(str(error))
        held = self._held[job] = Held(job, actor, submission)
        self._logs[job] = submission.log
        if submission.task.call is not None:
            self._steps.began(submission, job)
        if waits_for:
            self._arrived.append((job, _WAITS, waits_for))
        self._ask(held)
        return Accepted(job)

    def _name(self, name: str) -> str:
        """The name of an attempt's actor. An attempt that was deferred and comes again has a second one."""
        count, job = 1, name
        while job in self._logs:
            count += 1
            job = f"{name}.{count}"
        return job

    def _ask(self, held: Held) -> None:
        """Let Ray call us when the actor lives, and when it has ended."""
        held.refs = []
        for what in (_TOLD,) if held.began else (_BEGAN, _TOLD):
            ref = getattr(held.actor, what).remote()
            held.refs.append(ref)
            ref.future().add_done_callback(partial(self._came, held.job, what))

    def _came(self, job: str, what: str, future: Any) -> None:
        """On a thread of Ray's."""
        error = future.exception()
        self._arrived.append((job, what, error if error is not None else future.result()))
        self._steps.ring()

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        for job in jobs:
            if job not in self._logs:
                self._adopt(job)
        self._on_time()
        reports = self._steps.take()
        while self._arrived:
            job, what, value = self._arrived.popleft()
            held = self._held.get(job)
            if held is not None and (report := self._hear(held, what, value)) is not None:
                reports.append(report)
        for report in reports:
            self._steps.told(report)
        return reports

    def _hear(self, held: Held, what: str, value: Any) -> JobReport | None:
        if what == _WAITS:
            return JobReport(job=held.job, status=JobStatus.PENDING, reason=value)
        if what == _BEGAN:
            if isinstance(value, BaseException):
                return None  # the other question has the same answer
            held.began = True
            if held.cancelled:
                self._kill_later(held, held.grace)
            return JobReport(job=held.job, status=JobStatus.RUNNING, reason=f"on {value}")
        if not isinstance(value, BaseException):
            return self._end(held, decode_told(value))
        if type(value).__name__ == "ActorUnavailableError":
            self._timers.setdefault(held.job, (time.monotonic() + _AGAIN, _ASK))  # unless it is to be killed
            return None
        told = self._places.written(held.job)
        if told is None:
            outcome = Outcome(reason=EndReason.CANCELLED) if held.cancelled else outcome_of(value)
            told = Told(task=_task_of(held), outcome=outcome)
        return self._end(held, told)

    def _end(self, held: Held, told: Told) -> JobReport:
        """It ended: let its actor go, which frees what it holds."""
        self._forget(held)
        self._keep_tail(told)
        submission = held.submission or self._as_submitted(held.job, told)
        if submission.task.id in self._steps and not self._steps.holds(held.job):
            self._steps.began(submission, held.job)
        return self._steps.settle(held.job, told.answer, told.outcome)

    def _forget(self, held: Held) -> None:
        del self._held[held.job]
        self._timers.pop(held.job, None)
        held.refs = []
        self._kill(held)

    def _kill(self, held: Held) -> None:
        import ray

        with suppress(Exception):  # it is gone already
            if held.actor is not None:
                ray.kill(held.actor)

    def _keep_tail(self, told: Told) -> None:
        if told.tail and told.log and not os.path.exists(told.log):
            with suppress(DiskError):
                make_parents(told.log)
                write_whole(told.log, told.tail.encode())

    def _as_submitted(self, job: str, told: Told) -> Submission:
        """What is known of an attempt that an earlier driver submitted."""
        return Submission(
            task=ScheduledTask(id=told.task, rule=told.task),
            attempt=told.attempt,
            n=told.n,
            name=job,
            argv=(),
            env={},
            cwd=self._workdir,
            log=told.log,
            resources=ScheduledTask(id="", rule="").resources,
        )

    def _adopt(self, job: str) -> None:
        """Take over the attempt of an earlier driver, or what it left."""
        import ray

        self._cluster.join()
        self._logs[job] = self._places.log(job)
        try:
            actor = ray.get_actor(job, namespace=self._cluster.namespace)
        except ValueError:
            self._held[job] = held = Held(job, None, None)
            told = self._places.written(held.job)
            lost = Outcome(reason=EndReason.LOST, message=f"no actor {job} is there, and it left no word")
            self._arrived.append((job, _TOLD, encode_told(told or Told(task="", outcome=lost))))
        else:
            self._held[job] = held = Held(job, actor, None)
            self._ask(held)

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        for job in jobs:
            held = self._held.get(job)
            if held is None:
                self._steps.cancel(job, force=force)
                continue
            held.cancelled = True
            if held.actor is None:
                continue  # its end is about to be told
            if force and not held.began:
                self._kill(held)
                continue
            held.actor.end.remote(force)
            self._kill_later(held, 0.0 if force else held.grace)

    def _kill_later(self, held: Held, grace: float) -> None:
        """Kill an actor that does not tell of its end. One that has not told of its beginning may just have
        begun, or wait for its resources for days."""
        wait = grace + _MARGIN if held.began else _DOUBT
        self._timers[held.job] = (time.monotonic() + wait, _KILL)

    def _on_time(self) -> None:
        if not self._timers:
            return
        now = time.monotonic()
        for job in [job for job, (at, _) in self._timers.items() if at <= now]:
            _, what = self._timers.pop(job)
            if what == _ASK:
                self._ask(self._held[job])
            else:
                self._kill(self._held[job])

    def taken(self, task: str, attempt: str) -> str:
        """Who made the artifact that an attempt at a step came to, where it was not itself."""
        return maker_of(self._book, task, attempt)

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return {}

    def logs(self, job: str) -> list[str]:
        log = self._logs.get(job) or self._places.log(job)
        return [log] if log else []

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Those whose actors live, by one question, and those that have written down their end."""
        import ray

        self._cluster.join()
        wanted = set(names)
        alive = [
            one["name"]
            for one in ray.util.list_named_actors(all_namespaces=True)
            if one["namespace"] == self._cluster.namespace and attempt_of(one["name"]) in wanted
        ]
        found = {attempt_of(job): job for job in sorted(alive, key=launch_of)}  # the last one of each
        told = self._places.told([name for name in names if name not in found])
        found.update((name, name) for name, path in told.items() if os.path.exists(path))
        return {name: found[name] for name in names if name in found}

    def fileno(self) -> int | None:
        return self._steps.reader

    def next_timeout(self) -> float | None:
        if self._arrived:
            return 0.0
        waits = [at - time.monotonic() for at, _ in self._timers.values()]
        if (steps := self._steps.wait()) is not None:
            waits.append(steps)
        return max(0.0, min(waits)) if waits else None

    def close(self) -> None:
        """Ask nothing more. Actors work on; the cluster stays joined, for other runs of this process."""
        self._held.clear()
        self._steps.close()


def _task_of(held: Held) -> str:
    return held.submission.task.id if held.submission is not None else ""
