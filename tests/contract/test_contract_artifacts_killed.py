"""Artifacts whose maker is killed at any point of its publication: nothing is lost, nothing is half there."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from artifact_stores import Clock, Storage, forked, record_of

from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, ArtifactState, Owner
from treadle.steps.store import ArtifactStore, Lease

SAME = "a" * 32
_CHANGES = {"os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MANY = 40  # more changes than a publication makes


@pytest.fixture
def storage(storage: Storage) -> Storage:
    if not storage.forks:
        pytest.skip("its client does not survive a fork")
    return storage


def die_before_change(number: int) -> None:
    """From now on: SIGKILL to this process when it is about to change files for the `number`-th time."""
    left = number

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(args[2], int) and args[2] & _WRITES
        if event in _CHANGES or writes:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def write(work: str, content: str | None, folder: bool) -> None:
    if content is not None and folder:
        os.mkdir(work)
        Path(work, "inner").write_text(content)
    elif content is not None:
        Path(work).write_text(content)


def attempt(
    storage: Storage,
    path: str,
    content: str | None,
    folder: bool,
    *,
    replaces: ArtifactRecord | None = None,
    before: Callable[[], None] = lambda: None,
) -> ArtifactRecord:
    """One attempt as a run makes it: what somebody else has finished is taken."""
    store = storage.store(Clock())
    lease = store.claim(path, this_owner(f"r.{os.getpid()}"))
    assert not isinstance(lease, Owner)
    try:
        return _under(store, lease, path, content, folder, replaces, before)
    finally:
        lease.release()


def _under(
    store: ArtifactStore,
    lease: Lease,
    path: str,
    content: str | None,
    folder: bool,
    replaces: ArtifactRecord | None,
    before: Callable[[], None],
) -> ArtifactRecord:
    seen = store.look(path, SAME, mend=True)
    if seen.state is ArtifactState.COMPLETE and seen.record != replaces:
        assert seen.record is not None
        return seen.record
    name = f"r.{os.getpid()}"
    work = store.work(path, name)
    write(work, content, folder)
    before()
    record = store.publish(lease, work, record_of(path, name), replaces=replaces)
    store.sync()  # the old one is on the disk: no digest tells it from one of the same size
    return record


def read(store: ArtifactStore, record: ArtifactRecord, folder: bool) -> str | None:
    if record.kind == "nothing":
        return None
    there = Path(store.fetch(record))
    return (there / "inner" if folder else there).read_text()


KINDS = pytest.mark.parametrize(
    ("content", "folder"),
    [("whole", False), ("whole", True), (None, False)],
    ids=["file", "folder", "nothing"],
)


@KINDS
def test_a_first_publication_that_is_killed_anywhere_is_whole_or_not_there(
    storage: Storage, content: str | None, folder: bool
) -> None:
    for number in range(1, _MANY):
        path = storage.path(f"train-{number}")
        child = forked(
            lambda path=path, number=number: attempt(
                storage, path, content, folder, before=lambda: die_before_change(number)
            )
        )
        _, status = os.waitpid(child, 0)
        store = storage.store(Clock())
        seen = store.look(path, SAME)
        assert seen.state in (ArtifactState.ABSENT, ArtifactState.COMPLETE)
        if seen.record is not None:
            assert read(store, seen.record, folder) == content
        record = attempt(storage, path, content, folder)
        assert store.look(path, SAME) == type(seen)(ArtifactState.COMPLETE, record)
        assert read(store, record, folder) == content
        assert storage.left() == [], f"killed before change {number}"
        if not os.WIFSIGNALED(status):
            assert number > 3
            return
    pytest.fail("it never came to its end")


@KINDS
def test_a_rebuild_that_is_killed_anywhere_leaves_the_old_one_or_makes_the_new_one(
    storage: Storage, content: str | None, folder: bool
) -> None:
    for number in range(1, _MANY):
        path = storage.path(f"train-{number}")
        old = attempt(storage, path, "old", folder)
        child = forked(
            lambda path=path, number=number, old=old: attempt(
                storage, path, content, folder, replaces=old, before=lambda: die_before_change(number)
            )
        )
        _, status = os.waitpid(child, 0)
        store = storage.store(Clock())
        seen = store.look(path, SAME)
        if seen.state is ArtifactState.COMPLETE:
            assert seen.record is not None
            assert read(store, seen.record, folder) == ("old" if seen.record == old else content)
        else:
            assert seen.state is ArtifactState.TORN  # for the instant between two renames
        record = attempt(storage, path, content, folder, replaces=old)
        assert record != old
        assert store.look(path, SAME).record == record
        assert read(store, record, folder) == content
        assert [name for name in storage.left() if "/old/" not in name] == [], (
            f"killed before change {number}"
        )
        again = attempt(storage, path, "again", folder, replaces=record)
        assert read(store, again, folder) == "again"
        assert storage.left() == [], f"killed before change {number}"
        if not os.WIFSIGNALED(status):
            assert number > 4
            return
    pytest.fail("it never came to its end")


@KINDS
def test_what_was_finished_before_the_kill_is_not_made_again(
    storage: Storage, content: str | None, folder: bool
) -> None:
    """The function ran, its record is pending: whoever comes next takes it from there."""
    finished = 0
    for number in range(2, _MANY):
        path = storage.path(f"train-{number}")
        child = forked(
            lambda path=path, number=number: attempt(
                storage, path, content, folder, before=lambda: die_before_change(number)
            )
        )
        name = f"r.{child}"
        _, status = os.waitpid(child, 0)
        record = attempt(storage, path, "made again" if content else None, folder)
        assert record.wall == record_of(path, name).wall, f"killed before change {number}"
        finished += 1
        if not os.WIFSIGNALED(status):
            break
    assert finished > 2
