"""How two states of one task differ, told in reasons: the evidence of its last success, and now."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.decide.identity import changed_parts
from treadle.decide.reason import (
    AnyReason,
    CommandChanged,
    Content,
    InputAppeared,
    InputChanged,
    InputVanished,
    OutputChanged,
    OutputMissing,
)
from treadle.plan.task import ScheduledTask
from treadle.plan.tokens import shown
from treadle.records.event import Evidence, FileRecord


def changed(before: FileRecord, now: FileRecord) -> str:
    """How the content differs: `content`, `stat` (it was not read), or nothing where it does not."""
    if before.folder != now.folder:
        return "content"
    if before.digest and now.digest:
        return "content" if before.digest != now.digest else ""
    if before.size != now.size:
        return "content" if before.digest or before.folder else "stat"
    return "stat" if before.mtime != now.mtime else ""


def gone(record: FileRecord) -> bool:
    """The record says that nothing was there."""
    return record.size < 0


def differences(task: ScheduledTask, old: Evidence, now: Evidence) -> Iterator[AnyReason]:
    """The reasons to run `task` again: command first, then inputs, then outputs."""
    if now.identity != old.identity:
        yield from _command_differences(old, now)
    elif task.command.script_file in old.stale:
        yield CommandChanged(part="script")
    yield from _input_differences(task, old, now)
    recorded = {record.path: record for record in old.outputs}
    for record in now.outputs:
        before = recorded.get(record.path)
        if gone(record):
            yield OutputMissing(path=record.path)
        elif before is not None and not gone(before) and changed(before, record):
            yield OutputChanged(path=record.path, old=_content(before), new=_content(record))


def _content(record: FileRecord) -> Content:
    return Content(record.size, record.mtime, record.digest)


def _command_differences(old: Evidence, now: Evidence) -> Iterator[AnyReason]:
    """Evidence by another recipe of identity is compared by what it shows: a new recipe re-runs nothing."""
    same_recipe = old.identity_format == now.identity_format
    parts = changed_parts(old.identity, now.identity) if same_recipe else ["text", "script", "env"]
    for part in parts:
        match part:
            case "text":
                paths = ["\n".join(one.path for one in evidence.outputs) for evidence in (old, now)]
                if paths[0] != paths[1]:
                    yield CommandChanged(part="outputs", old=paths[0], new=paths[1])
                if old.text != now.text or (same_recipe and paths[0] == paths[1]):
                    yield CommandChanged(part="text", old=shown(old.text), new=shown(now.text))
            case "script":
                names = [one.digest if one else "" for one in (old.script, now.script)]
                if names[0] != names[1]:
                    yield CommandChanged(part="script", old=names[0], new=names[1])
            case "env":
                if old.env != now.env:
                    yield CommandChanged(part="env", old=_settings(old.env), new=_settings(now.env))
            case "hooks":
                yield CommandChanged(part="hooks", old=_settings(old.hooks), new=_settings(now.hooks))
            case "shell":
                yield CommandChanged(part="shell", old=_settings(old.shell), new=_settings(now.shell))
            case "environment":
                before, after = _settings(old.environment), _settings(now.environment)
                yield CommandChanged(part="environment", old=before, new=after)


def _settings(pairs: tuple[tuple[str, str], ...]) -> str:
    """Variables, hooks or what the shell is set to, one a line."""
    return "\n".join(f"{name}={shown(value)}" for name, value in pairs)


def _input_differences(task: ScheduledTask, old: Evidence, now: Evidence) -> Iterator[AnyReason]:
    """An input that is gone is no difference: whether that is an error hangs on whether it is needed."""
    stale = frozenset(old.stale)
    recorded = {record.path: record for record in old.inputs}
    for record in now.inputs:
        path = record.path
        before = recorded.pop(path, None)
        if path in task.ancient:
            continue
        if before is None:
            yield InputAppeared(path=path)
        elif path in stale:
            yield InputChanged(path=path, how="while_running")
        elif gone(record):
            continue
        elif gone(before):
            yield InputAppeared(path=path)
        elif how := changed(before, record):
            yield InputChanged(path=path, how=how, old=_content(before), new=_content(record))
    for path in recorded:
        yield InputVanished(path=path)
