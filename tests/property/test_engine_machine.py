"""The machine under any plan, any ends and any interruption: it always comes to an end, and a right one."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.decide.reason import Answer, Forced, NeverRan, OutputNeeded, Upstream, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import (
    Added,
    BackendFailed,
    Cancel,
    Deferred,
    DiskFine,
    DiskFull,
    Elapsed,
    Ended,
    Examine,
    Examined,
    Finish,
    Freed,
    Interrupt,
    Interrupted,
    Launch,
    News,
    Opened,
    Refused,
    Sealed,
    Started,
    Wait,
    WatchDisk,
)
from treadle.engine.node import State
from treadle.engine.state import Machine, Settings
from treadle.plan.task import ExecutionGroup, Policy, Resources, ScheduledPlan, ScheduledTask, Where
from treadle.records.event import End, EndReason, Outcome, RunEnded, TaskSettled
from treadle.testing import plans

WELL = {End.SUCCEEDED, End.UNCHANGED, End.UP_TO_DATE, End.SKIPPED}
RANK = {State.WAITING: 0, State.READY: 1, State.SUBMITTED: 2, State.RUNNING: 3}
BUDGET = Budget(threads=4, memory=8, pools=(("pool", 2),), slots=3, remote=2)

VERDICTS = [
    Answer(Verdict.WILL_RUN, (NeverRan(),)),
    Answer(Verdict.WILL_RUN, (NeverRan(),)),
    Answer(Verdict.WILL_RUN, (Upstream("x"),), may_cut_off=True),
    Answer(Verdict.WILL_RUN, (OutputNeeded("x"),), may_cut_off=True),
    Answer(Verdict.UP_TO_DATE),
    Answer(Verdict.SKIPPED),
]


def random_tasks(size: int, chance: Random) -> list[ScheduledTask]:
    """A plan of so many tasks, in topological order."""
    made: list[ScheduledTask] = []
    for at in range(size):
        before = [one.id for one in made]
        needs = chance.sample(before, min(len(before), chance.choice([0, 1, 1, 2, 4])))
        resources = Resources(
            threads=chance.randint(1, 6),
            memory=chance.choice([None, 1, 3, 8, 12]),
            groups=(("pool", chance.choice([0, 0, 1, 3])),),
        )
        policy = Policy(
            retries=chance.choice([0, 0, 1, 2]),
            retry_delay=chance.choice([0.0, 1.0]),
            priority=chance.choice([0, 0, 1]),
            required=chance.random() < 0.7,
        )
        if chance.random() < 0.5:
            where = chance.choice(list(Where))
            made.append(plans.step(f"@s{at}", needs, where=where, resources=resources, policy=policy))
            continue
        ordered = needs if chance.random() < 0.3 else ()
        made.append(
            plans.task(f"t{at}", needs, resources=resources, policy=policy, ordered=ordered, temporary=["x"])
        )
    return made


def lines(made: list[ScheduledTask], chance: Random) -> tuple[ExecutionGroup, ...]:
    """Execution groups that agree with the order of the plan."""
    rules = [one.rule for one in made if one.call is None]
    chosen = [[rule for rule in rules if chance.random() < 0.4] for _ in range(chance.choice([0, 0, 1, 2]))]
    return tuple(ExecutionGroup(f"line{at}", tuple(rules)) for at, rules in enumerate(chosen) if rules)


def batches(made: list[ScheduledTask], chance: Random) -> list[list[ScheduledTask]]:
    """The tasks as they arrive: all at once, or one part after the other."""
    cuts = sorted(chance.sample(range(len(made) + 1), min(len(made), chance.choice([0, 0, 1, 2, 4]))))
    return [made[start:end] for start, end in zip([0, *cuts], [*cuts, len(made)])]


class World:
    """Answers the machine's commands in any order, and watches what it does."""

    def __init__(self, made: list[ScheduledTask], chance: Random) -> None:
        self.chance = chance
        self.plan = plans.plan(made, BUDGET.pools)
        first, *self.later = batches(made, chance)
        self.sealed = not self.later
        verdicts = {one.id: chance.choice(VERDICTS) for one in made}
        self.answers = verdicts
        self.machine = Machine(
            Settings(
                keep_going=chance.random() < 0.6,
                fail_fast=chance.random() < 0.2,
                max_failures=chance.choice([0, 0, 1, 2]),
                cutoff=chance.random() < 0.8,
                forget=chance.random() < 0.3,
            ),
            BUDGET,
        )
        self.jobs: dict[str, Launch] = {}
        self.launched: list[Launch] = []  # not answered by the backend
        self.examine: list[Examine] = []
        self.waits: list[str] = []
        self.deferred: dict[str, Launch] = {}
        self.arrived: set[str] = set()
        self.disk_full = False
        self.cancelled: set[str] = set()
        self.ends: dict[str, End] = {}
        self.seen: dict[str, tuple[int, int]] = {}
        self.exit: int | None = None
        self.steps = 0
        self.lines = lines(first, chance)
        plan = replace(self.arrives(first), sequences=self.lines)
        self.tell(Opened(plan, plans.decision(plan, verdicts), more=not self.sealed))

    def arrives(self, batch: list[ScheduledTask]) -> ScheduledPlan:
        self.arrived.update(one.id for one in batch)
        return plans.plan(batch, BUDGET.pools)

    def tell(self, *news: News) -> None:
        turn = self.machine.handle(news, float(self.steps))
        self.steps += 1
        for event in turn.events:
            if isinstance(event, TaskSettled):
                assert event.task not in self.ends, "one end for a task"
                self.ends[event.task] = event.state
        for command in turn.commands:
            match command:
                case Launch(task=task):
                    for need in task.needs:
                        assert need in self.arrived
                        well = self.ends.get(need) in WELL or self.answers[need].verdict in WELL
                        assert well, f"{task.id} starts before {need} ended well"
                    self.check_line(task.rule)
                    self.launched.append(command)
                case Examine():
                    self.examine.append(command)
                case Wait(task=name):
                    self.waits.append(name)
                case Cancel(jobs=jobs):
                    assert set(jobs) <= self.jobs.keys() | self.deferred.keys()
                    self.cancelled.update(jobs)
                    for job in jobs:
                        if (one := self.deferred.get(job)) is not None and self.chance.random() < 0.7:
                            del self.deferred[job]  # else news of it are under way already
                            assert self.ends[one.task.id] is End.CANCELLED
                case WatchDisk():
                    self.disk_full = True
                case Finish(exit_code=code):
                    assert isinstance(turn.events[-1], RunEnded)
                    self.exit = code
                case _:
                    pass
        self.check_resources()
        self.check_states()

    def check_line(self, rule: str) -> None:
        """What stands before a rule in an execution group has ended, or is done but for removed outputs."""
        for line in self.lines:
            for before in line.rules[: line.rules.index(rule)] if rule in line.rules else ():
                answer = self.answers[before]
                sleeps = any(isinstance(one, OutputNeeded) for one in answer.reasons)
                assert before in self.ends or answer.verdict in WELL or sleeps, (
                    f"{rule} starts before {before}"
                )

    def check_resources(self) -> None:
        used: Counter[str] = Counter()
        for one in [*self.launched, *self.jobs.values()]:
            where = one.task.call.where if one.task.call is not None else None
            used["slots"] += where in (Where.THREAD, Where.PROCESS)
            used["remote"] += where is Where.CLIENT
            if where in (None, Where.PROCESS):
                used["threads"] += one.resources.threads
                used["memory"] += one.resources.memory or 0
            used["pool"] += min(dict(one.resources.groups)["pool"], 2)
        assert used["slots"] <= 3
        assert used["remote"] <= 2
        assert used["threads"] <= 4
        assert used["memory"] <= 8
        assert used["pool"] <= 2

    def check_states(self) -> None:
        """No task goes back, but for another attempt, or for the same one when it was deferred."""
        for task, answer in self.answers.items():
            if answer.verdict in WELL or task not in self.arrived:
                continue
            state = self.machine.state(task)
            before = self.seen.get(task, (0, 0))
            forgotten = isinstance(state, End) and self.machine.settings.forget
            attempt = before[0] if forgotten else self.machine.attempt(task)
            now = (attempt, RANK[state] if isinstance(state, State) else 4)
            again = before[1] in (2, 3) and now[0] == before[0] and now[1] in (0, 1)
            assert now >= before or again, f"{task}: {before} -> {now}"
            self.seen[task] = now

    def step(self) -> None:
        """One thing happens, of all that may."""
        choices = ["interrupt", "backend", "gave_up"] if self.chance.random() < 0.04 else []
        choices += ["launch"] * bool(self.launched) + ["end"] * bool(self.jobs)
        choices += ["examined"] * bool(self.examine) + ["elapsed"] * bool(self.waits)
        choices += ["space"] * self.disk_full
        choices += ["defer"] * bool(self.jobs) + ["freed"] * bool(self.deferred)
        choices += ["arrive"] * (not self.sealed)
        assert choices, "nothing can happen, and the machine is not done"
        match self.chance.choice(choices):
            case "launch":
                one = self.launched.pop()
                if self.chance.random() < 0.1:
                    self.tell(Refused(one.task.id, one.n, "no"))
                else:
                    self.jobs[f"{one.n}"] = one
                    self.tell(Started(one.task.id, one.n, f"{one.n}", running=self.chance.random() < 0.5))
            case "end":
                job = self.chance.choice(sorted(self.jobs))
                one = self.jobs.pop(job)
                reasons = [EndReason.CANCELLED] if job in self.cancelled else list(EndReason)
                reason = self.chance.choice([EndReason.OK] * 6 + reasons)
                self.tell(Ended(one.task.id, one.n, Outcome(reason=reason)))
            case "defer":
                steps = [job for job in sorted(self.jobs) if self.jobs[job].task.call is not None]
                if steps:
                    job = self.chance.choice(steps)
                    one = self.deferred[job] = self.jobs.pop(job)
                    self.tell(Deferred(one.task.id, one.n, self.chance.choice(["they", "others"])))
            case "freed":
                job = self.chance.choice(sorted(self.deferred))
                one = self.deferred.pop(job)
                failed = self.chance.random() < 0.2
                bad = Outcome(reason=EndReason.APP)
                self.tell(Ended(one.task.id, one.n, bad) if failed else Freed(one.task.id, one.n))
            case "arrive" if self.later:
                plan = self.arrives(self.later.pop(0))
                self.tell(Added(plan, plans.decision(plan, self.answers)))
            case "arrive":
                self.sealed = True
                self.tell(Sealed())
            case "examined":
                asked = self.examine.pop()
                found = self.chance.choice([(), (Forced(),)])
                self.tell(Examined(asked.task.id, asked.round, found))
            case "elapsed":
                self.tell(Elapsed(self.waits.pop(0)))
            case "space":
                self.disk_full = False
                self.tell(DiskFine())
            case "interrupt":
                self.tell(Interrupted(self.chance.choice(list(Interrupt))))
            case "backend":
                self.tell(BackendFailed("gone"))
            case "gave_up":
                self.tell(DiskFull(gave_up=True))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 16), st.integers(0, 2**32))
def test_every_run_comes_to_one_right_end(size: int, seed: int) -> None:
    chance = Random(seed)
    made = random_tasks(size, chance)
    world = World(made, chance)
    while world.exit is None:
        assert world.steps < 2000
        world.step()
    machine = world.machine
    assert machine.finished
    left = set(machine.held())  # detached, or the backend is gone
    for task, answer in world.answers.items():
        if task not in world.arrived:
            assert world.exit != 0, "it ended before all had arrived, and nothing stopped it"
        elif answer.verdict in WELL or task in left:
            assert task not in world.ends
        else:
            state = machine.state(task)
            assert isinstance(state, End)
            assert world.ends.get(task, End.CANCELLED) is state
            if state is End.BLOCKED:
                assert machine.state(machine.blocked[task]) is End.FAILED
    total = Counter(machine.counts)
    assert sum(total.values()) + len(left) == len(world.arrived)
    failed = [one for one in machine.failures if world.plan.tasks[one].policy.required]
    if world.exit in (0, 1):
        assert world.exit == bool(failed)
