"""Any drafts: the plan agrees with the plain definition, and nothing hangs on their order."""

from __future__ import annotations

from itertools import combinations, pairwise

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from treadle.base.errors import CycleError, PlanError
from treadle.plan.build import build
from treadle.plan.graph import critical_path, downstream, upstream
from treadle.plan.show import digest, plan_object
from treadle.plan.task import Draft, Policy, ScheduledPlan, Skip
from treadle.testing.drafts import draft, step, task_of

SETTINGS = settings(max_examples=60, deadline=None)
SOURCES = ("s1", "s2", "data/s3")


@st.composite
def acyclic(draw: st.DrawFn) -> list[Draft]:
    """Tasks that read from tasks before them: files, folders of theirs, files in folders, `depends_on`.

    Task i makes `o/i`, or the folder `f<i>`. Who reads `o` as a whole needs later tasks too: a cycle.
    Some are steps, which build on steps before them, and whose artifact is `f<i>`.
    """
    number = draw(st.integers(1, 9))
    drafts: list[Draft] = []
    for i in range(number):
        readable = [*SOURCES, "o", *(path for one in drafts for path in _readable(one))]
        inputs = draw(st.lists(st.sampled_from(readable), max_size=4, unique=True))
        rules = sorted({one.rule for one in drafts if one.rule != f"r{i % 4}"})
        after = draw(st.lists(st.sampled_from(rules), max_size=1)) if i < 4 and rules else []
        if draw(st.integers(0, 2)) == 0:
            steps = [one for one in drafts if one.call is not None]
            below = draw(st.lists(st.sampled_from(steps), max_size=3)) if steps else []
            below = list({task_of(one): one for one in below}.values())
            priority = Policy(priority=draw(st.integers(0, 2)))
            drafts.append(step(f"s{i}", below, path=f"f{i}", inputs=tuple(inputs), policy=priority))
            continue
        outputs = draw(st.sampled_from([(f"o/{i}",), (f"f{i}",), (f"o/{i}", f"p/{i}"), ()]))
        drafts.append(
            draft(
                f"r{i % 4}/i={i}",
                inputs,
                outputs,
                gathered=frozenset(draw(st.sets(st.sampled_from(inputs)))) if inputs else frozenset(),
                depends_on=tuple(after),
                policy=Policy(priority=draw(st.integers(0, 2))),
                skip=Skip("when", "x") if draw(st.integers(0, 5)) == 0 else None,
            )
        )
    return drafts


def makes(one: Draft) -> tuple[str, ...]:
    return one.outputs if one.call is None else (one.call.path,)


def ids_of(drafts: list[Draft]) -> list[str]:
    return [f"{one.rule}/i={i}" if one.call is None else task_of(one) for i, one in enumerate(drafts)]


def _readable(one: Draft) -> list[str]:
    return [found for path in makes(one) for found in ((path,) if "/" in path else (path, path + "/in"))]


def outcome(drafts: list[Draft]) -> ScheduledPlan | PlanError:
    try:
        return build("flow", drafts)
    except PlanError as error:
        return error


def built(drafts: list[Draft]) -> ScheduledPlan:
    """The plan; an example in which a folder or `depends_on` closes a circle is passed over."""
    found = outcome(drafts)
    assume(not isinstance(found, CycleError))
    assert isinstance(found, ScheduledPlan), found
    return found


@SETTINGS
@given(acyclic())
def test_every_task_comes_after_all_that_it_needs(drafts):
    plan = built(drafts)
    at = {task: place for place, task in enumerate(plan.order)}
    assert sorted(at) == sorted(plan.tasks)
    assert len(at) == len(drafts)
    assert all(at[need] < at[task.id] for task in plan.tasks.values() for need in task.needs)


@SETTINGS
@given(acyclic())
def test_the_order_is_the_first_by_priority_and_id_at_every_step(drafts):
    plan = built(drafts)
    done: set[str] = set()
    for task in plan.order:
        ready = [one for one in plan.tasks.values() if one.id not in done and done.issuperset(one.needs)]
        assert task == min(ready, key=lambda one: (-one.policy.priority, one.id)).id
        done.add(task)


@SETTINGS
@given(acyclic())
def test_no_task_of_a_group_needs_another_of_it(drafts):
    plan = built(drafts)
    assert sorted(task for group in plan.groups for task in group) == sorted(plan.order)
    for group in plan.groups:
        for one, other in combinations(group, 2):
            assert other not in upstream(plan, [one])
            assert one not in upstream(plan, [other])
    for level, group in enumerate(plan.groups[1:]):
        assert all(set(plan.groups[level]) & set(plan.tasks[task].needs) for task in group)


@SETTINGS
@given(acyclic(), st.randoms(use_true_random=False))
def test_shuffled_drafts_change_no_byte(drafts, random):
    plan = built(drafts)
    shuffled = list(drafts)
    random.shuffle(shuffled)
    other = built(shuffled)
    assert msgspec.json.encode(plan_object(plan)) == msgspec.json.encode(plan_object(other))
    assert digest(plan) == digest(other)
    assert plan == other


def lies_in(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def plain_skips(drafts: list[Draft]) -> set[int]:
    """The definition, word for word, until nothing changes."""
    skipped = {i for i, one in enumerate(drafts) if one.skip}
    ids = ids_of(drafts)

    def lost(path: str) -> bool:
        makers = {
            i
            for i, one in enumerate(drafts)
            for out in makes(one)
            if out == path or lies_in(path, out) or lies_in(out, path)
        }
        return bool(makers) and makers <= skipped

    while True:
        more = {
            i
            for i, one in enumerate(drafts)
            if any(lost(path) for path in one.inputs if path not in one.gathered)
            or (one.gathered and all(lost(path) for path in one.gathered))
            or any(ids.index(below) in skipped for below in one.steps)
        }
        if more <= skipped:
            return skipped
        skipped |= more


@SETTINGS
@given(acyclic())
def test_skips_and_needs_are_as_the_plain_definition_says(drafts):
    plan = built(drafts)
    skipped = plain_skips(drafts)
    ids = ids_of(drafts)
    assert {task.id for task in plan.tasks.values() if task.skip} == {ids[i] for i in skipped}
    live = [i for i in range(len(drafts)) if i not in skipped]
    for i in live:
        task = plan.tasks[ids[i]]
        needs = {
            ids[j]
            for j in live
            for path in task.inputs
            for out in makes(drafts[j])
            if j != i and (out == path or lies_in(path, out) or lies_in(out, path))
        }
        after = {ids[j] for j in live if j != i and drafts[j].rule in drafts[i].depends_on}
        assert set(task.needs) == needs | after | set(drafts[i].steps)
        assert task.ordered == after - needs
        assert list(task.needs) == sorted(task.needs)


@SETTINGS
@given(acyclic())
def test_closures_and_dependents_turn_each_other_round(drafts):
    plan = built(drafts)
    above = {task: upstream(plan, [task]) for task in plan.order}
    below = {task: downstream(plan, [task]) for task in plan.order}
    assert all((one in above[other]) == (other in below[one]) for one in above for other in below)
    assert all(task in below[need] for task in plan.order for need in plan.tasks[task].needs)


@SETTINGS
@given(acyclic(), st.data())
def test_the_critical_path_is_a_chain_of_needs_and_none_is_longer(drafts, data):
    plan = built(drafts)
    seconds = {task: float(data.draw(st.integers(0, 9))) for task in plan.order}
    path, total = critical_path(plan, plan.order, seconds)
    assert all(one in plan.tasks[other].needs for one, other in pairwise(path))
    assert total == sum(map(seconds.__getitem__, path))
    longest: dict[str, float] = {}
    for task in plan.order:
        before = (longest[need] for need in plan.tasks[task].needs)
        longest[task] = seconds[task] + max(before, default=0.0)
    assert total == max(longest.values())


@st.composite
def tangled(draw: st.DrawFn) -> list[Draft]:
    """Any graph: task i makes `o<i>` and reads outputs of any task but its own."""
    number = draw(st.integers(2, 8))
    return [
        draft(
            f"r{i % 3}/i={i}",
            [f"o{j}" for j in sorted(draw(st.sets(st.integers(0, number - 1), max_size=2))) if j != i],
            f"o{i}",
        )
        for i in range(number)
    ]


@settings(max_examples=150, deadline=None)
@given(tangled(), st.randoms(use_true_random=False))
def test_a_cycle_is_found_exactly_when_there_is_one_and_its_path_is_real(drafts, random):
    reads = {f"{one.rule}/i={one.outputs[0][1:]}": one for one in drafts}
    shuffled = list(drafts)
    random.shuffle(shuffled)
    found = outcome(shuffled)
    assert isinstance(found, CycleError) == _has_cycle(drafts)
    if isinstance(found, CycleError):
        path = found.path
        assert len(set(path)) == len(path) >= 2
        assert path[0] == min(path)
        for maker, reader in zip(path, (*path[1:], path[0])):
            assert reads[maker].outputs[0] in reads[reader].inputs
        assert " -> ".join((*path, path[0])) in str(found)


def _has_cycle(drafts: list[Draft]) -> bool:
    """Take away what needs nothing that is left, until nothing more can go."""
    left = {one.outputs[0]: set(one.inputs) for one in drafts}
    while free := [path for path, its in left.items() if not its & left.keys()]:
        for path in free:
            del left[path]
    return bool(left)


PIECES = st.lists(st.sampled_from(["a", "b", "A", "..", ".", ""]), min_size=1, max_size=4).map("/".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.lists(PIECES, max_size=3), st.lists(PIECES, max_size=2)), max_size=4))
def test_whatever_the_paths_the_only_error_is_a_plan_error(tasks):
    drafts = [draft(f"r/i={i}", inputs, outputs) for i, (inputs, outputs) in enumerate(tasks)]
    found, turned = outcome(drafts), outcome(drafts[::-1])
    if isinstance(found, PlanError):
        assert found.diagnostics
        assert str(found) == str(turned)
    else:
        assert len(found.order) == len(drafts)
        assert found == turned
