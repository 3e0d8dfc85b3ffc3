"""Looking at paths: when a stat is enough, when content is read, and how folders are seen."""

from __future__ import annotations

import os
import time

import pytest
from decide_world import World, draft

from treadle.base.errors import DiskError
from treadle.base.files import digest_file, digest_folder
from treadle.decide.look import look_at, looker, place_of
from treadle.plan.build import build
from treadle.plan.task import Policy
from treadle.plan.tokens import FLOWDIR, WORKDIR
from treadle.records.event import FileRecord


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_what_is_not_there_has_no_record(world):
    assert look_at("a.txt", workdir=str(world.root)) is None
    assert look_at("no/such/folder/a.txt", workdir=str(world.root)) is None


def test_a_file_is_recorded_with_its_stat_and_digest(world):
    world.write("a.txt", "hello")
    stat = os.stat(world.root / "a.txt")
    found = look_at("a.txt", workdir=str(world.root))
    assert found == FileRecord(
        "a.txt", 5, stat.st_mtime_ns, stat.st_ino, digest_file(str(world.root / "a.txt")), False, False
    )


def test_a_file_changed_less_than_two_seconds_ago_is_marked_recent(world):
    world.write("young.txt", young=True)
    world.write("old.txt")
    assert look_at("young.txt", workdir=str(world.root)).recent
    assert not look_at("old.txt", workdir=str(world.root)).recent


def test_a_file_from_the_future_is_marked_recent(world):
    world.write("a.txt")
    later = time.time_ns() + 3_600_000_000_000
    os.utime(world.root / "a.txt", ns=(later, later))
    assert look_at("a.txt", workdir=str(world.root)).recent


def test_equal_stat_takes_over_the_known_digest_without_reading(world):
    world.write("a.txt")
    known = look_at("a.txt", workdir=str(world.root))
    pretended = FileRecord(known.path, known.size, known.mtime, known.inode, "known", False, False)
    assert look_at("a.txt", pretended, workdir=str(world.root)).digest == "known"


def test_a_recent_record_proves_nothing_and_the_file_is_read(world):
    world.write("a.txt")
    known = look_at("a.txt", workdir=str(world.root))
    pretended = FileRecord(known.path, known.size, known.mtime, known.inode, "known", True, False)
    assert look_at("a.txt", pretended, workdir=str(world.root)) == known


@pytest.mark.parametrize("field", ["mtime", "size", "inode"])
def test_any_difference_in_the_stat_makes_it_read(world, field):
    world.write("a.txt")
    known = look_at("a.txt", workdir=str(world.root))
    figures = {"size": known.size, "mtime": known.mtime, "inode": known.inode}
    figures[field] += 1
    pretended = FileRecord("a.txt", digest="known", **figures)
    assert look_at("a.txt", pretended, workdir=str(world.root)) == known


def test_a_file_above_the_limit_is_not_read_and_its_age_does_not_matter(world):
    world.write("a.txt", "12345", young=True)
    found = look_at("a.txt", limit=4, workdir=str(world.root))
    assert (found.digest, found.recent) == ("", False)
    assert look_at("a.txt", limit=5, workdir=str(world.root)).digest


def test_a_folder_is_recorded_with_the_digest_of_what_is_in_it(world):
    world.write("d/a.txt", "one")
    world.write("d/sub/b.txt", "three")
    found = look_at("d", workdir=str(world.root))
    assert found.folder
    assert found.size == 8
    assert found.digest == digest_folder(str(world.root / "d"))


def test_a_file_written_anew_deep_in_a_folder_changes_the_stat_of_the_folder(world):
    world.write("d/sub/a.txt", "one")
    known = look_at("d", workdir=str(world.root))
    world.write("d/sub/a.txt", "two")
    found = look_at("d", known, workdir=str(world.root))
    assert found.digest != known.digest
    assert found.size == known.size


def test_a_file_with_an_older_time_that_replaces_another_in_a_folder_is_seen(world):
    world.write("d/a.txt", "one")
    world.write("d/newest.txt")
    known = look_at("d", workdir=str(world.root))
    stat = os.stat(world.root / "d/a.txt")
    world.write("other.txt", "two")
    os.utime(world.root / "other.txt", ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    os.rename(world.root / "other.txt", world.root / "d/a.txt")
    assert look_at("d", known, workdir=str(world.root)).digest != known.digest


def test_an_untouched_folder_is_not_read_again(world):
    world.write("d/a.txt", "one")
    known = look_at("d", workdir=str(world.root))
    pretended = FileRecord("d", known.size, known.mtime, known.inode, "known", False, True)
    assert look_at("d", pretended, workdir=str(world.root)).digest == "known"


def test_a_task_does_not_see_its_own_outputs_in_a_folder_that_it_reads(world):
    reader = draft("all", "results", "results/all.html", log="results/all.log")
    task = build("flow", [reader]).tasks["all"]
    world.write("results/a.txt")
    look = looker(task, lambda path: None, str(world.root))
    before = look("results")
    world.write("results/all.html")
    world.write("results/all.log")
    assert look("results") == before
    world.write("results/b.txt")
    assert look("results").digest != before.digest


def test_the_work_folder_as_input_leaves_our_records_out(world):
    task = build("flow", [draft("all", ".", "all.html")]).tasks["all"]
    world.write("a.txt")
    look = looker(task, lambda path: None, str(world.root))
    before = look(".")
    world.write(".treadle/checkpoint.jsonl")
    assert look(".") == before


def test_a_task_looks_with_its_own_digest_limit(world):
    task = build("flow", [draft("a", "in.txt", "out.txt", policy=Policy(digest_limit=2))]).tasks["a"]
    world.write("in.txt", "123")
    assert looker(task, lambda path: None, str(world.root))("in.txt").digest == ""


def test_paths_stand_in_the_work_folder_unless_they_are_absolute_or_tokens():
    assert place_of("a/b", "/work") == "/work/a/b"
    assert place_of("/data/b", "/work") == "/data/b"
    assert place_of(f"{FLOWDIR}/s.py", "/work", "/flow") == "/flow/s.py"
    assert place_of(f"{WORKDIR}/s.py", "/work", "/flow") == "/work/s.py"


def test_a_path_that_cannot_be_looked_at_is_named(world):
    with pytest.raises(DiskError, match=r"a{300}"):
        look_at("a" * 300, workdir=str(world.root))


def test_a_link_that_leads_nowhere_is_not_there(world):
    os.symlink("nowhere", world.root / "a.txt")
    assert look_at("a.txt", workdir=str(world.root)) is None


def test_the_digest_of_a_folder_leaves_out_what_is_named(world):
    world.write("d/a.txt")
    before = digest_folder(str(world.root / "d"))
    world.write("d/sub/b.txt")
    world.write("d/c.txt")
    assert digest_folder(str(world.root / "d"), without=("sub", "c.txt")) == before
    assert digest_folder(str(world.root / "d"), without=("sub/b.txt", "c.txt")) == before
