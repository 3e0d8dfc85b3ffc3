"""The state machine alone: news go in, and everything that comes out of it is kept."""

from __future__ import annotations

from treadle.decide.reason import Answer
from treadle.engine.budget import Budget
from treadle.engine.news import Ended, Finish, InFlight, Launch, News, Opened, Order, Started
from treadle.engine.state import Machine, Settings
from treadle.plan.task import ScheduledTask
from treadle.records.event import End, EndReason, Event, Noticed, Outcome, TaskSettled
from treadle.testing import plans

ROOM = Budget(threads=100)


class Drive:
    """A machine with everything that came out of it."""

    def __init__(
        self,
        *tasks: ScheduledTask,
        answers: dict[str, Answer] | None = None,
        budget: Budget = ROOM,
        adopted: dict[str, InFlight] | None = None,
        **settings: object,
    ) -> None:
        self.machine = Machine(Settings(**settings), budget)  # type: ignore[arg-type]
        self.events: list[Event] = []
        self.commands: list[Order] = []
        self.plan = plans.plan(tasks, budget.pools)
        self.n: dict[str, int] = {}
        self.tell(Opened(self.plan, plans.decision(self.plan, answers), adopted=adopted or {}))

    def tell(self, *news: News) -> list[Order]:
        """Hand over news; gives the commands of this turn."""
        turn = self.machine.handle(news, 1000.0)
        self.events += turn.events
        self.commands += turn.commands
        for command in turn.commands:
            if isinstance(command, Launch):
                self.n[command.task.id] = command.n
        return turn.commands

    def start(self, task: str, running: bool = True, stays: bool = False) -> list[Order]:
        return self.tell(Started(task, self.n[task], f"job-{task}", running=running, stays=stays))

    def end(self, task: str, reason: EndReason = EndReason.OK, start: bool = True) -> list[Order]:
        if start:
            self.start(task)
        return self.tell(Ended(task, self.n[task], Outcome(reason=reason, exit_code=reason != "ok")))

    def settled(self) -> dict[str, End]:
        return {event.task: event.state for event in self.events if isinstance(event, TaskSettled)}

    def launched(self) -> list[str]:
        return [command.task.id for command in self.commands if isinstance(command, Launch)]

    def codes(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, Noticed)]

    @property
    def exit_code(self) -> int | None:
        last = self.commands[-1] if self.commands else None
        return last.exit_code if isinstance(last, Finish) else None


def launches(commands: list[Order]) -> list[str]:
    return [command.task.id for command in commands if isinstance(command, Launch)]


def task(id: str, needs: str = "", **settings: object) -> ScheduledTask:
    return plans.task(id, needs.split(), **settings)  # type: ignore[arg-type]
