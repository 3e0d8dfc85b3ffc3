"""Random small workflows on real files: what the decision promises about all of them."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "decide"))

from decide_world import World, draft

from treadle.decide.reason import Verdict
from treadle.decide.tombstones import removable
from treadle.plan.task import Resources
from treadle.records.event import End

SOURCES = ("s0", "s1", "s2")
FEW = settings(max_examples=25, deadline=None)


@st.composite
def workflows(draw, ancient=False):
    """Drafts in a random order: each reads some sources and outputs of earlier ones, some follow others."""
    drafts = []
    for n in range(draw(st.integers(2, 7))):
        earlier = [path for one in drafts for path in one.outputs]
        inputs = draw(st.lists(st.sampled_from([*SOURCES, *earlier]), min_size=1, max_size=3, unique=True))
        outputs = tuple(f"{n}.{letter}" for letter in "ab"[: draw(st.integers(1, 2))])
        before = [one.rule for one in drafts]
        after = draw(st.lists(st.sampled_from(before), max_size=1)) if before else []
        old = draw(st.lists(st.sampled_from(inputs), max_size=1)) if ancient else []
        drafts.append(
            draft(
                f"r{n}",
                tuple(inputs),
                outputs,
                temporary=draw(st.booleans()),
                depends_on=tuple(after),
                ancient=tuple(old),
            )
        )
    return draw(st.permutations(drafts))


@contextmanager
def made(drafts):
    """A world in which the workflow has run, and all that is temporary is gone."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), *drafts)
        for source in SOURCES:
            world.write(source)
        world.run()
        tidy(world)
        yield world


def tidy(world):
    """Remove what may be removed on purpose."""
    plan, ends = world.plan, {}
    for task, answer in world.decide().answers.items():
        if answer.verdict is Verdict.UP_TO_DATE:
            ends[task] = End.UP_TO_DATE
    for _, path in removable(plan, ends):
        if world.exists(path):
            world.evict(path)


def downstream(world, first):
    """Independently: the tasks in `first` and all that follow them by plain inputs or by order."""
    found = set(first)
    for task in map(world.plan.tasks.__getitem__, world.plan.order):
        made_above = {path for one in found for path in world.plan.tasks[one].outputs}
        reads = made_above.intersection(task.inputs) - task.ancient
        if reads or found.intersection(task.ordered):
            found.add(task.id)
    return found


def is_right(world):
    """Every output that is there has the content that a build from nothing would give it."""
    plan, right = world.plan, {source: world.read(source) for source in SOURCES}
    for task in map(plan.tasks.__getitem__, plan.order):
        content = [right[path] for path in task.inputs]
        figure = hashlib.sha1("\0".join([task.command.text, *content]).encode()).hexdigest()
        for path in task.outputs:
            right[path] = f"{path} {figure}"
            if world.exists(path) and world.read(path) != right[path]:
                return False
    return True


@FEW
@given(workflows())
def test_nothing_changed_runs_nothing(drafts):
    with made(drafts) as world:
        decision = world.decide()
        assert decision.to_run() == []
        assert decision.refreshed == {}


@FEW
@given(workflows())
def test_other_times_run_nothing(drafts):
    with made(drafts) as world:
        for path in sorted(path.name for path in world.root.iterdir()):
            world.touch(path)
        assert world.to_run() == []


@FEW
@given(workflows(), st.integers(2, 64))
def test_other_resources_run_nothing(drafts, threads):
    with made(drafts) as world:
        world.set(*(replace(one, resources=Resources(threads=threads, memory=1)) for one in drafts))
        assert world.to_run() == []


@FEW
@given(workflows(ancient=True), st.sampled_from(SOURCES), st.booleans())
def test_another_source_runs_exactly_what_is_downstream_of_it(drafts, source, cutoff):
    with made([replace(one, temporary=()) for one in drafts]) as world:
        world.write(source, "other")
        tasks = world.plan.tasks.values()
        first = [one.id for one in tasks if source in one.inputs and source not in one.ancient]
        assert set(world.to_run(cutoff=cutoff)) == downstream(world, first)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["source", "touch", "remove", "edit", "command", "fail", "force"]),
        st.integers(0, 6),
    ),
    max_size=3,
)


def change(world, changes):
    """Do to the world what befalls it between two runs; the ids of tasks that are to be forced."""
    forced = set()
    for what, number in changes:
        task = sorted(world.plan.tasks)[number % len(world.plan.tasks)]
        path = world.plan.tasks[task].outputs[0]
        match what:
            case "source":
                world.write(SOURCES[number % len(SOURCES)], f"changed {number}")
            case "touch" if world.exists(path):
                world.touch(path)
            case "remove" if world.exists(path):
                world.remove(path)
            case "edit" if world.exists(path):
                world.write(path, "edited")
            case "command":
                world.set(replace(world.drafts[task], command=draft(task, text=f"other {number}").command))
            case "fail":
                world.fail(task)
            case "force":
                forced.add(task)
    return frozenset(forced)


@FEW
@given(workflows(ancient=True), CHANGES, st.booleans())
def test_what_runs_is_closed_downstream_and_the_answer_is_always_the_same(drafts, changes, cutoff):
    with made(drafts) as world:
        forced = change(world, changes)
        decision = world.decide(forced=forced, cutoff=cutoff)
        assert set(decision.to_run()) == downstream(world, decision.to_run())
        assert decision == world.decide(forced=forced, cutoff=cutoff)
        world.drafts = dict(reversed(world.drafts.items()))
        assert decision == world.decide(forced=forced, cutoff=cutoff)


@settings(max_examples=60, deadline=None)
@given(workflows(), st.lists(CHANGES, min_size=1, max_size=2), st.booleans())
def test_after_a_run_all_is_as_if_built_from_nothing(drafts, rounds, cutoff):
    with made(drafts) as world:
        for changes in rounds:
            forced = change(world, changes)
            answers = world.decide(forced=forced, cutoff=cutoff).answers
            ran = world.run(forced=forced, cutoff=cutoff)
            may = {task for task, one in answers.items() if one.verdict is Verdict.WILL_RUN}
            must = {task for task in may if not answers[task].may_cut_off}
            assert len(ran) == len(set(ran))
            assert must <= set(ran) <= may
            assert is_right(world)
            assert world.to_run() == []
            tidy(world)
            assert world.to_run() == []
