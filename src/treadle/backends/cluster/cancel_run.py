"""Cancelling what earlier drivers left with a scheduler: found by what they wrote down, and verified.

job folders of the runs -> ids -> which of them the queue still has -> cancel -> the queue again

A submission without an id may still be on its way: its jobs are told, by files, that they are not to begin.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from msgspec import Struct

from treadle.backends.cluster.cancel import mark_unwanted
from treadle.backends.cluster.dialect import Phase, Silence
from treadle.backends.cluster.exit_file import look_for_exit
from treadle.backends.cluster.held import Elements, read_elements
from treadle.backends.cluster.link import Link
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.submit import find_names
from treadle.base.errors import SchedulerError
from treadle.base.layout import JobFolder, RunFolder

_PATIENCE = 60.0  # seconds for jobs to be gone: schedulers give them time to clean up
_AGAIN = 20.0  # seconds after which what is still there is cancelled once more
_PAUSE = 0.5
_LONGEST_PAUSE = 5.0


class Cancelled(Struct, frozen=True):
    """What came of it: how many jobs (elements of arrays) are gone, which are left, and what removes them."""

    gone: int = 0
    left: tuple[str, ...] = ()
    command: str = ""


def cancel_jobs(
    settings: ClusterSettings,
    wanted: Mapping[RunFolder, Set[int] | None],
    *,
    workdir: str,
    user: str,
    patience: float = _PATIENCE,
    told: Callable[[int], None] = lambda live: None,
) -> Cancelled:
    """Cancel the jobs of these runs (of attempts with these numbers; None: all), and see that they are gone.

    `told` hears how many there are. Raises `SchedulerError` when the scheduler does not answer.
    """
    link = Link(settings, workdir=workdir, user=user)
    try:
        return _cancel(link, list(dict.fromkeys(_ids(link, wanted))), patience, told)
    finally:
        link.commands.close()


def own_ends(run: RunFolder) -> set[int]:
    """Attempts of a run, by their numbers, that came to an end of their own."""
    found: set[int] = set()
    for folder, elements in _submissions(run):
        for one in elements.elements:
            exit = look_for_exit(folder, one.n, refresh=True).exit
            if exit is not None and not exit.asked and not exit.skipped:
                found.add(one.n)
    return found


def _cancel(link: Link, ids: list[str], patience: float, told: Callable[[int], None]) -> Cancelled:
    live = first = _live(link, ids)
    told(len(first))
    began, pause, tell_at = time.monotonic(), _PAUSE, 0.0
    while live:
        now = time.monotonic()
        if now - began > patience:
            commands = "; ".join(shlex.join(argv) for argv in link.dialect.cancel(live))
            return Cancelled(len(first) - len(live), tuple(live), commands)
        if now >= tell_at:  # what it prints proves nothing: the queue is asked
            for argv in link.dialect.cancel(live):
                link.commands.run(argv)
            tell_at = now + _AGAIN
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        live = _live(link, live)
    return Cancelled(len(first))


def _live(link: Link, ids: Sequence[str]) -> list[str]:
    """Those that the queue still has."""
    asked = frozenset(ids)
    found: dict[str, None] = {}
    for argv in link.dialect.poll(list(ids), link.user):
        answer = link.dialect.polled(link.commands.run(argv))
        if isinstance(answer, Silence):
            raise SchedulerError(
                f"{link.settings.backend} does not tell which jobs it has: {answer.message}",
                hint="treadle cancel again, once it answers",
            )
        found |= {row.job: None for row in answer if row.job in asked and row.phase is not Phase.ENDED}
    return [job for job in ids if job in found]


def _ids(link: Link, wanted: Mapping[RunFolder, Set[int] | None]) -> Iterator[str]:
    """What the scheduler calls these attempts; those that it never had are left out."""
    unsure: list[tuple[Elements, Set[int] | None]] = []
    for run, numbers in wanted.items():
        for folder, elements in _submissions(run):
            if job := _read_id(folder):
                yield from _of(link, elements, job, numbers)
            else:
                unsure.append((elements, numbers))
                for one in elements.elements:
                    if numbers is None or one.n in numbers:
                        mark_unwanted(folder, one.n)
    if not unsure:
        return
    names, since = [one.name for one, _ in unsure], min(one.time for one, _ in unsure)
    found = find_names(link, names, since)
    if isinstance(found, Silence):
        raise SchedulerError(
            f"{link.settings.backend} does not tell which jobs it has: {found.message}",
            hint="treadle cancel again, once it answers",
        )
    for elements, numbers in unsure:
        if elements.name in found:
            yield from _of(link, elements, found[elements.name], numbers)


def _of(link: Link, elements: Elements, job: str, numbers: Set[int] | None) -> Iterator[str]:
    if not elements.array:
        if numbers is None or any(one.n in numbers for one in elements.elements):
            yield job
        return
    for one in elements.elements:
        if numbers is None or one.n in numbers:
            yield link.dialect.element(job, one.index)


def _submissions(run: RunFolder) -> Iterator[tuple[JobFolder, Elements]]:
    try:
        names = sorted(os.listdir(run.jobs))
    except OSError:
        return
    for name in names:
        folder = JobFolder(os.path.join(run.jobs, name))
        elements = read_elements(folder)
        if elements is not None:
            yield folder, elements


def _read_id(folder: JobFolder) -> str:
    try:
        with open(folder.id, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""
