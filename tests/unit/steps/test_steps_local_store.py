"""Artifacts on plain file systems: torn ones, odd ones, unfit ones, and disks that refuse."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from treadle.base.errors import DiskError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_move import settle_record
from treadle.steps.local_output import SMALL
from treadle.steps.local_record import Placed, create_filed, encode_filed, read_filed
from treadle.steps.local_store import LocalStore
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Kind, Owner, Seen, Standing
from treadle.steps.store import Lease

SAME = "a" * 32


@pytest.fixture
def store() -> LocalStore:
    return LocalStore()


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip("only root can mount a tiny tmpfs to be filled")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def begin(store: LocalStore, path: Path, attempt: str = "r.1") -> tuple[Lease, Path]:
    lease = store.claim(str(path), this_owner(attempt))
    assert not isinstance(lease, Owner)
    return lease, Path(store.work(str(path), attempt))


def end(store: LocalStore, lease: Lease, work: Path, path: Path, **known: object) -> ArtifactRecord:
    try:
        record = ArtifactRecord(identity=SAME, name="train", path=str(path))
        return store.publish(lease, str(work), record, **known)  # type: ignore[arg-type]
    finally:
        lease.release()


def make(store: LocalStore, path: Path, content: bytes = b"hello", attempt: str = "r.1") -> ArtifactRecord:
    lease, work = begin(store, path, attempt)
    work.write_bytes(content)
    return end(store, lease, work, path)


# What a crash of the machine tears


def test_a_small_file_that_lost_its_content_is_seen_by_its_digest(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    make(store, path, b"hello")
    with open(path, "r+b") as file:
        file.write(b"\0\0\0\0\0")
    seen = LocalStore().look(str(path), SAME)
    assert seen.state is ArtifactState.TORN
    assert "content" in seen.problem
    assert make(store, path, b"hello", "r.2").size == 5
    assert path.read_bytes() == b"hello"


def test_a_file_that_lost_its_end_is_seen_by_its_size(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    make(store, path, b"x" * (SMALL + 1))
    os.truncate(path, SMALL)
    seen = store.look(str(path), SAME)
    assert (seen.state, seen.problem) == (
        ArtifactState.TORN,
        f"'{path}' has {SMALL} bytes, not {SMALL + 1}",
    )


def test_a_folder_that_lost_a_file_is_seen(store: LocalStore, tmp_path: Path) -> None:
    for size in (10, SMALL + 1):  # with a digest, and without
        path = tmp_path / f"train-{size}"
        lease, work = begin(store, path)
        work.mkdir()
        (work / "one").write_bytes(b"1" * size)
        (work / "two").write_bytes(b"2")
        record = end(store, lease, work, path)
        assert bool(record.digest) == (size < SMALL)
        (path / "two").unlink()
        assert store.look(str(path), SAME).state is ArtifactState.TORN


@pytest.mark.parametrize("left", [0, 20])
def test_a_torn_record_counts_for_nothing_and_is_replaced(
    store: LocalStore, tmp_path: Path, left: int
) -> None:
    path = tmp_path / "train"
    make(store, path)
    os.truncate(ArtifactPlaces(str(path)).record, left)
    seen = store.look(str(path), SAME)
    assert (seen.state, seen.record) == (ArtifactState.TORN, None)
    assert ArtifactPlaces(str(path)).record in seen.problem
    assert list(store.records(str(tmp_path))) == []
    again = make(store, path, b"again", "r.2")
    assert store.look(str(path), SAME).record == again
    assert path.read_bytes() == b"again"


@pytest.mark.parametrize("left", [0, 20])
def test_a_pending_record_that_was_torn_is_in_nobodys_way(
    store: LocalStore, tmp_path: Path, left: int
) -> None:
    path = tmp_path / "train"
    places = ArtifactPlaces(str(path))
    os.makedirs(places.folder)
    Path(places.pending).write_bytes(b'{"format":1,"identity":"abc'[:left])
    assert store.look(str(path), SAME, mend=True).state is ArtifactState.ABSENT
    record = make(store, path)
    assert store.look(str(path), SAME).record == record
    assert not os.path.exists(places.pending)


def test_a_torn_status_is_none(store: LocalStore, tmp_path: Path) -> None:
    path = str(tmp_path / "train")
    store.tell(path, ArtifactStatus(identity=SAME, state=Standing.FAILED))
    os.truncate(ArtifactPlaces(path).status, 10)
    assert store.look(path, SAME).status is None


def test_what_is_known_to_be_on_the_disk_is_not_digested_again(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    record = make(store, path, b"hello")
    file = Path(ArtifactPlaces(str(path)).record)
    assert file.stat().st_mode & 0o222
    store.sync()
    assert not file.stat().st_mode & 0o222
    with open(path, "r+b") as out:
        out.write(b"HELLO")
    assert store.look(str(path), SAME).record == record  # the same size is enough now
    os.truncate(path, 1)
    assert store.look(str(path), SAME).state is ArtifactState.TORN


def test_many_artifacts_are_synced_at_once_and_vanished_ones_are_no_trouble(
    store: LocalStore, tmp_path: Path
) -> None:
    for n in range(30):
        make(store, tmp_path / f"train-{n}")
    (tmp_path / "train-3").unlink()
    store.sync()
    sealed = [name for name in (tmp_path / ".treadle-artifacts").iterdir() if name.suffix == ".json"]
    assert len(sealed) == 30
    assert not any(one.stat().st_mode & 0o222 for one in sealed)


def test_what_has_no_digest_is_on_the_disk_before_its_record_is(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    make(store, tmp_path / "small", b"x" * SMALL)
    assert synced == []
    make(store, tmp_path / "large", b"x" * (SMALL + 1))
    assert synced == [(tmp_path / "large").stat().st_ino]
    lease, work = begin(store, tmp_path / "folder")
    work.mkdir()
    (work / "one").write_bytes(b"x" * (SMALL + 1))
    end(store, lease, work, tmp_path / "folder")
    assert sorted(synced[1:]) == sorted(
        path.stat().st_ino for path in (tmp_path / "folder", tmp_path / "folder" / "one")
    )


def test_what_a_killed_run_did_not_sync_is_synced_by_the_next_one(store: LocalStore, tmp_path: Path) -> None:
    path = str(tmp_path / "train")
    make(LocalStore(), tmp_path / "train")
    store.look(path, SAME)
    store.sync()
    assert os.stat(ArtifactPlaces(path).record).st_mode & 0o222
    store.look(path, SAME, mend=True)
    store.sync()
    assert not os.stat(ArtifactPlaces(path).record).st_mode & 0o222


# What was moved


def test_artifacts_that_were_moved_as_a_whole_are_found_where_they_are(
    store: LocalStore, tmp_path: Path
) -> None:
    make(store, tmp_path / "old" / "train")
    shutil.copytree(tmp_path / "old", tmp_path / "copied")
    os.rename(tmp_path / "old", tmp_path / "moved")
    for folder in ("moved", "copied"):
        path = str(tmp_path / folder / "train")
        seen = store.look(path, SAME)
        assert seen.state is ArtifactState.COMPLETE
        assert seen.record is not None
        assert seen.record.path == path
        assert [one.path for one in store.records(str(tmp_path / folder))] == [path]


def test_an_output_that_was_moved_and_linked_to_is_followed(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    record = make(store, path)
    os.rename(path, tmp_path / "large disk")
    path.symlink_to(tmp_path / "large disk")
    assert store.look(str(path), SAME).record == record


def test_what_stands_there_without_a_record_is_set_aside_not_lost(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    path.write_text("somebody's own")
    make(store, path)
    assert path.read_text() == "hello"
    assert (tmp_path / "train.failed").read_text() == "somebody's own"


def test_a_folder_without_a_record_is_set_aside_too(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    path.mkdir()
    lease, work = begin(store, path)
    work.mkdir()
    end(store, lease, work, path)
    assert (tmp_path / "train.failed").is_dir()


# Odd names, unfit outputs


@pytest.mark.parametrize(
    "name", ["a\nb", "-rf", " ", "n" * 255, "ü" * 127, "x" * 190 + ".status", "~", "a%2Fb"]
)
def test_every_name_that_a_file_can_have_does(store: LocalStore, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    record = make(store, path, attempt="20261129T110501Z-ab12.12345")
    store.tell(str(path), ArtifactStatus(identity=SAME, state=Standing.SUCCEEDED))
    assert store.look(str(path), SAME).record == record
    assert [one.path for one in store.records(str(tmp_path))] == [str(path)]
    again = ArtifactRecord(identity=SAME, name="again", path=str(path))
    lease, work = begin(store, path, "r.2")
    work.mkdir()
    assert store.publish(lease, str(work), again, replaces=record).kind is Kind.FOLDER
    lease.release()


def test_two_long_names_that_begin_alike_are_two_artifacts(store: LocalStore, tmp_path: Path) -> None:
    first = make(store, tmp_path / ("n" * 254 + "a"), b"a")
    second = make(store, tmp_path / ("n" * 254 + "b"), b"b")
    assert store.look(first.path, SAME).record == first
    assert store.look(second.path, SAME).record == second


def test_a_name_that_is_too_long_for_the_file_system_is_said(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / ("n" * 256)
    lease, work = begin(store, path)
    work.write_text("kept")
    with pytest.raises(DiskError, match="name too long"):
        end(store, lease, work, path)
    assert work.read_text() == "kept"


@pytest.mark.parametrize("kind", ["link", "broken", "pipe"])
def test_what_cannot_be_an_artifact_is_refused(store: LocalStore, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "train"
    lease, work = begin(store, path)
    if kind == "pipe":
        os.mkfifo(work)
    else:
        work.symlink_to(tmp_path if kind == "link" else "nowhere")
    with pytest.raises(DiskError, match="cannot be an artifact"):
        end(store, lease, work, path)
    assert os.path.lexists(work)
    store.discard(str(work))
    assert not os.path.lexists(work)
    assert tmp_path.is_dir()


def test_links_and_pipes_within_a_folder_are_kept_as_they_are(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    lease, work = begin(store, path)
    work.mkdir()
    (work / "data").write_text("data")
    (work / "inner").symlink_to("data")
    (work / "broken").symlink_to("nowhere")
    os.mkfifo(work / "pipe")
    os.mkdir(work / b"\xff".decode("utf-8", "surrogateescape"))
    record = end(store, lease, work, path)
    assert record.size == 4
    assert os.readlink(path / "inner") == "data"
    assert store.look(str(path), SAME).record == record
    store.sync()


def test_a_folder_that_nobody_may_write_to_is_published_as_it_is(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    lease, work = begin(store, path)
    work.mkdir()
    (work / "data").write_text("data")
    work.chmod(0o555)
    try:
        record = end(store, lease, work, path)
        assert store.look(str(path), SAME).record == record
        assert path.stat().st_mode & 0o777 == 0o555
    finally:
        (path if path.exists() else work).chmod(0o755)


def test_a_file_with_several_names_is_fine(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("hello")
    path = tmp_path / "train"
    lease, work = begin(store, path)
    os.link(tmp_path / "cache", work)
    end(store, lease, work, path)
    assert (tmp_path / "cache").read_text() == path.read_text() == "hello"


def test_the_path_of_a_rebuild_may_change_its_kind(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "train"
    old = make(store, path)
    lease, work = begin(store, path, "r.2")
    work.mkdir()
    (work / "inner").write_text("new")
    new = end(store, lease, work, path, replaces=old)
    assert (path / "inner").read_text() == "new"
    assert store.look(str(path), SAME).record == new
    assert os.listdir(tmp_path / ".treadle-artifacts" / "old") == []


def test_what_a_killed_attempt_was_making_is_removed_by_the_next_one(
    store: LocalStore, tmp_path: Path
) -> None:
    path = tmp_path / "train"
    child = os.fork()
    if child == 0:
        _, work = begin(LocalStore(), path, "r.1")
        work.write_text("half")
        os._exit(0)
    os.waitpid(child, 0)
    left = Path(ArtifactPlaces(str(path)).work("r.1"))
    assert left.read_text() == "half"
    make(store, path, attempt="r.2")
    assert not left.exists()


# Two at a time


def test_a_publication_in_progress_is_left_to_who_is_at_it(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    link, seen = os.link, []

    def slow(one: str, other: str, **known: Any) -> None:
        if other == str(path):
            seen.append(LocalStore().look(other, SAME, mend=True).state)
        link(one, other, **known)

    monkeypatch.setattr(os, "link", slow)
    record = make(store, path)
    assert seen == [ArtifactState.ABSENT]
    assert store.look(str(path), SAME).record == record


def test_a_record_that_somebody_else_finished_is_ours_all_the_same(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    rename = os.rename

    def slow(old: str, new: str) -> None:
        monkeypatch.undo()
        rename(old, new)
        rename(old, new)  # this one is ours

    monkeypatch.setattr(os, "rename", slow)
    record = make(store, path)
    assert store.look(str(path), SAME).record == record


def test_where_nothing_was_made_the_record_itself_is_not_written_over(tmp_path: Path) -> None:
    places = ArtifactPlaces(str(tmp_path / "train"))
    os.makedirs(places.folder)
    records = [ArtifactRecord(identity=SAME, name=name, path=places.path) for name in ("one", "two")]
    done = []
    for record in records:
        placed = Placed(token=record.name)
        assert create_filed(places.pending, encode_filed(record, placed))
        done.append(settle_record(places, record, placed))
    assert done == [True, False]
    filed = read_filed(places.record, places.path)
    assert filed is not None
    assert filed.record == records[0]


def test_a_pending_record_that_replaces_another_one_than_stands_there_is_dropped(
    store: LocalStore, tmp_path: Path
) -> None:
    path = tmp_path / "train"
    record = make(store, path, b"stands")
    places = ArtifactPlaces(str(path))
    work = Path(store.work(str(path), "r.2"))
    work.write_bytes(b"odd")
    odd = ArtifactRecord(identity=SAME, name="odd", path=str(path), kind=Kind.FILE, size=3)
    placed = Placed(token="t", inode=work.stat().st_ino, work=work.name, over="another")
    assert create_filed(places.pending, encode_filed(odd, placed))
    assert store.look(str(path), SAME, mend=True).record == record
    assert make(store, path, b"second", "r.3") == record
    assert path.read_bytes() == b"stands"


def test_what_a_killed_rebuild_moved_aside_comes_back_where_the_new_one_is_lost(
    store: LocalStore, tmp_path: Path
) -> None:
    path = tmp_path / "train"
    old = make(store, path, b"old")
    places = ArtifactPlaces(str(path))
    filed = read_filed(places.record, places.path)
    assert filed is not None
    placed = Placed(token="t", inode=1, work="gone", over=filed.mark)
    new = ArtifactRecord(identity=SAME, name="new", path=str(path), kind=Kind.FILE, size=3)
    assert create_filed(places.pending, encode_filed(new, placed))
    os.makedirs(os.path.dirname(places.aside("t")))
    os.rename(path, places.aside("t"))
    assert store.look(str(path), SAME, mend=True).state is ArtifactState.TORN
    assert make(store, path, b"again", "r.3") == old
    assert path.read_bytes() == b"old"


def test_a_folder_that_goes_away_while_it_is_looked_at_is_not_there(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    lease, work = begin(store, path)
    work.mkdir()
    (work / "one").write_text("1")
    end(store, lease, work, path)
    scandir = os.scandir

    def slow(where: Any) -> Any:
        monkeypatch.undo()
        shutil.rmtree(path)
        return scandir(where)

    monkeypatch.setattr(os, "scandir", slow)
    assert store.look(str(path), SAME).state is ArtifactState.TORN
    store.sync()


# Disks that refuse


@pytest.mark.parametrize("wanted", [False, True])
def test_a_disk_that_refuses_at_the_end_leaves_what_the_next_one_finishes(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    path = tmp_path / "train"
    old = make(store, path, b"old") if wanted else None
    lease, work = begin(store, path, "r.2")
    work.write_bytes(b"new")
    rename, record = os.rename, ArtifactRecord(identity=SAME, name="new", path=str(path))

    def refuse(one: str, other: str) -> None:
        if other.endswith(".json"):
            raise OSError(5, "Input/output error", other)
        rename(one, other)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(DiskError, match="Input/output error"):
        store.publish(lease, str(work), record, replaces=old)
    seen = store.look(str(path), SAME)
    assert seen.record is not None
    assert seen.record.name == "new"
    monkeypatch.undo()
    assert store.publish(lease, str(work), record, replaces=old).name == "new"
    lease.release()
    assert store.look(str(path), SAME).state is ArtifactState.COMPLETE
    assert path.read_bytes() == b"new"


def test_a_disk_that_refuses_in_the_middle_leaves_the_old_artifact(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train"
    old = make(store, path, b"old")
    lease, work = begin(store, path, "r.2")
    work.write_bytes(b"new")

    def refuse(one: str, other: str, **_: bool) -> None:
        raise OSError(5, "Input/output error", one)

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(DiskError, match="Input/output error"):
        end(store, lease, work, path, replaces=old)
    monkeypatch.undo()
    assert store.look(str(path), SAME) == Seen(ArtifactState.COMPLETE, old)
    assert (path.read_bytes(), work.read_bytes()) == (b"old", b"new")
    assert not os.path.exists(ArtifactPlaces(str(path)).pending)


def test_without_hard_links_a_file_is_published_all_the_same(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(one: str, other: str, **_: bool) -> None:
        raise PermissionError(1, "Operation not permitted", one)

    monkeypatch.setattr(os, "link", refuse)
    record = make(store, tmp_path / "train")
    assert store.look(record.path, SAME).record == record
    lease, work = begin(store, tmp_path / "nothing")
    nothing = end(store, lease, work, tmp_path / "nothing")
    assert store.look(nothing.path, SAME).record == nothing
    (tmp_path / "taken").write_text("somebody's own")
    make(store, tmp_path / "taken")
    assert (tmp_path / "taken.failed").read_text() == "somebody's own"


def test_a_full_disk_is_said_and_nothing_is_lost(store: LocalStore, tiny: Path) -> None:
    path = tiny / "train"
    old = make(store, path, b"old")
    lease, work = begin(store, path, "r.2")
    work.write_bytes(b"new")
    filler = tiny / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    record = ArtifactRecord(identity=SAME, name="train", path=str(path), code="c" * 9000)
    with pytest.raises(DiskError) as raised:
        store.publish(lease, str(work), record, replaces=old)
    assert raised.value.diagnostics[0].code == "disk-full"
    assert work.read_bytes() == b"new"
    assert path.read_bytes() == b"old"
    assert store.look(str(path), SAME).record == old
    filler.unlink()
    new = store.publish(lease, str(work), record, replaces=old)
    lease.release()
    assert store.look(str(path), SAME).record == new
    assert path.read_bytes() == b"new"


def test_a_full_disk_makes_no_half_lease(store: LocalStore, tiny: Path) -> None:
    path = tiny / "train"
    make(store, path)
    with open(tiny / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    with pytest.raises(DiskError) as raised:
        store.claim(str(path), this_owner("r.2"))
    assert raised.value.diagnostics[0].code == "disk-full"
    assert store.holder(str(path)) is None


def test_a_file_where_a_folder_is_needed_is_said(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "prefix").write_text("")
    path = str(tmp_path / "prefix" / "train")
    assert store.look(path, SAME).state is ArtifactState.ABSENT
    with pytest.raises(DiskError):
        store.claim(path, this_owner("r.1"))


def test_an_artifact_folder_that_was_removed_under_a_run_is_made_again(
    store: LocalStore, tmp_path: Path
) -> None:
    make(store, tmp_path / "one")
    shutil.rmtree(tmp_path / ".treadle-artifacts")
    record = make(store, tmp_path / "two")
    assert store.look(record.path, SAME).record == record


# What it costs


def test_a_small_step_takes_few_system_calls(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    code = (
        "import sys\nfrom treadle.steps.local_store import LocalStore\n"
        "from treadle.steps.owner import this_owner\nfrom treadle.steps.record import ArtifactRecord\n"
        "store = LocalStore()\n"
        "for n in range(2):\n"
        "    path = f'{sys.argv[1]}/train-{n}'\n"
        "    lease = store.claim(path, this_owner('r.1'))\n"
        "    work = store.work(path, 'r.1')\n"
        "    store.publish(lease, work, ArtifactRecord(identity='a' * 32, name='train', path=path))\n"
        "    lease.release()\n"
        "for n in range(2, 4):\n"
        "    path = f'{sys.argv[1]}/train-{n}'\n"
        "    store.claim(path, this_owner('r.1')).release()\n"
        "store.look(f'{sys.argv[1]}/train-1', 'a' * 32)\n"
    )
    out = tmp_path / "out"
    words = ["strace", "-y", "-e", "trace=file,desc", "-o", str(trace), sys.executable, "-c", code, str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip(f"strace may not look here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    assert len([line for line in lines if "/train-1" in line]) <= 22 + 4, "publish, and a look"
    last = [at for at, line in enumerate(lines) if "/train-2" in line or "/train-3" in line]
    before = [at for at in last if "/train-2" in lines[at]]
    assert last[-1] - before[-1] <= 7, "claim and release"
    assert not any("fsync" in line for line in lines)
