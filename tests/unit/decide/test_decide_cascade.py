"""What runs because something upstream does, what may be cut off, and what wakes when it is needed."""

from __future__ import annotations

import pytest
from decide_world import World, draft, plain
from msgspec.structs import replace

from treadle.decide.reason import (
    InputChanged,
    NeverRan,
    OutputChanged,
    OutputMissing,
    OutputNeeded,
    Upstream,
    Verdict,
)
from treadle.records.event import End
from treadle.records.line import Evicted


@pytest.fixture
def chain(tmp_path):
    """in -> a -> b -> c, all made."""
    world = World(
        tmp_path, draft("a", "in", "a.out"), draft("b", "a.out", "b.out"), draft("c", "b.out", "c.out")
    )
    world.write("in")
    world.run()
    return world


def summary(world, **options):
    """By task that will run: its reasons, and whether it may be cut off."""
    return {
        task: (plain(answer.reasons), answer.may_cut_off)
        for task, answer in world.decide(**options).answers.items()
        if answer.verdict is Verdict.WILL_RUN
    }


def test_everything_downstream_of_a_change_runs_and_names_the_root(chain):
    chain.write("in", "other")
    assert summary(chain) == {
        "a": ((InputChanged(path="in"),), False),
        "b": ((Upstream(task="a", root="a"),), True),
        "c": ((Upstream(task="b", root="a"),), True),
    }


def test_without_cutoff_nothing_downstream_may_be_cut_off(chain):
    chain.write("in", "other")
    assert [cut for _, cut in summary(chain, cutoff=False).values()] == [False, False, False]


def test_a_task_with_reasons_of_its_own_is_not_cut_off(chain):
    chain.write("in", "other")
    chain.set(draft("b", "a.out", "b.out", text="other"))
    chain.remove("c.out")
    found = summary(chain)
    assert not found["b"][1]
    assert found["c"] == ((OutputMissing(path="c.out"),), False)


def test_a_task_never_run_has_that_reason_and_not_the_cascade(chain):
    chain.set(draft("d", "c.out", "d.out"))
    chain.write("in", "other")
    assert summary(chain)["d"] == ((NeverRan(),), False)


def test_readers_of_a_missing_output_that_is_made_again_may_be_cut_off(chain):
    chain.remove("a.out")
    assert summary(chain) == {
        "a": ((OutputMissing(path="a.out"),), False),
        "b": ((Upstream(task="a", root="a"),), True),
        "c": ((Upstream(task="b", root="a"),), True),
    }
    assert chain.run() == ["a"]  # the same content came out
    assert chain.to_run() == []


def test_a_reader_of_an_edited_output_waits_for_what_its_maker_makes_of_it(chain):
    chain.write("a.out", "edited")
    found = summary(chain)
    assert found["a"] == ((OutputChanged(path="a.out"),), False)
    assert found["b"] == ((Upstream(task="a", root="a"),), True)


def test_depends_on_a_task_that_runs_counts_as_changed(chain):
    chain.set(draft("after", "in2", "after.out", depends_on=("a",)))
    chain.write("in2")
    chain.run()
    chain.remove("a.out")
    assert summary(chain)["after"] == ((Upstream(task="a", root="a"),), False)


def test_depends_on_a_task_that_may_be_cut_off_may_be_cut_off(chain):
    chain.set(draft("after", "in2", "after.out", depends_on=("c",)))
    chain.write("in2")
    chain.run()
    chain.remove("a.out")
    assert summary(chain)["after"] == ((Upstream(task="c", root="a"),), True)
    assert chain.run() == ["a"]


def test_readers_of_a_task_that_was_ordered_after_a_run_may_be_cut_off(chain):
    chain.set(draft("after", "in2", "after.out", depends_on=("a",)), draft("last", "after.out", "last.out"))
    chain.write("in2")
    chain.run()
    chain.remove("a.out")
    assert summary(chain)["last"] == ((Upstream(task="after", root="a"),), True)


def test_ancient_inputs_do_not_cascade(tmp_path):
    world = World(tmp_path, draft("a", "in", "a.out"), draft("b", "a.out", "b.out", ancient=("a.out",)))
    world.write("in")
    world.run()
    world.write("in", "other")
    assert list(summary(world)) == ["a"]
    assert list(summary(world, cutoff=False)) == ["a"]


def test_a_missing_ancient_input_makes_its_producer_run(tmp_path):
    world = World(tmp_path, draft("a", "in", "a.out"), draft("b", "a.out", "b.out", ancient=("a.out",)))
    world.write("in")
    world.run()
    world.remove("a.out")
    assert list(summary(world)) == ["a"]


def test_a_task_that_also_reads_a_plain_input_of_the_same_producer_follows_it(tmp_path):
    world = World(
        tmp_path,
        draft("a", "in", "a.out a.index"),
        draft("b", "a.out a.index", "b.out", ancient=("a.index",)),
    )
    world.write("in")
    world.run()
    world.write("in", "other")
    assert list(summary(world)) == ["a", "b"]


def test_a_cascade_goes_through_folders(tmp_path):
    world = World(tmp_path, draft("a", "in", "d/a.out"), draft("b", "d", "b.out"))
    world.write("in")
    world.run()
    world.write("in", "other")
    assert summary(world)["b"] == ((Upstream(task="a", root="a"),), True)


def test_the_upstream_that_is_sure_to_run_is_named_before_one_that_may_be_cut_off(tmp_path):
    world = World(
        tmp_path,
        draft("root", "in", "root.out"),
        draft("b", "root.out", "b.out"),
        draft("z", "in", "z.out"),
        draft("end", "b.out z.out", "end.out"),
    )
    world.write("in")
    world.run()
    world.write("in", "other")
    assert summary(world)["end"] == ((Upstream(task="z", root="z"),), True)


def test_the_upstream_that_keeps_a_task_from_being_cut_off_is_named_first(tmp_path):
    world = World(
        tmp_path,
        draft("a", "in", "a.out"),
        draft("z", "in", "z.out"),
        draft("end", "a.out", "end.out", depends_on=("z",)),
    )
    world.write("in")
    world.run()
    world.write("in", "other")
    assert summary(world)["end"] == ((Upstream(task="z", root="z"),), False)


def test_a_long_chain_is_followed_without_recursion(tmp_path):
    length = 1200  # more than Python would recurse
    rules = (draft(f"r{n}", f"{n}", f"{n + 1}") for n in range(length))
    world = World(tmp_path, *rules)
    world.write("0")
    world.run()
    world.write("0", "other")
    answers = world.decide().answers
    assert answers[f"r{length - 1}"].reasons == (Upstream(task=f"r{length - 2}", root="r0"),)


# Outputs that were removed on purpose


@pytest.fixture
def evicted(tmp_path):
    """in -> a -> (temporary, evicted) t -> b and c."""
    world = World(
        tmp_path,
        draft("a", "in", "t", temporary=True),
        draft("b", "t", "b.out"),
        draft("c", "t", "c.out"),
    )
    world.write("in")
    world.run()
    world.evict("t")
    return world


def test_what_was_removed_on_purpose_is_not_missing(evicted):
    assert evicted.to_run() == []


def test_what_was_removed_by_hand_is_missing(evicted):
    evicted.write("in", "other")
    evicted.run()
    evicted.remove("t")
    assert summary(evicted)["a"] == ((OutputMissing(path="t"),), False)


def test_the_maker_of_a_removed_output_wakes_when_a_task_must_read_it(evicted):
    evicted.remove("b.out")
    assert summary(evicted) == {
        "a": ((OutputNeeded(path="t", by="b"),), False),
        "b": ((OutputMissing(path="b.out"),), False),
        "c": ((Upstream(task="a", root="a"),), True),
    }
    assert evicted.run() == ["a", "b"]


def test_a_new_reader_wakes_the_maker(evicted):
    evicted.set(draft("d", "t", "d.out"))
    found = summary(evicted)
    assert found["a"] == ((OutputNeeded(path="t", by="d"),), False)
    assert found["b"][1]
    assert found["c"][1]


def test_a_missing_ancient_input_that_was_removed_on_purpose_wakes_its_maker(tmp_path):
    world = World(tmp_path, draft("a", "in", "t", temporary=True), draft("b", "t", "b.out", ancient=("t",)))
    world.write("in")
    world.run()
    world.evict("t")
    assert world.to_run() == []
    world.remove("b.out")
    assert world.to_run() == ["a", "b"]


def test_a_whole_chain_of_removed_outputs_wakes(tmp_path):
    world = World(
        tmp_path,
        draft("a", "in", "t1", temporary=True),
        draft("b", "t1", "t2", temporary=True),
        draft("c", "t2", "c.out"),
    )
    world.write("in")
    world.run()
    world.evict("t1")
    world.evict("t2")
    world.remove("c.out")
    found = summary(world)
    assert found["a"] == ((OutputNeeded(path="t1", by="b"),), False)
    assert found["b"] == ((Upstream(task="a", root="a"), OutputNeeded(path="t2", by="c")), False)
    assert found["c"] == ((OutputMissing(path="c.out"),), False)


def test_a_maker_wanted_only_by_a_task_that_may_be_cut_off_may_be_spared(tmp_path):
    world = World(
        tmp_path,
        draft("a", "in", "t", temporary=True),
        draft("p", "other", "p.out"),
        draft("b", "t p.out", "b.out"),
    )
    world.write("in")
    world.write("other")
    world.run()
    world.evict("t")
    world.remove("p.out")
    assert summary(world) == {
        "p": ((OutputMissing(path="p.out"),), False),
        "a": ((OutputNeeded(path="t", by="b"),), True),
        "b": ((Upstream(task="p", root="p"),), True),
    }
    assert world.run() == ["p"]
    world.write("other", "new")
    assert world.run() == ["p", "a", "b"]


def test_a_removed_output_whose_maker_is_reached_by_a_cascade_is_needed_by_its_reader(evicted):
    evicted.set(draft("zero", "source", "in"))
    evicted.write("source")
    evicted.run()
    evicted.evict("t")
    evicted.write("source", "other")
    assert summary(evicted) == {
        "zero": ((InputChanged(path="source"),), False),
        "a": ((Upstream(task="zero", root="zero"), OutputNeeded(path="t", by="b")), True),
        "b": ((Upstream(task="a", root="zero"),), True),
        "c": ((Upstream(task="a", root="zero"),), True),
    }


def test_an_order_after_a_maker_that_wakes_does_not_wake_others(evicted):
    evicted.set(draft("d", "in2", "d.out", depends_on=("a",)))
    evicted.write("in2")
    evicted.run()
    evicted.set(draft("d", "in2", "d.out", depends_on=("a",), text="other"))
    assert list(summary(evicted)) == ["d"]  # it does not read what was removed


def test_examining_a_task_whose_output_was_removed_on_purpose_leaves_its_evidence_alone(evicted):
    evicted.touch("in")
    task = evicted.plan.tasks["a"]
    assert evicted.examine(task) == ((), evicted.past.evidence("t"))


def test_a_tombstone_outlives_a_refresh_of_touched_evidence(evicted):
    evidence = evicted.past.evidence("t")
    tombstone = evicted.past.tombstone("t")
    evicted.settle(evicted.plan.tasks["a"], End.UP_TO_DATE, replace(evidence, note="touched"))
    evicted.past.add([Evicted("t", "a", "run", tombstone)])
    evicted.touch("in")
    evicted.run()
    assert evicted.past.tombstone("t") == tombstone


def test_removed_outputs_in_a_folder_wake_their_maker_for_who_reads_the_folder(tmp_path):
    world = World(tmp_path, draft("a", "in", "d/t", temporary=True), draft("b", "d", "b.out"))
    world.write("in")
    world.run()
    world.evict("d/t")
    world.set(draft("b", "d", "b.out", text="other"))
    assert summary(world)["a"] == ((OutputNeeded(path="d/t", by="b"),), False)
