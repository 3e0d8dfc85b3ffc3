"""The one place that answers "must it run?": plan, facts and past in, an answer for every task out."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.decide.cascade import Cascade
from treadle.decide.environments import wake
from treadle.decide.facts import Facts
from treadle.decide.missing import refuse_missing
from treadle.decide.options import Options
from treadle.decide.own import Own
from treadle.decide.reason import Answer, AnyReason, BlockedBy, Decision, Upstream, Verdict
from treadle.plan.task import ScheduledPlan
from treadle.records.past import Past

__all__ = ["Options", "decide"]


def decide(plan: ScheduledPlan, facts: Facts, past: Past, options: Options) -> Decision:
    """Which of the selected tasks will run, and why.

    Raises `PlanError` with all source inputs and scripts that are missing and that a task must read which
    is sure to run.
    """
    own = Own(plan, facts, past, options)
    below = _below_running(plan, own, options) if options.running else {}
    pending = [task for task in options.pending if task in own.answers] if options.pending else []
    if own.firm or own.perhaps or below or pending or options.made:
        cascade = Cascade(plan, own.live, own.evicted, options.cutoff, options.made)
        cascade.spread(own.firm, (*below, *own.perhaps, *pending))
        flying = frozenset(own.flying)
        must = [
            one
            for one in map(plan.tasks.__getitem__, own.live)
            if one.id in cascade.must and one.id not in flying and not one.awaits
        ]
        refuse_missing(plan, facts, options, must)
        _fall(plan, own, cascade, below)
        if own.flying:
            from treadle.decide.flight import ground

            ground(plan, own.answers, own.flying)
    if facts.environments:
        wake(plan, own.answers, facts.environments)
    if options.fallen or not options.rerun_failed:
        _leave_out(plan, own, options.fallen)
    return Decision(
        answers=own.answers,
        adoptable=tuple(own.adoptable),
        refreshed=own.refreshed,
        adopted=own.adopted,
        notes=own.notes,
    )


def _leave_out(plan: ScheduledPlan, own: Own, earlier: frozenset[str]) -> None:
    """Take out what would run and builds on a step that failed before and is not to be tried again."""
    roots = {task: task for task in earlier}
    for task, answer in own.answers.items():
        if answer.failed_before:
            roots[task] = task
        elif answer.verdict is Verdict.WILL_RUN:
            need = next((need for need in plan.tasks[task].needs if need in roots), None)
            if need is not None:
                roots[task] = roots[need]
                own.answers[task] = Answer(Verdict.SKIPPED, (BlockedBy(task=need, root=roots[need]),))


def _below_running(plan: ScheduledPlan, own: Own, options: Options) -> dict[str, str]:
    """The steps that read what one of an earlier batch makes that runs, each with that one."""
    found = {}
    for task in own.live:
        one = plan.tasks[task]
        if one.call is not None and one.inputs and own.answers[task].verdict is Verdict.UP_TO_DATE:
            need = next((need for need in one.needs if need in options.running), "")
            if need:
                found[task] = need
    return found


def _fall(plan: ScheduledPlan, own: Own, cascade: Cascade, below: Mapping[str, str]) -> None:
    """Give the tasks that the cascade reached their answers, each with the root of its cascade; `below` are
    those that it reached from earlier batches."""
    firm = frozenset((*own.firm, *own.perhaps))
    needed = cascade.needed()
    roots: dict[str, str] = {}
    for task in own.live:
        sure = task in cascade.must
        if not sure and task not in cascade.may:
            continue
        roots[task] = task
        if task in firm:
            continue
        reasons: list[AnyReason] = []
        upstream = cascade.cause(plan.tasks[task], roots)
        if upstream is None and task in below:
            upstream = Upstream(task=below[task], root=below[task])
        if upstream is not None:
            reasons.append(upstream)
            roots[task] = upstream.root
        if task in needed:
            reasons.append(needed[task])
        if task in own.partial:
            reasons.append(own.partial[task])
        own.refreshed.pop(task, None)
        own.answers[task] = Answer(Verdict.WILL_RUN, tuple(reasons), may_cut_off=not sure)
