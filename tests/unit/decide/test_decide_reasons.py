"""Why a task runs: each rule of the decision, told on real files."""

from __future__ import annotations

import os
import shutil

import pytest
from decide_world import World, draft, plain
from msgspec.structs import replace

from treadle.decide.reason import (
    CommandChanged,
    Forced,
    InputAppeared,
    InputChanged,
    InputVanished,
    LastFailed,
    NeverRan,
    OutputChanged,
    OutputMissing,
    Verdict,
)
from treadle.plan.task import Command, Policy
from treadle.plan.tokens import FLOWDIR
from treadle.records.event import End, EndReason


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, draft("a", "in.txt", "a.txt"))
    world.write("in.txt")
    return world


def why(world, task="a", **options):
    return plain(world.answer(task, **options).reasons)


def test_a_task_that_never_ran_runs(world):
    assert why(world) == (NeverRan(),)


def test_a_task_whose_outputs_nobody_made_never_ran_and_says_that_they_are_there(world):
    world.write("a.txt")
    assert why(world) == (NeverRan(outputs_exist=True),)


def test_a_task_that_ran_is_up_to_date(world):
    world.run()
    assert world.answer("a").verdict is Verdict.UP_TO_DATE


def test_a_failed_task_runs_again(world):
    world.fail("a", EndReason.OOM, 137)
    assert why(world) == (LastFailed(how=EndReason.OOM, exit_code=137),)


def test_a_task_that_failed_after_a_success_runs_again(world):
    world.run()
    world.fail("a")
    world.remove("a.txt")
    assert why(world) == (LastFailed(how=EndReason.APP, exit_code=1),)


def test_an_interrupted_task_runs_again(world):
    world.run()
    world.fail("a", EndReason.INTERRUPTED, None)
    assert why(world) == (LastFailed(how=EndReason.INTERRUPTED),)


def test_a_failed_task_also_says_what_changed_since_its_last_success(world):
    world.run()
    world.fail("a")
    world.write("in.txt", "other")
    assert why(world) == (LastFailed(exit_code=1), InputChanged(path="in.txt"))


def test_a_success_after_a_failure_counts(world):
    world.fail("a")
    world.run()
    assert world.to_run() == []


def test_a_task_with_another_command_runs(world):
    world.run()
    world.set(draft("a", "in.txt", "a.txt", text="other"))
    assert why(world) == (CommandChanged(old="a in.txt > a.txt", new="other"),)


def test_another_number_of_threads_runs_nothing(world):
    world.run()
    world.set(draft("a", "in.txt", "a.txt", threads=8))
    assert world.to_run() == []


def test_renaming_a_rule_forgets_nothing(world):
    world.run()
    renamed = replace(world.drafts.pop("a"), rule="b")
    world.set(renamed)
    assert world.to_run() == []


def test_a_changed_input_makes_the_task_run(world):
    world.run()
    world.write("in.txt", "other")
    assert why(world) == (InputChanged(path="in.txt"),)


def test_an_input_changed_to_the_same_size_is_noticed(world):
    world.run()
    world.write("in.txt", "IN.TXT")
    assert why(world) == (InputChanged(path="in.txt"),)


def test_a_touched_input_makes_nothing_run_and_its_evidence_is_refreshed(world):
    world.run()
    world.touch("in.txt")
    decision = world.decide()
    assert decision.to_run() == []
    mtime = os.stat(world.root / "in.txt").st_mtime_ns
    assert [record.mtime for record in decision.refreshed["a"].inputs] == [mtime]


def test_refreshed_evidence_that_was_recorded_is_not_refreshed_again(world):
    world.run()
    world.touch("in.txt")
    world.run()
    assert world.decide().refreshed == {}


def test_a_copied_folder_makes_nothing_run(world, tmp_path_factory):
    world.run()
    other = tmp_path_factory.mktemp("copy") / "folder"
    shutil.copytree(world.root, other, copy_function=shutil.copy)
    world.root = other
    assert world.to_run() == []


def test_a_young_file_is_not_trusted_by_its_stat(world):
    world.write("in.txt", "one", young=True)
    world.run()
    stat = os.stat(world.root / "in.txt")
    (world.root / "in.txt").write_text("two")
    os.utime(world.root / "in.txt", ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert why(world) == (InputChanged(path="in.txt"),)


def test_an_input_more_and_an_input_less_are_reasons(world):
    world.write("more.txt")
    world.run()
    world.set(draft("a", "more.txt", "a.txt", text="a in.txt > a.txt"))
    assert why(world) == (InputAppeared(path="more.txt"), InputVanished(path="in.txt"))


def test_inputs_in_another_order_are_still_compared_each_with_its_own_record(world):
    world.write("more.txt")
    world.set(draft("a", "in.txt more.txt", "a.txt", text="a"))
    world.run()
    world.touch("in.txt")
    world.touch("more.txt")
    world.set(draft("a", "more.txt in.txt", "a.txt", text="a"))
    assert world.to_run() == []
    world.write("more.txt", "MORE.TXT")
    assert why(world) == (InputChanged(path="more.txt"),)


def test_a_source_that_is_gone_makes_nothing_run_while_nobody_needs_it(world):
    world.run()
    world.remove("in.txt")
    assert world.to_run() == []


def test_a_missing_output_makes_the_task_run(world):
    world.run()
    world.remove("a.txt")
    assert why(world) == (OutputMissing(path="a.txt"),)


def test_an_output_changed_by_someone_else_makes_the_task_run(world):
    world.run()
    world.write("a.txt", "edited")
    assert why(world) == (OutputChanged(path="a.txt"),)


def test_an_output_that_was_only_touched_makes_nothing_run(world):
    world.run()
    world.touch("a.txt")
    assert world.to_run() == []


def test_an_output_that_another_task_recorded_since_makes_the_task_run(world):
    world.set(draft("a", "in.txt", "a.txt shared.txt"))
    world.run()
    content = world.read("shared.txt")
    theirs = World(world.root, draft("b", "in.txt", "b.txt shared.txt"))
    theirs.past = world.past
    theirs.run()
    assert why(world) == (OutputChanged(path="shared.txt"),)
    world.write("shared.txt", content)
    assert why(world) == (OutputChanged(path="shared.txt"),)


def test_a_forced_task_runs_and_is_never_cut_off(world):
    world.run()
    answer = world.answer("a", forced=frozenset({"a"}))
    assert (answer.reasons, answer.may_cut_off) == ((Forced(),), False)


def test_all_tasks_can_be_forced(world):
    world.set(draft("b", "a.txt", "b.txt"))
    world.run()
    decision = world.decide(force_all=True)
    assert decision.to_run() == ["a", "b"]
    assert not any(answer.may_cut_off for answer in decision.answers.values())


def test_a_result_that_was_made_stale_while_it_was_made_runs_again(world):
    world.run()
    task = world.plan.tasks["a"]
    evidence = world.past.evidence("a.txt")
    assert evidence is not None
    world.settle(task, End.SUCCEEDED, replace(evidence, stale=("in.txt",)))
    assert why(world) == (InputChanged(path="in.txt", how="while_running"),)


def test_a_changed_script_makes_the_task_run_wherever_the_folder_stands(world):
    script = Command(script=("python", f"{FLOWDIR}/s.py"), script_file=f"{FLOWDIR}/s.py")
    world.write("s.py", "print(1)")
    world.set(replace(world.drafts["a"], command=script))
    world.run()
    assert world.to_run() == []
    world.touch("s.py")
    assert world.to_run() == []
    world.write("s.py", "print(2)")
    (reason,) = why(world)
    assert (reason.part, len(reason.old), len(reason.new)) == ("script", 64, 64)


def test_a_task_without_outputs_runs_once(world):
    world.set(draft("mail", "a.txt"))
    world.run()
    assert world.to_run() == []
    world.set(draft("mail", "a.txt", text="other"))
    assert world.to_run() == ["mail"]


def test_two_workflows_do_not_share_evidence_of_tasks_without_outputs(world):
    world.set(draft("mail"))
    world.run()
    assert world.past.evidence("\0flow\0mail") is not None
    assert world.past.evidence("\0other\0mail") is None


def test_above_the_digest_limit_size_and_time_decide(world):
    world.set(draft("a", "in.txt", "a.txt", policy=Policy(digest_limit=3)))
    world.run()
    assert world.answer("a").note == "unread"
    content = world.read("in.txt")
    stat = os.stat(world.root / "in.txt")
    world.remove("in.txt")
    world.write("in.txt", content)
    os.utime(world.root / "in.txt", ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert world.to_run() == []  # another inode alone says nothing there
    world.touch("in.txt")
    assert why(world) == (InputChanged(path="in.txt", how="stat"),)


def test_an_ancient_input_that_was_not_read_is_not_worth_a_note(world):
    world.set(draft("a", "in.txt", "a.txt", ancient=("in.txt",)))
    world.run()
    world.write("in.txt", "of another size")
    assert world.answer("a").note == ""


def test_a_young_file_above_the_limit_is_trusted(world):
    world.set(draft("a", "in.txt", "a.txt", policy=Policy(digest_limit=3)))
    world.write("in.txt", "long enough", young=True)
    world.run()
    assert world.to_run() == []


def test_a_folder_that_a_task_makes_is_compared_by_what_is_in_it(world):
    world.set(draft("b", "d", "b.txt"))
    world.write("d/one.txt")
    world.run()
    assert world.to_run() == []
    world.touch("d/one.txt")
    assert world.to_run() == []
    world.write("d/two.txt")
    assert why(world, "b") == (InputChanged(path="d"),)


def test_a_task_that_writes_into_the_folder_that_it_reads_comes_to_rest(world):
    world.set(draft("all", "results", "results/all.html", log="results/all.log"))
    world.write("results/one.txt")
    world.run()
    world.write("results/all.log")
    assert world.to_run() == []
    world.write("results/two.txt")
    assert why(world, "all") == (InputChanged(path="results"),)


def test_only_selected_tasks_get_an_answer(world):
    world.set(draft("b", "in.txt", "b.txt"))
    assert list(world.decide(selected=frozenset({"b"})).answers) == ["b"]


def test_answers_come_in_plan_order(world):
    world.set(draft("z", "in.txt", "z.txt"), draft("c", "z.txt", "c.txt"))
    assert list(world.decide().answers) == list(world.plan.order)
