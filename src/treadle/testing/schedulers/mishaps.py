"""What rules of misbehaviour do to an element: when it is taken, when it starts, when it has ended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from treadle.testing.schedulers.mischief import Do, Rule
from treadle.testing.schedulers.work import Element, End

if TYPE_CHECKING:
    from treadle.testing.schedulers.cluster import Cluster

_WAITING = frozenset({Do.DELAY, Do.PEND, Do.HOLD, Do.ERROR, Do.LOSE})
_ENDS = {
    Do.KILL: End.SIGNALLED,
    Do.TIMEOUT: End.TIMEOUT,
    Do.OOM: End.OOM,
    Do.REQUEUE: End.REQUEUED,
    Do.PREEMPT: End.PREEMPTED,
    Do.VANISH: End.VANISHED,
}
_RUNNING = frozenset({Do.NODE_FAIL, Do.SUSPEND, Do.SHOW, *_ENDS})
_SIMULATED = frozenset({Do.SIMULATE})
_ENDED = frozenset({Do.OOM_UNSEEN, Do.FORGET, Do.LAG, Do.LIE, Do.NO_RECORD})


def _rules(cluster: Cluster, dos: frozenset[Do], element: Element) -> list[Rule]:
    if not cluster.rules.any_of(dos):  # tens of thousands need not ask one by one
        return []
    return cluster.rules.of_element(dos, element.job.wish.name, element.index, element.met)


def simulation(cluster: Cluster, element: Element) -> Rule | None:
    """How an element is to be played, where it is not to run."""
    found = _rules(cluster, _SIMULATED, element)
    return found[-1] if found else None


def taken(cluster: Cluster, element: Element) -> None:
    """An element was submitted."""
    for rule in _rules(cluster, _WAITING, element):
        match rule.do:
            case Do.DELAY:
                element.not_before = max(element.not_before, cluster.clock.now() + rule.seconds)
            case Do.PEND:
                element.held, element.reason = True, rule.words or "DependencyNeverSatisfied"
            case Do.HOLD:
                element.held = True
            case Do.ERROR:
                element.held, element.error = True, rule.words or "job could not be started"
            case _:
                cluster.lose(element)


def started(cluster: Cluster, element: Element) -> None:
    """An element has started."""
    for rule in _rules(cluster, _RUNNING, element):
        cluster.timers.after(
            rule.after, cluster.unless_over(element, partial(_strike, cluster, element, rule))
        )


def _strike(cluster: Cluster, element: Element, rule: Rule) -> None:
    match rule.do:
        case Do.SUSPEND:
            cluster.suspend(element)
            if rule.seconds:
                resume = cluster.unless_over(element, partial(cluster.resume, element))
                cluster.timers.after(rule.seconds, resume)
        case Do.SHOW:
            element.shown = rule.words
            if rule.seconds:
                cluster.timers.after(rule.seconds, partial(setattr, element, "shown", ""))
        case Do.NODE_FAIL:
            cluster.fail_node(element.node, "Not responding", mend=True)
        case _:
            cluster.stop(element, _ENDS[rule.do])


def ended(cluster: Cluster, element: Element) -> float:
    """An element has ended: for how many seconds the queue remembers it."""
    keep = cluster.site.kept
    for rule in _rules(cluster, _ENDED, element):
        match rule.do:
            case Do.OOM_UNSEEN:
                element.end = End.OOM
            case Do.FORGET:
                keep = 0.0
            case Do.LAG:
                element.recorded = element.ended + rule.seconds
            case Do.LIE:
                element.lied = rule.words or "COMPLETED"
                if rule.seconds:
                    cluster.timers.after(rule.seconds, partial(setattr, element, "lied", ""))
            case _:
                element.traced = False
    if element.end is End.VANISHED:
        element.traced = False
        return 0.0
    return keep
