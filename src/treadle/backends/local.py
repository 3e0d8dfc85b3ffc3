"""This machine as a backend: one process group for each attempt, no thread for any.

The life of an attempt: its leader runs; the kernel says that the leader ended (`local_exits`); while it
is still a zombie, so that its group's number cannot pass to others, the rest of the group is killed;
then it is reaped, and once no process of the group is left, its end is told. Where we end it ourselves
(time limit, cancel), the whole group gets SIGTERM and its grace first.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from treadle.backends.local_attempt import Act, Attempt, Timers
from treadle.backends.local_exits import Exits, exits_here, has_ended
from treadle.backends.local_gpus import GpuPool
from treadle.backends.local_start import SHORTAGE, environment, refusal, script_of, start
from treadle.backends.local_usage import MemorySampler, OomWatch
from treadle.backends.local_verdict import outcome_of
from treadle.base.errors import DiskError, StepError
from treadle.base.machine import open_more_files
from treadle.base.proc import Child, end_stragglers, host, live_members
from treadle.base.waking import wake_soon
from treadle.engine.backend import Abilities, Accepted, JobReport, JobStatus, Refused, Submission
from treadle.plan.task import Where
from treadle.records.event import EndReason, Outcome, Usage

if TYPE_CHECKING:
    from treadle.backends.local_steps import LocalSteps
    from treadle.base.mask import Mask
    from treadle.steps.book import StepBook

_SHORTAGE_PAUSES = (0.01, 0.05, 0.2, 0.5)
_PATIENCE = 5.0  # seconds for killed processes to be gone, before their attempt is told as over
_LONGEST_PAUSE = 0.1
_LOGS_KEPT = 1000
_MANY = 50  # attempts, after which how soon we are woken between them counts


class LocalBackend:
    """Runs attempts as processes of this machine.

    `gpus` are the ids that may be handed out. An attempt that asks for GPUs sees its own in
    CUDA_VISIBLE_DEVICES; one that asks for none sees none, as it would on a cluster, unless its rule sets
    that variable; without a pool the variable is left alone.

    With a `book` it runs steps, too: in threads, and as processes of their own; what came of them is in
    the book before it is told. `unsafe_locks`: their artifacts may stand where two runs are not kept apart.
    `mask` knows the secrets that must not get into their records.
    """

    def __init__(
        self,
        *,
        gpus: Sequence[str] = (),
        book: StepBook | None = None,
        unsafe_locks: bool = False,
        mask: Mask | None = None,
    ) -> None:
        self._env = dict(os.environ)
        self._running: dict[int, Attempt] = {}
        self._lingering: dict[int, Attempt] = {}
        self._news: dict[str, JobReport] = {}
        self._logs: dict[str, str] = {}
        self._started = 0
        self._gpus = GpuPool(gpus)
        self._exits: Exits = exits_here()
        self._timers = Timers()
        self._memory = MemorySampler()
        self._oom = OomWatch()
        self._book = book
        self._steps: LocalSteps | None = None
        if book is not None:
            from treadle.backends.local_steps import LocalSteps  # a workflow without steps does without

            self._steps = LocalSteps(book, unsafe_locks=unsafe_locks, mask=mask)
            self._exits.listen(self._steps.reader)
        self._abilities = Abilities(notifies=self._exits.fileno() is not None, gpus=bool(self._gpus))

    @property
    def name(self) -> str:
        return "local"

    @property
    def abilities(self) -> Abilities:
        return self._abilities

    def render_script(self, submission: Submission) -> str:
        """A script for sh that runs the attempt by hand; which GPUs it would get is not in it."""
        return script_of(submission, submission.env)

    def submit(self, batch: Sequence[Submission]) -> list[Accepted | Refused]:
        return [self._submit(submission) for submission in batch]

    def _submit(self, submission: Submission) -> Accepted | Refused:
        call, steps = submission.task.call, self._steps
        if call is None and not submission.argv:
            return self._pass(submission)
        if call is None or steps is None:
            return self._submit_process(submission)
        if call.where is Where.THREAD:
            return steps.begin(submission)
        try:
            submission, stdin = steps.as_process(submission)
        except (StepError, DiskError) as error:
            steps.refused(submission, error)
            return Refused(str(error))
        answer = self._submit_process(submission, stdin)
        if isinstance(answer, Accepted):
            steps.began(submission, answer.job)
        return answer

    def _pass(self, submission: Submission) -> Accepted:
        """An attempt that has nothing to execute is over at once."""
        job, now = f"nothing-{submission.n}", time.time()
        outcome = Outcome(exit_code=0, start=now, end=now, host=host(), usage=Usage(wall=0.0, cpu=0.0))
        self._news[job] = JobReport(job=job, status=JobStatus.ENDED, outcome=outcome)
        return Accepted(job)

    def _submit_process(self, submission: Submission, stdin: str = os.devnull) -> Accepted | Refused:
        wanted = submission.resources.gpus
        if wanted > self._gpus.free:
            return Refused(f"it asks for {wanted} GPUs, and {self._gpus.free} of {len(self._gpus)} are free")
        gpus = self._gpus.take(wanted)
        try:
            env = environment(self._env, submission, gpus, pooled=bool(self._gpus))
            child = self._start(submission, env, stdin)
        except (OSError, ValueError, DiskError) as error:
            self._gpus.give_back(gpus)
            return Refused(refusal(submission, error))
        self._begin(submission, child, gpus)
        return Accepted(str(child.pid), child.started)

    def _start(self, submission: Submission, env: Mapping[str, str], stdin: str) -> Child:
        """Start it; where processes are short, reap what has ended and try again a few times.

        Each attempt holds a file or two open: the limit of those is raised when it is met, not before, since
        programs inherit it.
        """
        for pause in _SHORTAGE_PAUSES:
            try:
                return start(submission, env, stdin)
            except (OSError, DiskError) as error:
                number = _errno(error)
                if number == errno.EMFILE and open_more_files():
                    continue
                if number not in SHORTAGE:
                    raise
            time.sleep(pause)
            self._hear()
        return start(submission, env, stdin)

    def _begin(self, submission: Submission, child: Child, gpus: tuple[str, ...]) -> None:
        now = time.monotonic()
        attempt = Attempt(submission, child, gpus, now, time.time())
        attempt.oom_seen = self._oom.seen(now)
        self._running[child.pid] = attempt
        self._logs[attempt.job] = attempt.log
        if len(self._logs) > 2 * _LOGS_KEPT:
            self._drop_old_logs()
        self._started += 1
        if self._started == _MANY:
            wake_soon()
        self._exits.watch(child)
        self._memory.began(attempt)
        limit = submission.resources.time_limit
        if limit is not None:
            self._timers.add(now + limit, attempt, Act.LIMIT)
            early = submission.task.policy.signal_before_end
            if early is not None and 0 < early < limit:
                self._timers.add(now + limit - early, attempt, Act.WARN)

    def poll(self, jobs: Sequence[str]) -> list[JobReport]:
        self._hear()
        now = time.monotonic()
        while due := self._timers.due(now):
            self._act(*due)
        if self._memory.next_at is not None and self._memory.next_at <= now:
            self._memory.sample(self._running.values(), now)
        if self._steps is not None:
            self._news.update((report.job, report) for report in self._steps.take())
        if not self._news:
            return []
        told = [self._news.pop(job) for job in jobs if job in self._news]
        if self._steps is not None:
            for report in told:
                self._steps.told(report)
        return told

    def _hear(self) -> None:
        for pid in self._exits.take():
            self._leader_ended(self._running[pid])

    def _act(self, attempt: Attempt, act: Act) -> None:
        match act:
            case Act.WARN:
                if not has_ended(attempt.child.pid):
                    attempt.warned = True
                    self._signal(attempt, signal.SIGTERM)
            case Act.LIMIT:
                self._end(attempt, EndReason.TIME)
            case Act.KILL:
                self._kill(attempt)
            case Act.CHECK:
                self._check(attempt)
            case _:
                assert_never(act)

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        for job in jobs:
            attempt = self._running.get(int(job)) if job.isdigit() else None
            if attempt is not None:
                self._end(attempt, EndReason.CANCELLED, force=force)
            elif self._steps is not None:
                self._steps.cancel(job, force=force)

    def keep_line(self, most: int) -> bool:
        """Run no more than `most` steps in threads at a time, the others wait; False: there are no steps."""
        if self._steps is None:
            return False
        self._steps.keep_line(most)
        return True

    def withdraw(self, jobs: Sequence[str]) -> None:
        """End those of these jobs that still wait in line."""
        for job in jobs:
            if self._steps is not None:
                self._steps.withdraw(job)

    def _end(self, attempt: Attempt, why: EndReason, *, force: bool = False) -> None:
        """End an attempt, unless it has ended by itself, untold as yet."""
        if attempt.why is None:
            if has_ended(attempt.child.pid) and not attempt.leader_ended:
                return
            attempt.why = why
        if force or attempt.grace <= 0:
            self._kill(attempt)
        elif not attempt.asked:
            attempt.asked = True
            self._signal(attempt, signal.SIGTERM)
            self._signal(attempt, signal.SIGCONT)  # a stopped process would not hear SIGTERM
            self._timers.add(time.monotonic() + attempt.grace, attempt, Act.KILL)

    def _kill(self, attempt: Attempt) -> None:
        attempt.killed = True
        if attempt.child.pid in self._running:
            self._signal(attempt, signal.SIGKILL)
            if attempt.leader_ended:
                self._reap(attempt)

    def _signal(self, attempt: Attempt, number: int) -> None:
        """Signal the whole group; its leader is not reaped, so the number is still its own."""
        try:
            os.killpg(attempt.child.pid, number)
        except OSError as error:  # gone; or (EPERM) only zombies on macOS, or all of it runs as another user
            if error.errno not in (errno.ESRCH, errno.EPERM):
                raise

    def _leader_ended(self, attempt: Attempt) -> None:
        asked = attempt.asked or attempt.warned
        if asked and not attempt.killed and live_members(attempt.child.pid):
            # We asked it to end: what the leader started has the rest of the grace to clean up, too.
            attempt.leader_ended = True
            self._exits.forget(attempt.child)
            self._timers.add(time.monotonic() + attempt.check_pause, attempt, Act.CHECK)
        else:
            self._reap(attempt)

    def _reap(self, attempt: Attempt) -> None:
        """Kill what is left of the group, then take the leader's status, which frees the group's number."""
        pid = attempt.child.pid
        self._signal(attempt, signal.SIGKILL)
        if attempt.why is not None and attempt.mark:
            end_stragglers(attempt.mark)
        try:
            _, attempt.status, attempt.usage = os.wait4(pid, 0)
        except ChildProcessError:
            pass
        self._exits.forget(attempt.child)
        del self._running[pid]
        if _is_empty(pid):
            self._settle(attempt)
        else:
            self._lingering[pid] = attempt
            attempt.patience_at = time.monotonic() + _PATIENCE
            self._timers.add(time.monotonic() + attempt.check_pause, attempt, Act.CHECK)

    def _check(self, attempt: Attempt) -> None:
        """Look again at a group whose leader has ended."""
        pid, now = attempt.child.pid, time.monotonic()
        lingering = pid in self._lingering
        if live_members(pid) and not (lingering and now >= attempt.patience_at):
            attempt.check_pause = min(2 * attempt.check_pause, _LONGEST_PAUSE)
            self._timers.add(now + attempt.check_pause, attempt, Act.CHECK)
        elif lingering:
            attempt.hung = now >= attempt.patience_at
            del self._lingering[pid]
            self._settle(attempt)
        else:
            self._reap(attempt)

    def _settle(self, attempt: Attempt) -> None:
        attempt.done = True
        self._gpus.give_back(attempt.gpus)
        outcome = outcome_of(attempt, time.monotonic(), self._oom)
        told = self._steps.ended(attempt.job, outcome) if self._steps is not None else None
        self._news[attempt.job] = told or JobReport(job=attempt.job, status=JobStatus.ENDED, outcome=outcome)

    def taken(self, task: str, attempt: str) -> str:
        """Who made the artifact that an attempt at a step came to, where it was not itself."""
        if self._book is None:
            return ""
        from treadle.backends.step_ends import maker_of

        return maker_of(self._book, task, attempt)

    def accounting(self, jobs: Sequence[str]) -> dict[str, Outcome]:
        return {}

    def logs(self, job: str) -> list[str]:
        """The log of a job; of those that ended, the last thousand are remembered."""
        return [self._logs[job]] if job in self._logs else []

    def _drop_old_logs(self) -> None:
        for job in list(self._logs)[:-_LOGS_KEPT]:
            if int(job) not in self._running:
                del self._logs[job]

    def find(self, names: Sequence[str]) -> dict[str, str]:
        return {}

    def fileno(self) -> int | None:
        return self._exits.fileno()

    def next_timeout(self) -> float | None:
        if self._news:
            return 0.0
        soonest = self._timers.next()
        looking = self._memory.next_at if self._running else None
        if looking is not None and (soonest is None or looking < soonest):
            soonest = looking
        wait = None if soonest is None else max(0.0, soonest - time.monotonic())
        steps = self._steps.wait() if self._steps is not None else None
        if steps is not None and (wait is None or steps < wait):
            wait = steps
        interval = self._exits.interval()
        return wait if interval is None or (wait is not None and wait < interval) else interval

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
        self._exits.close()


def _is_empty(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _errno(error: OSError | DiskError) -> int | None:
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.errno if isinstance(cause, OSError) else None
