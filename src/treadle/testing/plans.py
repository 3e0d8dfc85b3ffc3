"""Small plans made from a table of needs, for tests of the engine and of backends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from treadle.decide.reason import Answer, Decision, NeverRan, Verdict
from treadle.plan.task import Call, Command, Policy, Resources, ScheduledPlan, ScheduledTask, Where

RUN = Answer(Verdict.WILL_RUN, (NeverRan(),))

_RESOURCES = Resources()
_POLICY = Policy()


def task(
    id: str,
    needs: Iterable[str] = (),
    *,
    text: str = "true",
    inputs: Iterable[str] = (),
    outputs: Iterable[str] = (),
    temporary: Iterable[str] = (),
    ordered: Iterable[str] = (),
    resources: Resources = _RESOURCES,
    policy: Policy = _POLICY,
    command: Command | None = None,
    log: str = "",
    log_named: bool = False,
    benchmark: str = "",
) -> ScheduledTask:
    """A task that runs `text`; needs are given by hand, not found from paths."""
    return ScheduledTask(
        id=id,
        rule=id.partition("/")[0],
        command=command or Command(text=text),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        temporary=tuple(temporary),
        needs=tuple(sorted(needs)),
        ordered=frozenset(ordered),
        resources=resources,
        policy=policy,
        log=log,
        log_named=log_named,
        benchmark=benchmark,
    )


def step(
    id: str,
    needs: Iterable[str] = (),
    *,
    where: Where = Where.THREAD,
    inputs: Iterable[str] = (),
    resources: Resources = _RESOURCES,
    policy: Policy = _POLICY,
) -> ScheduledTask:
    """A task of a step, which calls a function; its id is any text that begins with `@`."""
    return ScheduledTask(
        id=id,
        rule=id,
        call=Call(step=id[1:], identity=id.encode().hex().ljust(32, "0"), path=f"made/{id[1:]}", where=where),
        inputs=tuple(inputs),
        needs=tuple(sorted(needs)),
        resources=resources,
        policy=policy,
    )


def plan(tasks: Iterable[ScheduledTask], pools: Iterable[tuple[str, int]] = ()) -> ScheduledPlan:
    """A plan of these tasks, which must come in topological order; groups are left out."""
    held = {one.id: one for one in tasks}
    return ScheduledPlan(
        name="small",
        order=tuple(held),
        groups=(),
        tasks=held,
        producer={path: one.id for one in held.values() for path in one.outputs},
        pools=tuple(pools),
    )


def decision(plan: ScheduledPlan, answers: Mapping[str, Answer] | None = None) -> Decision:
    """Every task of the plan runs, but for the answers that are given."""
    given = answers or {}
    return Decision({id: given.get(id, RUN) for id in plan.order})
