"""Attempts of earlier drivers: found by what those wrote down, and by their names in queue and accounting.

elements.json not there          never submitted
job.id there, or the id known    the scheduler has it, or had it: watched as any other
neither                          asked for by name, until the scheduler answers

The command of a driver that was killed goes on without it, and may hand its job in whenever the scheduler
lets it. So one that nobody knows is given up only with word to its job that it is not to begin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from treadle.backends.cluster.cancel import mark_unwanted
from treadle.backends.cluster.dialect import Silence
from treadle.backends.cluster.held import Elements, Held, Sent, read_elements
from treadle.backends.cluster.link import Link
from treadle.backends.cluster.submit import find_names
from treadle.base.errors import DiskError
from treadle.base.files import write_whole
from treadle.base.layout import JobFolder, RunFolder
from treadle.engine.backend import Adoptee

_LATE = 5.0  # seconds after an intent in which a submission may still be on its way, without its driver
_AGAIN = 1.0
_GIVEN = "it was never submitted: its driver ended before"


class Adopter:
    """Takes attempts over. `taken` is told of submissions whose jobs the scheduler has, or that have begun;
    `unknown` of attempts that no source knows."""

    def __init__(self, link: Link, taken: Callable[[Sent], None], unknown: Callable[[Held], None]) -> None:
        self._link = link
        self._taken = taken
        self._unknown = unknown
        self._unsure: list[tuple[Sent, float]] = []  # and when the intent was written
        self._at = 0.0
        self._asking = False

    def adopt(self, batch: Sequence[Adoptee]) -> dict[int, str]:
        """Take these over; why not, by their place in the batch, for those that were never submitted."""
        refused: dict[int, str] = {}
        sents: dict[str, tuple[Sent, float]] = {}
        runs: dict[str, dict[int, tuple[JobFolder, Elements]]] = {}
        for place, one in enumerate(batch):
            if one.run.root not in runs:
                runs[one.run.root] = _folders_by_n(one.run)
            found = runs[one.run.root].get(one.submission.n)
            if found is None:
                refused[place] = _GIVEN
                continue
            folder, elements = found
            sent, _ = sents.setdefault(folder.root, (_sent_of(folder, elements), one.since))
            held = Held(one.submission, self._link.settings)
            held.index = next(each.index for each in elements.elements if each.n == held.n)
            held.several = sum(each.index == held.index for each in elements.elements) > 1
            self._join(sent, held, one)
        for sent, since in sents.values():
            sent.count()
            if all(held.id for held in sent.held):
                self._taken(sent)
            else:
                self._unsure.append((sent, since))
        return refused

    def _join(self, sent: Sent, held: Held, one: Adoptee) -> None:
        now = self._link.now()
        held.sent, held.sent_at, held.known = sent, now, now
        held.submission, held.doomed = None, one.doomed
        if sent.id:
            held.id = self._link.dialect.element(sent.id, held.index) if sent.array else sent.id
        elif one.job and one.job != one.submission.name:
            held.id = one.job
        sent.held.append(held)

    def held(self) -> list[Held]:
        """Those that are still asked for."""
        return [held for sent, _ in self._unsure for held in sent.held]

    def due(self) -> float | None:
        return self._at if self._unsure and not self._asking else None

    def advance(self, now: float) -> None:
        """Ask for the names of which nothing more is known."""
        if not self._unsure or self._asking or now < self._at:
            return
        link = self._link
        names = [sent.name for sent, _ in self._unsure]
        since = min(sent.time for sent, _ in self._unsure)
        self._asking = True
        link.commands.begin(lambda: find_names(link, names, since), self._found)

    def _found(self, found: dict[str, str] | Silence | BaseException) -> None:
        self._asking = False
        link, now = self._link, self._link.now()
        if isinstance(found, BaseException):
            self._at = now + _LATE
            link.failed(found)
            return
        if isinstance(found, Silence):
            self._at = now + link.silent(found.message)
            return
        link.answered()
        unsure, self._unsure = self._unsure, []
        for sent, since in unsure:
            if sent.name in found:
                self._is(sent, found[sent.name])
            elif 0 <= link.clock.now() - since < _LATE:
                self._unsure.append((sent, since))
                self._at = now + _AGAIN
            else:
                self._not_known(sent, now)

    def _is(self, sent: Sent, job: str) -> None:
        sent.id = job
        try:
            write_whole(sent.folder.id, f"{job}\n".encode())
        except DiskError:  # it is found by its name again
            pass
        for held in sent.held:
            held.id = self._link.dialect.element(job, held.index) if sent.array else job
        self._taken(sent)

    def _not_known(self, sent: Sent, now: float) -> None:
        """Nobody knows it by name: only what it left itself can tell. A job first claims its start, and then
        looks whether it is wanted; so what has not begun once that is written will not."""
        left: list[Held] = []
        for held in sent.held:
            sent.look(held, now)
            if not (held.witness.starts or held.id):
                mark_unwanted(sent.folder, held.n)
        sent.listed = None
        for held in sent.held:
            sent.look(held, now)
            if held.witness.starts or held.id:
                held.over = None if held.id else now
                left.append(held)
            else:
                self._unknown(held)
        sent.held = left
        sent.count()
        if left:
            self._taken(sent)


def _folders_by_n(run: RunFolder) -> dict[int, tuple[JobFolder, Elements]]:
    """The submissions of a run, by the numbers of the attempts in them."""
    try:
        names = sorted(os.listdir(run.jobs))
    except OSError:
        return {}
    found: dict[int, tuple[JobFolder, Elements]] = {}
    for name in names:
        folder = JobFolder(os.path.join(run.jobs, name))
        elements = read_elements(folder)
        if elements is not None:
            found.update((one.n, (folder, elements)) for one in elements.elements)
    return found


def _sent_of(folder: JobFolder, elements: Elements) -> Sent:
    sent = Sent(folder, elements.name, elements.array, elements.time, [])
    try:
        with open(folder.id, encoding="utf-8") as file:
            sent.id = file.read().strip()
    except (OSError, UnicodeDecodeError):
        pass
    return sent
