"""Drivers that are jobs (`treadle run --as-job`) as others meet them: one that waits, and the end of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec import Struct

from treadle.backends.cluster.cancel import mark_unwanted
from treadle.backends.cluster.cancel_run import Cancelled, cancel_jobs
from treadle.backends.cluster.exit_file import Witness, look_for_exit
from treadle.backends.cluster.find_logs import settings_of_run
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.files import is_there
from treadle.base.layout import JobFolder, RunFolder, StateFolder
from treadle.base.machine import login_name

TASK = "treadle_driver"  # what a driver is called among the jobs of a scheduler


class EndedDrivers(Struct, frozen=True):
    """What came of ending drivers; `began`: one of those that are gone may have driven a run."""

    jobs: Cancelled = Cancelled()
    began: bool = False


class WaitingDriver(Struct, frozen=True):
    """A job that is to drive the next run: what `backend` calls it."""

    job: str
    backend: str


def waiting_driver(state: StateFolder) -> WaitingDriver | None:
    """The last driver that was handed in as a job, if it has not ended, and no run began since.

    By the records alone: whether the scheduler still has it is not asked.
    """
    names = state.driver_names()
    if not names or any(_time(run) >= _time(names[-1]) for run in state.run_ids()[-1:]):
        return None
    folder = state.driver(names[-1])
    settings, job, seen = settings_of_run(folder), _job_of(folder), _seen(folder)
    if settings is None or seen is None or seen.exit is not None:
        return None
    return WaitingDriver(_id_of(job), settings.backend)


def end_drivers(state: StateFolder, told: Callable[[int], None]) -> EndedDrivers:
    """Cancel the drivers of a work folder that are jobs and have not ended, and see that they are gone.

    `told` hears how many there are. Raises `SchedulerError` when the scheduler does not answer.
    """
    done, began = Cancelled(), False
    for settings, folders in _by_scheduler(state):
        found = cancel_jobs(
            settings, dict.fromkeys(folders), workdir=state.workdir, user=login_name(), told=told
        )
        for folder in folders if not found.left else ():
            began |= bool(found.gone and look_for_exit(_job_of(folder), 1).starts)
            mark_unwanted(_job_of(folder), 1)  # which says that it need not be asked for again
        done = Cancelled(
            done.gone + found.gone,
            done.left + found.left,
            "; ".join(filter(None, (done.command, found.command))),
        )
    return EndedDrivers(done, began)


def _by_scheduler(state: StateFolder) -> Iterator[tuple[ClusterSettings, list[RunFolder]]]:
    """The drivers that may be with a scheduler, by how that is used."""
    groups: list[tuple[ClusterSettings, list[RunFolder]]] = []
    for name in state.driver_names():
        folder = state.driver(name)
        settings, seen = settings_of_run(folder), _seen(folder)
        if settings is None or seen is None or seen.exit is not None:
            continue
        for known, folders in groups:
            if known == settings:
                folders.append(folder)
                break
        else:
            groups.append((settings, [folder]))
    yield from groups


def _seen(folder: RunFolder) -> Witness | None:
    """What a driver has left; None: it was cancelled before."""
    job = _job_of(folder)
    return None if is_there(job.unwanted(1)) else look_for_exit(job, 1, refresh=True)


def _job_of(folder: RunFolder) -> JobFolder:
    return folder.job(1, TASK)


def _time(name: str) -> str:
    return name.partition("-")[0]


def _id_of(job: JobFolder) -> str:
    try:
        with open(job.id, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return os.path.basename(job.root)
