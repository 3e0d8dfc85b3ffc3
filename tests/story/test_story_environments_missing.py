"""Software environments that cannot be made, are not there, or are another's: said before, or in the log."""

from __future__ import annotations

from story_environments import CONDA, conda_flow


def test_an_environment_that_cannot_be_made_blocks_who_needs_it_and_its_log_is_named(folder):
    env = conda_flow(folder)
    folder.write("broken", "")
    done = folder.treadle("run", "--keep-going", exits=1, env=env)
    assert "env::qc" in done.stderr
    assert "blocked" in done.stderr
    assert "no such package" in folder.treadle("logs", "env::qc").stdout
    assert (folder / "c.txt").exists()
    (folder / "broken").unlink()
    folder.treadle("run", env=env)
    assert folder.attempted() == {"env::qc", "a", "b"}


def test_a_folder_of_somebody_else_is_not_touched(folder):
    env = conda_flow(folder, CONDA.replace('"envs/qc.yml"', '"envs/qc.yml", conda_prefix = "mine"'))
    folder.write("mine/letter", "dear")
    folder.treadle("run", exits=1, env=env)
    assert "was not made by treadle" in folder.treadle("logs", "env::qc").stdout
    assert folder.read("mine/letter") == "dear"


def test_a_program_that_is_missing_is_a_warning_in_plan_and_an_error_before_anything_starts(folder):
    conda_flow(folder)
    env = folder.env(PATH="/usr/bin:/bin")
    assert "neither conda nor mamba nor micromamba is on PATH here" in folder.treadle("plan", env=env).stderr
    done = folder.treadle("run", exits=2, env=env)
    assert "neither conda nor mamba nor micromamba is on PATH here" in done.stderr
    assert not (folder / "c.txt").exists()
    folder.treadle("run", "c", env=env)


def test_an_environment_that_must_be_there_and_is_not_stops_the_run_before_it_starts(folder):
    folder.flow("""
        [[rules]]
        name = "a"
        output = ["a.txt"]
        environment = { venv = "nowhere" }
        shell = "touch {output}"
    """)
    assert "there is no folder" in folder.treadle("plan").stderr
    assert "there is no folder" in folder.treadle("run", exits=2).stderr


def test_a_task_that_fails_in_an_environment_fails_with_its_own_exit_code(folder):
    env = conda_flow(folder, CONDA.replace("tool > {output}", "exit 9"))
    assert "exit code 9" in folder.treadle("run", exits=1, env=env).stderr
