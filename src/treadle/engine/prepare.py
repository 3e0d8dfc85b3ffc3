"""From a launch to what the backend gets: the intent, the clean slate, inputs looked at, the command made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from treadle.base.errors import DiskError
from treadle.base.files import is_there, make_parents, remove, write_whole
from treadle.base.layout import RunFolder
from treadle.base.names import job_name
from treadle.decide.flight import sent_identity, sent_step
from treadle.decide.look import look_at
from treadle.engine.attempt import Attempt
from treadle.engine.backend import Adoptee, ExecutorBackend, Submission
from treadle.engine.besides import parts_of
from treadle.engine.check import Eyes
from treadle.engine.compose import ATTEMPT, Composed, Place, compose, environment
from treadle.engine.news import InFlight, Launch
from treadle.engine.slate import EMPTY, Moved, Slate, look_over, recorded_outputs, sweep
from treadle.plan.task import ScheduledTask
from treadle.records.event import AttemptSubmitted, FileRecord, artifact_elsewhere, key_of_task
from treadle.records.past import Past

if TYPE_CHECKING:
    from treadle.engine.scratch import Scratch


class Preparer:
    """Makes submissions of launches, for one run. `secrets` are the values of sensitive config keys;
    `spare_logs` those of attempts that ended well, as the `Concluder` leaves them."""

    def __init__(
        self,
        *,
        run: RunFolder,
        place: Place,
        plan: str,
        backend: ExecutorBackend,
        past: Past,
        eyes: Eyes,
        secrets: Mapping[str, str],
        grace: float,
        spare_logs: list[str],
    ) -> None:
        self._run = run
        self._place = place
        self._plan = plan
        self._part = parts_of(backend)
        self._past = past
        self._eyes = eyes
        self._secrets = secrets
        self._grace = grace
        self._spare_logs = spare_logs
        self._id = run.run
        # From the work folder, where commands run: of plain characters, whatever its own name is.
        self._relative = RunFolder(os.path.relpath(run.root, place.workdir))

    def intent(self, launch: Launch, now: float) -> tuple[Attempt, AttemptSubmitted]:
        """Look at the outputs, and say what is about to happen; nothing is touched before that is written.

        Raises `DiskError` when an output cannot be looked at.
        """
        task = launch.task
        slate = EMPTY
        if task.outputs and any(is_there(self._eyes.place(path)) for path in task.outputs):
            recorded, foreign = self._recorded(task)
            slate = look_over(task, recorded, self._eyes, foreign)
        attempt = Attempt(task, launch.attempt, launch.n, launch.resources, slate, self._run, launch.exclude)
        attempt.whole, attempt.lost = launch.whole, launch.lost
        attempt.unit, attempt.after = launch.unit, launch.after
        event = self.submitted(launch, now, tuple(slate.standing.values()))
        attempt.name = event.name
        return attempt, event

    def submitted(self, launch: Launch, now: float, before: tuple[FileRecord, ...] = ()) -> AttemptSubmitted:
        """The event of a launch; `before` are the outputs that stand there."""
        part = self._part(launch.task)
        identity = ""
        if launch.task.call is not None:
            identity = sent_step(launch.task) if part.abilities.adopts_steps else ""
        elif part.abilities.adoption:
            identity = self._identity(launch.task)
        return AttemptSubmitted(
            time=now,
            task=launch.task.id,
            attempt=launch.attempt,
            n=launch.n,
            name=job_name(self._id, launch.n),
            backend=part.name,
            outputs=launch.task.outputs,
            artifact=artifact_elsewhere(launch.task),
            before=before,
            resumable=launch.task.policy.resumable,
            identity=identity,
            grown=launch.resources if identity and launch.resources != launch.task.resources else None,
        )

    def _identity(self, task: ScheduledTask) -> str:
        """By which the next driver knows whether the job is what it wants. A script that cannot be read makes
        it one that nobody wants."""
        path = task.command.script_file
        try:
            record = self._eyes.at(path) if path else None
            if record is not None and not record.digest:
                read = look_at(path, None, None, self._place.workdir, flowdir=self._place.flowdir)
                self._eyes.learn([read] if read is not None else [])
            return sent_identity(task, self._eyes.at, self._place.workdir, self._place.flowdir)
        except DiskError:
            return "unknown"

    def bare(self, task: ScheduledTask, job: InFlight) -> Attempt:
        """An attempt of which no more is known than its numbers and its job."""
        attempt = Attempt(task, job.attempt, job.n, task.resources, EMPTY, self._run)
        attempt.job = job.job
        return attempt

    def adopted(self, task: ScheduledTask, job: InFlight) -> tuple[Attempt, Adoptee]:
        """An attempt of an earlier run, as that run sent it off. Raises `DiskError`."""
        intent = job.intent
        assert intent is not None
        folder = self._run.beside(intent.run)
        standing = {record.path: record for record in intent.before}
        foreign = self._recorded(task)[1] if task.outputs else ()
        resources = intent.grown or task.resources
        attempt = Attempt(task, job.attempt, job.n, resources, Slate(standing, foreign=foreign), folder)
        attempt.name, attempt.job = intent.name, job.job
        attempt.adopted, attempt.anew, attempt.doomed = True, job.anew, job.doomed
        attempt.standing = standing
        attempt.copies_log = bool(task.log and not task.log_named)
        attempt.before = self._eyes.before(task)
        attempt.submission = self._submission(attempt, (), {ATTEMPT: f"{folder.run}.{job.n}"})
        adoptee = Adoptee(
            submission=attempt.submission, run=folder, job=job.job, since=intent.time, doomed=job.doomed
        )
        return attempt, adoptee

    def _recorded(self, task: ScheduledTask) -> tuple[dict[str, FileRecord], tuple[str, ...]]:
        """How earlier successes left these outputs, whichever task made them, and what is foreign in them."""
        evidence = self._past.evidence(key_of_task(self._plan, task))
        recorded = recorded_outputs(evidence)
        foreign = evidence.foreign if evidence is not None else ()
        for path in task.outputs:
            if path not in recorded:
                maker = self._past.maker(path)
                other = self._past.evidence(maker) if maker else None
                if other is not None and path in (found := recorded_outputs(other)):
                    recorded[path] = found[path]
                    foreign += other.foreign
        return recorded, foreign

    def submission(self, attempt: Attempt) -> tuple[Submission, list[Moved]]:
        """Make the slate clean and the command ready. Raises `DiskError`.

        A step has no command and no slate: the backend has its function, and its store its artifact.
        """
        task, n = attempt.task, attempt.n
        if task.call is not None:
            if task.inputs:
                attempt.before = self._eyes.before(task)
            attempt.submission = self._submission(attempt, (), {ATTEMPT: f"{self._id}.{n}"})
            return attempt.submission, []
        moved = sweep(task, attempt.slate, self._eyes)
        gone = {*attempt.slate.remove, *attempt.slate.aside}
        if attempt.slate.standing:
            attempt.standing = {path: one for path, one in attempt.slate.standing.items() if path not in gone}
        if task.log and not task.log_named:
            remove(self._eyes.place(task.log))
        attempt.before = self._eyes.before(task)
        made = compose(
            task,
            attempt.resources,
            self._place,
            text_file=self._run.attempt_text(n),
            input_list=self._relative.input_list(n),
            scratch=self._scratch(attempt) if task.policy.scratch else None,
        )
        self._write_files(task, made)
        env = environment(task, attempt.resources, self._place, run=self._id, n=n, secrets=self._secrets)
        attempt.submission = self._submission(attempt, made.argv, env)
        return attempt.submission, moved

    def _submission(self, attempt: Attempt, argv: tuple[str, ...], env: dict[str, str]) -> Submission:
        task, n = attempt.task, attempt.n
        private = bool(task.command.secrets)
        spare = self._spare_logs and not private and self._here(task)
        return Submission(
            task=task,
            attempt=attempt.attempt,
            n=n,
            name=attempt.name,
            argv=argv,
            env=env,
            cwd=self._place.workdir,
            log=attempt.folder.private_log(n) if private else attempt.folder.attempt_log(n),
            resources=attempt.resources,
            grace=self._grace,
            private_log=private,
            log_from=self._spare_logs.pop() if spare else "",
            exclude=attempt.exclude,
            unit=attempt.unit,
            after=attempt.after,
        )

    def _here(self, task: ScheduledTask) -> bool:
        return task.call is None and not self._part(task).abilities.batch

    def _scratch(self, attempt: Attempt) -> Scratch | None:
        from treadle.engine.scratch import scratch_of  # few rules ask for it

        found = scratch_of(attempt.task, self._place, self._plan, self._run, attempt.n)
        if found is not None and not self._part(attempt.task).abilities.batch:
            attempt.scratch = os.path.expandvars(os.path.expanduser(found.base))
        return found

    def _write_files(self, task: ScheduledTask, made: Composed) -> None:
        if made.text_file:
            make_parents(made.text_file)
            write_whole(made.text_file, made.text.encode())
        if made.scratch_file:
            make_parents(made.scratch_file)
            write_whole(made.scratch_file, made.scratch_text.encode())
        if made.input_list:
            path = os.path.join(self._place.workdir, made.input_list)
            make_parents(path)
            write_whole(path, "".join(f"{one}\n" for one in task.inputs).encode())
