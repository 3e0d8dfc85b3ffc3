"""Tasks that misbehave: what they leave running, write, remove, or make that was not declared."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import pytest
from story_folder import TREADLE
from story_trouble import mortal, none_left, processes

from waiting import until


def rule(name: str, shell: str, output: str = '"{name}.txt"', more: str = "") -> str:
    """A rule with a literal text, which TOML leaves alone."""
    outputs = output.replace("{name}", name)
    return f"\n[[rules]]\nname = \"{name}\"\noutput = [{outputs}]\n{more}\nshell = '''\n{shell}\n'''\n"


def failure(folder) -> str:
    """What is said of the one failure of a run."""
    return folder.treadle("run", exits=1).stderr


def nothing_more_to_do(folder) -> None:
    assert folder.run_as_previewed() == set()


def test_what_a_task_leaves_in_the_background_ends_with_it(folder):
    folder.flow(rule("careless", "sleep 300 & sleep 301 & (sleep 302 &) ; touch {output}"))
    folder.treadle("run")
    none_left(folder.path)
    nothing_more_to_do(folder)


def test_what_a_failed_task_leaves_in_the_background_cannot_write_any_more(folder):
    folder.flow(rule("careless", "(until test -e go; do sleep 0.02; done; echo late > {output}) & exit 3"))
    failure(folder)
    none_left(folder.path)
    assert not (folder / "careless.txt").exists()


def test_what_left_its_process_group_is_ended_when_the_run_is_interrupted(folder):
    folder.flow(rule("escaping", "setsid sleep 300 & touch begun; sleep 301"))
    run = folder.start("run", "--grace", "0.2s")
    folder.until("begun")
    until(
        lambda: any("sleep 300" in name for name in processes(folder.path).values()), "the one that escapes"
    )
    run.terminate()
    run.communicate(timeout=60)
    none_left(folder.path)


def test_a_task_that_closes_its_streams_is_waited_for(folder):
    folder.flow(
        rule(
            "quiet",
            "exec >&- 2>&- <&-; touch begun; until test -e go; do sleep 0.02; done; echo x > {output}",
        )
    )
    run = folder.start("run")
    folder.until("begun")
    assert run.poll() is None
    folder.write("go", "")
    assert run.wait(60) == 0
    assert folder.read("quiet.txt") == "x\n"


def test_a_task_reads_nothing_from_the_terminal(folder):
    folder.flow(rule("reading", "cat > {output}"))
    folder.treadle("run")
    assert folder.read("reading.txt") == ""


def test_a_task_that_writes_a_hundred_megabytes_of_talk(folder):
    folder.flow(
        rule("loud", "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo the end; touch {output}")
        + rule("louder", "head -c 20000000 /dev/zero | tr '\\0' y; exit 5")
    )
    said = failure(folder)
    assert len(said) < 20000, "the end of a log is one screen, however long its lines are"
    assert folder.treadle("logs", "loud", "-n", "1").stdout == "the end\n"
    assert (folder / ".treadle/runs/latest/logs/1").stat().st_size > 10**7


def test_talk_that_is_no_text_is_shown_without_harm(folder):
    folder.flow(rule("binary", "head -c 3000 /dev/urandom; printf '\\033[31mred\\007\\n'; exit 1"))
    said = failure(folder)
    assert "\x1b" not in said
    assert "\x07" not in said


@pytest.mark.parametrize(("name", "number"), [("TERM", 15), ("KILL", 9), ("SEGV", 11)])
def test_a_task_that_ends_by_a_signal_has_failed(folder, name, number):
    folder.flow(rule("dying", f"touch {{output}}; kill -{name} $$"))
    assert f"SIG{name}" in failure(folder)
    (settled,) = [event for event in folder.events() if event["event"] == "task_settled"]
    assert settled["outcome"]["signal"] == number
    assert not (folder / "dying.txt").exists()
    assert folder.will_run() == {"dying"}


def test_a_task_that_ends_its_whole_process_group_has_failed(folder):
    folder.flow(rule("dying", "kill -KILL 0") + rule("well", "touch {output}"))
    folder.treadle("run", "-k", exits=1)
    assert folder.will_run() == {"dying"}


def test_a_folder_where_a_file_was_declared_is_taken_as_a_folder(folder):
    folder.flow(
        rule("folder", "mkdir {output}; echo 1 > {output}/one; echo 2 > {output}/two")
        + rule("reader", "cat {input}/* > {output}", more='input = ["folder.txt"]')
    )
    assert folder.run_as_previewed() == {"folder", "reader"}
    nothing_more_to_do(folder)
    folder.write("folder.txt/two", "3\n")
    assert folder.will_run() == {"folder", "reader"}
    folder.treadle("run")
    assert folder.read("reader.txt") == "1\n2\n"
    nothing_more_to_do(folder)


def test_a_file_where_a_folder_was_declared_is_taken_as_a_file(folder):
    folder.flow(rule("wanted", "echo file > {output}", output='{ path = "out", pattern = "*.txt" }'))
    assert folder.run_as_previewed() == {"wanted"}
    nothing_more_to_do(folder)
    folder.write("out", "other\n")
    assert folder.run_as_previewed() == {"wanted"}


def test_a_folder_that_stands_where_a_file_is_made_is_not_lost(folder):
    folder.flow(rule("made", "echo x > {output}"))
    folder.write("made.txt/precious", "years of work\n")
    folder.treadle("run", exits=1)
    assert folder.read("made.txt/precious") == "years of work\n"


def test_a_link_that_leads_nowhere_is_no_output(folder):
    folder.flow(rule("linking", "ln -s nowhere {output}"))
    assert "did not make linking.txt" in failure(folder)
    assert not os.path.lexists(folder / "linking.txt")
    assert folder.will_run() == {"linking"}


def test_a_link_that_leads_to_itself_is_no_output(folder):
    folder.flow(rule("linking", "ln -s {output} {output}"))
    assert "did not make linking.txt" in failure(folder)
    assert folder.will_run() == {"linking"}


def test_a_link_to_a_file_is_an_output_like_any_other(folder):
    folder.flow(
        rule("linking", "echo text > real.txt; ln -sf real.txt {output}")
        + rule("reader", "cat {input} > {output}", more='input = ["linking.txt"]')
    )
    assert folder.run_as_previewed() == {"linking", "reader"}
    nothing_more_to_do(folder)
    folder.write("real.txt", "TEXT\n")
    assert "linking" in folder.will_run()


def test_two_outputs_that_are_one_file_by_a_link(folder):
    folder.flow(rule("twice", "echo text > one.txt; ln -sf one.txt two.txt", output='"one.txt", "two.txt"'))
    assert folder.run_as_previewed() == {"twice"}
    nothing_more_to_do(folder)
    folder.write("one.txt", "other\n")
    assert folder.run_as_previewed() == {"twice"}
    assert folder.read("two.txt") == "text\n"
    nothing_more_to_do(folder)


def test_an_output_that_is_a_pipe_hangs_nobody(folder):
    folder.flow(
        rule("pipe", "mkfifo {output}") + rule("reader", "echo done > {output}", more='input = ["pipe.txt"]')
    )
    assert folder.run_as_previewed() == {"pipe", "reader"}
    assert stat.S_ISFIFO((folder / "pipe.txt").stat().st_mode)
    nothing_more_to_do(folder)
    folder.treadle("run", "--force")


def test_a_task_that_removes_its_own_input_is_told_of(folder):
    folder.flow(rule("eating", "cat {input} > {output}; rm {input}", more='input = ["in.txt"]'))
    folder.write("in.txt", "food\n")
    assert "in.txt was changed while eating ran" in folder.treadle("run").stderr
    assert "the input in.txt does not exist" in folder.treadle("run", exits=2).stderr
    assert folder.read("eating.txt") == "food\n"


def test_a_task_that_removes_an_input_that_another_makes(folder):
    folder.flow(
        rule("making", "echo food > {output}")
        + rule("eating", "cat {input} > {output}; rm {input}", more='input = ["making.txt"]')
    )
    folder.treadle("run")
    assert "making" in folder.will_run()
    folder.treadle("run")
    assert folder.read("eating.txt") == "food\n"


def test_a_task_that_writes_into_the_output_of_another_is_found_out(folder):
    folder.flow(
        rule("victim", "echo good > {output}")
        + rule("vandal", "echo bad > victim.txt; touch {output}", more='input = ["victim.txt"]')
    )
    folder.treadle("run")
    assert "victim" in folder.will_run()


def test_a_task_that_makes_nothing_has_failed(folder):
    folder.flow(rule("lazy", "true") + rule("half", "touch half.txt", output='"half.txt", "other.txt"'))
    said = folder.treadle("run", "-k", exits=1).stderr
    assert "did not make lazy.txt" in said
    assert "did not make other.txt" in said
    assert not (folder / "half.txt").exists()


@pytest.mark.parametrize("make", ["echo x > {output}", "mkdir {output}; touch {output}/inner"])
def test_an_output_that_cannot_be_read_is_a_failure_that_names_it(folder, make):
    folder.flow(rule("secret", f"{make}; chmod 000 {{output}}"))
    said = folder.treadle("run", exits=1, preexec_fn=mortal).stderr
    assert "secret.txt" in said
    assert "Permission denied" in said
    folder.treadle("run", exits=1, preexec_fn=mortal)
    folder.flow(rule("secret", make))
    folder.treadle("run", preexec_fn=mortal)
    nothing_more_to_do(folder)


def test_a_read_only_tree_is_made_again_and_cleaned_like_any_other(folder):
    folder.flow(rule("tree", "mkdir {output}; touch {output}/inner; chmod 555 {output}"))
    folder.treadle("run", preexec_fn=mortal)
    nothing_more_to_do(folder)
    folder.treadle("run", "--force", preexec_fn=mortal)
    folder.treadle("clean", "-y", preexec_fn=mortal)
    assert not (folder / "tree.txt").exists()


def test_a_task_that_removes_its_own_folder(folder):
    folder.flow(rule("moving", "mkdir -p deep/er; cd deep/er; rm -rf ../../deep; echo x > /dev/null; exit 4"))
    failure(folder)
    assert folder.will_run() == {"moving"}


def test_a_task_that_removes_its_own_log(folder):
    log = ".treadle/runs/latest/logs/1"
    folder.flow(rule("clearing", f": > {log}; rm {log}; exit 2"))
    failure(folder)
    folder.treadle("logs", "clearing")
    folder.treadle("logs", "clearing", "-f")
    folder.treadle("status")


def test_a_task_that_runs_its_own_workflow_is_refused_by_the_lock(folder):
    folder.flow(rule("nested", f"'{TREADLE}' run > said.txt 2>&1 || echo $? > {{output}}"))
    folder.treadle("run")
    assert folder.read("nested.txt") == "3\n"
    assert "in use by" in folder.read("said.txt")


def test_a_temporary_output_stays_while_a_reader_of_it_has_failed_or_is_blocked(folder):
    flow = (
        rule("base", "echo base > {output}", more="temporary = true")
        + rule("good", "cat {input} > {output}", more='input = ["base.txt"]')
        + rule("bad", "cat {input} nowhere > {output}", more='input = ["base.txt"]')
        + rule("blocked", "cat {input} > {output}", more='input = ["bad.txt", "base.txt"]')
    )
    folder.flow(flow)
    folder.treadle("run", "-k", exits=1)
    assert folder.read("base.txt") == "base\n"
    folder.flow(flow.replace(" nowhere", ""))
    assert folder.run_as_previewed() == {"bad", "blocked"}
    assert not (folder / "base.txt").exists()
    nothing_more_to_do(folder)


def test_a_run_inside_of_a_task_ends_with_it(folder):
    """A task that runs a workflow of its own, in another folder: Ctrl-C reaches what that one runs."""
    inner = folder.below("inner")
    inner.flow(rule("deep", "touch begun; sleep 300"))
    folder.flow(rule("outer", f"cd inner; '{TREADLE}' run"))
    run = folder.start("run")
    folder.until("inner/begun")
    run.terminate()
    run.communicate(timeout=60)
    assert run.returncode == 143
    none_left(folder.path)
    assert inner.events()[-1]["event"] == "run_ended"


def test_a_task_that_stops_itself_is_ended_with_the_run(folder):
    folder.flow(rule("stopped", "trap 'echo heard > heard; exit 1' TERM; touch begun; kill -STOP $$"))
    run = folder.start("run", "--grace", "1h")
    folder.until("begun")
    until(lambda: stopped(folder), "the stop")
    run.terminate()
    run.communicate(timeout=60)
    assert run.returncode == 143
    assert folder.read("heard") == "heard\n"
    none_left(folder.path)


def stopped(folder) -> bool:
    """Whether some process of the folder is stopped."""
    for pid in processes(folder.path):
        with suppress(OSError), open(f"/proc/{pid}/stat") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return True
    return False


def test_a_task_that_kills_the_driver_loses_only_itself(folder):
    folder.flow(
        rule("early", "echo early > {output}")
        + rule(
            "deadly",
            "test -e done || { touch done; kill -KILL $PPID; }; cat {input} > {output}",
            more='input = ["early.txt"]',
        )
    )
    assert folder.treadle("run", exits=None).returncode == -9
    assert folder.run_as_previewed() == {"deadly"}
    nothing_more_to_do(folder)


def test_a_device_as_an_input_is_read_as_nothing(folder):
    folder.flow(rule("reader", "cat {input} > {output}", more='input = ["/dev/null"]'))
    assert folder.run_as_previewed() == {"reader"}
    nothing_more_to_do(folder)
