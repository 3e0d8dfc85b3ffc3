"""From the steps asked for to drafts: what is visited, what is pruned, and what a draft says."""

from __future__ import annotations

import threading

import pytest
from expand_world import Disk, expand, names, needs, step, work

from treadle.base.errors import DiskError
from treadle.plan.task import Where
from treadle.steps.book import StepBook
from treadle.steps.record import ArtifactState, Seen
from treadle.steps.remote import remote
from treadle.steps.resources import ResourceConfig
from treadle.steps.spec import StepSpec
from treadle.steps.where import env_of


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


def test_a_step_without_function_is_served_whatever_is_forced():
    a = StepSpec("a", version="dev")
    found = expand(a, disk=Disk(a), forced=True)
    assert not found.book[a.task_id].wanted
    assert not found.drafts[0].call.mutable


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
