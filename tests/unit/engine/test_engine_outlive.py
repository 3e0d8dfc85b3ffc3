"""Jobs that outlive their driver, as the machine sees them: adopted, ended first, left, taken back."""

from __future__ import annotations

from treadle.decide.reason import Answer, JobInFlight, Verdict
from treadle.engine.budget import Budget
from treadle.engine.news import (
    BackendFailed,
    Cancel,
    Confirmed,
    Elapsed,
    Ended,
    Finish,
    InFlight,
    Interrupt,
    Interrupted,
    Launch,
    News,
    Opened,
    Order,
    Running,
    Seen,
    Started,
    Wait,
    Withdrawn,
)
from treadle.engine.node import State
from treadle.engine.state import Machine, Settings
from treadle.plan.task import Growth, Policy, Resources, ScheduledTask
from treadle.records.event import (
    AttemptEnded,
    AttemptStarted,
    AttemptSubmitted,
    End,
    EndReason,
    Event,
    EvidenceWithdrawn,
    JobSeen,
    Outcome,
    OutcomeConfirmed,
    RunDetached,
    RunEnded,
    TaskSettled,
)
from treadle.testing import plans

OLD = "20260101T000001Z-aaaa"
AT_IT = Answer(Verdict.IN_FLIGHT, (JobInFlight(run=OLD),))
OTHER = Answer(Verdict.WILL_RUN, (JobInFlight(run=OLD, other=True),))
ROOM = Budget()
FINE = Outcome()
OOM = Outcome(reason=EndReason.OOM)


def intent(task: str, n: int = 7, **fields: object) -> AttemptSubmitted:
    known = {"time": 5.0, "task": task, "attempt": 2, "n": n, "name": f"t-{n}", "backend": "slurm"}
    return AttemptSubmitted(**{**known, "identity": "i", "run": OLD, **fields})


def old(task: str, n: int = 7, **fields: object) -> InFlight:
    anew = bool(fields.pop("anew", False))
    return InFlight(2, n, "", intent(task, n, **fields), anew)


class Drive:
    """A machine with jobs that go on without it."""

    def __init__(
        self,
        *tasks: ScheduledTask,
        answers: dict[str, Answer] | None = None,
        adopted: dict[str, InFlight] | None = None,
        after: int = 0,
        budget: Budget = ROOM,
        **settings: object,
    ) -> None:
        self.machine = Machine(Settings(**settings), budget)
        self.events: list[Event] = []
        self.n: dict[str, int] = {}
        plan = plans.plan(tasks)
        opened = Opened(plan, plans.decision(plan, answers), "", adopted or {}, False, after)
        self.first = self.tell(opened)

    def tell(self, *news: News) -> list[Order]:
        turn = self.machine.handle(news, 1000.0)
        self.events += turn.events
        for command in turn.commands:
            if isinstance(command, Launch):
                self.n[command.task.id] = command.n
        return turn.commands

    def start(self, task: str, *, stays: bool = True) -> list[Order]:
        return self.tell(Started(task, self.n[task], f"job-{task}", 0, not stays, stays))

    def end(self, task: str, outcome: Outcome = FINE, *, doubted: bool = False) -> list[Order]:
        return self.tell(Ended(task, self.n[task], outcome, doubted=doubted))

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def settled(self) -> list[tuple[str, End]]:
        return [(one.task, one.state) for one in self.of(TaskSettled)]


def launches(commands: list[Order]) -> list[str]:
    return [command.task.id for command in commands if isinstance(command, Launch)]


def task(id: str, needs: str = "", **settings: object) -> ScheduledTask:
    return plans.task(id, needs.split(), **settings)


# Adoption


def test_an_adopted_attempt_is_told_with_the_run_that_submitted_it() -> None:
    drive = Drive(task("a"), task("b", "a"), answers={"a": AT_IT}, adopted={"a": old("a")})
    drive.tell(Started("a", 7, "t-7", 0, False, True), Seen("a", 7, "pending", "501", "Priority"))
    drive.tell(Running("a", 7, "501"))
    assert launches(drive.tell(Ended("a", 7, Outcome()))) == ["b"]
    told = [
        intent("a", time=1000.0),
        AttemptStarted(time=1000.0, task="a", n=7, job="t-7", waiting=True, run=OLD),
        JobSeen(time=1000.0, task="a", n=7, state="pending", job="501", reason="Priority", run=OLD),
        JobSeen(time=1000.0, task="a", n=7, state="running", job="501", run=OLD),
        TaskSettled(
            time=1000.0, task="a", key="\0small\0a", state=End.SUCCEEDED, attempt=2, n=7,
            outcome=Outcome(), run=OLD,
        ),
    ]  # fmt: skip
    assert drive.events[1:] == told


def test_new_attempts_are_numbered_above_all_that_is_in_flight() -> None:
    drive = Drive(task("a"), task("c"), answers={"a": AT_IT}, adopted={"a": old("a")}, after=11)
    assert drive.n == {"c": 12}


def test_an_adopted_attempt_that_is_lost_is_followed_by_one_of_this_run() -> None:
    drive = Drive(task("a"), answers={"a": AT_IT}, adopted={"a": old("a")})
    lost = Outcome(reason=EndReason.INTERRUPTED)
    assert launches(drive.tell(Ended("a", 7, lost))) == ["a"]
    drive.start("a")
    drive.end("a")
    ended, settled = drive.of(AttemptEnded), drive.of(TaskSettled)
    assert [(one.n, one.attempt, one.run) for one in (*ended, *settled)] == [(7, 2, OLD), (8, 3, "")]


def test_what_an_adopted_attempt_was_grown_to_is_what_it_grows_from() -> None:
    grows = Policy(retries=1, retry_memory=Growth(2.0, 0))
    one = task("a", resources=Resources(memory=10), policy=grows)
    drive = Drive(one, answers={"a": AT_IT}, adopted={"a": old("a", grown=Resources(memory=20))})
    (launch,) = drive.tell(Ended("a", 7, OOM))
    assert isinstance(launch, Launch)
    assert launch.resources.memory == 40


# A job that does something else by now


def test_a_job_of_another_command_is_gone_before_its_task_runs() -> None:
    drive = Drive(task("a"), task("c"), answers={"a": OTHER}, adopted={"a": old("a", anew=True)})
    assert launches(drive.first) == ["c"]
    assert drive.tell(Started("a", 7, "t-7", 0, False, True)) == [Cancel(("t-7",))]
    assert drive.tell(Running("a", 7), Seen("a", 7, "unknown")) == []
    assert launches(drive.tell(Ended("a", 7, Outcome(reason=EndReason.CANCELLED)))) == ["a"]
    (ended,) = drive.of(AttemptEnded)
    assert (ended.n, ended.attempt, ended.run) == (7, 2, OLD)
    drive.start("a")
    drive.end("a")
    (settled,) = drive.of(TaskSettled)
    assert (settled.n, settled.attempt, settled.run) == (9, 3, "")


def test_it_waits_for_its_needs_as_well() -> None:
    tasks = task("u"), task("a", "u")
    drive = Drive(*tasks, answers={"a": OTHER}, adopted={"a": old("a", anew=True)})
    assert drive.tell(Ended("a", 7, Outcome(reason=EndReason.CANCELLED))) == []
    drive.start("u")
    assert launches(drive.end("u")) == ["a"]


def test_it_is_blocked_when_what_it_needs_fails_meanwhile() -> None:
    tasks = task("u"), task("a", "u")
    drive = Drive(*tasks, answers={"a": OTHER}, adopted={"a": old("a", anew=True)}, keep_going=True)
    drive.start("u")
    assert drive.end("u", Outcome(reason=EndReason.APP)) == []
    assert drive.tell(Ended("a", 7, Outcome(reason=EndReason.CANCELLED))) == [Finish(1)]
    assert drive.settled() == [("u", End.FAILED), ("a", End.BLOCKED)]


def test_a_run_that_is_stopped_waits_until_it_is_gone() -> None:
    drive = Drive(task("a"), answers={"a": OTHER}, adopted={"a": old("a", anew=True)})
    assert drive.tell(Interrupted()) == []
    assert drive.tell(Started("a", 7, "t-7")) == [Cancel(("t-7",))]
    assert drive.tell(Ended("a", 7, Outcome(reason=EndReason.CANCELLED))) == [Finish(130)]


# Leaving


def test_who_leaves_says_how_many_jobs_go_on_and_that_it_is_no_end() -> None:
    drive = Drive(task("a"), task("b"), task("c", "a"))
    drive.start("a")
    drive.start("b")
    drive.end("b")
    assert drive.tell(Interrupted(Interrupt.DETACH, 143)) == [Finish(143)]
    assert drive.events[-1] == RunDetached(
        time=1000.0, exit_code=143, jobs=1, counts={"succeeded": 1, "cancelled": 1}
    )
    assert drive.machine.left == 1
    assert not drive.of(RunEnded)


def test_attempts_that_cannot_go_on_without_us_are_ended_first() -> None:
    drive = Drive(task("a"), task("b"))
    drive.start("a")
    drive.start("b", stays=False)
    assert drive.tell(Interrupted(Interrupt.DETACH, 143)) == [Cancel(("job-b",))]
    assert drive.end("b", Outcome(reason=EndReason.CANCELLED)) == [Finish(143)]
    assert drive.settled() == [("b", End.CANCELLED)]
    assert drive.machine.left == 1


def test_what_the_backend_takes_after_that_is_left_or_ended() -> None:
    drive = Drive(task("a"), task("b"))
    assert drive.tell(Interrupted(Interrupt.DETACH, 143)) == []
    assert drive.start("a") == []
    assert drive.start("b", stays=False) == [Cancel(("job-b",))]
    assert drive.end("b", Outcome(reason=EndReason.CANCELLED)) == [Finish(143)]


def test_leaving_when_nothing_goes_on_is_an_end() -> None:
    drive = Drive(task("a"))
    drive.start("a", stays=False)
    drive.tell(Interrupted(Interrupt.DETACH, 143))
    drive.end("a", Outcome(reason=EndReason.CANCELLED))
    assert isinstance(drive.events[-1], RunEnded)


def test_who_asks_again_has_the_jobs_cancelled() -> None:
    drive = Drive(task("a"), task("b"))
    drive.start("a")
    drive.start("b", stays=False)
    drive.tell(Interrupted(Interrupt.DETACH, 143))
    assert drive.tell(Interrupted(Interrupt.CANCEL, 130)) == [Cancel(("job-a", "job-b"))]


def test_jobs_of_a_backend_that_cannot_even_cancel_are_left_to_the_next_run() -> None:
    drive = Drive(task("a"))
    drive.start("a")
    drive.tell(BackendFailed("down"))
    assert drive.tell(BackendFailed("down")) == [Finish(3)]
    assert isinstance(drive.events[-1], RunDetached)


# A success that is taken back


def test_a_success_that_is_taken_back_is_tried_again_before_what_builds_on_it() -> None:
    again = Policy(retries=1)
    drive = Drive(task("a", policy=again), task("x"), task("b", "a x"), task("y", "x"), keep_going=True)
    drive.start("a")
    drive.end("a", doubted=True)
    assert launches(drive.tell(Withdrawn("a", 1, OOM))) == ["a"]
    (event,) = drive.of(EvidenceWithdrawn)
    assert (event.task, event.n, event.outcome, event.again) == ("a", 1, OOM, True)
    drive.start("x")
    assert launches(drive.end("x")) == ["y"]  # b waits for a once more
    drive.start("a")
    assert launches(drive.end("a")) == ["b"]
    assert drive.machine.counts[End.SUCCEEDED] == 2


def test_ready_dependents_go_back_to_waiting() -> None:
    late = Policy(priority=-1)
    tasks = task("a", policy=Policy(retries=1)), task("b", "a", policy=late), task("x"), task("z")
    drive = Drive(*tasks, budget=Budget(threads=1), keep_going=True)
    drive.start("a")
    (busy,) = launches(drive.end("a", doubted=True))
    assert busy == "x"
    assert drive.machine.state("b") is State.READY
    drive.tell(Withdrawn("a", 1, OOM))
    drive.start("x")
    order = launches(drive.end("x"))
    while order[-1] != "b":
        drive.start(order[-1])
        order += launches(drive.end(order[-1]))
    assert order.index("a") < order.index("b")
    drive.start("b")
    assert drive.end("b") == [Finish(0)]


def test_it_fails_when_what_builds_on_it_has_begun() -> None:
    drive = Drive(task("a", policy=Policy(retries=3)), task("b", "a"), task("c", "b"), keep_going=True)
    drive.start("a")
    drive.end("a", doubted=True)
    drive.start("b")
    assert drive.tell(Withdrawn("a", 1, OOM)) == []
    assert [event.again for event in drive.of(EvidenceWithdrawn)] == [False]
    assert launches(drive.end("b")) == ["c"]
    drive.start("c")
    assert drive.end("c") == [Finish(1)]
    assert drive.settled()[1] == ("a", End.FAILED)
    assert drive.machine.counts[End.SUCCEEDED] == 2
    assert list(drive.machine.failures) == ["a"]


def test_without_another_try_what_has_not_begun_is_blocked() -> None:
    drive = Drive(task("a"), task("x"), task("b", "a x"), task("c", "b"), keep_going=True)
    drive.start("a")
    drive.end("a", doubted=True)
    drive.tell(Withdrawn("a", 1, OOM))
    drive.start("x")
    assert drive.end("x") == [Finish(1)]
    assert dict(drive.settled()) == {
        "a": End.FAILED, "b": End.BLOCKED, "c": End.BLOCKED, "x": End.SUCCEEDED,
    }  # fmt: skip


def test_one_that_is_ready_can_be_blocked() -> None:
    late = Policy(priority=-1)
    tasks = task("a"), task("b", "a", policy=late), task("x")
    drive = Drive(*tasks, budget=Budget(threads=1), keep_going=True)
    drive.start("a")
    drive.end("a", doubted=True)
    drive.tell(Withdrawn("a", 1, OOM))
    drive.start("x")
    assert drive.end("x") == [Finish(1)]
    assert dict(drive.settled())["b"] is End.BLOCKED


def test_it_may_be_taken_back_before_its_files_were_read() -> None:
    drive = Drive(task("a", policy=Policy(retries=1)))
    drive.start("a")
    drive.tell(Withdrawn("a", 1, OOM))
    assert launches(drive.end("a", doubted=True)) == ["a"]
    assert drive.of(TaskSettled) == []


def test_one_that_is_confirmed_says_so_with_its_figures() -> None:
    drive = Drive(task("a"), task("b", "a"))
    drive.start("a")
    drive.end("a", doubted=True)
    known = Outcome(host="n1")
    drive.tell(Confirmed("a", 1, known))
    assert drive.of(OutcomeConfirmed) == [OutcomeConfirmed(time=1000.0, task="a", n=1, outcome=known)]


def test_the_end_of_a_run_waits_for_what_is_doubted_but_not_for_ever() -> None:
    drive = Drive(task("a"), linger=20.0)
    drive.start("a")
    assert drive.end("a", doubted=True) == [Wait("", 20.0)]
    assert drive.tell(Elapsed("")) == [Finish(0)]
    drive = Drive(task("a"), linger=20.0)
    drive.start("a")
    drive.end("a", doubted=True)
    assert drive.tell(Confirmed("a", 1, Outcome())) == [Finish(0)]
    drive = Drive(task("a"), linger=20.0)
    drive.start("a")
    drive.end("a", doubted=True)
    assert drive.tell(Withdrawn("a", 1, OOM)) == [Finish(1)]


# Nodes


def test_the_next_attempt_avoids_a_node_that_failed() -> None:
    drive = Drive(task("a"))
    drive.start("a")
    (again,) = drive.end("a", Outcome(reason=EndReason.NODE, host="n3"))
    assert isinstance(again, Launch)
    assert again.exclude == ("n3",)
    drive.start("a")
    (third,) = drive.end("a", Outcome(reason=EndReason.NODE, host="n4"))
    assert isinstance(third, Launch)
    assert third.exclude == ("n3", "n4")
