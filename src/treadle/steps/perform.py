"""The one wrapper around a step's function, wherever it runs: a thread, a worker process, a remote job.

    claim the lease -> look again -> confirm the deps -> call -> keep the value -> publish -> release
          \\               \\
           held: its Owner  complete by now: taken as it is
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from msgspec.structs import replace

from treadle.base.errors import DiskError, StepError
from treadle.base.files import remove
from treadle.base.layout import ArtifactPlaces
from treadle.steps.child import end_child
from treadle.steps.context import Found, StepContext, wants_context
from treadle.steps.order import Done, Order
from treadle.steps.paths import is_url
from treadle.steps.record import (
    ArtifactRecord,
    ArtifactState,
    ArtifactStatus,
    Owner,
    Result,
    Seen,
    Standing,
)
from treadle.steps.result import returned
from treadle.steps.storage import Storage
from treadle.steps.store import ArtifactStore, Lease, LeaseLost
from treadle.steps.stores import store_for
from treadle.steps.within import running

_LONGEST_ERROR = 4000


def perform(
    order: Order,
    store: ArtifactStore,
    *,
    cancelled: Callable[[], bool],
    holding: Callable[[Lease], None] | None = None,
) -> Done | Owner:
    """Make the artifact, unless it is complete, or someone else is making it: then who.

    Raises what the function raises, whatever that is; `StepError` for what is wrong around it; `DiskError`.
    In all these cases what it made is removed (that of a resumable step stays), the status file tells of
    it, and the lease is given back: it can be tried again at once. `holding` is told the lease while it is
    held: who can end the function may do so once somebody else has it.
    """
    lease = store.claim(order.path, order.owner)
    if isinstance(lease, Owner):
        return lease
    try:
        if holding is not None:
            holding(lease)
        return _make(order, store, lease, cancelled)
    except LeaseLost as lost:
        if lost.owner is not None:
            return lost.owner
        raise StepError(
            f"step '{order.name}' lost the lease on {order.path} while it ran, and nobody holds it now",
            hint="what it made was not published: run again",
            code="lease-lost",
        ) from lost
    finally:
        lease.release()


def try_out(order: Order, store: ArtifactStore, work: str) -> Result | None:
    """Call the function with the path `work`, on deps that are complete; nothing is claimed or published.

    The value that it gave. Raises what the function raises, and `StepError`.
    """
    found, fn = _confirm(order, store), _function(order)
    context = _context(order, work, found, lambda: False) if wants_context(fn) else None
    value = fn(work) if context is None else fn(work, ctx=context)
    return _result(order, value, context, made=lambda: os.path.lexists(work))


def _make(order: Order, store: ArtifactStore, lease: Lease, asked: Callable[[], bool]) -> Done:
    seen = store.look(order.path, order.identity, mend=True, fresh=order.fresh)
    if seen.state is ArtifactState.COMPLETE and not (order.wanted and seen.record == order.replaces):
        assert seen.record is not None
        return Done(seen.record, taken=True)

    def cancelled() -> bool:
        return asked() or lease.lost is not None

    work, started = "", time.time()
    try:
        replaces = _replaced(order, seen)
        found = _confirm(order, store)
        fn = _function(order)
        if order.tells:
            _tell(order, store, Standing.RUNNING, started)
        work = store.work(order.path, order.attempt, resumable=order.resumable, fresh=order.fresh)
        context = _context(order, work, found, cancelled) if wants_context(fn) else None
        storage = Storage(lease, work, asked)
        record = _call(order, fn, work, context, storage)
        record = _publish(order, store, storage, record, replaces)
    except BaseException as error:
        lost = lease.lost
        _give_up(order, store, work)
        if lost is None and not isinstance(error, LeaseLost):
            state = Standing.INTERRUPTED if asked() else Standing.FAILED
            with suppress(DiskError):  # it must not hide the failure
                _tell(order, store, state, started, error=in_a_line(error))
        elif not isinstance(error, LeaseLost):  # whatever it was: the work is another one's by now
            raise LeaseLost(lost) from error
        raise
    if context is not None:
        _drop_checkpoints(order)
    if order.tells or seen.status is not None:
        _tell(order, store, Standing.SUCCEEDED, started)
    return Done(record)


def _replaced(order: Order, seen: Seen) -> ArtifactRecord | None:
    """The record that this attempt may replace; refuses to replace another step's."""
    if seen.state is ArtifactState.TORN:
        return order.replaces or seen.record
    if seen.state is ArtifactState.OTHER and seen.record != order.replaces:
        other = seen.record.identity[:12] if seen.record else "unknown"
        raise StepError(
            f"step '{order.name}': at {order.path} stands the artifact of another identity ({other}), "
            f"not of this one ({order.identity[:12]})",
            hint='give it another path, or take what stands there with drift="warn"',
            code="artifact-drift",
        )
    return order.replaces


def _confirm(order: Order, store: ArtifactStore) -> list[Found]:
    """See that what the step reads is there, now."""
    found = []
    for dep in order.deps:
        where = store_for(dep.path) if is_url(dep.path) or is_url(order.path) else store
        seen = where.look(dep.path, dep.identity)
        fine = seen.state is ArtifactState.COMPLETE or (
            seen.state is ArtifactState.OTHER and dep.identity in order.lenient
        )
        if not fine or seen.record is None:
            raise StepError(
                f"step '{order.name}' reads '{dep.name}', whose artifact is not at {dep.path} any more"
                + (f" ({seen.problem})" if seen.problem else ""),
                hint="it was there when the run was planned, or was made by it: run again, it is made anew",
                code="dep-vanished",
            )
        found.append(Found(dep, seen.record, where))
    return found


def _function(order: Order) -> Callable[..., Any]:
    if order.fn is None:
        raise StepError(
            f"step '{order.name}' has no function (fn=None), and nothing complete stands at {order.path}",
            hint="put the artifact there by the step that makes it, or give this one a function",
            code="nothing-to-call",
        )
    return order.fn


def _call(
    order: Order, fn: Callable[..., Any], work: str, context: StepContext | None, storage: Storage
) -> ArtifactRecord:
    """Call the function; the record of what came of it, without what only the store knows."""
    started, before, cpu = time.time(), time.monotonic(), _cpu(order)
    process, here = os.getpid(), running.set((*running.get(), order.identity))
    try:
        value = fn(work) if context is None else fn(work, ctx=context)
    except BaseException as error:
        if os.getpid() != process:
            end_child(error)
        raise
    finally:
        running.reset(here)
    if os.getpid() != process:
        end_child()
    wall, cpu = time.monotonic() - before, _cpu(order) - cpu
    if is_url(order.path):
        storage.has_work()
    return ArtifactRecord(
        identity=order.identity,
        name=order.name,
        version=order.version,
        hash_attrs=dict(order.attrs),
        deps=order.deps,
        path=order.path,
        result=_result(order, value, context, made=storage.has_work),
        code=order.code,
        provenance=replace(order.provenance, started=started, ended=started + wall, attempt=order.attempt),
        wall=wall,
        cpu=cpu,
        memory=_peak() if order.alone else None,
    )


def _context(order: Order, work: str, found: Sequence[Found], cancelled: Callable[[], bool]) -> StepContext:
    return StepContext(
        name=order.name,
        path=order.path,
        attrs=order.attrs,
        attempt=order.number,
        resources=order.resources,
        out_url=f"{order.path}/{order.attempt}" if is_url(order.path) else work,
        writes_record=order.writes_record,
        found=found,
        cancelled=cancelled,
    )


def _result(
    order: Order, value: Any, context: StepContext | None, *, made: Callable[[], bool]
) -> Result | None:
    if not order.writes_record:
        return returned(value, name=order.name, made=(lambda: False) if order.grows else made)
    if context is None or context.written is None:
        raise StepError(
            f"step '{order.name}' says writes_record=True, but ended without a call of ctx.write_record",
            hint="call ctx.write_record(value) in it, or leave writes_record out and return the value",
            code="record-not-written",
        )
    return context.written


def _publish(
    order: Order, store: ArtifactStore, storage: Storage, record: ArtifactRecord, over: ArtifactRecord | None
) -> ArtifactRecord:
    try:
        return store.publish(storage.lease, storage.work, record, replaces=over)
    except DiskError as error:
        if error.diagnostics[0].code == "disk-full":
            raise
    storage.wait()  # it may be back by now: only a second try tells an outage from what is wrong for good
    return store.publish(storage.lease, storage.work, record, replaces=over)


def _give_up(order: Order, store: ArtifactStore, work: str) -> None:
    """Remove what was made. What a resumable step made stays, for whoever tries next."""
    with suppress(DiskError):
        if work and not order.resumable:
            store.discard(work)


def _drop_checkpoints(order: Order) -> None:
    """They have served. Below a URL they stand until the artifact is removed."""
    if not is_url(order.path):
        with suppress(DiskError):
            remove(ArtifactPlaces(order.path).checkpoints)


def _tell(order: Order, store: ArtifactStore, state: Standing, started: float, error: str = "") -> None:
    status = ArtifactStatus(
        identity=order.identity,
        state=state,
        attempt=order.attempt,
        owner=order.owner,
        started=started,
        ended=0.0 if state is Standing.RUNNING else time.time(),
        error=error,
    )
    store.tell(order.path, status)


def in_a_line(error: BaseException) -> str:
    """`ValueError: no such layer`: an exception for people, without its traceback."""
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    try:
        text = str(error)
    except Exception as second:
        text = f"(its text cannot be had: {type(second).__name__})"
    return (f"{name}: {text}" if text else name)[:_LONGEST_ERROR]


def _cpu(order: Order) -> float:
    """Seconds of CPU time so far: of this thread, or of all that this process has waited for."""
    return sum(os.times()[:4]) if order.alone else time.thread_time()


def _peak() -> int:
    """The most memory that this process, or the largest that it waited for, held: bytes."""
    import sys
    from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(getrusage(who).ru_maxrss for who in (RUSAGE_SELF, RUSAGE_CHILDREN))


def own_frames_off(error: BaseException) -> BaseException:
    """Let the traceback of what a function raised begin at the function, not in here."""
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code is not _call.__code__:
        at = at.tb_next
    while at is not None and at.tb_next is not None and _is_ours(at.tb_frame):  # wrappers of ours, too
        at = at.tb_next
    if at is not None:
        error.__traceback__ = at
    return error


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__package__")).startswith("treadle.")
