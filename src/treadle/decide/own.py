"""What each task's own evidence says, before anything spreads from one task to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.base.place import Diagnostic
from treadle.decide.adopt import adoptable, taken_over
from treadle.decide.environments import IDLE
from treadle.decide.evidence import weigh
from treadle.decide.facts import Facts, chosen
from treadle.decide.options import Options
from treadle.decide.reason import (
    Answer,
    AnyReason,
    Awaits,
    Forced,
    InputChanged,
    InputsUnknown,
    LastFailed,
    NeverRan,
    NothingFound,
    OutputChanged,
    OutputMissing,
    PartialResult,
    UpstreamRan,
    Verdict,
)
from treadle.decide.skips import Skips
from treadle.plan.task import Call, ScheduledPlan, ScheduledTask
from treadle.records.event import End, EndReason, Evidence, key_of_task
from treadle.records.past import Last, Past

if TYPE_CHECKING:
    from treadle.decide.steps import Artifacts

_NOTED = {
    note: Answer(Verdict.UP_TO_DATE, note=note) for note in ("", "unread", "touched", "adopted", "partial")
}
_FORCED = Forced()


class Own:
    """One walk over the selected tasks, in plan order.

    `answers` has all of them, as if nothing spread. Of those that are not skipped (`live`), `firm` run (or do
    so already) for reasons of their own, `evicted` have outputs that were removed on purpose but are up to
    date, and the last results of `partial` lack something.
    """

    def __init__(self, plan: ScheduledPlan, facts: Facts, past: Past, options: Options) -> None:
        self._facts = facts
        self._past = past
        self._options = options
        self.answers: dict[str, Answer] = {}
        self.live: list[str] = []
        self.firm: list[str] = []
        self.perhaps: list[str] = []  # those that may run, once it is known what they work on
        self.flying: list[str] = []  # those of them that a job of an earlier run is at
        self.evicted: dict[str, tuple[str, ...]] = {}
        self.refreshed: dict[str, Evidence] = {}
        self.adopted: dict[str, Evidence] = {}
        self.adoptable: list[str] = []
        self.partial: dict[str, PartialResult] = {}
        self.notes: tuple[Diagnostic, ...] = ()
        self._plan = plan
        self._latest: dict[int, tuple[str, str]] = {}  # by set of tasks: the last run of one, and which it is
        self._artifacts: Artifacts | None = None
        self._spoiled: set[str] = set()  # outputs that someone else changed, and that will be made again
        skips = Skips(plan, facts, options)
        for task in chosen(plan, options):
            key = key_of_task(plan.name, task)
            evidence = facts.evidence.get(task.id)
            skip = skips.reason(task, evidence)
            if skip is not None:
                self.answers[task.id] = Answer(Verdict.SKIPPED, (skip,))
            elif task.making is not None and key not in past.flights:
                self.answers[task.id] = IDLE
            elif task.call is not None:
                self.answers[task.id] = self._step(task, task.call, key, evidence)
            else:
                self.live.append(task.id)
                waits = task.awaits and key not in past.flights
                self.answers[task.id] = (self._waiting if waits else self._answer)(task, key, evidence)
        self._end_of_steps()

    def _end_of_steps(self) -> None:
        """Refuse what the artifacts speak against; keep what is only to be said."""
        if self._artifacts is not None:
            self._artifacts.stop()
            self.notes = self._artifacts.notes()

    def _step(self, task: ScheduledTask, call: Call, key: str, evidence: Evidence | None) -> Answer:
        """What the artifact of a step says, and where it has inputs its evidence, too."""
        if self._artifacts is None:
            from treadle.decide.steps import Artifacts  # workflows without steps do not need them

            self._artifacts = Artifacts(self._options)
        answer = self._artifacts.answer(task, call, self._facts.artifacts.get(task.id), evidence is not None)
        forced = self._options.force_all or task.id in self._options.forced
        if answer.verdict is Verdict.SKIPPED and not forced:
            return answer
        self.live.append(task.id)
        if task.inputs and (flying := self._flying(task, key, forced)) is not None:
            return flying
        reasons = answer.reasons if answer.verdict is Verdict.WILL_RUN else ()
        if task.inputs and answer.verdict is Verdict.UP_TO_DATE and answer.note != "drifted":
            reasons = self._by_inputs(task, key, evidence)
        if forced:
            reasons = (*reasons, _FORCED)
        if not reasons:
            return answer
        self.firm.append(task.id)
        return Answer(Verdict.WILL_RUN, reasons)

    def _by_inputs(self, task: ScheduledTask, key: str, evidence: Evidence | None) -> tuple[AnyReason, ...]:
        """Why a step with inputs runs though its artifact is complete."""
        if evidence is None:
            return (InputsUnknown(),)
        return self._reasons(task, key, evidence, self._past.last(key))

    def _waiting(self, task: ScheduledTask, key: str, evidence: Evidence | None) -> Answer:
        """What can be said of a task that is not final yet: its inputs are not compared with anything."""
        last = self._past.last(key)
        failed = _failure(last) if last is not None else None
        reasons: tuple[AnyReason, ...] = (Awaits(by=task.awaits[0]),)
        if failed is not None or evidence is None:
            reasons = (*reasons, failed or NeverRan())
        if self._options.force_all or task.id in self._options.forced:
            reasons = (*reasons, _FORCED)
        sure = len(reasons) > 1
        (self.firm if sure else self.perhaps).append(task.id)
        return Answer(Verdict.WILL_RUN, reasons, may_cut_off=not sure)

    def _answer(self, task: ScheduledTask, key: str, evidence: Evidence | None) -> Answer:
        options = self._options
        forced = options.force_all or task.id in options.forced
        if (flying := self._flying(task, key, forced)) is not None:
            return flying
        last = self._past.last(key)
        if evidence is None and last is None and not forced:
            evidence = self._adopted(task)
        reasons = self._reasons(task, key, evidence, last)
        if self._spoiled and options.cutoff:
            reasons = tuple([why for why in reasons if not self._will_be_as_it_was(why)])
        if task.ordered and evidence is not None and not reasons and not evidence.note:
            reasons = self._overtaken(task, key)
        if forced:
            reasons = (*reasons, _FORCED)
        if evidence is not None and evidence.partial and evidence.note != "touched":
            self.partial[task.id] = PartialResult(missing=evidence.partial)
            reasons = (*reasons, self.partial[task.id]) if reasons else ()
        if reasons:
            self.firm.append(task.id)
            self._spoiled.update(why.path for why in reasons if isinstance(why, OutputChanged))
            return Answer(Verdict.WILL_RUN, reasons)
        if self._facts.evicted and not self._facts.evicted.isdisjoint(task.outputs):
            self.evicted[task.id] = tuple([path for path in task.outputs if path in self._facts.evicted])
        note = evidence.note if evidence is not None else ""
        if task.id in self.partial:
            note = "partial"
        if not note and self._facts.unread and self._is_unread(task):
            note = "unread"
        return _NOTED.get(note) or Answer(Verdict.UP_TO_DATE, note=note)

    def _overtaken(self, task: ScheduledTask, key: str) -> tuple[AnyReason, ...]:
        """Whether a task that it depends on has run since its last success, in a run that did not get to it.

        There is no content to compare, so the names of the runs are, which rise. (Evidence with a note was
        given without a run: nobody knows after which.)
        """
        own = self._past.attempt(key)
        if own is None or not own.n:
            return ()
        latest = self._latest.get(id(task.ordered))
        if latest is None:  # tasks that depend on the same rules share one set
            latest = self._latest[id(task.ordered)] = max(map(self._made, task.ordered))
        run, need = latest
        return (UpstreamRan(task=need),) if run > own.run else ()

    def _made(self, name: str) -> tuple[str, str]:
        """The run that made a task of a rule which is up to date, none for others, and the task."""
        task = self._plan.tasks[name]
        fine = name in self.answers and self.answers[name].verdict is Verdict.UP_TO_DATE and task.call is None
        made = self._past.attempt(key_of_task(self._plan.name, task)) if fine else None
        return (made.run if made is not None and made.n else "", name)

    def _flying(self, task: ScheduledTask, key: str, forced: bool) -> Answer | None:
        """What becomes of the job of an earlier run that is at this task; None: there is none."""
        if not self._past.flights or (flight := self._past.flights.get(key)) is None:
            return None
        from treadle.decide.flight import answer_in_flight  # where nothing is in flight it does without

        look, options = self._facts.look_for(task), self._options
        self.firm.append(task.id)
        self.flying.append(task.id)
        return answer_in_flight(task, flight, look, options.workdir, options.flowdir, forced=forced)

    def _will_be_as_it_was(self, why: AnyReason) -> bool:
        """An input that its maker makes again is not judged by what someone else left in its place."""
        return isinstance(why, InputChanged) and why.how != "while_running" and why.path in self._spoiled

    def _adopted(self, task: ScheduledTask) -> Evidence | None:
        """Evidence for outputs that nobody knows, where the user wants them taken over.

        Not of a checkpoint task: what it found is not known before it runs.
        """
        if task.manifest or not adoptable(task, self._facts, self._past):
            return None
        if not self._options.adopt:
            self.adoptable.append(task.id)
            return None
        evidence = self.adopted[task.id] = taken_over(task, self._facts, "adopted")
        return evidence

    def _reasons(
        self,
        task: ScheduledTask,
        key: str,
        evidence: Evidence | None,
        last: Last | None,
    ) -> tuple[AnyReason, ...]:
        failed = _failure(last) if last is not None else None
        if evidence is None:
            there = bool(task.outputs) and all(self._facts.record(path) for path in task.outputs)
            return (failed or NeverRan(outputs_exist=there),)
        reasons, now = weigh(task, evidence, self._facts.look_for(task))
        if task.manifest and evidence.discovered is None:
            reasons = (*reasons, NothingFound())
        if failed is not None:  # what it did to its outputs goes without saying
            return (failed, *(why for why in reasons if not isinstance(why, OutputMissing | OutputChanged)))
        for path in task.outputs:
            maker = self._past.maker(path)
            if maker is not None and maker != key:
                told = any(isinstance(why, OutputChanged) and why.path == path for why in reasons)
                if not told and self._facts.record(path) is not None:
                    reasons = (*reasons, OutputChanged(path=path))
        if now is not evidence and not reasons and self._facts.evicted.isdisjoint(task.outputs):
            self.refreshed[task.id] = now
        return reasons

    def _is_unread(self, task: ScheduledTask) -> bool:
        """Something that counts was compared without reading it."""
        paths = self._facts.unread.intersection((*task.inputs, *task.outputs))
        return not paths <= task.ancient


def _failure(last: Last) -> LastFailed | None:
    """How the last attempt failed or was interrupted; None: it did not."""
    if last.reason is not EndReason.OK:
        return LastFailed(how=last.reason, exit_code=last.exit_code)
    if last.state is End.CANCELLED:
        return LastFailed(how=EndReason.CANCELLED)
    return LastFailed() if last.state is End.FAILED else None
