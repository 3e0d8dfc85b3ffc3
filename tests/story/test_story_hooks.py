"""Hooks: inside the attempt, in its shell environment, whatever way it ends; but not after SIGKILL."""

from __future__ import annotations

RULE = """
    [[rules]]
    name = "r"
    output = ["out.txt"]
    pre_exec = '''{pre}'''
    on_success = '''echo good >> hooks.txt; {success}'''
    on_failure = "echo bad >> hooks.txt"
    {more}
    shell = '''{shell}'''
"""


def flow(folder, shell, *, pre=":", success=":", more=""):
    text = RULE.replace("{pre}", pre).replace("{success}", success).replace("{more}", more)
    folder.flow(text.replace("{shell}", shell))


def hooks(folder) -> list[str]:
    return folder.read("hooks.txt").split() if (folder / "hooks.txt").exists() else []


def test_what_pre_exec_sets_holds_for_the_command(folder):
    flow(folder, 'echo "$WORD" > {output}', pre="WORD=set")
    folder.treadle("run")
    assert folder.read("out.txt") == "set\n"
    assert hooks(folder) == ["good"]


def test_a_pre_exec_that_fails_fails_the_attempt_before_its_command(folder):
    flow(folder, "touch began; echo > {output}", pre="exit 7")
    done = folder.treadle("run", exits=1)
    assert "failed r: failed with exit code 7" in done.stderr
    assert not (folder / "began").exists()
    assert hooks(folder) == ["bad"]


def test_a_pre_exec_that_calls_exit_0_is_no_success_of_outputs_that_stand_there(folder):
    flow(folder, "touch began; echo > {output}", pre="exit 0")
    (folder / "out.txt").write_text("old")
    folder.treadle("run", exits=1)
    assert "pre_exec ended the shell (exit), so the command did not run" in folder.treadle("logs", "r").stdout
    assert not (folder / "began").exists()
    assert hooks(folder) == ["bad"]


def test_a_hook_after_a_success_that_fails_only_warns(folder):
    flow(folder, "echo > {output}", success="exit 5")
    folder.treadle("run")
    assert "on_success failed with exit code 5" in folder.treadle("logs", "r").stdout
    assert folder.will_run() == set()


def test_the_hook_for_failures_runs_after_a_time_limit(folder):
    flow(folder, "sleep 60", more='resources = { time_limit = "1s" }')
    assert "reached its time limit" in folder.treadle("run", exits=1).stderr
    assert hooks(folder) == ["bad"]


def test_no_hook_runs_after_a_kill(folder):
    flow(folder, "kill -KILL 0", more="retries = 1")
    assert "SIGKILL" in folder.treadle("run", exits=1).stderr
    assert hooks(folder) == []


def test_hooks_run_at_each_attempt(folder):
    flow(folder, "echo x >> tries; test $(wc -l < tries) -eq 2 && echo > {output}", more="retries = 1")
    folder.treadle("run")
    assert hooks(folder) == ["bad", "good"]


def test_a_warning_before_the_end_lets_a_task_save_what_it_has(folder):
    flow(
        folder,
        "trap 'echo saved >> {output}; exit 1' TERM; test ! -e {output} || exit 0; sleep 60 & wait",
        more='resumable = true\nretries = 1\nsignal_before_end = "3s"\nresources = { time_limit = "4s" }',
    )
    folder.treadle("run")
    assert folder.read("out.txt") == "saved\n"
    reasons = [one["outcome"].get("reason", "ok") for one in folder.events() if "outcome" in one]
    assert reasons == ["time", "ok"]
