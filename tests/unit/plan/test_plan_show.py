"""The plan as one JSON object, and its digest."""

from __future__ import annotations

import msgspec
import pytest

from treadle.base.place import Place
from treadle.plan.build import build
from treadle.plan.environment import Making
from treadle.plan.show import digest, plan_head, plan_object, plan_texts
from treadle.plan.task import (
    Command,
    Growth,
    Policy,
    Resources,
    ScheduledPlan,
    ScheduledTask,
    Shell,
    Skip,
)
from treadle.plan.tokens import THREADS, WORKDIR
from treadle.testing.drafts import draft


def one(**more) -> ScheduledPlan:
    fields = {"inputs": "in.txt", "outputs": "out.txt", "text": "sort in.txt > out.txt", **more}
    return build("flow", [draft("sort/s=1", fields.pop("inputs"), fields.pop("outputs"), **fields)])


def as_json(plan: ScheduledPlan) -> dict:
    return msgspec.json.decode(msgspec.json.encode(plan_object(plan)))


def test_the_object_has_what_the_contract_names():
    found = as_json(build("flow", [draft("b", "x", "y"), draft("a/s=S 1", "", "x", text="touch x")]))
    assert found["schema"] == 1
    assert found["order"] == ["a/s=S%201", "b"]
    assert found["groups"] == [["a/s=S%201"], ["b"]]
    assert len(found["digest"]) == 64
    assert found["tasks"][0] == {
        "id": "a/s=S%201",
        "rule": "a",
        "wildcards": {"s": "S 1"},
        "inputs": [],
        "outputs": ["x"],
        "needs": [],
        "resources": {"threads": 1},
        "command": "touch x",
    }
    assert found["tasks"][1]["needs"] == ["a/s=S%201"]


def test_what_a_task_sets_is_shown_and_nothing_else():
    plan = build(
        "flow",
        [
            draft(
                "a",
                "x y",
                "o t",
                command=Command(
                    text="f",
                    script=("python3", "s.py"),
                    script_file="s.py",
                    on_failure="say",
                    env=(("K", "v"),),
                    secrets=("key",),
                ),
                resources=Resources(threads=4, memory=1024, groups=(("db", 2),)),
                policy=Policy(retries=2, retry_memory=Growth(factor=2.0), shell=Shell(strict=True)),
                ancient=frozenset({"y", "x"}),
                temporary=("t",),
                depends_on=("b",),
                log="l",
                benchmark="m",
            ),
            draft("b", skip=Skip("when", "config.b")),
            draft("c"),
        ],
        pools=(("db", 2),),
    )
    found = {task["id"]: task for task in as_json(plan)["tasks"]}
    assert found["a"] == {
        "id": "a",
        "rule": "a",
        "wildcards": {},
        "inputs": ["x", "y"],
        "outputs": ["o", "t"],
        "needs": [],
        "resources": {"threads": 4, "memory": 1024, "groups": {"db": 2}},
        "command": "f",
        "script": ["python3", "s.py"],
        "script_file": "s.py",
        "on_failure": "say",
        "env": {"K": "v"},
        "secrets": ["key"],
        "ancient": ["x", "y"],
        "temporary": ["t"],
        "log": "l",
        "benchmark": "m",
        "policy": {"retries": 2, "retry_memory": {"factor": 2.0}, "shell": {"strict": True}},
    }
    assert found["b"]["skip"] == {"why": "when", "what": "config.b"}
    assert set(found["c"]) == {
        "id", "rule", "wildcards", "inputs", "outputs", "needs", "resources", "command",
    }  # fmt: skip


def test_tokens_are_shown_by_name():
    found = as_json(one(text=f"cd {WORKDIR} && sort --parallel={THREADS} in.txt"))
    assert found["tasks"][0]["command"] == "cd {workdir} && sort --parallel={threads} in.txt"


def test_a_caller_may_add_to_one_task_without_touching_the_next():
    found = plan_object(build("flow", [draft("a"), draft("b")]))
    found["tasks"][0]["will_run"] = True
    assert "will_run" not in found["tasks"][1]


def test_places_are_neither_shown_nor_digested():
    near, far = one(place=Place("flow.oxoflow", 3)), one(place=Place("/home/me/flow.oxoflow", 90))
    assert plan_object(near) == plan_object(far)


def test_equal_plans_have_one_digest_whatever_objects_they_share():
    limit = int("67108864")
    spelled = {
        "resources": Resources(threads=1),
        "policy": Policy(digest_limit=limit, shell=Shell()),
        "log": "",
    }
    assert one() == one(**spelled)
    assert digest(one()) == digest(one(**spelled))


CHANGES = {
    "inputs": "other.txt",
    "outputs": "other.txt",
    "text": "sort -r in.txt > out.txt",
    "command": Command(text="sort in.txt > out.txt", on_success="x"),
    "ancient": frozenset({"in.txt"}),
    "temporary": ("out.txt",),
    "protected": ("out.txt",),
    "resources": Resources(threads=2),
    "policy": Policy(priority=1),
    "log": "l",
    "log_named": True,
    "benchmark": "b",
    "manifest": "found.toml",
    "skip": Skip("when", "x"),
    "making": Making(task="env::x", text="make", place="x", probe="x/bin", ready="x.ready", digest="d"),
}


@pytest.mark.parametrize("field", CHANGES)
def test_the_digest_hangs_on_every_field(field):
    assert digest(one(**{field: CHANGES[field]})) != digest(one())


def test_every_field_of_a_task_is_tried_above():
    # call: test_plan_steps; born, awaits: test_plan_waits
    elsewhere = {"id", "rule", "wildcards", "needs", "ordered", "place", "call", "born", "awaits"}
    assert set(ScheduledTask.__struct_fields__) - elsewhere == set(CHANGES) - {"text"}


def test_the_digest_hangs_on_name_pools_ids_and_edges():
    plans = [
        build("flow", [draft("a"), draft("b")]),
        build("flow2", [draft("a"), draft("b")]),
        build("flow", [draft("a"), draft("b")], pools=(("db", 1),)),
        build("flow", [draft("a"), draft("c")]),
        build("flow", [draft("a"), draft("b", depends_on=("a",))]),
    ]
    assert len({digest(plan) for plan in plans}) == len(plans)


def test_the_digest_is_of_tokens_not_of_what_looks_like_them():
    assert digest(one(text=f"f {THREADS}")) != digest(one(text="f {threads}"))


def test_the_digest_of_a_known_plan_stays():
    """A change here means that a new Treadle gives an old plan another digest: think before you mend it."""
    assert digest(one()) == "318dc38a768340ce9e470d05bace2346c0da3ae4000e09a3018bbafc60befe80"


@pytest.mark.parametrize("count", [0, 1, 2, 1001])
def test_the_texts_of_a_plan_are_its_object(count):
    plan = build("flow", [draft(f"a/n={number}", "", f"{number}.txt") for number in range(count)])
    whole = msgspec.json.encode({"round": 1, **plan_object(plan)}).decode() + "\n"
    assert "".join(plan_texts({"round": 1, **plan_head(plan)}, plan)) == whole
