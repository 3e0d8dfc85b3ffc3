"""Every sentence that is said to the user about a decision, an end or an error: one place."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from treadle.base.mask import Mask
from treadle.base.place import Diagnostic, Severity
from treadle.cli.backend_words import backend_words
from treadle.decide import reason as r
from treadle.records.event import End, EndReason, Noticed, Outcome
from treadle.report.runs import RunState

if TYPE_CHECKING:
    from treadle.api.session import Recovered
    from treadle.cli.printer import Printer
    from treadle.plan.task import ScheduledTask
    from treadle.records.lock import LockNews

_LONGEST = 1500  # characters of a message: several paths fit, a file that stands in for one does not
_SURROGATE = re.compile("[\ud800-\udfff]")

# What is said of steps instead: their artifacts are kept over runs, folders and machines.
CACHED = "cached"

VERDICTS = {
    r.Verdict.UP_TO_DATE: "up to date",
    r.Verdict.WILL_RUN: "will run",
    r.Verdict.SKIPPED: "skipped",
    r.Verdict.IN_FLIGHT: "in flight",
}

ENDS = {
    End.SUCCEEDED: "done",
    End.UP_TO_DATE: "up to date",
    End.UNCHANGED: "unchanged",
    End.SKIPPED: "skipped",
    End.FAILED: "failed",
    End.BLOCKED: "blocked",
    End.CANCELLED: "cancelled",
}


def ends_of(workflow: str) -> dict[End, str]:
    """The words for ends in runs of a workflow, or of a pipeline: its steps are cached."""
    return {**ENDS, End.UP_TO_DATE: CACHED} if workflow.endswith(".py") else ENDS


RUN_STATES = {
    RunState.RUNNING: "running",
    RunState.DONE: "done",
    RunState.FAILED: "failed",
    RunState.STOPPED: "stopped",
    RunState.INTERRUPTED: "interrupted",
    RunState.TERMINATED: "terminated",
    RunState.KILLED: "was killed",
}

END_REASONS = {
    EndReason.OK: "succeeded",
    EndReason.APP: "failed",
    EndReason.OOM: "ran out of memory",
    EndReason.TIME: "reached its time limit",
    EndReason.DISK: "ran out of disk space",
    EndReason.PREEMPTED: "was preempted",
    EndReason.NODE: "lost its node",
    EndReason.CANCELLED: "was cancelled",
    EndReason.INTERRUPTED: "was interrupted",
    EndReason.NEVER_STARTED: "never started",
    EndReason.LOST: "was lost",
}

_PARTS = {
    "text": "its command changed",
    "script": "its script changed",
    "env": "its exported variables changed",
    "hooks": "a hook changed",
    "outputs": "its declared outputs changed",
    "shell": "its shell or prelude changed",
    "environment": "its environment changed",
}


def verdict(answer: r.Answer, task: str) -> str:
    """What will happen to a task, in two words."""
    if task.startswith("@"):
        if answer.verdict is r.Verdict.UP_TO_DATE:
            return CACHED
        if answer.reasons and isinstance(answer.reasons[0], r.BlockedBy):
            return "blocked"
    return VERDICTS[answer.verdict]


def reason(one: r.AnyReason) -> str:
    """One reason as a clause: `input data/a.txt changed`."""
    match one:
        case r.NeverRan(outputs_exist=True):
            return "its outputs are there, but no record here knows who made them (--adopt takes them over)"
        case r.NeverRan():
            return "it never ran here"
        case r.LastFailed(how=how, exit_code=code):
            number = f" (exit code {code})" if code else ""
            return f"its last attempt {END_REASONS[how]}{number}" + (f": {one.error}" if one.error else "")
        case r.CommandChanged(part=part):
            return _PARTS.get(part, f"its {part} changed")
        case r.InputChanged(path=path, how="while_running"):
            return f"input {path} was changed while the last attempt ran"
        case r.InputChanged(path=path, how="stat"):
            return f"input {path} has another size or time (too large to be read)"
        case r.InputChanged(path=path):
            return f"input {path} changed"
        case r.InputAppeared(path=path):
            return f"input {path} is new"
        case r.InputVanished(path=path):
            return f"input {path} is no longer one of its inputs"
        case r.PartialResult(missing=missing):
            return f"its last result is partial: it was made without {listed(missing)}"
        case r.OutputMissing(path=path):
            return f"output {path} is missing"
        case r.OutputChanged(path=path):
            return f"output {path} was changed by someone else"
        case r.OutputNeeded(path=path, by=by):
            return f"output {path}, deleted on purpose, is needed again" + (f" by {by}" if by else "")
        case r.EnvironmentNeeded(by=by):
            needed = f"{by} needs the environment" if by else "you named it"
            return f"{needed}, and it is not made"
        case r.Upstream(task=task, root=root):
            return f"{task} will run" + (f" (it begins at {root})" if root and root != task else "")
        case r.UpstreamRan(task=task):
            return f"{task}, on which it depends, has run since"
        case r.JobInFlight(other=other, backend=backend, job=job, run=run):
            which = f"job {job} on {backend}" if job else f"a job on {backend}"
            if other:
                return f"{which} of run {run} does something else by now, and is ended first"
            return f"{which} of run {run} is at it, and is taken over"
        case r.Forced():
            return "you asked for it (--force)"
        case r.ConditionFalse(condition=condition):
            return f"its condition is false: {condition}"
        case r.UpstreamSkipped(path=path):
            return f"what would make {path} is skipped" if path else "there is nothing left for it to gather"
        case r.SourceMissing(path=path):
            return f"its optional input {path} is not there"
        case r.CohortKept(path=path):
            return f"{path} was made over more samples than are selected (--overwrite-cohort replaces it)"
        case r.ArtifactTorn(problem=problem):
            return f"its artifact is damaged: {problem}" if problem else "its artifact is damaged"
        case r.ArtifactMissing():
            return "its artifact is no longer there"
        case r.InputsUnknown():
            return "its artifact is there, but no record here knows of which inputs it was made"
        case r.Mutable():
            return "it is a development version: made anew in every run"
        case r.FailedBefore(record=path, error=error):
            return f"it failed before ({path})" + (f": {error}" if error else "")
        case r.BlockedBy(task=task, root=root):
            return f"{task} is left out" + (f" ({root} failed before)" if root else "")
        case r.Awaits(by=by):
            return f"it waits for what {by} finds, which may add to what it works on"
        case r.NothingFound():
            return "it is a checkpoint, and no record here tells what it found"


_AS_LEFT = "its command, inputs and outputs are as"
# What "up to date" means, by the note of the answer.
UP_TO_DATE = {
    "": f"{_AS_LEFT} its last success left them",
    "unread": f"{_AS_LEFT} its last success left them (large files by size and time: they are not read)",
    "partial": f"{_AS_LEFT} its last success left them, but that lacked inputs whose tasks had failed",
    "adopted": f"{_AS_LEFT} they were when --adopt took them over: no run that is recorded made them",
    "touched": f"{_AS_LEFT} they were when treadle touch recorded them",
    "made": "its environment is made, or nothing that will run needs it",
    "drifted": "the artifact of another step stands at its path, and is served as it is",
    "code_changed": "its artifact is complete, but other code made it: change its version to make it again",
}
# The same on a line of its own for a step.
STEP_NOTES = {"drifted": "the artifact of another step is served", "code_changed": "other code made it"}
_COMPLETE = "its artifact is complete"  # of a step that is up to date, where there is no more to say


def up_to_date(note: str, task: ScheduledTask) -> str:
    """Why a task need not run, as a clause."""
    told = UP_TO_DATE[note]
    if task.call is None:
        return told
    if not (note or task.inputs):
        return _COMPLETE
    return told.replace(_AS_LEFT, f"{_COMPLETE}, and its inputs are as")


def as_values(reasons: Sequence[r.AnyReason], mask: Mask) -> Any:
    """Reasons for JSON. Old texts may hold what the config calls sensitive only by now."""
    return mask.within(to_builtins(reasons)) if mask else reasons


def main_reason(reasons: Sequence[r.AnyReason]) -> r.AnyReason:
    """The one that tells most: a command that lists its inputs changes only because they do."""
    if isinstance(reasons[0], r.CommandChanged):
        others = (one for one in reasons if isinstance(one, r.InputAppeared | r.InputVanished))
        return next(others, reasons[0])
    return reasons[0]


def reason_kind(one: r.AnyReason) -> str:
    """A reason in two or three words, for counting over the tasks of a rule."""
    match one:
        case r.NeverRan():
            return "never ran"
        case r.LastFailed(how=how):
            return "interrupted" if how in (EndReason.INTERRUPTED, EndReason.CANCELLED) else "failed before"
        case r.CommandChanged(part=part):
            return f"{'command' if part == 'text' else part} changed"
        case r.InputChanged() | r.InputAppeared() | r.InputVanished():
            return "inputs changed"
        case r.PartialResult():
            return "partial result"
        case r.OutputMissing():
            return "output missing"
        case r.OutputChanged():
            return "output changed"
        case r.OutputNeeded():
            return "output needed again"
        case r.EnvironmentNeeded():
            return "environment to be made"
        case r.Upstream():
            return "upstream runs"
        case r.UpstreamRan():
            return "upstream has run"
        case r.JobInFlight():
            return "job of an earlier run"
        case r.Forced():
            return "forced"
        case r.ConditionFalse():
            return "condition false"
        case r.UpstreamSkipped():
            return "upstream skipped"
        case r.SourceMissing():
            return "optional input missing"
        case r.CohortKept():
            return "cohort output kept"
        case r.ArtifactTorn() | r.ArtifactMissing():
            return "artifact missing" if isinstance(one, r.ArtifactMissing) else "artifact damaged"
        case r.InputsUnknown():
            return "inputs not recorded"
        case r.Mutable():
            return "development version"
        case r.FailedBefore():
            return "failed before"
        case r.BlockedBy():
            return "blocked"
        case r.Awaits():
            return "waits for a checkpoint"
        case r.NothingFound():
            return "what it found is not recorded"


def content(one: r.Content) -> str:
    """What stood at a path: `1,204 bytes, of 2026-11-29 14:37:53.104, BLAKE2b 3f9a5c17d0e2`."""
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.mtime // 10**9))
    read = f", {digest(one.digest)}" if one.digest else ""
    return (
        f"{one.size:,} {'byte' if one.size == 1 else 'bytes'}, of {day}.{one.mtime // 10**6 % 1000:03}{read}"
    )


def digest(figure: str) -> str:
    """A digest as far as a person compares it."""
    return f"BLAKE2b {figure[:12]}"


def outcome(one: Outcome | None) -> str:
    """How an attempt ended: `failed with exit code 2`, `ran out of memory`."""
    if one is None:
        return "ended"
    words = END_REASONS[one.reason]
    if one.reason is EndReason.APP and one.exit_code:
        words = f"failed with exit code {one.exit_code}"
    elif one.reason is EndReason.APP and one.signal:
        words = f"was ended by signal {one.signal}"
    return f"{words}: {one.message}" if one.message else words


def diagnostic_lines(one: Diagnostic, printer: Printer, *, err: bool = True) -> str:
    """`error: place: message` with the way out on a line of its own; `err`: for stderr."""
    one = shortened(one)
    colour = "red" if one.severity is Severity.ERROR else "yellow"
    head = printer.style(f"{one.severity.value}:", "bold", colour, err=err)
    where = str(one.place)
    text = visible(f"{where}: {one.message}" if where else one.message)
    return f"{head} {text}\n  {visible(one.hint)}" if one.hint else f"{head} {text}"


def shortened(one: Diagnostic) -> Diagnostic:
    """The finding as it is told: of a text that is very long (a name of a megabyte) both ends, and what is
    no UTF-8 (a word of the command line may be none) as escapes, which JSON takes."""
    if max(len(one.message), len(one.hint)) > _LONGEST:
        one = replace(one, message=_ends(one.message), hint=_ends(one.hint))
    place = one.place
    if not any(map(_SURROGATE.search, (one.message, one.hint, place.file, place.table, place.key))):
        return one
    place = replace(place, file=_utf8(place.file), table=_utf8(place.table), key=_utf8(place.key))
    return replace(one, message=_utf8(one.message), hint=_utf8(one.hint), place=place)


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _ends(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]} ({len(text):,} characters)"


def visible(text: str) -> str:
    """The text with what a terminal would not show, or would obey, as escapes; line ends stay."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 task`, `12 tasks`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """`a, b, c and 7 more`."""
    every = list(names)
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])} and {len(every) - most} more"


def notice(event: Noticed) -> str:
    """A warning that the engine noted while it ran, by its code."""
    values = event.values
    match event.code:
        case "capped":
            number = int(values["tasks"])
            more = f"{event.task} asks" if number == 1 else f"{number} tasks, such as {event.task}, ask"
            return f"warning: {more} for more than there is: {_most(values)} is all that one task can get"
        case "left_in_flight":
            number = int(values.get("tasks", "1"))
            if number == 1:
                return f"{event.task} was not asked for: its job on {values.get('backend')} is left at work"
            more = f"{event.task} and {number - 1} more were not asked for"
            return f"{more}: their jobs on {values.get('backend')} are left at work"
        case "disk_waiting":
            return "the disk is full: nothing starts until there is space again"
        case "disk_fine":
            return "there is space again: going on"
        case "disk_full":
            return "the disk stayed full: giving up; free some space and run again"
        case "interrupted":
            tasks = count(int(values["tasks"]), "task")
            if values.get("how") == "wait":
                return f"waiting for {tasks} at work, and nothing more starts (ask again to end them)"
            return f"ending {tasks} at work (ask again to end them at once)"
        case "backend_failed":
            return f"the backend failed: {values.get('message')}"
        case "backend_left":
            return values["message"]
        case "not_set_aside" | "not_removed" | "not_written" | "not_protected":
            return f"warning: {event.task}: {values['problem']}"
        case "input_changed":
            return f"warning: {values.get('path')} was changed while {event.task} ran; the next run says so"
        case "output_untouched":
            return f"note: {event.task} left {values.get('path')} as it was"
        case "lease_held":
            return f"{event.task} waits: {values.get('holder')} is making it ({values.get('path')})"
        case "result_taken":
            return f"note: {event.task} was made meanwhile by {values.get('maker')}, and is taken as it is"
        case "partial_result":
            more = f" and {values['more']} more" if values.get("more") else ""
            return f"warning: {event.task} is partial: it was made without {values.get('lost')}{more}"
        case "set_aside":
            beside = values.get("aside", "").rpartition("/")[2]
            return f"note: {values.get('path')} was set aside as {beside}"
    if words := backend_words(event.code, values):
        return words
    told = ", ".join(f"{name} {value}" for name, value in values.items())
    return f"note: {event.code.replace('_', ' ')} {event.task} {told}".rstrip()


def _most(values: Mapping[str, str]) -> str:
    """`2 threads`, `23.5G of memory`: what a request was cut to."""
    if "memory" in values:
        return f"{int(values['memory']) / 1024**3:.1f}G of memory"
    return count(int(values["threads"]), "thread")


def before_run(news: LockNews | Recovered) -> str:
    """What happened before anything could start: a lock waited for or taken, a killed run mended."""
    from treadle.api.session import Recovered  # not for previews: it brings half the engine
    from treadle.records.lock import Step

    if isinstance(news, Recovered):
        if set(news.runs) == set(news.detached):
            return f"run {listed(news.runs)} left jobs at work"
        number = len(news.interrupted)
        ended = f"; {count(number, 'attempt')} of it counted as interrupted" if number else ""
        return f"run {listed(news.runs)} was killed: what it had finished is recorded{ended}"
    owner = f"{news.owner.user}'s run (pid {news.owner.pid} on {news.owner.host})"
    match news.step:
        case Step.WAITING:
            return f"waiting for {owner}"
        case Step.WATCHING:
            return f"{owner} holds the folder; watching for {news.seconds:.0f} s whether it still lives"
        case Step.TAKEN:
            return f"{owner} is gone; its lock is taken over"
