"""The state machine with steps: batches join, attempts are deferred, and what comes out of it is kept."""

from __future__ import annotations

from treadle.decide.reason import Answer
from treadle.engine.budget import Budget
from treadle.engine.news import Added, Cancel, Deferred, Ended, Freed, Launch, News, Opened, Order, Started
from treadle.engine.state import Machine, Settings
from treadle.plan.task import ScheduledTask
from treadle.records.event import End, EndReason, Event, Outcome, TaskSettled
from treadle.testing import plans

step = plans.step

task = plans.task

BAD = Outcome(reason=EndReason.APP)


class Drive:
    """A machine with everything that came out of it."""

    def __init__(
        self,
        *tasks: ScheduledTask,
        budget: Budget = Budget(slots=8, remote=8),  # noqa: B008 - a value
        more: bool = False,
        answers: dict[str, Answer] | None = None,
        **settings: object,
    ) -> None:
        self.machine = Machine(Settings(**settings), budget)  # type: ignore[arg-type]
        self.events: list[Event] = []
        self.commands: list[Order] = []
        self.n: dict[str, int] = {}
        plan = plans.plan(tasks, budget.pools)
        self.tell(Opened(plan, plans.decision(plan, answers), more=more))

    def tell(self, *news: News) -> list[Order]:
        turn = self.machine.handle(news, 1000.0)
        for command in turn.commands:
            if isinstance(command, Launch):
                self.n[command.task.id] = command.n
        self.events += turn.events
        self.commands += turn.commands
        return turn.commands

    def add(self, *tasks: ScheduledTask, answers: dict[str, Answer] | None = None) -> list[Order]:
        plan = plans.plan(tasks)
        return self.tell(Added(plan, plans.decision(plan, answers)))

    def start(self, *names: str, running: bool = True) -> list[Order]:
        return self.tell(*[Started(one, self.n[one], f"job {self.n[one]}", running=running) for one in names])

    def end(self, name: str, outcome: Outcome = Outcome()) -> list[Order]:  # noqa: B008 - a value
        return self.tell(Ended(name, self.n[name], outcome))

    def defer(self, name: str, holder: str = "them") -> list[Order]:
        return self.tell(Deferred(name, self.n[name], holder))

    def free(self, name: str) -> list[Order]:
        return self.tell(Freed(name, self.n[name]))

    def ends(self) -> dict[str, End]:
        return {event.task: event.state for event in self.events if isinstance(event, TaskSettled)}


def started(commands: list[Order]) -> list[str]:
    return [one.task.id for one in commands if isinstance(one, Launch)]


def cancelled(commands: list[Order]) -> list[str]:
    return [job for one in commands if isinstance(one, Cancel) for job in one.jobs]
