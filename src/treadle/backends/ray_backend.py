"""Ray as a backend: each attempt is a detached actor, named as the attempt is.

Ray ends a driver's tasks, and its plain actors, with the driver. A detached actor is the cluster's own: it
works on when the driver is killed, and any later run finds it by its name. All news are callbacks of Ray's,
which wake the loop through a descriptor: nothing is polled.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from treadle.backends.payload import make_private_folder, write_payload
from treadle.backends.ray_cluster import RayCluster, capped, impossible, lacking, ray_options
from treadle.backends.ray_errors import outcome_of
from treadle.backends.ray_ticket import Ticket, Told, decode_told, encode_ticket
from treadle.backends.remote_steps import RemoteSteps
from treadle.base.errors import DiskError, SchedulerError, StepError
from treadle.base.files import make_parents, write_whole
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.mask import Mask
from treadle.base.names import job_prefix
from treadle.engine.backend import Abilities, Accepted, JobReport, JobStatus, Refused, Submission
from treadle.plan.task import ScheduledTask
from treadle.records.event import EndReason, Outcome
from treadle.steps.book import StepBook

CLIENT_VARIABLE = "TREADLE_CLIENT"
_INLINE = 64 * 1024  # bytes; Ray puts larger arguments into the object store, where they end with the driver
_ASKERS = 8  # threads of an actor that answer: several drivers may ask at once
_MARGIN = 5.0  # seconds beyond the grace for an actor to tell of its end
_AGAIN = 1.0  # seconds until an actor that could not be reached is asked again
_GRACE = 10.0  # of an adopted attempt
_BEGAN, _TOLD, _ASK = "began", "told", "ask"


class Held:
    """One attempt as the driver knows it. `submission` is None for one that an earlier driver made."""

    __slots__ = ("actor", "began", "cancelled", "job", "refs", "submission", "waits_for")

    def __init__(self, job: str, actor: Any, submission: Submission | None) -> None:
        self.job = job
        self.actor = actor
        self.submission = submission
        self.refs: list[Any] = []
        self.began = False
        self.cancelled = False
        self.waits_for = ""


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
        self._pools = frozenset(pools)
        self._steps = RemoteSteps(
            book if book is not None else StepBook(), unsafe_locks=unsafe_locks, mask=mask
        )
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
        if found := impossible(submission.resources):
            return Refused(f"Ray cannot do what it asks for: {', '.join(found)}")
        options = ray_options(submission.resources, nodes)
        if unknown := self._unknown(submission, options):
            return Refused(
                f"neither the cluster nor the workflow has a resource named {' or '.join(unknown)}"
            )
        if self._cluster.owned:
            options = capped(options, nodes)
        waits_for = lacking(options, nodes)
        if waits_for and self._cluster.owned:
            return Refused(waits_for)
        try:
            wire, file = self._ticket(submission)
        except (StepError, DiskError) as error:
            return Refused(str(error))
        held = Held(submission.name, self._actor(submission.name, options, wire, file), submission)
        held.waits_for = waits_for
        if submission.task.call is not None:
            self._steps.began(submission, held.job)
        self._logs[held.job] = submission.log
        self._held[held.job] = held
        self._ask(held)
        return Accepted(held.job)

    def _unknown(self, submission: Submission, options: Mapping[str, Any]) -> list[str]:
        """Counted resources that nobody counts."""
        known = self._pools | options.get("resources", {}).keys()
        return [name for name, _ in submission.resources.groups if name not in known]

    def _ticket(self, submission: Submission) -> tuple[bytes, str]:
        """The ticket, or the private file where it stands: what is long, or holds secrets."""
        env = {**submission.env, CLIENT_VARIABLE: self._cluster.address}
        order = b""
        if submission.task.call is not None:
            order = self._steps.order(submission)
            env.update(self._steps.env(submission.task.id))
        run = RunFolder(os.path.dirname(os.path.dirname(submission.log)))
        make_parents(run.payloads)
        make_private_folder(run.payloads)
        told = run.result(submission.n)
        wire = encode_ticket(Ticket(submission=replace(submission, env=env), order=order), told)
        if len(wire) <= _INLINE and not submission.task.command.secrets:
            return wire, ""
        write_payload(run.payload(submission.n), wire, told)
        return b"", run.payload(submission.n)

    def _actor(self, name: str, options: dict[str, Any], wire: bytes, file: str) -> Any:
        import ray

        from treadle.backends.ray_attempt import RayAttempt

        try:
            return (
                ray.remote(RayAttempt)
                .options(
                    name=name,
                    namespace=self._cluster.namespace,
                    lifetime="detached",
                    get_if_exists=True,
                    max_restarts=0,
                    max_concurrency=_ASKERS,
                    **options,
                )
                .remote(wire, file)
            )
        except Exception as error:
            raise SchedulerError(f"Ray did not take {name}: {error}") from error

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
        if what == _BEGAN:
            if isinstance(value, BaseException):
                return None  # the other question has the same answer
            held.began = True
            return JobReport(job=held.job, status=JobStatus.RUNNING, reason=f"on {value}")
        if not isinstance(value, BaseException):
            return self._end(held, decode_told(value))
        if type(value).__name__ == "ActorUnavailableError":
            self._timers[held.job] = (time.monotonic() + _AGAIN, _ASK)
            return None
        told = self._written(held)
        if told is None:
            outcome = Outcome(reason=EndReason.CANCELLED) if held.cancelled else outcome_of(value)
            told = Told(task=_task_of(held), outcome=outcome)
        return self._end(held, told)

    def _written(self, held: Held) -> Told | None:
        """What the actor wrote down before it was gone."""
        path = self._told_paths([held.job]).get(held.job, "")
        try:
            with open(path, "rb") as file:
                return decode_told(file.read()) if os.fstat(file.fileno()).st_uid == os.geteuid() else None
        except (OSError, ValueError):
            return None

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
        self._logs[job] = self._log_of(job)
        try:
            actor = ray.get_actor(job, namespace=self._cluster.namespace)
        except ValueError:
            self._held[job] = held = Held(job, None, None)
            told = self._written(held)
            lost = Outcome(reason=EndReason.LOST, message=f"no actor {job} is there, and it left no word")
            self._arrived.append((job, _TOLD, _wire(told or Told(task="", outcome=lost))))
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
            if not held.began:
                self._kill(held)
                continue
            held.actor.end.remote(force)
            grace = held.submission.grace if held.submission is not None else _GRACE
            self._timers[job] = (time.monotonic() + (0.0 if force else grace) + _MARGIN, "kill")

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

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return {}

    def logs(self, job: str) -> list[str]:
        log = self._logs.get(job) or self._log_of(job)
        return [log] if log else []

    def _log_of(self, job: str) -> str:
        """The log of an attempt of any run of the work folder (empty: it is of none)."""
        told = self._told_paths([job]).get(job)
        if told is None:
            return ""
        run, number = RunFolder(os.path.dirname(os.path.dirname(told))), job.rpartition("-")[2]
        return run.attempt_log(int(number, 36))

    def find(self, names: Sequence[str]) -> dict[str, str]:
        """Those whose actors live, by one question, and those that have written down their end."""
        import ray

        self._cluster.join()
        alive = {
            one["name"]
            for one in ray.util.list_named_actors(all_namespaces=True)
            if one["namespace"] == self._cluster.namespace
        }
        told = self._told_paths([name for name in names if name not in alive])
        return {name: name for name in names if name in alive or os.path.exists(told.get(name, ""))}

    def _told_paths(self, names: Sequence[str]) -> dict[str, str]:
        """Where these attempts write down their ends: in the folders of their runs."""
        state = StateFolder(self._workdir)
        wanted = {name.rpartition("-")[0] for name in names}
        runs = {job_prefix(run).rstrip("-"): state.run(run) for run in state.run_ids()} if wanted else {}
        found = {}
        for name in names:
            prefix, _, number = name.rpartition("-")
            if prefix in runs:
                found[name] = runs[prefix].result(int(number, 36))
        return found

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


def _wire(told: Told) -> bytes:
    from treadle.backends.ray_ticket import encode_told

    return encode_told(told)
