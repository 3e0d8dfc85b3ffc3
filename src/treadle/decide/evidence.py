"""Evidence: taken and compared by one walk over a task, so that the two cannot drift apart.

`take` writes down what a success left; `compare` takes it again from the world as it stands and tells the
difference in reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from treadle.decide.difference import changed, differences, gone
from treadle.decide.identity import (
    FORMAT,
    hooked,
    identity,
    shown_environment,
    shown_hooks,
    shown_shell,
    shown_text,
    surely_same,
)
from treadle.decide.look import Look, looker
from treadle.decide.reason import AnyReason
from treadle.plan.task import ScheduledTask
from treadle.records.event import Evidence, FileRecord

__all__ = ["changed", "compare", "examine", "take", "weigh"]


def take(
    task: ScheduledTask,
    before: Mapping[str, FileRecord],
    after: Mapping[str, FileRecord],
    *,
    later: Mapping[str, FileRecord] | None = None,
    foreign: tuple[str, ...] = (),
    note: str = "",
    partial: tuple[str, ...] = (),
) -> Evidence:
    """What a success leaves: inputs and script (under its path with tokens) as they were `before` the
    attempt, outputs as they were `after` it.

    `later` are inputs and script as they were after it, when they were looked at again: one that is
    another by then makes the result stale. `foreign` and `partial` as in the evidence.
    """
    stale: tuple[str, ...] = ()
    if later is not None:
        paths = (*task.inputs, task.command.script_file) if task.command.script_file else task.inputs
        stale = tuple([path for path in paths if _moved(before.get(path), later.get(path))])
    found = _written(task, _observe(task, before.get, after.get), stale, foreign, note)
    return replace(found, partial=partial) if partial else found


def compare(task: ScheduledTask, evidence: Evidence, look: Look) -> tuple[AnyReason, ...]:
    """Why the result that left this evidence does not stand; nothing: it does.

    `look` may answer with the tombstone of what was removed on purpose.
    """
    return weigh(task, evidence, look)[0]


def weigh(task: ScheduledTask, evidence: Evidence, look: Look) -> tuple[tuple[AnyReason, ...], Evidence]:
    """`compare`, and the evidence with what was looked at just now where nothing speaks against it
    (the same object where all stats are as recorded)."""
    seen = _observe(task, look, look)
    if (
        seen.inputs == evidence.inputs
        and seen.outputs == evidence.outputs
        and seen.script == evidence.script
        and not evidence.stale
        and (surely_same(task, evidence) or identity(task, seen.script) == evidence.identity)
    ):
        return (), evidence
    now = _written(task, seen)
    reasons = tuple(differences(task, evidence, now))
    return reasons, evidence if reasons else _refreshed(evidence, now)


def examine(
    task: ScheduledTask,
    evidence: Evidence,
    workdir: str,
    flowdir: str = "",
    *,
    known: Look | None = None,
    tombstone: Look | None = None,
    without: Collection[str] = (),
) -> tuple[tuple[AnyReason, ...], Evidence]:
    """`weigh` a task against the disk as it stands now, for cut-off in the middle of a run.

    `known` are records that spare a reading (those in the evidence always do), `tombstone` those of what
    was removed on purpose. Inputs in `without` count as not there. Raises `DiskError`.
    """
    own = {record.path: record for record in (*evidence.inputs, *evidence.outputs)}
    if evidence.script is not None:
        own[evidence.script.path] = evidence.script
    at = looker(task, lambda path: (known(path) if known else None) or own.get(path), workdir, flowdir)
    buried = False

    def at_or_buried(path: str) -> FileRecord | None:
        nonlocal buried
        if path in without:
            return None
        found = at(path)
        if found is None and tombstone is not None:
            found = tombstone(path)
            buried = buried or found is not None
        return found

    reasons, now = weigh(task, evidence, at_or_buried)
    return reasons, evidence if buried else now


class _Seen(Struct, frozen=True):
    """What one walk over a task's paths found."""

    inputs: tuple[FileRecord, ...]
    outputs: tuple[FileRecord, ...]
    script: FileRecord | None


def _observe(task: ScheduledTask, inputs: Look, outputs: Look) -> _Seen:
    """The walk: everything that evidence holds of files, whether it is taken or compared."""
    script = task.command.script_file
    return _Seen(
        _records(task.inputs, inputs), _records(task.outputs, outputs), inputs(script) if script else None
    )


def _written(
    task: ScheduledTask,
    seen: _Seen,
    stale: tuple[str, ...] = (),
    foreign: tuple[str, ...] = (),
    note: str = "",
) -> Evidence:
    return Evidence(
        identity=identity(task, seen.script),
        identity_format=FORMAT,
        text=shown_text(task.command),
        inputs=seen.inputs,
        outputs=seen.outputs,
        stale=stale,
        foreign=foreign,
        note=note,
        env=task.command.env,
        script=seen.script,
        hooks=shown_hooks(task.command) if hooked(task.command) else (),
        shell=shown_shell(task.policy.shell),
        environment=shown_environment(task.policy.environment),
    )


def _records(paths: tuple[str, ...], look: Look) -> tuple[FileRecord, ...]:
    found = tuple(map(look, paths))
    if None in found:
        return tuple([one or FileRecord(path, -1, 0, 0) for path, one in zip(paths, found)])
    return found  # type: ignore[return-value]


def _moved(before: FileRecord | None, later: FileRecord | None) -> bool:
    if before is None or later is None:
        return before is not later
    return bool(changed(before, later))


def _refreshed(old: Evidence, now: Evidence) -> Evidence:
    """What was looked at now in the place of what was recorded; what is gone stays as it was."""
    recorded = {record.path: record for record in (*old.inputs, *old.outputs)}
    return replace(
        now,
        inputs=tuple([recorded.get(one.path, one) if gone(one) else one for one in now.inputs]),
        outputs=now.outputs,
        foreign=old.foreign,
        note=old.note,
        partial=old.partial,
        discovered=old.discovered,
        checksums=old.checksums,
    )
