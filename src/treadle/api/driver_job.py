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

from msgspec import Struct

from treadle.api.pipe import Request, plan_of
from treadle.base.errors import OptionError, SchedulerError
from treadle.base.files import make_parents
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.machine import login_name
from treadle.base.names import job_name
from treadle.engine.backend import ExecutorBackend, Refused, Submission
from treadle.engine.compose import ATTEMPT
from treadle.plan.task import Command, Policy, Resources, ScheduledTask
from treadle.records.version import prepare

LIMIT = "TREADLE_DRIVER"  # seconds: we are such a job, and have so long
_DAY = 86_400
_MEMORY = 2 * 1024**3
_ROOM = 300.0  # seconds before its limit in which a driver detaches and hands in the next one
_ID = "treadle_driver"
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
    from treadle.backends.cluster.configured import settings_of

    settings = settings_of(cluster, planned.workflow.rules)
    most = cluster.ceilings.time_limit if cluster.ceilings is not None else None
    limit = min(settings.walltime or _DAY, most or _DAY * 365)
    state = StateFolder(planned.workdir)
    prepare(state)
    folder = state.driver(f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(2).hex()}")
    make_parents(folder.attempt_log(1))
    backend = ClusterBackend(settings, workdir=planned.workdir, run=folder, user=login_name())
    try:
        job = _accepted(backend, _submission(words, folder, limit))
    finally:
        backend.close()
    return DriverJob(job, settings.backend, folder.attempt_log(1))


def _submission(words: Sequence[str], folder: RunFolder, limit: int) -> Submission:
    env = {name: value for name in _PASSED if (value := os.environ.get(name))}
    ours = (name for name in os.environ if name.startswith("TREADLE_") and name != ATTEMPT)
    env |= {name: os.environ[name] for name in ours}
    return Submission(
        task=ScheduledTask(id=_ID, rule=_ID, command=Command(), policy=Policy(restartable=True)),
        attempt=1,
        n=1,
        name=job_name(folder.run, 1),
        argv=(sys.executable, "-m", "treadle.cli.main", "run", *words),
        env={**env, LIMIT: str(limit)},
        cwd=os.getcwd(),
        log=folder.attempt_log(1),
        resources=Resources(memory=_MEMORY, time_limit=limit),
    )


def _accepted(backend: ExecutorBackend, submission: Submission) -> str:
    """What the scheduler calls the job, once it has taken it."""
    (answer,) = backend.submit([submission])
    if isinstance(answer, Refused):
        raise SchedulerError(f"{backend.name} does not take the driver: {answer.message}")
    while True:
        for report in backend.poll([answer.job]):
            if report.job_id:
                return report.job_id
            if report.outcome is not None:
                raise SchedulerError(f"{backend.name} does not take the driver: {report.outcome.message}")
        fd = backend.fileno()
        select.select([fd] if fd is not None else [], [], [], backend.next_timeout())


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
