"""Cancelling: in batches, asked for again where the queue still shows a job, and what is left is told.

When the run gives its scheduler up, there is one try more, and of each job it is told whether that was heard.
So it is when somebody asks twice to be gone, but only what is being told right then is waited for.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import suppress

from treadle.backends.cluster.dialect import Phase, Said
from treadle.backends.cluster.held import Held
from treadle.backends.cluster.link import Link
from treadle.base.errors import DiskError
from treadle.base.files import write_whole
from treadle.base.layout import JobFolder
from treadle.engine.backend import JobStatus

_PATIENCE = 15.0  # seconds for a job that was cancelled to be gone: schedulers give it time to clean up
_TRIES = 3
_LAST_WORD = 5.0  # seconds for an answer, when somebody wants to be gone at once


class Canceller:
    """Cancels jobs; `asked` is called when the scheduler was told, so that the queue is looked at. `tell`
    hears of each attempt with news."""

    def __init__(self, link: Link, asked: Callable[[], None], tell: Callable[[Held], None]) -> None:
        self._link = link
        self._asked = asked
        self._tell = tell
        self._todo: dict[int, Held] = {}
        self._open: dict[int, tuple[Held, float]] = {}  # told, and when
        self._asking = False
        self._not_before = 0.0
        self._heard: set[str] = set()  # names of those of which the scheduler said that it ends them
        self._why = ""  # it did not, the last time
        self._left: list[Held] = []  # in flight when somebody wanted to be gone
        self._until: float | None = None
        self._gone = False

    def add(self, held: Held) -> None:
        """This one is to be gone from the queue. Among others in its job it is asked to end by a file, until
        all of them are to go."""
        if held.several and held.sent is not None and held.ended is None:
            mark_unwanted(held.sent.folder, held.n)
            mates = held.sent.mates(held)
            if not all(one.cancelled for one in mates):
                return
            self._todo.update((id(one), one) for one in mates)
        self._todo[id(held)] = held

    @property
    def asking(self) -> bool:
        """Whether the scheduler is being told, which takes as long as a command may, and is waited for."""
        return self._asking and not self._gone

    def due(self) -> float | None:
        if self._until is not None:
            return self._until
        return self._not_before if self._todo and not self._asking else None

    def leave(self, left: list[Held]) -> None:
        """Somebody wants to be gone at once: these are in flight, and not waited for any longer."""
        self._link.leaving = True
        self._left = left
        now = self._link.now()
        self._until = now + _LAST_WORD if self._asking else now

    def _go(self) -> None:
        """Tell how what is in flight stands, and fail."""
        self._until, self._gone = None, True
        left = [held for held in self._left if held.ended is None]
        if not left:
            return
        self._part(left, "" if self._asking else self._why)
        self._link.hurry()

    def advance(self, now: float) -> None:
        """Tell the scheduler, in one go."""
        if self._until is not None and (not self._asking or now >= self._until):
            self._go()
        if self._gone or self._asking or not self._todo or now < self._not_before:
            return
        todo, self._todo = list(self._todo.values()), {}
        link = self._link
        commands = link.dialect.cancel(_ids(todo))
        self._asking = True

        def tell() -> list[Said]:
            said: list[Said] = []
            for argv in commands:
                said.append(link.commands.run(argv))
                if said[-1].code is None:  # the others would take as long
                    break
            return said

        def told(said: list[Said] | BaseException) -> None:
            self._note_heard(todo, commands, said)
            if link.leaving and self._until is None and not self._gone:  # else all are told of together
                self._part([held for held in todo if held.ended is None], self._why)
            self._told(todo, said)

        link.commands.begin(tell, told)

    def finish(self) -> None:
        """Tell the scheduler what it was not told yet, which may take as long as a command."""
        link = self._link
        until = time.monotonic() + link.settings.command_timeout + 1.0
        self.advance(link.now())
        while self.asking and time.monotonic() < until:
            link.commands.wait(0.2)
            link.commands.hand_back()
            self.advance(link.now())

    def _told(self, todo: list[Held], said: list[Said] | BaseException) -> None:
        """What it printed proves nothing (a job may have ended just now): the queue is asked."""
        self._asking = False
        link, now = self._link, self._link.now()
        if isinstance(said, BaseException):
            link.failed(said)
            return
        if any(one.code is None for one in said):
            self._not_before = now + link.silent("no answer in time")
            self._todo.update((id(held), held) for held in todo if held.ended is None)
            return
        for held in todo:
            held.asked += 1
            self._open[id(held)] = (held, now)
        self._asked()

    def _note_heard(
        self, todo: list[Held], commands: list[list[str]], said: list[Said] | BaseException
    ) -> None:
        """Which of these the scheduler heard of, and why it did not hear of others."""
        answers = [] if isinstance(said, BaseException) else said
        heard = {word for argv, one in zip(commands, answers, strict=False) if one.code == 0 for word in argv}
        self._why = str(said) if isinstance(said, BaseException) else _first_words(said)
        for held in todo:
            array = held.sent.id if held.sent is not None else ""
            if any(job.partition(";")[0] in heard for job in (held.id, array) if job):
                self._heard.add(held.name)

    def _part(self, left: list[Held], why: str) -> None:
        """Nobody may come to see what became of these: tell of each whether its end was heard of."""
        unheard = 0
        for held in left:
            there = held.name in self._heard
            unheard += not there
            words = (why or "no answer in time") if held.id else "whether it was submitted is not known"
            held.status, held.shown = JobStatus.ENDING, "" if there else f"not heard: {words}"
            self._tell(held)
        self._link.parting = _parting(len(left) - unheard, unheard)

    def heard(self, asked: float) -> None:
        """The queue was heard: whatever it still shows is cancelled again, or told."""
        left: list[Held] = []
        for key, (held, when) in list(self._open.items()):
            if held.ended is not None or held.row is None or held.row.phase is Phase.ENDED:
                del self._open[key]
            elif asked - when >= _PATIENCE:
                del self._open[key]
                if held.asked < _TRIES:
                    self._todo[key] = held
                else:
                    left.append(held)
        if left:
            commands = "; ".join(shlex.join(argv) for argv in self._link.dialect.cancel(_ids(left)))
            self._link.note("not_cancelled", jobs=str(len(left)), command=commands)


def _first_words(said: list[Said]) -> str:
    """Why a command was not heard, by the first that was not."""
    for one in said:
        if one.code is None:
            return "no answer in time"
        if one.code != 0:
            lines = (one.err.strip() or one.out.strip() or f"exit code {one.code}").splitlines()
            return lines[0]
    return ""


def _parting(heard: int, unheard: int) -> str:
    """What became of the jobs, for who reads of the failure."""
    if not heard and not unheard:
        return "none of its jobs is left in flight"
    were = "was" if heard == 1 else "were"
    told = [f"{heard} of its jobs {were} told to end, which was not seen yet"] if heard else []
    left = [f"{unheard} of its jobs could not be told to end, and may go on"] if unheard else []
    words = "the next run takes over what still lives, and treadle cancel ends it"
    return "; ".join([*told, *left, words])


def _ids(todo: list[Held]) -> list[str]:
    """Ids for the command; an array of which nothing else lives is told as one."""
    ids: list[str] = []
    by_array: dict[int, list[Held]] = {}
    for held in todo:
        if held.sent is None or not held.sent.array or not held.sent.id:
            ids.append(held.id)
        else:
            by_array.setdefault(id(held.sent), []).append(held)
    for group in by_array.values():
        sent = group[0].sent
        assert sent is not None
        whole = sum(1 for held in sent.held if held.ended is None) <= len(group)
        ids += [sent.id] if whole else [held.id for held in group]
    return [job for job in dict.fromkeys(ids) if job]


def mark_unwanted(folder: JobFolder, n: int) -> None:
    """Tell the wrapper that an attempt is not to begin, nor, where others are in its job, to go on."""
    with suppress(DiskError):  # then it goes on, and its end is what counts
        write_whole(folder.unwanted(n), b"")
