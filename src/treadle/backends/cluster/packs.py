"""Packs: many short tasks of one rule in one job, one after the other, each with an end of its own.

The wrapper holds each to its own time limit, and ends one of them when its driver asks for it by a file: the
scheduler knows the job as a whole only.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.backends.cluster.settings import ClusterSettings
from treadle.engine.backend import Submission
from treadle.plan.task import Resources
from treadle.rules.profile.partitions import longest_time


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
    """What a job needs for its attempts, one after the other: time for all of them, of the rest what each
    asks for. They ask for equal things. Of several jobs (elements of one array) the longest counts."""
    wanted, most = jobs[0][0].resources, max(map(len, jobs))
    limit = wanted.time_limit or settings.walltime
    if most == 1 or limit is None:
        return wanted
    return replace(wanted, time_limit=most * limit)


def lacks_limit(submission: Submission, settings: ClusterSettings) -> bool:
    """Whether a pack is asked for by time, and it is not known how long one of its tasks takes."""
    limit = submission.resources.time_limit or settings.walltime
    return bool(submission.task.policy.pack_time) and not limit
