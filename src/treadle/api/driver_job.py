"""`treadle run --as-job`: the driver as a small job, which hands in the next one before its time is over.

What it has submitted goes on meanwhile, and the next one takes it over.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.api.backend_of import write_settings
from treadle.api.drivers import TASK
from treadle.api.pipe import Request, plan_of
from treadle.base.errors import OptionError, SchedulerError
from treadle.base.files import make_parents
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import login_name
from treadle.base.names import job_name
from treadle.base.units import format_clock
from treadle.engine.backend import Refused, Submission
from treadle.engine.compose import ATTEMPT
from treadle.plan.task import Command, Policy, Resources, ScheduledTask
from treadle.records.event import EndReason
from treadle.records.version import prepare
from treadle.rules.profile.partitions import longest_time

if TYPE_CHECKING:
    from treadle.backends.cluster.backend import ClusterBackend

LIMIT = "TREADLE_DRIVER"  # seconds: we are such a job, and have so long
_DAY = 86_400
_MEMORY = 2 * 1024**3
_ROOM = 300.0  # seconds before its limit in which a driver detaches and hands in the next one
# What a driver needs of our environment where the scheduler does not pass it on.
_PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
)


class DriverJob(Struct, frozen=True):
    """A driver that is a job: what the scheduler calls it, its name there, and what it says."""

    job: str
    backend: str
    log: str


def submit_driver(request: Request, words: Sequence[str]) -> DriverJob:
    """Hand in a job that drives `treadle run` with these words.

    What is wrong with the workflow is raised here. Raises OptionError where no scheduler is chosen,
    `SchedulerError` when it does not take the job.
    """
    planned = plan_of(request)
    cluster = planned.workflow.cluster
    if cluster is None or not cluster.is_scheduler:
        hint = "choose a scheduler with --profile or --backend; --detach runs it in the background here"
        raise OptionError("--as-job needs a scheduler, and the run is local", hint=hint)
    from treadle.backends.cluster.backend import ClusterBackend
    from treadle.backends.cluster.cancel import mark_unwanted
    from treadle.backends.cluster.configured import settings_of

    settings = settings_of(cluster, planned.workflow.rules)
    wanted = Resources(memory=_MEMORY)
    limit = settings.walltime or _DAY
    if (most := longest_time(settings.partitions, settings.ceilings, wanted)) is not None:
        limit = min(limit, most)
    state = StateFolder(planned.workdir)
    prepare(state)
    folder = state.driver(f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(2).hex()}")
    make_parents(folder.attempt_log(1))
    write_settings(folder, settings)
    backend = ClusterBackend(settings, workdir=planned.workdir, run=folder, user=login_name())
    try:
        job = _accepted(backend, _submission(words, folder, limit))
    except SchedulerError:
        mark_unwanted(folder.job(1, TASK), 1)  # nobody is to wait for it
        raise
    finally:
        backend.close()
    return DriverJob(job, settings.backend, folder.attempt_log(1))


def _submission(words: Sequence[str], folder: RunFolder, limit: int) -> Submission:
    env = {name: value for name in _PASSED if (value := os.environ.get(name))}
    ours = (name for name in os.environ if name.startswith("TREADLE_") and name != ATTEMPT)
    env |= {name: os.environ[name] for name in ours}
    return Submission(
        task=ScheduledTask(id=TASK, rule=TASK, command=Command(), policy=Policy(restartable=True)),
        attempt=1,
        n=1,
        name=job_name(folder.run, 1),
        argv=(sys.executable, "-m", "treadle.cli.main", "run", *words),
        env={**env, LIMIT: str(limit)},
        cwd=os.getcwd(),
        log=folder.attempt_log(1),
        resources=Resources(memory=_MEMORY, time_limit=limit),
    )


def _accepted(backend: ClusterBackend, submission: Submission) -> str:
    """What the scheduler calls the job, once it has taken it and its queue was asked, which alone may tell
    that it can never start."""
    (answer,) = backend.submit([submission])
    if isinstance(answer, Refused):
        raise SchedulerError(f"{backend.name} does not take the driver: {answer.message}")
    job = ""
    while not (job and backend.was_asked):
        for report in backend.poll([answer.job]):
            job = report.job_id or job
            if report.outcome is not None and report.outcome.reason is not EndReason.OK:
                limit = format_clock(submission.resources.time_limit or 0)
                raise SchedulerError(
                    f"{backend.name} does not take the driver: {report.outcome.message}",
                    hint=f"it asks for one CPU, {_MEMORY >> 30}G and {limit}, by the profile's 'walltime'",
                )
        if not (job and backend.was_asked):
            fd = backend.fileno()
            select.select([fd] if fd is not None else [], [], [], backend.next_timeout())
    return job


def time_left() -> float | None:
    """Seconds that this process has, where it is a driver that is a job; None: it is none."""
    text = os.environ.get(LIMIT, "")
    return float(text) if text.isascii() and text.isdigit() else None


def leave_in_time(seconds: float) -> threading.Timer:
    """Let this process be told to end (SIGTERM) while there is still time to hand in the next driver."""
    after = max(seconds / 2, seconds - _ROOM)
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()
    return timer
