"""Whether a failed attempt is followed by another, after how long, and with what."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from treadle.plan.task import Growth, Policy, Resources
from treadle.records.event import EndReason

LOSS_BUDGET = 5
LONGEST_DELAY = 600.0

# The command's own failures, which `retries` pays for.
OWN = frozenset({EndReason.APP, EndReason.OOM, EndReason.TIME})
# The world's failures, which the loss budget pays for: nothing is wrong with the command.
LOSSES = frozenset({EndReason.NODE, EndReason.PREEMPTED, EndReason.LOST, EndReason.INTERRUPTED})


class Tally(Struct, frozen=True):
    """The failed attempts of a task so far, by who pays for them."""

    own: int = 0
    losses: int = 0


class Again(Struct, frozen=True):
    """Another attempt: after `delay` seconds, with `resources`."""

    tally: Tally
    delay: float
    resources: Resources


def next_try(policy: Policy, tally: Tally, reason: EndReason, resources: Resources) -> Again | None:
    """The attempt that follows one that ended for `reason`, or None: it was the last.

    `disk` is paid by nobody and waits for space, not for time. `cancelled` and `never_started`
    (refused, or waiting for what cannot come) are never tried again: the same would follow.
    """
    if reason is EndReason.DISK:
        return Again(tally, 0.0, resources)
    if reason in OWN and tally.own < policy.retries:
        tally = Tally(tally.own + 1, tally.losses)
    elif reason in LOSSES and tally.losses < LOSS_BUDGET:
        tally = Tally(tally.own, tally.losses + 1)
    else:
        return None
    return Again(tally, _delay(policy, tally), _grown(policy, reason, resources))


def _delay(policy: Policy, tally: Tally) -> float:
    failures = tally.own + tally.losses
    return min(policy.retry_delay * 2.0 ** min(failures - 1, 60), LONGEST_DELAY)


def _grown(policy: Policy, reason: EndReason, resources: Resources) -> Resources:
    if reason is EndReason.OOM and policy.retry_memory and resources.memory is not None:
        return replace(resources, memory=_more(resources.memory, policy.retry_memory))
    if reason is EndReason.TIME and policy.retry_time and resources.time_limit is not None:
        return replace(resources, time_limit=_more(resources.time_limit, policy.retry_time))
    return resources


def _more(amount: int, growth: Growth) -> int:
    return int(amount * growth.factor) + growth.add
