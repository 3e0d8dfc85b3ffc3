"""What is counted on this machine, and what another backend counts for itself."""

from __future__ import annotations

from msgspec.structs import replace

from treadle.engine.budget import Budget, capped, impossible
from treadle.plan.task import Call, Ceilings, Command, Resources, ScheduledTask, Where

LARGE = Resources(threads=64, memory=1 << 50, gpus=3, nodes=2, groups=(("db", 1),))
BUDGET = Budget(threads=2, memory=1 << 30, gpus=0, pools=(("db", 1),), local_rules=frozenset({"here"}))


def task(rule: str, call: Call | None = None) -> ScheduledTask:
    return ScheduledTask(id=rule, rule=rule, command=Command(text="true"), call=call, resources=LARGE)


def test_a_task_of_another_backend_takes_nothing_of_this_machine_but_counted_groups() -> None:
    assert BUDGET.weigh(task("there"), LARGE) == (LARGE, (0, 0, 0, 1))


def test_a_rule_without_a_command_takes_nothing_anywhere_and_is_never_cut_or_refused() -> None:
    name = ScheduledTask(id="all", rule="all", inputs=("a",), resources=LARGE)
    budget = replace(BUDGET, ceilings=Ceilings(threads=1, memory=1, jobs=1))
    for rules in (frozenset({"all"}), frozenset({"other"}), None):
        where = replace(budget, local_rules=rules)
        assert where.weigh(name, LARGE) == (LARGE, (0, 0, 0, 0, 0, 0, 0))
        assert capped(where, [name]) == []
        assert impossible(where, [name]) == []


def test_a_local_rule_is_counted_and_cut() -> None:
    got, demand = BUDGET.weigh(task("here"), LARGE)
    assert (got.threads, got.memory, demand) == (2, 1 << 30, (2, 1 << 30, 3, 1))


def test_only_local_rules_are_told_to_be_cut_or_refused() -> None:
    assert [(one.resource, one.tasks) for one in capped(BUDGET, [task("here"), task("there")])] == [
        ("threads", 1),
        ("memory", 1),
    ]
    refused = impossible(BUDGET, [task("there")])
    assert refused == []
    assert [one.code for one in impossible(BUDGET, [task("here")])] == ["nodes-not-there"]


def test_steps_go_by_where_they_are_called() -> None:
    call = Call(step="s", identity="0" * 32, path="p", where=Where.PROCESS)
    assert not BUDGET.is_elsewhere(task("@s", call))
    assert Budget(local_rules=frozenset()).is_elsewhere(task("r"))
    assert not Budget().is_elsewhere(task("r"))
