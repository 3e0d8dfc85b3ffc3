"""What the owner of a fake cluster orders, over its own connection: values in, values out, as JSON."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.mischief import Rule
from treadle.testing.schedulers.work import Element, End

if TYPE_CHECKING:
    from treadle.testing.schedulers.server import Server


class FakeJob(Struct, frozen=True, kw_only=True):
    """One job, or element of an array (`index`; 0: a single job), as the fake knows it.

    `state` is `pending`, `running`, `suspended`, `ending`, or how it ended: `completed`, `failed`,
    `signalled`, `launch` (not started), `cancelled`, `timeout`, `oom`, `node_fail`, `preempted`,
    `vanished`. Times are seconds since the epoch by the cluster's clock (0: not yet); `starts` counts how
    often it ran; `pid` is that of its process (0: none now). `memory` in bytes and `limit` in seconds are
    what was asked for.
    """

    job: int
    index: int
    name: str
    user: str
    state: str
    submitted: float
    started: float
    ended: float
    starts: int
    exit_code: int
    signal: int
    node: str
    pid: int
    cpus: int
    memory: int
    limit: float
    partition: str
    comment: str


class Pick(Struct, frozen=True):
    """Which jobs an order is for: a pattern over names, and what to do."""

    name: str
    verb: str


def obey(server: Server, order: str, text: bytes) -> bytes:
    """Do what is ordered; the answer."""
    cluster = server.cluster
    match order:
        case "rule":
            cluster.rules.add(msgspec.json.decode(text, type=Rule))
        case "clear":
            cluster.rules.clear()
        case "jobs":
            return msgspec.json.encode([_job(one) for job in cluster.jobs.values() for one in job])
        case "calls":
            return msgspec.json.encode(dict(Counter(program for _, program, _ in server.calls)))
        case "log":
            return msgspec.json.encode(server.calls)
        case "down":
            cluster.down = msgspec.json.decode(text, type=bool)
        case "node":
            _node(cluster, msgspec.json.decode(text, type=dict[str, str]))
        case "advance":
            server.clock.advance(msgspec.json.decode(text, type=float))
            server.timers.run_due()
        case "now":
            return msgspec.json.encode(server.clock.now())
        case "each":
            return msgspec.json.encode(_each(cluster, msgspec.json.decode(text, type=Pick)))
        case "end":
            server.running = False
        case _:
            return msgspec.json.encode({"error": f"no order {order!r}"})
    return b"null"


def _node(cluster: Cluster, asked: dict[str, str]) -> None:
    if asked["state"] == "down":
        cluster.fail_node(asked["node"], "Not responding")
    else:
        cluster.mend_node(asked["node"])


def _each(cluster: Cluster, pick: Pick) -> int:
    """Do something to every job of this name that has not ended (`forget`: that has); how many."""
    verbs: dict[str, Callable[[Element], object]] = {
        "hold": cluster.hold,
        "release": cluster.release,
        "suspend": cluster.suspend,
        "resume": cluster.resume,
        "forget": cluster.forget,
        "cancel": lambda one: cluster.cancel([one]),
        "kill": lambda one: cluster.stop(one, End.SIGNALLED),
        "timeout": lambda one: cluster.stop(one, End.TIMEOUT),
        "oom": lambda one: cluster.stop(one, End.OOM),
        "requeue": lambda one: cluster.stop(one, End.REQUEUED),
        "preempt": lambda one: cluster.stop(one, End.PREEMPTED),
        "node_fail": lambda one: cluster.stop(one, End.NODE_FAIL),
    }
    ended = pick.verb == "forget"
    found = [
        one
        for one in list(cluster.queue)
        if one.live is not ended and fnmatch.fnmatchcase(one.job.wish.name, pick.name)
    ]
    for one in found:
        verbs[pick.verb](one)
    return len(found)


def _job(element: Element) -> FakeJob:
    job, wish = element.job, element.job.wish
    running = element.live and element.started > 0
    return FakeJob(
        job=job.number,
        index=element.index if job.is_array else 0,
        name=wish.name,
        user=job.user,
        state=element.end.value if element.end else element.stage.value,
        submitted=job.submitted,
        started=element.started,
        ended=element.ended,
        starts=len(element.runs) + (1 if running or element.started else 0),
        exit_code=element.code,
        signal=element.signal,
        node=element.node,
        pid=element.pid,
        cpus=wish.cpus,
        memory=wish.memory,
        limit=wish.limit,
        partition=wish.partition,
        comment=wish.comment,
    )
