"""Artifacts on plain file systems: odd names, unfit outputs, what was moved, and what a small step costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from local_store_artifacts import SAME, begin, end, make

from treadle.base.errors import DiskError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_store import LocalStore
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Kind, Standing

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
