"""A small work folder with real files, real plans and real records, for the tests of `decide`."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from treadle.decide.decide import decide
from treadle.decide.evidence import examine, take
from treadle.decide.facts import gather
from treadle.decide.look import looker
from treadle.decide.options import Options
from treadle.decide.reason import Answer, AnyReason, Decision, InputChanged, OutputChanged, Verdict
from treadle.plan.build import build
from treadle.plan.task import Command, Draft, Policy, Resources, ScheduledPlan, ScheduledTask, Skip
from treadle.records.event import (
    End,
    EndReason,
    Evidence,
    FileRecord,
    Outcome,
    OutputEvicted,
    TaskSettled,
    evidence_key,
)
from treadle.records.line import line_of
from treadle.records.past import Past


def draft(
    rule: str,
    inputs: str | tuple[str, ...] = (),
    outputs: str | tuple[str, ...] = (),
    *,
    text: str = "",
    temporary: bool = False,
    ancient: tuple[str, ...] = (),
    depends_on: tuple[str, ...] = (),
    policy: Policy | None = None,
    skip: Skip | None = None,
    threads: int = 1,
    log: str = "",
    **command: object,
) -> Draft:
    """One task of a rule of its own."""
    inputs, outputs = (
        tuple(paths.split()) if isinstance(paths, str) else paths for paths in (inputs, outputs)
    )
    return Draft(
        rule=rule,
        command=Command(text=text or f"{rule} {' '.join(inputs)} > {' '.join(outputs)}", **command),
        inputs=inputs,
        outputs=outputs,
        temporary=outputs if temporary else (),
        ancient=frozenset(ancient),
        depends_on=depends_on,
        policy=policy or Policy(),
        skip=skip,
        resources=Resources(threads=threads),
        log=log,
    )


class World:
    """Files, drafts and a past; `run` does what a decision says, by the same functions as the engine."""

    def __init__(self, root: Path, *drafts: Draft) -> None:
        self.root = root
        self.past = Past()
        self.drafts = {one.rule: one for one in drafts}
        self.ran: list[str] = []
        self._clock = time.time_ns() - 3_600_000_000_000

    # the disk

    def write(self, path: str, text: str = "", *, young: bool = False) -> None:
        """Write a file with a time of its own, an hour old (`young`: written just now)."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text or path)
        if not young:
            self.touch(path)

    def touch(self, path: str) -> None:
        """Another time, the same content."""
        self._clock += 1_000_000
        os.utime(self.root / path, ns=(self._clock, self._clock))

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    # the pipe

    def set(self, *drafts: Draft) -> None:
        """Put rules in the place of those of the same name."""
        for one in drafts:
            self.drafts[one.rule] = one

    @property
    def plan(self) -> ScheduledPlan:
        return build("flow", tuple(self.drafts.values()))

    def options(self, **options: object) -> Options:
        return Options(workdir=str(self.root), flowdir=str(self.root), **options)

    def decide(self, **options: object) -> Decision:
        plan, asked = self.plan, self.options(**options)
        return decide(plan, gather(plan, self.past, asked), self.past, asked)

    def answer(self, task: str, **options: object) -> Answer:
        return self.decide(**options).answers[task]

    def to_run(self, **options: object) -> list[str]:
        """Names of the tasks that will run, sorted."""
        return sorted(self.decide(**options).to_run())

    # what a run does

    def run(self, **options: object) -> list[str]:
        """Do what the decision says; the tasks that were really run, in order."""
        decision = self.decide(**options)
        plan, self.ran = self.plan, []
        for task, evidence in (*decision.adopted.items(), *decision.refreshed.items()):
            self.settle(plan.tasks[task], End.UP_TO_DATE, evidence)
        for task in map(plan.tasks.__getitem__, decision.answers):
            answer = decision.answers[task.id]
            if answer.verdict is not Verdict.WILL_RUN:
                continue
            if answer.may_cut_off and not any(need in self.ran for need in task.ordered):
                reasons, evidence = self.examine(task)
                if not reasons:
                    self.settle(task, End.UNCHANGED, evidence)
                    continue
            self.make(task, plan)
        return self.ran

    def make(self, task: ScheduledTask, plan: ScheduledPlan) -> None:
        """Run one task, and before it the makers of what it lacks."""
        for path in task.inputs:
            if not self.exists(path) and path in plan.producer:
                self.make(plan.tasks[plan.producer[path]], plan)
        look = looker(task, lambda path: None, str(self.root))
        script = (task.command.script_file,) if task.command.script_file else ()
        before = {path: found for path in (*task.inputs, *script) if (found := look(path))}
        content = [self.read(path) for path in task.inputs if (self.root / path).is_file()]
        figure = hashlib.sha1("\0".join([task.command.text, *content]).encode()).hexdigest()
        for path in task.outputs:
            self.write(path, f"{path} {figure}")
        after = {path: found for path in task.outputs if (found := look(path))}
        self.settle(task, End.SUCCEEDED, take(task, before, after))
        self.ran.append(task.id)

    def examine(self, task: ScheduledTask) -> tuple[tuple[object, ...], Evidence]:
        evidence = self.past.evidence(self.key(task))
        assert evidence is not None
        return examine(task, evidence, str(self.root), tombstone=self.past.tombstone)

    def fail(self, rule: str, reason: EndReason = EndReason.APP, exit_code: int | None = 1) -> None:
        """A failed attempt at the task of a rule."""
        task = self.plan.tasks[rule]
        state = End.CANCELLED if reason is EndReason.INTERRUPTED else End.FAILED
        self.settle(task, state, outcome=Outcome(reason=reason, exit_code=exit_code))

    def evict(self, path: str) -> None:
        """Remove an output on purpose, leaving a tombstone."""
        task = self.plan.tasks[self.plan.producer[path]]
        evidence = self.past.evidence(self.key(task))
        assert evidence is not None
        record = next(one for one in evidence.outputs if one.path == path)
        event = OutputEvicted(time=0.0, task=task.id, key=self.key(task), record=record)
        self.past.add([line_of(event, "run")])
        self.remove(path)

    def settle(
        self,
        task: ScheduledTask,
        state: End,
        evidence: Evidence | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        event = TaskSettled(
            time=0.0, task=task.id, key=self.key(task), state=state, n=1, evidence=evidence, outcome=outcome
        )
        self.past.add([line_of(event, "run")])

    def key(self, task: ScheduledTask) -> str:
        return evidence_key("flow", task.id, task.outputs)


def plain(reasons: Sequence[AnyReason]) -> tuple[AnyReason, ...]:
    """The reasons without what stood at changed paths before and stands there now."""
    changed = (InputChanged, OutputChanged)
    return tuple(replace(one, old=None, new=None) if isinstance(one, changed) else one for one in reasons)


def record(path: str, **fields: object) -> FileRecord:
    """A record of a file with plain figures."""
    return FileRecord(**{"path": path, "size": 3, "mtime": 5, "inode": 7, "digest": "d", **fields})
