"""`on_end`: one command after a run, told how it went."""

from __future__ import annotations

HEAD = """[workflow]
name = "story"
on_end = '''{command}'''
[[rules]]
name = "r"
output = ["o.txt"]
shell = "{shell}"
"""
TELL = 'echo "$TREADLE_WORKFLOW $TREADLE_EXIT_CODE $TREADLE_FAILED" > told.txt; echo said'


def test_it_is_told_of_a_good_run_and_not_called_when_nothing_ran(folder):
    folder.flow("", head=HEAD.replace("{command}", TELL).replace("{shell}", "echo > {output}"))
    folder.treadle("run")
    assert folder.read("told.txt") == "story 0 0\n"
    assert "said" in folder.read(".treadle/runs/latest/engine.log")
    (folder / "told.txt").unlink()
    folder.treadle("run")
    assert not (folder / "told.txt").exists()


def test_it_is_told_of_a_failed_run(folder):
    folder.flow("", head=HEAD.replace("{command}", TELL).replace("{shell}", "exit 3"))
    folder.treadle("run", exits=1)
    assert folder.read("told.txt") == "story 1 1\n"


def test_its_own_failure_changes_nothing(folder):
    folder.flow("", head=HEAD.replace("{command}", "exit 9").replace("{shell}", "echo > {output}"))
    folder.treadle("run")
    assert "on_end failed with exit code 9" in folder.read(".treadle/runs/latest/engine.log")


def test_config_values_are_filled_in_and_a_secret_is_masked_in_what_it_says(folder):
    head = HEAD.replace(
        "[[rules]]", '[config]\nto = "a@b"\ntoken = { default = "s3cr3t", sensitive = true }\n[[rules]]'
    )
    command = "echo {config.to} {config.token} > told.txt; echo sent with {config.token}"
    folder.flow("", head=head.replace("{command}", command).replace("{shell}", "echo > {output}"))
    folder.treadle("run")
    assert folder.read("told.txt") == "a@b s3cr3t\n"
    log = folder.read(".treadle/runs/latest/engine.log")
    assert "sent with ***" in log
    assert "s3cr3t" not in log


def test_what_belongs_to_a_task_is_refused_in_it(folder):
    folder.flow(
        "", head=HEAD.replace("{command}", "echo {output} {threads}").replace("{shell}", "echo > {output}")
    )
    done = folder.treadle("run", exits=2)
    assert "main.oxoflow:3 [workflow.on_end]: {output} is of one task and cannot stand here" in done.stderr
