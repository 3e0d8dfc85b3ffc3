"""Software environments: made once, when somebody needs them, and everything of a command runs inside."""

from __future__ import annotations

import pathlib
import signal
import zipfile

import pytest
from story_environments import CONDA_FILE, tools

VENV = """
[[rules]]
name = "greet"
output = ["out.txt"]
environment = { venv = "my env", venv_requirements = "envs/r.txt" }
pre_exec = "python -c 'import hello' && A=set"
on_success = "python -c 'import hello; print(hello.WORD)' > hook.txt"
script = "greet.py {output}"
shell = "test $A = set; python -c 'import hello; print(hello.WORD)' > first.txt"
"""
CONDA = """
[[rules]]
name = "a"
output = ["a.txt"]
environment = { conda = "envs/qc.yml" }
shell = "tool > {output}"

[[rules]]
name = "b"
input = ["a.txt"]
output = ["b.txt"]
environment = { conda = "envs/qc.yml" }
shell = "tool > {output}"

[[rules]]
name = "c"
output = ["c.txt"]
shell = "echo plain > {output}"
"""


def wheel(path: pathlib.Path, word: str) -> None:
    """A package `hello` that pip can install without a network."""
    with zipfile.ZipFile(path, "w") as file:
        about = "hello-1.0.dist-info"
        file.writestr("hello.py", f"WORD = {word!r}\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")


def venv_flow(folder) -> None:
    folder.flow(VENV)
    (folder / "envs").mkdir()
    wheel(folder / "envs" / "hello-1.0-py3-none-any.whl", "hello")
    folder.write("envs/r.txt", "--no-index\n./hello-1.0-py3-none-any.whl\n")
    folder.write("greet.py", "import hello, sys\nopen(sys.argv[1], 'w').write(hello.WORD)\n")


def test_a_virtual_environment_is_made_from_its_file_and_all_of_a_command_runs_in_it(folder):
    venv_flow(folder)
    assert folder.run_as_previewed() == {"env::my-env", "greet"}
    assert folder.read("out.txt") == "hello"
    assert folder.read("first.txt") == "hello\n"
    assert folder.read("hook.txt") == "hello\n"
    assert folder.will_run() == set()
    (folder / "my env" / "bin" / "python").unlink()  # as when the Python that it was made of is gone
    assert folder.will_run() == set()
    (folder / "out.txt").unlink()
    assert folder.will_run() == {"env::my-env", "greet"}


def conda_flow(folder, flow: str = CONDA) -> dict[str, str]:
    """A workflow with an environment that a stand-in for conda makes; gives the environment to run in."""
    folder.flow(flow)
    folder.write("envs/qc.yml", CONDA_FILE)
    return tools(folder, "conda")


def test_an_environment_is_made_once_for_all_that_need_it(folder):
    env = conda_flow(folder)
    folder.treadle("run", env=env)
    assert folder.attempted() == {"env::qc", "a", "b", "c"}
    assert folder.read("b.txt") == "tool of conda\n"
    assert folder.read("calls").count("conda env create") == 1


def test_an_environment_that_is_gone_runs_nothing_again_until_a_task_needs_it(folder):
    env = conda_flow(folder)
    folder.treadle("run", env=env)
    for one in (folder / ".treadle" / "envs").glob("*.treadle-ready"):
        one.unlink()
    assert folder.will_run() == set()
    (folder / "c.txt").unlink()
    assert folder.will_run() == {"c"}
    (folder / "b.txt").unlink()
    assert folder.will_run() == {"c", "b", "env::qc"}
    folder.treadle("run", env=env)
    assert folder.attempted() == {"c", "b", "env::qc"}


def test_another_content_of_the_file_runs_again_what_runs_in_it_and_says_so(folder):
    env = conda_flow(folder)
    folder.treadle("run", env=env)
    folder.write("envs/qc.yml", f"{CONDA_FILE}  - more\n")
    assert folder.will_run() == {"env::qc", "a", "b"}
    assert "its environment changed" in folder.treadle("why", "a").stdout


def test_where_it_is_made_runs_nothing_again(folder):
    env = conda_flow(folder)
    folder.treadle("run", env=env)
    folder.flow(CONDA.replace('"envs/qc.yml"', '"envs/qc.yml", conda_prefix = "elsewhere"'))
    assert folder.will_run() == set()
    (folder / "a.txt").unlink()
    folder.treadle("run", env={**env, "TREADLE_ENVIRONMENTS": str(folder / "shared")})
    assert (folder / "elsewhere" / "conda-meta").is_dir()
    assert not (folder / "shared").exists()


def test_a_cache_serves_several_work_folders(folder):
    env = {**conda_flow(folder), "TREADLE_ENVIRONMENTS": str(folder / "shared")}
    folder.treadle("run", env=env)
    (folder / "other").mkdir()
    folder.treadle("run", "main.oxoflow", "--workdir", "other", env=env)
    assert folder.read("calls").count("conda env create") == 1
    assert (folder / "other" / "b.txt").exists()


def test_what_a_kill_left_half_made_is_made_again(folder):
    env = conda_flow(folder)
    folder.write("hang", "")  # the stand-in makes half of it, says so, and hangs
    run = folder.start("run", env=env)
    folder.until("half")
    run.send_signal(signal.SIGKILL)
    run.communicate()
    (folder / "hang").unlink()
    folder.treadle("run", env=env)
    assert folder.read("b.txt") == "tool of conda\n"
    assert folder.read("calls").count("conda env create") == 2


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
    assert "no conda is on PATH here" in folder.treadle("plan", env=env).stderr
    done = folder.treadle("run", exits=2, env=env)
    assert "no conda is on PATH here" in done.stderr
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


@pytest.mark.parametrize("setup", ["driver", "job"])
def test_on_a_scheduler_it_is_made_by_the_driver_or_as_a_job(folder, fake_cluster, setup):
    env = conda_flow(folder)
    fake = fake_cluster("slurm")
    folder.write(
        "profiles/there.toml",
        f'[cluster]\nbackend = "slurm"\nbin_dir = "{fake.bin}"\npoll_interval = "0.1s"\n'
        f'env_setup = "{setup}"\n',
    )
    folder.treadle("run", "--profile", "there", env=env)
    assert folder.read("b.txt") == "tool of conda\n"
    backends = {
        one["task"]: one["backend"] for one in folder.events() if one.get("event") == "attempt_submitted"
    }
    assert backends["a"] == "slurm"
    assert backends["env::qc"] == ("local" if setup == "driver" else "slurm")
    assert folder.will_run() == set()  # what ran there need not run here
