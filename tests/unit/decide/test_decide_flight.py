"""Jobs of earlier runs that still live: taken over, ended first, or left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from decide_world import World, draft

from treadle.decide.flight import sent_identity
from treadle.decide.reason import Decision, JobInFlight, Upstream, Verdict
from treadle.records.event import evidence_key
from treadle.records.flight import Interrupted

RUN = "20261129T110501Z-ab12"


class Flying(World):
    """A world in which the jobs of some tasks go on without their driver."""

    def fly(self, rule: str) -> None:
        task = next(one for one in self.plan.tasks.values() if one.rule == rule)
        key = evidence_key("flow", task.id, task.outputs)
        seen = self.options()
        flight = Interrupted(
            run=RUN,
            task=task.id,
            key=key,
            attempt=1,
            n=3,
            name="t-3",
            backend="slurm",
            job="77",
            holder=RUN,
            identity=sent_identity(task, lambda path: None, seen.workdir, seen.flowdir),
        )
        self.past.flights = {**self.past.flights, key: flight}


@pytest.fixture
def world(tmp_path: Path) -> Flying:
    found = Flying(tmp_path, draft("a", "in", "a.txt"), draft("b", "a.txt", "b.txt"))
    found.write("in")
    return found


def verdicts(decision: Decision) -> dict[str, Verdict]:
    return {task.partition("/")[0]: answer.verdict for task, answer in decision.answers.items()}


def test_a_job_that_does_what_the_task_would_do_is_taken_over(world: Flying) -> None:
    world.fly("a")
    decision = world.decide()
    assert verdicts(decision) == {"a": Verdict.IN_FLIGHT, "b": Verdict.WILL_RUN}
    assert decision.in_flight() == ["a"]
    assert decision.answers["a"].reasons == (JobInFlight(run=RUN, job="77", backend="slurm"),)


def test_what_reads_it_waits_for_what_it_makes_even_if_it_was_up_to_date(world: Flying) -> None:
    world.run()
    world.fly("a")
    answer = world.decide().answers["b"]
    assert (answer.verdict, answer.may_cut_off) == (Verdict.WILL_RUN, True)
    assert isinstance(answer.reasons[0], Upstream)


def test_a_job_of_another_command_is_ended_first(world: Flying) -> None:
    world.fly("a")
    world.set(draft("a", "in", "a.txt", text="other > a.txt"))
    answer = world.decide().answers["a"]
    assert answer.verdict is Verdict.WILL_RUN
    assert answer.reasons == (JobInFlight(run=RUN, job="77", backend="slurm", other=True),)


def test_an_edited_script_makes_it_another_command(tmp_path: Path) -> None:
    world = Flying(tmp_path, draft("a", "in", "a.txt", script_file="do.py"))
    world.write("in")
    world.write("do.py", "one")
    world.fly("a")
    assert verdicts(world.decide()) == {"a": Verdict.IN_FLIGHT}
    world.write("do.py", "two")
    assert verdicts(world.decide()) == {"a": Verdict.WILL_RUN}


def test_a_forced_task_is_run_anew(world: Flying) -> None:
    world.run()
    world.fly("a")
    task = world.plan.order[0]
    assert verdicts(world.decide(forced=frozenset({task})))["a"] is Verdict.WILL_RUN


def test_a_job_whose_input_is_made_again_is_not_what_is_wanted(world: Flying) -> None:
    world.run()
    world.fly("b")
    world.write("in", "other")
    answers = world.decide().answers
    below = answers[world.plan.order[1]]
    assert below.verdict is Verdict.WILL_RUN
    assert below.reasons[0] == JobInFlight(run=RUN, job="77", backend="slurm", other=True)
    assert isinstance(below.reasons[1], Upstream)


def test_a_job_goes_on_though_its_source_is_gone_by_now(world: Flying) -> None:
    world.fly("a")
    world.remove("in")
    assert verdicts(world.decide())["a"] is Verdict.IN_FLIGHT


def test_jobs_of_tasks_that_were_not_asked_for_are_left_alone(world: Flying) -> None:
    world.run()
    world.fly("b")
    decision = world.decide(selected=frozenset({world.plan.order[0]}))
    assert verdicts(decision) == {"a": Verdict.UP_TO_DATE}
