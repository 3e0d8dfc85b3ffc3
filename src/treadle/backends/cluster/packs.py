"""Several attempts in one job, one after the other, each with an end of its own: packs (many short tasks of
one rule) and units (tasks of a group that build on each other).

The wrapper holds each to its own time limit, and ends one of them when its driver asks for it by a file: the
scheduler knows the job as a whole only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from treadle.backends.cluster.settings import ClusterSettings
from treadle.engine.backend import Submission
from treadle.plan.task import Resources
from treadle.rules.profile.partitions import beyond, longest_time


def pack_size(submission: Submission, settings: ClusterSettings) -> int:
    """How many attempts such as this one make a job: as its rule says, and no more than the time allows that
    the site gives one job. A pack by time needs a time limit of its tasks: 1 where they have none."""
    policy, wanted = submission.task.policy, submission.resources
    limit = wanted.time_limit or settings.walltime
    size = policy.pack
    if policy.pack_time and limit:
        size = policy.pack_time // limit
    if size > 1 and limit and (longest := longest_time(settings.partitions, settings.ceilings, wanted)):
        size = min(size, longest // limit)
    return max(1, size)


def together(jobs: Sequence[Sequence[Submission]], settings: ClusterSettings) -> Resources:
    """What is asked for one job each of these: that of the one which needs most, where they are several."""
    if max(map(len, jobs)) == 1:
        return jobs[0][0].resources
    each = [in_a_row([one.resources for one in job], settings.walltime) for job in jobs]
    limits = [one.time_limit for one in each]
    longest = None if None in limits else max(limit for limit in limits if limit is not None)
    return replace(each[0], time_limit=longest)


def in_a_row(wanted: Sequence[Resources], walltime: int | None) -> Resources:
    """What one job needs that does all of these, one after the other: the time of all (none, where it is not
    known of one), and of the rest the most that any of them asks for."""
    if len(wanted) == 1:
        return wanted[0]
    limits = [one.time_limit or walltime for one in wanted]
    known = [limit for limit in limits if limit is not None]
    return replace(
        wanted[0],
        threads=max(one.threads for one in wanted),
        memory=_most(one.memory for one in wanted),
        gpus=max(one.gpus for one in wanted),
        gpu_memory=_most(one.gpu_memory for one in wanted),
        disk=_most(one.disk for one in wanted),
        time_limit=sum(known) if len(known) == len(limits) else None,
    )


def fits(wanted: Sequence[Resources], settings: ClusterSettings) -> bool:
    """Whether one job can be had for all of these: they ask for the same kind of place, and there is one that
    has enough, for so long."""
    if len(wanted) == 1:
        return True
    if len({_kind(one) for one in wanted}) > 1 or len({one.gpu_model for one in wanted if one.gpus}) > 1:
        return False
    whole = in_a_row(wanted, settings.walltime)
    if settings.ceilings is not None and beyond(settings.ceilings, whole, None):
        return False
    places = settings.partitions
    if whole.partition:
        places = tuple(one for one in places if one.name == whole.partition)
    return not places or any(not beyond(one, whole, None) for one in places)


def _kind(one: Resources) -> tuple[object, ...]:
    return (
        *(one.partition, one.account, one.qos, one.constraint),
        *(one.nodes or 1, one.tasks_per_node, one.extra_args),
    )


def _most(amounts: Iterable[int | None]) -> int | None:
    return max((amount for amount in amounts if amount is not None), default=None)


def lacks_limit(submission: Submission, settings: ClusterSettings) -> bool:
    """Whether a pack is asked for by time, and it is not known how long one of its tasks takes."""
    limit = submission.resources.time_limit or settings.walltime
    return bool(submission.task.policy.pack_time) and not limit
