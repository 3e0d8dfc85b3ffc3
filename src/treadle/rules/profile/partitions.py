"""Which partition a request goes to, and what goes beyond all that a site has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.base.place import Diagnostic, Severity
from treadle.base.units import format_duration, format_size
from treadle.plan.task import Resources
from treadle.rules.schema import Cluster, Partition, Rule


def choose(partitions: Sequence[Partition], wanted: Resources, walltime: int | None) -> str | None:
    """The first partition, in the order of the profile, that can take the request; None: there is none.

    `walltime` in seconds is the time limit of requests that have none. Partitions with GPUs take what
    asks for none only where no other can.
    """
    fitting = [one for one in partitions if not beyond(one, wanted, walltime)]
    plain = [one for one in fitting if not one.gpu]
    chosen = fitting if wanted.gpus else plain or fitting
    return chosen[0].name if chosen else None


def longest_time(
    partitions: Sequence[Partition], ceilings: Partition | None, wanted: Resources
) -> int | None:
    """The longest time limit, in seconds, that one job with such a request may have; None: it is not known.

    In the partition that the request names, else in any that can take the rest of it.
    """
    short = replace(wanted, time_limit=1)
    fitting = [one for one in partitions if not beyond(one, short, None)]
    if wanted.partition:
        fitting = [one for one in partitions if one.name == wanted.partition]
    bounds = [one.time_limit for one in fitting]
    longest = max((one for one in bounds if one is not None), default=None)
    if None in bounds:
        longest = None
    site = ceilings.time_limit if ceilings is not None else None
    return min((one for one in (longest, site) if one is not None), default=None)


def beyond(bound: Partition, wanted: Resources, walltime: int | None) -> list[str]:
    """What of a request is more than the bound allows: `48 threads (of 32)`."""
    found = []
    time = wanted.time_limit if wanted.time_limit is not None else walltime
    if bound.threads is not None and wanted.threads > bound.threads:
        found.append(f"{wanted.threads} threads (of {bound.threads})")
    if bound.memory is not None and (wanted.memory or 0) > bound.memory:
        found.append(f"{format_size(wanted.memory or 0)} of memory (of {format_size(bound.memory)})")
    if bound.time_limit is not None and (time or 0) > bound.time_limit:
        found.append(f"{format_duration(time or 0)} (of {format_duration(bound.time_limit)})")
    if 0 <= bound.gpu < wanted.gpus:
        found.append(f"{wanted.gpus} GPUs (of {bound.gpu})")
    if bound.nodes is not None and (wanted.nodes or 1) > bound.nodes:
        found.append(f"{wanted.nodes} nodes (of {bound.nodes})")
    return found


def beyond_site(rule: Rule, cluster: Cluster) -> Iterator[Diagnostic]:
    """A request that the site's ceilings, or all partitions of the profile, are too small for."""
    wanted, walltime = rule.resources, cluster.values.get("walltime")
    place = rule.at("resources")
    if cluster.ceilings is not None and (too_much := beyond(cluster.ceilings, wanted, walltime)):
        message = f"rule {rule.name} asks for more than this site allows: {', '.join(too_much)}"
        yield Diagnostic("beyond-site", message, place, "ask for less", Severity.WARNING)
    if not cluster.partitions or wanted.partition:
        return
    if choose(cluster.partitions, wanted, walltime) is None:
        each = [f"{one.name}: {', '.join(beyond(one, wanted, walltime))}" for one in cluster.partitions]
        message = f"no partition of the profile can take what rule {rule.name} asks for: {'; '.join(each)}"
        hint = "ask for less, name a partition in its resources, or mend [partitions]"
        yield Diagnostic("no-partition", message, place, hint, Severity.WARNING)
