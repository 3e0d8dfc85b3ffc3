"""The pass over the disk: what is looked at, what is read, and how often."""

from __future__ import annotations

import os

import pytest
from decide_world import World, draft

from treadle.base.errors import DiskError
from treadle.decide.facts import gather
from treadle.plan.task import Policy
from treadle.records.event import FileRecord


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, draft("a", "in", "a.out"), draft("b", "a.out in", "b.out"))
    world.write("in")
    return world


@pytest.fixture
def read(monkeypatch):
    """The names of files that were opened, in order."""
    return noted(monkeypatch, "open")


@pytest.fixture
def looked(monkeypatch):
    """The names of files whose stat was taken, in order."""
    return noted(monkeypatch, "stat")


def noted(monkeypatch, call):
    names = []
    real = getattr(os, call)

    def noting(path, *rest, **more):
        names.append(os.path.basename(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, call, noting)
    return names


def facts(world, **options):
    return gather(world.plan, world.past, world.options(**options))


def test_every_path_is_looked_at_once(world, looked):
    world.run()
    looked.clear()
    facts(world)
    assert sorted(looked) == ["a.out", "b.out", "in"]


def test_nothing_is_read_when_all_stats_are_as_recorded(world, read):
    world.run()
    read.clear()
    facts(world)
    assert read == []


def test_nothing_is_read_where_there_is_no_record_to_compare_with(world, read):
    read.clear()
    found = facts(world)
    assert read == []
    assert found.record("in").digest == ""


def test_what_has_another_stat_is_read_once(world, read):
    world.run()
    world.touch("in")
    read.clear()
    assert facts(world).record("in").digest
    assert read == ["in"]


def test_what_has_another_size_is_not_read(world, read):
    world.run()
    world.write("in", "much longer than before")
    read.clear()
    assert facts(world).record("in").digest == ""
    assert read == []


def test_what_is_larger_than_the_limit_is_not_read(world, read):
    world.run()
    world.touch("in")
    world.set(
        draft("a", "in", "a.out", policy=Policy(digest_limit=1)),
        draft("b", "a.out in", "b.out", policy=Policy(digest_limit=1)),
    )
    read.clear()
    assert facts(world).record("in").digest == ""
    assert read == []


def test_one_task_with_a_limit_that_allows_it_is_enough_to_read(world, read):
    world.run()
    world.touch("in")
    world.set(draft("a", "in", "a.out", policy=Policy(digest_limit=1)))
    read.clear()
    facts(world)
    assert read == ["in"]


def test_one_trusted_record_spares_the_reading_for_all(world, read):
    world.run()
    world.touch("in")
    evidence = world.decide().refreshed
    world.settle(world.plan.tasks["b"], "up_to_date", evidence["b"])
    read.clear()
    assert world.to_run() == []
    assert read == []


def test_an_untrusted_record_makes_it_read_until_one_is_trusted(world, read):
    world.write("in", young=True)
    world.run()
    read.clear()
    facts(world)
    assert read == ["in"]


def test_adoption_reads_only_what_could_be_adopted(world, read):
    world.write("a.out")
    read.clear()
    facts(world, adopt=True)
    assert sorted(read) == ["a.out", "in"]  # nothing for b.out, which is not there


def test_many_files_are_read_on_several_threads_with_the_same_result(tmp_path):
    many = 80
    world = World(tmp_path, *(draft(f"r{n}", f"{n}.in", f"{n}.out") for n in range(many)))
    for n in range(many):
        world.write(f"{n}.in")
    world.run()
    for n in range(many):
        world.touch(f"{n}.in")
    decision = world.decide()
    assert decision.to_run() == []
    assert len(decision.refreshed) == many


def test_what_is_not_there_has_no_record(world):
    assert facts(world).record("a.out") is None


def test_a_tombstone_is_seen_by_a_task_but_is_no_record(world):
    world.run()
    world.evict("a.out")
    found = facts(world)
    assert found.record("a.out") is None
    assert found.evicted == {"a.out"}
    stand_in = found.look_for(world.plan.tasks["b"])("a.out")
    assert isinstance(stand_in, FileRecord)


def test_an_output_made_again_is_not_evicted(world):
    world.run()
    world.evict("a.out")
    world.write("a.out")
    assert facts(world).evicted == frozenset()


def test_tasks_that_are_not_selected_are_not_looked_at(world, looked):
    facts(world, selected=frozenset({"a"}))
    assert sorted(looked) == ["a.out", "in"]


def test_a_path_that_cannot_be_looked_at_is_named(world):
    # As long as a path may be: with the work folder before it, it is too long to be looked at.
    world.set(draft("long", "y" * 99 + ("/" + "x" * 99) * 39 + "/" + "z" * 95, "c.out"))
    with pytest.raises(DiskError, match=r"z{95}"):
        facts(world)


def test_a_folder_is_seen_by_each_reader_without_what_it_makes_itself(tmp_path):
    world = World(tmp_path, draft("a", "d", "d/a.out"), draft("b", "d", "b.out"))
    world.write("d/in")
    world.write("d/a.out")
    found = facts(world)
    tasks = world.plan.tasks
    assert found.look_for(tasks["a"])("d").size == 4
    assert found.look_for(tasks["b"])("d").size == 11


def test_absolute_paths_are_looked_at_where_they_are(tmp_path):
    elsewhere = tmp_path / "data"
    elsewhere.mkdir()
    (elsewhere / "x").write_text("x")
    work = tmp_path / "work"
    work.mkdir()
    world = World(work, draft("a", (f"{elsewhere}/x",), "a.out"))
    assert facts(world).record(f"{elsewhere}/x").size == 1
