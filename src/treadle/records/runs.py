"""The folders of runs: made exclusively, the last ones kept, those of the living left alone."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from treadle.base.errors import DiskError, RecordError
from treadle.base.files import disk_error, remove
from treadle.base.layout import RunFolder, StateFolder, scratch_run
from treadle.records.event import EndReason
from treadle.records.journal import is_ended, read_journal
from treadle.records.line import first_of, key_of, open_attempts
from treadle.records.owner import Life, Owner, Pulse, life, read_owner
from treadle.records.past import Past, load_past

KEEP = 20
LOCAL = "local"  # the backend whose attempts do not outlive their run, but for orphans that `recover` tells
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}\Z")
_STAMP = "%Y%m%dT%H%M%SZ"
_AHEAD = 3600  # seconds by which a clock may have been wrong, for ids to go on from there
_QUIET = 3600.0  # seconds after which a run elsewhere that holds no lock and shows no life counts as gone
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_BLOCK = 1 << 20


def new_run(state: StateFolder, owner: Owner, *, now: float) -> RunFolder:
    """Make the folder of a run, with its `owner` file and `logs/`, and let `latest` point to it.

    `now` in seconds since the epoch. Ids sort as the runs began, also when the clock was set back. A run
    that holds no lock keeps its owner file moving (`Pulse.reopen`). Raises `DiskError`.
    """
    try:
        os.makedirs(state.runs, exist_ok=True)
        folder = _make_folder(state, now)
        os.mkdir(folder.logs)
        Pulse.create(folder.owner, owner, 0.0).close()
        _point_latest(state, folder)
    except OSError as error:
        raise disk_error("make the folder of a run in", state.runs, error) from error
    return folder


def _make_folder(state: StateFolder, now: float) -> RunFolder:
    stamp = time.strftime(_STAMP, time.gmtime(now))
    newest = max((run.partition("-")[0] for run in state.run_ids()), default="")
    if stamp <= newest <= time.strftime(_STAMP, time.gmtime(now + _AHEAD)):
        stamp = _second_after(newest)
    while True:
        folder = state.run(f"{stamp}-{os.urandom(2).hex()}")
        try:
            os.mkdir(folder.root)
            return folder
        except FileExistsError:
            continue


def _second_after(stamp: str) -> str:
    import calendar  # only for two runs in one second

    return time.strftime(_STAMP, time.gmtime(calendar.timegm(time.strptime(stamp, _STAMP)) + 1))


def _point_latest(state: StateFolder, folder: RunFolder) -> None:
    aside = state.latest_made(folder.run)
    try:
        os.symlink(folder.run, aside)
        os.replace(aside, state.latest)
    except OSError as error:
        if error.errno not in _NO_LINKS:  # a file system without them: the newest folder is the latest
            raise


def is_live(folder: RunFolder) -> bool:
    """Whether the run goes on at this moment, as far as one look can tell."""
    return not is_ended(folder.events) and not owner_is_gone(folder)


def owner_is_gone(folder: RunFolder) -> bool:
    """Whether nobody writes the journal of this run any longer.

    When it held the lock, by whether the lock is still that one: who gave it back may go on with something
    else, and whoever replaced it had made sure. Then by its process where that can be seen from here; else,
    where it held no lock, by an hour without a sign of life.
    """
    seen = read_owner(folder.owner)
    if seen is None:
        return True
    if seen.owner.locked:
        holder = read_owner(_state_of(folder).lock)
        if holder is None or holder.owner.uuid != seen.owner.uuid:
            return True
    found = life(seen.owner)
    if found is not Life.UNKNOWN:
        return found is Life.GONE
    return not seen.owner.locked and _is_old(folder.owner)


def _state_of(folder: RunFolder) -> StateFolder:
    return StateFolder(os.path.dirname(os.path.dirname(os.path.dirname(folder.root))))


def _is_old(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > _QUIET
    except OSError:
        return False


def prune(state: StateFolder, *, keep: int = KEEP) -> list[str]:
    """Remove old runs, under the lock and best at the end of a run: their ids.

    Kept are the last `keep` of those that attempted something, the newest of all, those that did not end,
    and those with jobs that may still be in a scheduler. What cannot be read or removed stays, unsaid.
    """
    removed = []
    with suppress(DiskError, OSError):
        for folder in _superfluous(state, keep):
            with suppress(DiskError):
                remove(folder.root)
                removed.append(folder.run)
        _clear_scratch(state)
    return removed


def _clear_scratch(state: StateFolder) -> None:
    """Remove private folders that are left of runs which are gone: nobody tried their tasks since."""
    if not os.path.isdir(state.scratch):
        return
    known = frozenset(state.run_ids())
    for name in os.listdir(state.scratch):
        run = scratch_run(name)
        if _RUN.match(run) and run not in known:
            remove(os.path.join(state.scratch, name))


def _superfluous(state: StateFolder, keep: int) -> Iterator[RunFolder]:
    attempted = 0
    runs = [run for run in state.run_ids() if _RUN.match(run)]
    for run in reversed(runs):
        folder = state.run(run)
        if not os.path.exists(folder.events):
            if _is_old(folder.root) and owner_is_gone(folder):
                yield folder  # it died before its first line, or while it was being removed
            continue
        tried = _has(folder.events, b'"attempt_submitted"')
        attempted += tried
        if run == runs[-1] or (tried and attempted <= keep) or not is_ended(folder.events):
            continue
        if not (tried and _may_be_in_flight(folder, state)):
            yield folder


def _has(path: str, word: bytes) -> bool:
    """Whether the word stands in the file; usually it is met early."""
    tail = b""
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            if word in tail + block:
                return True
            tail = block[-len(word) :]
    return False


def _may_be_in_flight(folder: RunFolder, state: StateFolder) -> bool:
    """Whether a scheduler may still hold a job of this run, of which no later run knows the end."""
    try:
        events = read_journal(folder.events).events
    except RecordError:
        return True  # it is damaged: whoever looks into it should find it
    left = [one for one in open_attempts(events).values() if one.backend != LOCAL and not one.run]
    past = load_past(state) if left else Past()
    for attempt in left:
        last = past.attempt(key_of(attempt, first_of(events)))
        if last is None or last.run < folder.run:
            return True
        if last.run == folder.run and (last.n < attempt.n or last.reason is EndReason.INTERRUPTED):
            return True
    return False
