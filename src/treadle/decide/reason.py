"""The decision as values: a verdict per task, with reasons that carry old and new values.

Sentences are chosen in the command line (`cli.words`), nowhere else.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from treadle.base.place import Diagnostic
from treadle.records.event import EndReason, Evidence


class Verdict(StrEnum):
    """What will happen to a task."""

    UP_TO_DATE = "up_to_date"
    WILL_RUN = "will_run"
    SKIPPED = "skipped"
    IN_FLIGHT = "in_flight"


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="reason"):
    """Root of all reasons."""


class NeverRan(Reason, frozen=True, tag="never_ran"):
    """No record knows the task. `outputs_exist`: all its outputs are there, made by nobody known."""

    outputs_exist: bool = False


class Awaits(Reason, frozen=True, tag="awaits"):
    """The checkpoint task `by` may still add to what it works on: it waits, and is decided after that."""

    by: str


class NothingFound(Reason, frozen=True, tag="nothing_found"):
    """It is a checkpoint task, and its record does not tell what it found."""


class LastFailed(Reason, frozen=True, tag="last_failed"):
    """Its last attempt failed or was interrupted; `error` is what a step's status file tells of it."""

    how: EndReason = EndReason.APP
    exit_code: int | None = None
    error: str = ""


class CommandChanged(Reason, frozen=True, tag="command_changed"):
    """The identity of the command changed; `part` says where: text, script, env, hooks, outputs, shell,
    environment.

    `old` and `new` are texts with `{name}` for what only an attempt knows; of a script its digests.
    """

    part: str = "text"
    old: str = ""
    new: str = ""


class Content(Struct, frozen=True, omit_defaults=True):
    """What stood at a path: bytes, nanoseconds since the epoch, BLAKE2b-256 (empty: it was not read)."""

    size: int
    mtime: int
    digest: str = ""


class InputChanged(Reason, frozen=True, tag="input_changed"):
    """The content of an input is another one.

    `how`: `content`, `stat` (size or time of a file too large to be read), `while_running` (it was
    changed while the last attempt ran: what it was then is not told).
    """

    path: str
    how: str = "content"
    old: Content | None = None
    new: Content | None = None


class InputAppeared(Reason, frozen=True, tag="input_appeared"):
    """An input that the last success did not have."""

    path: str


class InputVanished(Reason, frozen=True, tag="input_vanished"):
    """An input that the last success had is no longer one of the task's."""

    path: str


class PartialResult(Reason, frozen=True, tag="partial_result"):
    """Its last success was without these inputs: their tasks had failed."""

    missing: tuple[str, ...] = ()


class OutputMissing(Reason, frozen=True, tag="output_missing"):
    """A declared output is not there."""

    path: str


class OutputChanged(Reason, frozen=True, tag="output_changed"):
    """An output is not as the task left it: someone else changed it.

    `old` and `new` are None when what changed is who made it last.
    """

    path: str
    old: Content | None = None
    new: Content | None = None


class OutputNeeded(Reason, frozen=True, tag="output_needed"):
    """An output that was deleted on purpose is needed again, by task `by`."""

    path: str
    by: str = ""


class EnvironmentNeeded(Reason, frozen=True, tag="environment_needed"):
    """The environment that it makes is not there (any more), and task `by` needs it (nobody: it was
    selected)."""

    by: str = ""


class Upstream(Reason, frozen=True, tag="upstream"):
    """A task upstream will run; `root` is where the cascade begins."""

    task: str
    root: str = ""


class Forced(Reason, frozen=True, tag="forced"):
    """The user asked for it."""


class ConditionFalse(Reason, frozen=True, tag="condition_false"):
    """Skipped: its `when` is false."""

    condition: str = ""


class UpstreamSkipped(Reason, frozen=True, tag="upstream_skipped"):
    """Skipped: what it reads is made only by skipped tasks (or there is nothing left to gather)."""

    path: str = ""


class SourceMissing(Reason, frozen=True, tag="source_missing"):
    """Skipped: the rule is `optional` and this source input is not there."""

    path: str


class CohortKept(Reason, frozen=True, tag="cohort_kept"):
    """Skipped: a gather over a selection of samples would overwrite the output made over all of them."""

    path: str


class ArtifactTorn(Reason, frozen=True, tag="artifact_torn"):
    """A step's record tells of an artifact that is gone or cut: `problem` says what is wrong with it."""

    problem: str = ""


class ArtifactMissing(Reason, frozen=True, tag="artifact_missing"):
    """A step succeeded here, but neither its artifact nor the record of it is there any more."""


class InputsUnknown(Reason, frozen=True, tag="inputs_unknown"):
    """A step's artifact is complete, but no record here knows of which inputs it was made."""


class Mutable(Reason, frozen=True, tag="mutable"):
    """A development version of a step: it is made anew in every run."""


class FailedBefore(Reason, frozen=True, tag="failed_before"):
    """Skipped: the step failed before, as `record` tells, and what failed is not to be tried again."""

    record: str
    error: str = ""


class JobInFlight(Reason, frozen=True, tag="job_in_flight"):
    """A job of an earlier run, `job` on `backend`, is at it. `other`: it does not do what the task would do
    now, so it is ended first."""

    run: str
    job: str = ""
    backend: str = ""
    other: bool = False


class UpstreamRan(Reason, frozen=True, tag="upstream_ran"):
    """Task `task`, on which it depends, has run since its own last success: in a run that ended before its
    turn, or that did not include it."""

    task: str


class BlockedBy(Reason, frozen=True, tag="blocked_by"):
    """Skipped: it builds on a task that is skipped; `root` is the one that failed before."""

    task: str
    root: str = ""


AnyReason = (
    NeverRan
    | LastFailed
    | CommandChanged
    | InputChanged
    | InputAppeared
    | InputVanished
    | PartialResult
    | OutputMissing
    | OutputChanged
    | OutputNeeded
    | EnvironmentNeeded
    | Upstream
    | UpstreamRan
    | Forced
    | ConditionFalse
    | UpstreamSkipped
    | SourceMissing
    | CohortKept
    | ArtifactTorn
    | ArtifactMissing
    | InputsUnknown
    | Mutable
    | FailedBefore
    | BlockedBy
    | JobInFlight
    | Awaits
    | NothingFound
)


class Answer(Struct, frozen=True):
    """The verdict on one task. `may_cut_off`: it may yet settle as unchanged, without running.

    `note` on a task that is up to date: `adopted` or `touched` (its evidence was taken over, nothing was
    run), `partial` (its upstream failed in part, and it was made of the rest), `unread` (a file above the
    digest limit was compared by size and time alone); on a step `drifted` (the artifact of another identity
    is served) or `code_changed` (it was made by other code).
    """

    verdict: Verdict
    reasons: tuple[AnyReason, ...] = ()
    may_cut_off: bool = False
    note: str = ""

    @property
    def failed_before(self) -> bool:
        """It is left alone because it failed in an earlier run."""
        return self.verdict is Verdict.SKIPPED and isinstance(next(iter(self.reasons), None), FailedBefore)


class Decision(Struct, frozen=True):
    """One answer for every selected task, in plan order.

    `adoptable` are tasks whose outputs nobody here recorded and which `--adopt` would take over; `adopted`
    the evidence of those that it does take over, to be recorded before anything starts. `refreshed` is
    evidence of tasks that are up to date by content though a stat is not as recorded: recording it spares
    the next reading. `notes` are warnings about steps that are served though they changed.
    """

    answers: dict[str, Answer]
    adoptable: tuple[str, ...] = ()
    refreshed: dict[str, Evidence] = {}
    adopted: dict[str, Evidence] = {}
    notes: tuple[Diagnostic, ...] = ()

    def to_run(self) -> list[str]:
        """Ids of the tasks that will run, in plan order."""
        return [task for task, answer in self.answers.items() if answer.verdict is Verdict.WILL_RUN]

    def in_flight(self) -> list[str]:
        """Ids of the tasks whose jobs of earlier runs are taken over, in plan order."""
        return [task for task, answer in self.answers.items() if answer.verdict is Verdict.IN_FLIGHT]
