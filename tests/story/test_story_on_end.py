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
