"""From the steps asked for to drafts: what is visited, what is pruned, what is refused."""

from __future__ import annotations

import threading

import pytest

from treadle.base.errors import CycleError, DiskError, StepError
from treadle.plan.task import Where
from treadle.steps.book import StepBook
from treadle.steps.expand import expand_steps
from treadle.steps.record import ArtifactRecord, ArtifactState, Result, Seen
from treadle.steps.remote import remote
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec
from treadle.steps.where import env_of


def work(out):
    """What all these steps do: nobody calls it here."""


def other_work(out):
    return 2


def step(name, *deps, fn=work, **options):
    return StepSpec(name, fn=fn, deps=deps, **options)


class Disk:
    """What stands there: the artifacts of some steps, with their results. Remembers what was looked at."""

    def __init__(self, *complete, results=(), states=()):
        self.complete = {one.identity for one in complete}
        self.results = {one.identity: value for one, value in dict(results).items()}
        self.states = {one.identity: state for one, state in dict(states).items()}
        self.looked: list[str] = []

    def __call__(self, spec, path):
        self.looked.append(spec.name)
        state = self.states.get(spec.identity)
        if state is None:
            state = ArtifactState.COMPLETE if spec.identity in self.complete else ArtifactState.ABSENT
        if state is ArtifactState.ABSENT:
            return Seen(state)
        result = Result(self.results[spec.identity]) if spec.identity in self.results else None
        return Seen(state, ArtifactRecord(identity=spec.identity, name=spec.name, path=path, result=result))


def expand(*steps, disk=None, prefix="/w/.treadle/artifacts", workdir="/w", **options):
    return expand_steps(steps, look=disk or Disk(), prefix=prefix, workdir=workdir, **options)


def names(expanded):
    return [draft.call.step for draft in expanded.drafts]


def needs(expanded):
    return {draft.call.step: [one[1:].rpartition("_")[0] for one in draft.steps] for draft in expanded.drafts}


def codes(caught):
    return [one.code for one in caught.value.diagnostics]


def test_deps_come_before_what_builds_on_them_each_once():
    a = step("a")
    b, c = step("b", a), step("c", a)
    found = expand(step("d", b, c), a, step("d", c, b))
    assert names(found) == ["a", "b", "c", "d"]
    assert needs(found) == {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    assert [target[:2] for target in found.targets] == ["@d", "@a"]
    assert list(found.seen) == [one.task_id for one in (a, b, c, step("d", b, c))]


def test_a_draft_says_what_the_step_is():
    one = step(
        "x/y", version="2", hash_attrs={"b": 1, "a": [2.5]}, retries=3, resumable=True, inputs=["in.txt"]
    )
    (draft,) = expand(one).drafts
    assert draft.rule == "@x/y"
    assert draft.call.identity == one.identity
    assert draft.call.path == f".treadle/artifacts/{one.name_with_hash}"
    assert draft.call.attrs == '{"a":[2.5],"b":1}'
    assert draft.call.code == one.code != ""
    assert draft.call.version == "2"
    assert (draft.policy.retries, draft.policy.resumable) == (3, True)
    assert draft.inputs == ("in.txt",)
    assert draft.outputs == ()


def test_paths_below_the_work_folder_are_relative_and_others_stand():
    inside = step("a", override_output_path="/w/made/x")
    outside = step("b", override_output_path="/data/x")
    url = step("c", output_path_prefix="s3://bucket/k/")
    found = expand(inside, outside, url)
    paths = [draft.call.path for draft in found.drafts]
    assert paths == ["made/x", "/data/x", f"s3://bucket/k/{url.name_with_hash}"]
    assert [found.book[one.task_id].path for one in (inside, outside, url)] == ["/w/made/x", *paths[1:]]


def test_a_relative_prefix_stands_in_the_work_folder():
    one = step("a")
    found = expand(one, prefix="./made/../out")
    assert found.book[one.task_id].path == f"/w/out/{one.name_with_hash}"


def test_nothing_is_visited_through_a_complete_artifact():
    a = step("a")
    b = step("b", a)
    c = step("c", b)
    disk = Disk(b)
    found = expand(c, disk=disk)
    assert names(found) == ["b", "c"]
    assert needs(found) == {"b": [], "c": ["b"]}
    assert disk.looked == ["c", "b"]
    entry = found.book[b.task_id]
    assert [dep.name for dep in entry.deps] == ["a"]
    assert entry.deps[0].path == f"/w/.treadle/artifacts/{a.name_with_hash}"
    assert not entry.wanted


def test_a_complete_artifact_waits_for_none_of_its_deps_that_others_need():
    a = step("a")
    served, made = step("served", a), step("made", a)
    found = expand(served, made, disk=Disk(served))
    assert needs(found) == {"served": [], "a": [], "made": ["a"]}


@pytest.mark.parametrize("state", [ArtifactState.ABSENT, ArtifactState.TORN, ArtifactState.OTHER])
def test_deps_are_visited_below_what_is_not_complete(state):
    a = step("a")
    b = step("b", a)
    assert names(expand(b, disk=Disk(states={b: state}))) == ["a", "b"]


def test_another_identity_is_served_where_the_step_says_so():
    a = step("a")
    b = step("b", a, drift="warn", override_output_path="x")
    assert names(expand(b, disk=Disk(states={b: ArtifactState.OTHER}))) == ["b"]


def test_what_bears_inputs_is_visited_though_it_is_complete():
    a = step("a", inputs=["in.txt"])
    b = step("b", a, step("plain"))
    c = step("c", b)
    found = expand(c, disk=Disk(a, b, c))
    assert names(found) == ["a", "plain", "b", "c"]
    assert not found.book[c.task_id].wanted


def test_a_forced_step_is_made_again_and_its_deps_are_visited():
    a = step("a")
    b = step("b", a)
    found = expand(b, disk=Disk(a, b), forced={b.task_id})
    assert names(found) == ["a", "b"]
    assert [found.book[one.task_id].wanted for one in (a, b)] == [False, True]
    assert found.book[b.task_id].replaces.identity == b.identity


def test_a_forced_step_is_found_below_complete_ones():
    forced, beside = step("forced"), step("beside")
    middle = step("middle", forced, beside)
    top = step("top", middle)
    found = expand(top, disk=Disk(forced, middle, top), forced={forced.task_id})
    assert names(found) == ["forced", "middle", "top"]  # what is beside is not needed, and not made
    assert [found.book[one.task_id].wanted for one in (forced, middle, top)] == [True, False, False]


def test_everything_can_be_forced():
    a = step("a")
    b = step("b", a)
    found = expand(b, disk=Disk(a, b), forced=True)
    assert all(found.book[one.task_id].wanted for one in (a, b))


def test_a_development_version_is_always_made_again():
    a = step("a", version="dev")
    found = expand(step("b", a, version="2-dev"), disk=Disk(a))
    assert names(found) == ["a", "b"]
    assert found.book[a.task_id].wanted
    assert all(draft.call.mutable for draft in found.drafts)


def test_a_fixed_step_may_not_build_on_a_development_version():
    with pytest.raises(StepError, match="development version") as caught:
        expand(step("b", step("a", version="dev")))
    assert codes(caught) == ["mutable-dep"]


def test_a_step_without_function_must_be_there():
    a = StepSpec("a")
    with pytest.raises(StepError, match="no complete artifact stands at /w/") as caught:
        expand(step("b", a))
    assert codes(caught) == ["nothing-to-call"]
    assert names(expand(step("b", a), disk=Disk(a))) == ["a", "b"]


def test_a_step_without_function_is_served_whatever_is_forced():
    a = StepSpec("a", version="dev")
    found = expand(a, disk=Disk(a), forced=True)
    assert not found.book[a.task_id].wanted
    assert not found.drafts[0].call.mutable


def test_one_step_may_be_there_twice_with_the_same_code():
    twins = [step("a", fn=lambda out, i=i: i) for i in (1, 1)]
    assert names(expand(*twins)) == ["a"]


def test_one_step_with_two_codes_is_refused():
    with pytest.raises(StepError, match="different code") as caught:
        expand(step("b", step("a")), step("c", step("a", fn=other_work)))
    assert codes(caught) == ["step-twice"]


def test_one_step_with_two_resources_or_places_is_refused():
    with pytest.raises(StepError, match="different resources and output path"):
        expand(step("a"), step("a", resources=ResourceConfig(cpu=2), override_output_path="x"))


def test_of_a_step_with_and_without_function_the_one_with_it_counts():
    for twins in ([StepSpec("a"), step("a")], [step("a"), StepSpec("a")]):
        found = expand(*twins)
        assert found.book[twins[0].task_id].spec.fn is work


def test_two_steps_at_one_place_are_refused():
    absolute = step("a", override_output_path="/w/here")
    joined = step("b", output_path_prefix="/w/x/..", override_output_path="here")
    with pytest.raises(StepError, match="both have the output path /w/here") as caught:
        expand(absolute, joined)
    assert codes(caught) == ["two-steps-one-path"]


def test_all_that_does_not_go_together_is_told_at_once():
    with pytest.raises(StepError) as caught:
        expand(
            step("b", step("a", version="dev")),
            StepSpec("missing"),
            step("c", override_output_path="x"),
            step("d", override_output_path="x"),
        )
    assert sorted(codes(caught)) == ["mutable-dep", "nothing-to-call", "two-steps-one-path"]


def test_a_pin_that_does_not_hold_is_told_before_anything_is_looked_at():
    good = step("good")
    pinned = step("deep", expected_identity="0" * 32)
    disk = Disk()
    with pytest.raises(StepError, match="pinned to identity 000") as caught:
        expand(step("top", pinned, good), disk=disk)
    assert codes(caught) == ["identity-pinned"]
    assert disk.looked == []
    held = step("good", expected_identity=good.identity)
    assert names(expand(step("top", held, step("good", expected_identity=good.hash_id)))) == ["good", "top"]


def test_a_pin_is_seen_below_complete_artifacts():
    top = step("top", step("deep", expected_identity="0" * 12))
    with pytest.raises(StepError, match="pinned"):
        expand(top, disk=Disk(top))


def test_a_cycle_that_someone_forged_is_told_as_a_path():
    a = step("a")
    b = step("b", a)
    c = step("c", b)
    object.__setattr__(a, "deps", (c,))
    with pytest.raises(CycleError) as caught:
        expand(step("top", c))
    assert isinstance(caught.value, ValueError)
    assert caught.value.path == (a.task_id, b.task_id, c.task_id)
    assert f"{a.name_with_hash} -> {b.name_with_hash} -> {c.name_with_hash} -> {a.name_with_hash}" in str(
        caught.value
    )


def test_what_is_no_step_is_told_by_its_number():
    with pytest.raises(StepError, match=r"steps\[1\]: a StepSpec is wanted, not 3"):
        expand(step("a"), 3)


def test_steps_that_the_run_knows_are_needed_but_not_drafted():
    a = step("a")
    b = step("b", a)
    disk, book = Disk(), StepBook()
    found = expand(step("c", b), b, disk=disk, known={b.task_id: "running"}, book=book)
    assert names(found) == ["c"]
    assert found.drafts[0].steps == (b.task_id,)
    assert disk.looked == ["c"]
    assert found.targets == (step("c", b).task_id, b.task_id)
    assert found.book is book
    assert len(book) == 1


def test_a_complete_step_grows_further_steps_in_the_expansion():
    def more(count):
        return [step(f"part_{number}", deep) for number in range(count)]

    deep = step("deep")
    grows = step("grows", grow=more)
    found = expand(grows, disk=Disk(grows, results={grows: 2}))
    assert names(found) == ["grows", "deep", "part_0", "part_1"]
    assert [target.partition("_")[0] for target in found.targets] == ["@grows", "@part", "@part"]


def test_a_grown_step_may_grow():
    def more(left):
        return step(f"level_{left}", grow=more if left else None)

    first = step("first", grow=more)
    level_3 = more(3)
    found = expand(first, disk=Disk(first, level_3, results={first: 3, level_3: 2}))
    assert names(found) == ["first", "level_3", "level_2"]


@pytest.mark.parametrize("options", [{"forced": True}, {}])
def test_a_step_that_is_made_again_has_not_grown_yet(options):
    grows = step("grows", version="" if options else "dev", grow=lambda value: [step("part")])
    assert names(expand(grows, disk=Disk(grows, results={grows: 1}), **options)) == ["grows"]


def test_what_grows_knows_its_parent_and_its_depth():
    def level(number):
        return step(f"level_{number}", grow=lambda value: [level(number + 1)])

    disk = Disk(*map(level, range(3)), results={level(number): 0 for number in range(3)})
    found = expand(level(0), disk=disk)
    assert found.parents == {level(n + 1).task_id: level(n).task_id for n in range(3)}
    assert [found.book[level(n).task_id].depth for n in range(4)] == [0, 1, 2, 3]


def test_a_step_that_something_else_leads_to_counts_as_asked_for_though_it_grows_as_well():
    late = step("late")
    grows = step("grows", late, inputs=["in.txt"], grow=lambda value: [late, grows])
    for asked in ((grows,), (grows, late), (step("top", late), grows)):
        found = expand(*asked, disk=Disk(grows, results={grows: 0}))
        assert found.parents == {}


@pytest.mark.parametrize("complete", [True, False])
def test_a_step_that_grows_below_a_complete_one_is_met_where_it_is_complete_itself(complete):
    low = step("low", grow=lambda value: [step("part")])
    top = step("top", step("middle", low))
    found = expand(top, disk=Disk(top, *([low] if complete else []), results={low: 0}))
    assert sorted(names(found)) == (["low", "part", "top"] if complete else ["top"])
    assert needs(found)["top"] == []


def test_a_step_of_a_plan_has_grown_no_deeper_than_thirty_two():
    def level(number):
        return step(f"level_{number}", grow=lambda value: [level(number + 1)])

    disk = Disk(*map(level, range(40)), results={level(number): 0 for number in range(40)})
    with pytest.raises(StepError, match="more than 32 deep") as caught:
        expand(level(0), disk=disk)
    assert codes(caught) == ["grow-too-deep"]
    with pytest.raises(StepError, match="more than 32 deep"):
        expand(level(20), disk=disk, depths={level(20).identity: 25})
    assert len(names(expand(level(20), disk=disk, depths={level(20).identity: 12}))) == 21


def test_growth_that_fails_is_an_error_of_the_step():
    for grow, text in (
        (lambda value: 1 / 0, "ZeroDivisionError"),
        (lambda value: ["x"], r"\[0\]: a step is wanted"),
    ):
        grows = step("grows", grow=grow)
        with pytest.raises(StepError, match=f"grow of step {grows.name_with_hash}.*{text}"):
            expand(grows, disk=Disk(grows))


def test_where_a_step_runs_follows_from_what_it_asks_for():
    config = ResourceConfig(cpu=2)
    steps = [
        step("plain"),
        step("timed", timeout=5),
        step("env", env_vars={"A": "b"}),
        step("apart", isolation="process"),
        step("sized", resources=config),
        step("far", fn=remote(work)),
    ]
    here = [draft.call.where for draft in expand(*steps).drafts]
    there = [draft.call.where for draft in expand(*steps, client_is_local=False).drafts]
    assert here == [Where.THREAD, *[Where.PROCESS] * 5]
    assert there == [Where.THREAD, *[Where.PROCESS] * 3, Where.CLIENT, Where.CLIENT]


def test_the_resources_of_the_step_beat_those_of_remote_and_variables_merge():
    wrapped = remote(resources=ResourceConfig(cpu=8, memory_gb=1), env_vars={"A": "1", "B": "1"})(work)
    own = step("own", fn=wrapped, resources=ResourceConfig(cpu=2), env_vars={"B": "2", "C": "2"})
    drafts = expand(step("theirs", fn=wrapped), own).drafts
    assert [(draft.resources.threads, draft.resources.memory) for draft in drafts] == [
        (8, 1024**3),
        (2, None),
    ]
    assert env_of(own) == {"A": "1", "B": "2", "C": "2"}


def test_a_timeout_is_the_time_limit_unless_that_is_shorter():
    limits = [
        expand(step("s", timeout=timeout, resources=config)).drafts[0].resources.time_limit
        for timeout, config in (
            (1.5, None),
            (60, ResourceConfig(time_limit=10)),
            (60, ResourceConfig(time_limit="2h")),
            (None, ResourceConfig(time_limit="2h")),
        )
    ]
    assert limits == [2, 10, 60, 7200]


def test_looks_that_wait_are_taken_in_parallel():
    """The later looks end only when two are under way at the same time."""
    both = threading.Barrier(2, timeout=20)
    lock, count = threading.Lock(), [0]

    def look(spec, path):
        with lock:
            count[0] += 1
            number = count[0]
        if number <= 4:
            threading.Event().wait(0.002)  # the first ones tell that looking takes a while
        else:
            both.wait()
        return Seen(ArtifactState.ABSENT)

    found = expand(*[step(f"s{n}") for n in range(10)], disk=look)
    assert names(found) == [f"s{n}" for n in range(10)]


def test_storage_that_fails_ends_the_expansion():
    def look(spec, path):
        raise DiskError("no such server")

    with pytest.raises(DiskError):
        expand(step("a"), disk=look)
