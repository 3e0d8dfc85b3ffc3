"""Evidence: what is taken, and what the comparison with the present says."""

from __future__ import annotations

import pytest
from decide_world import plain, record
from msgspec.structs import replace

from treadle.decide.evidence import changed, compare, take, weigh
from treadle.decide.reason import (
    CommandChanged,
    Content,
    InputAppeared,
    InputChanged,
    InputVanished,
    OutputChanged,
    OutputMissing,
)
from treadle.plan.task import Command, Policy, ScheduledTask, Shell
from treadle.plan.tokens import THREADS, secret

TASK = ScheduledTask(
    id="a", rule="a", command=Command(text="join x y > out"), inputs=("x", "y"), outputs=("out",)
)
SEEN = {path: record(path) for path in ("x", "y", "z", "out")}


def evidence_of(task=TASK, **later):
    return take(task, SEEN, SEEN, **later)


def reasons(now=TASK, before=TASK, **changes):
    """The comparison of `now` with the evidence of `before`, some paths changed (None: gone)."""
    world = {**SEEN, **changes}
    return plain(compare(now, evidence_of(before), world.get))


def test_evidence_holds_inputs_outputs_and_the_command():
    evidence = evidence_of()
    assert evidence.inputs == (SEEN["x"], SEEN["y"])
    assert evidence.outputs == (SEEN["out"],)
    assert evidence.text == "join x y > out"
    assert evidence.stale == ()


def test_what_was_taken_compares_equal():
    assert reasons() == ()


def test_an_input_with_other_content_is_a_reason():
    assert reasons(x=record("x", digest="other", mtime=6)) == (InputChanged(path="x"),)


def test_another_size_is_other_content_even_when_it_was_not_read():
    assert reasons(x=record("x", size=4, digest="")) == (InputChanged(path="x"),)


def test_another_time_and_inode_with_equal_content_is_none():
    assert reasons(x=record("x", mtime=9, inode=9)) == ()


def test_a_new_input_is_a_reason():
    assert reasons(replace(TASK, inputs=("x", "y", "z"))) == (InputAppeared(path="z"),)


def test_an_input_less_is_a_reason():
    assert reasons(replace(TASK, inputs=("x",))) == (InputVanished(path="y"),)


def test_another_order_of_inputs_is_none():
    assert reasons(replace(TASK, inputs=("y", "x"))) == ()


def test_an_input_that_is_gone_is_none_by_itself():
    assert reasons(x=None) == ()


def test_ancient_inputs_are_none():
    ancient = replace(TASK, ancient=frozenset({"x", "z"}), inputs=("x", "y", "z"))
    assert reasons(ancient, x=record("x", digest="other")) == ()


def test_a_missing_output_is_a_reason():
    assert reasons(out=None) == (OutputMissing(path="out"),)


def test_a_changed_output_is_a_reason():
    assert reasons(out=record("out", digest="other")) == (OutputChanged(path="out"),)


def test_a_changed_command_tells_the_old_and_the_new_text():
    other = replace(TASK, command=Command(text="join -v1 x y > out"))
    assert reasons(other) == (CommandChanged(part="text", old="join x y > out", new="join -v1 x y > out"),)


def test_changed_outputs_tell_the_old_and_the_new_paths():
    other = replace(TASK, outputs=("out", "z"))
    assert reasons(other) == (CommandChanged(part="outputs", old="out", new="out\nz"),)


def test_a_change_behind_the_cut_of_the_shown_text_is_still_a_reason():
    long = replace(TASK, command=Command(text="x" * 5000))
    longer = replace(TASK, command=Command(text="x" * 5001))
    assert [type(why) for why in reasons(longer, long)] == [CommandChanged]


def test_changed_variables_tell_the_old_and_the_new():
    one = replace(TASK, command=replace(TASK.command, env=(("A", "1"),)))
    two = replace(TASK, command=replace(TASK.command, env=(("A", "2"), ("B", "x"))))
    assert reasons(two, one) == (CommandChanged(part="env", old="A=1", new="A=2\nB=x"),)


def test_a_changed_hook_and_a_changed_shell_are_told_apart_with_the_old_and_the_new():
    hooked = replace(TASK, command=replace(TASK.command, pre_exec="true", on_success="mail me"))
    other = replace(TASK, command=replace(TASK.command, pre_exec="false", on_success="mail me"))
    strict = replace(other, policy=Policy(shell=Shell(strict=True, prelude="umask 2")))
    assert reasons(strict, hooked) == (
        CommandChanged(
            part="hooks",
            old="pre_exec=true\non_success=mail me",
            new="pre_exec=false\non_success=mail me",
        ),
        CommandChanged(part="shell", old="", new="strict_shell=true\nshell_prelude=umask 2"),
    )


def test_a_changed_file_is_told_with_what_stood_there_and_what_stands_there_now():
    seen = {**SEEN, "x": record("x", digest="other", mtime=6), "out": record("out", size=9, digest="")}
    assert compare(TASK, evidence_of(), seen.get) == (
        InputChanged(path="x", old=Content(3, 5, "d"), new=Content(3, 6, "other")),
        OutputChanged(path="out", old=Content(3, 5, "d"), new=Content(9, 5)),
    )


def test_what_only_an_attempt_knows_is_named_in_old_and_new_values():
    one = replace(
        TASK, command=Command(text=f"run -t {THREADS}", env=(("TOKEN", secret("TREADLE_SECRET_T")),))
    )
    two = replace(
        TASK, command=Command(text=f"run -p {THREADS}", env=(("OTHER", secret("TREADLE_SECRET_T")),))
    )
    assert reasons(two, one) == (
        CommandChanged(part="text", old="run -t {threads}", new="run -p {threads}"),
        CommandChanged(part="env", old="TOKEN={TREADLE_SECRET_T}", new="OTHER={TREADLE_SECRET_T}"),
    )


def test_a_changed_script_is_a_reason():
    task = replace(TASK, command=Command(script=("python", "s.py"), script_file="s.py"))
    before = {**SEEN, "s.py": record("s.py", digest="a" * 64)}
    now = {**SEEN, "s.py": record("s.py", digest="b" * 64, mtime=6)}
    evidence = take(task, before, SEEN)
    assert compare(task, evidence, before.get) == ()
    assert compare(task, evidence, now.get) == (CommandChanged(part="script", old="a" * 64, new="b" * 64),)


def test_an_input_that_changed_while_the_task_ran_leaves_its_result_stale():
    evidence = evidence_of(later={**SEEN, "y": record("y", digest="other", mtime=8)})
    assert evidence.stale == ("y",)
    assert compare(TASK, evidence, SEEN.get) == (InputChanged(path="y", how="while_running"),)


def test_an_input_that_was_only_touched_while_the_task_ran_leaves_nothing_stale():
    assert evidence_of(later={**SEEN, "y": record("y", mtime=8)}).stale == ()


def test_an_ancient_input_that_changed_while_the_task_ran_is_no_reason():
    evidence = evidence_of(later={**SEEN, "y": record("y", digest="other")})
    assert compare(replace(TASK, ancient=frozenset({"y"})), evidence, SEEN.get) == ()


def test_a_script_that_changed_while_the_task_ran_is_a_reason():
    task = replace(TASK, command=Command(script=("python", "s.py"), script_file="s.py"))
    before = {**SEEN, "s.py": record("s.py")}
    evidence = take(task, before, SEEN, later={**before, "s.py": record("s.py", digest="other")})
    assert compare(task, evidence, before.get) == (CommandChanged(part="script"),)


def test_evidence_is_refreshed_when_only_stats_changed():
    touched = record("x", mtime=9, inode=9)
    why, evidence = weigh(TASK, evidence_of(note="touched"), {**SEEN, "x": touched}.get)
    assert why == ()
    assert evidence.inputs == (touched, SEEN["y"])
    assert evidence.note == "touched"


def test_evidence_stays_the_same_object_when_nothing_changed():
    before = evidence_of()
    assert weigh(TASK, before, SEEN.get)[1] is before


def test_what_is_gone_stays_in_refreshed_evidence_as_it_was():
    world = {**SEEN, "x": None, "y": record("y", mtime=9)}
    assert weigh(TASK, evidence_of(), world.get)[1].inputs == (SEEN["x"], world["y"])


def test_evidence_by_another_recipe_of_identity_is_compared_by_what_it_shows():
    old = replace(evidence_of(), identity="by a recipe of long ago", identity_format=0)
    why, evidence = weigh(TASK, old, SEEN.get)
    assert why == ()
    assert evidence.identity == evidence_of().identity
    changed_text = replace(TASK, command=Command(text="other"))
    assert [type(why) for why in compare(changed_text, old, SEEN.get)] == [CommandChanged]


@pytest.mark.parametrize(
    ("before", "now", "how"),
    [
        ({"digest": ""}, {"digest": ""}, ""),
        ({"digest": ""}, {"digest": "", "inode": 8}, ""),
        ({"digest": ""}, {"digest": "", "mtime": 8}, "stat"),
        ({"digest": ""}, {"digest": "", "size": 8}, "stat"),
        ({"digest": "d"}, {"digest": "", "mtime": 8}, "stat"),
        ({"digest": ""}, {"digest": "d"}, ""),
        ({"digest": "d"}, {"digest": "d", "folder": True}, "content"),
    ],
)
def test_content_that_was_not_read_is_compared_by_size_and_time(before, now, how):
    assert changed(record("x", **before), record("x", **now)) == how
