"""A work folder held by us: its lock taken, runs that were killed ended, their attempts cleaned up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.base.layout import StateFolder
from treadle.base.mask import Mask
from treadle.engine.orphans import Ended, end_orphans
from treadle.plan.task import ScheduledPlan
from treadle.records.compact import Checkpoint
from treadle.records.event import End, Event, Evidence, TaskSettled, key_of_task
from treadle.records.flight import Interrupted
from treadle.records.line import line_of
from treadle.records.lock import Lock, LockNews, acquire
from treadle.records.owner import Owner
from treadle.records.past import Past
from treadle.records.recover import recover
from treadle.records.version import prepare

if TYPE_CHECKING:
    from treadle.api.late import LateHold

_AT_ONCE = 1000  # lines that are made before they are written


class Recovered(Struct, frozen=True):
    """Runs that were killed, their attempts that never settled, and what was done about these.

    `detached` are those of them whose drivers went by themselves, and left jobs at work.
    """

    runs: tuple[str, ...] = ()
    interrupted: tuple[Interrupted, ...] = ()
    cleaned: tuple[Ended, ...] = ()
    detached: tuple[str, ...] = ()


class Session(Struct, frozen=True):
    """A held work folder: `past` is everything that is recorded, `mask` hides the workflow's secrets.

    `owner` is who we are, in the lock and in the run's folder. Steps alone hold no lock: the leases of
    their artifacts are their locks. They may take it `late`.
    """

    state: StateFolder
    owner: Owner
    lock: Lock | None
    past: Past
    recovered: Recovered
    mask: Mask
    late: LateHold | None = None
    waited: bool = False

    @property
    def outdated(self) -> bool:
        """Whether what was planned before the folder was ours may no longer hold: another run had it
        meanwhile, or attempts of a killed one were cleaned up."""
        return self.waited or bool(self.recovered.interrupted)

    @property
    def evidence(self) -> Callable[[], Past]:
        """Gives the past of the folder, once it is held."""
        return self.late.take if self.late is not None else lambda: self.past

    def check(self) -> None:
        """Raise `LockError` when the folder is no longer ours."""
        if self.lock is not None:
            self.lock.check()

    def note(self, events: Iterable[Event]) -> None:
        """Record what happened without a run (evidence taken over, tombstones), durably.

        It goes into the checkpoint file alone: there is no journal that it could be a copy of. Raises
        `LockError` when the folder is no longer ours, `DiskError`.
        """
        found = (line for event in events if (line := line_of(event, "", self.mask)) is not None)
        lines = list(islice(found, _AT_ONCE))
        if not lines:
            return
        self.check()
        checkpoint = Checkpoint.open(self.state, mask=self.mask)
        try:
            while lines:
                checkpoint.append(lines)
                self.past.add(lines)
                lines = list(islice(found, _AT_ONCE))
            checkpoint.flush()
        finally:
            checkpoint.close()


@contextmanager
def hold(
    workdir: str,
    *,
    mask: Mask,
    wait: bool = False,
    assume_dead: bool = False,
    say: Callable[[LockNews | Recovered], None],
) -> Iterator[Session]:
    """Hold a work folder while something is done in it.

    Raises `LockError` when another run holds it, `DiskError` when nothing can be written there, and
    `RecordError` when its records are damaged or newer than this Treadle.
    """
    state = StateFolder(workdir)
    prepare(state)
    waits: list[LockNews] = []

    def hear(news: LockNews) -> None:
        waits.append(news)
        say(news)

    lock = acquire(state, wait=wait, say=hear)
    try:
        done: list[Ended] = []

        def clean(attempts: Sequence[Interrupted]) -> None:
            done.append(end_orphans(attempts, workdir, mask=mask, assume_dead=assume_dead))

        recovery = recover(state, mask=mask, lock=lock, clean=clean)
        recovered = Recovered(recovery.runs, recovery.interrupted, tuple(done), recovery.detached)
        if recovered.runs:
            say(recovered)
        yield Session(state, lock.owner, lock, recovery.past, recovered, mask, waited=bool(waits))
    finally:
        lock.release()


def record(session: Session, plan: ScheduledPlan, found: Mapping[str, Evidence], now: float) -> None:
    """Record evidence by task that no attempt made: adopted, touched, or looked at anew."""
    session.note(
        TaskSettled(
            time=now,
            task=task,
            key=key_of_task(plan.name, plan.tasks[task]),
            state=End.UP_TO_DATE,
            evidence=evidence,
        )
        for task, evidence in found.items()
    )
