"""Software environments: made once, when somebody needs them, and everything of a command runs inside."""

from __future__ import annotations

import pathlib
import signal
import zipfile

from story_environments import CONDA, CONDA_FILE, conda_flow, tools

from waiting import until

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


def test_where_there_is_no_conda_micromamba_makes_what_conda_would(folder):
    conda_flow(folder)
    (folder / "bin" / "conda").unlink()
    folder.treadle("run", env=tools(folder, "micromamba"))
    assert folder.read("a.txt") == "tool of micromamba\n"


def test_two_runs_that_want_one_environment_make_it_once(folder):
    env = {**conda_flow(folder), "TREADLE_ENVIRONMENTS": str(folder / "shared")}
    folder.write("hold", "")
    (folder / "other").mkdir()
    first = folder.start("run", env=env)
    folder.until("half")
    second = folder.start("run", "main.oxoflow", "--workdir", "other", env=env)
    logs = folder / "other" / ".treadle" / "runs" / "latest" / "logs"
    until(lambda: any("waiting" in one.read_text() for one in logs.glob("[0-9]*")), "the second to wait")
    (folder / "hold").unlink()
    for run in (first, second):
        _, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
    assert folder.read("calls").count("conda env create") == 1


def test_an_environment_can_be_made_by_its_name_before_any_task_needs_it(folder):
    env = conda_flow(folder)
    assert folder.will_run("env::qc") == {"env::qc"}
    folder.treadle("run", "env::qc", env=env)
    assert folder.attempted() == {"env::qc"}
    assert folder.will_run("env::qc") == set()
    folder.treadle("run", env=env)
    assert folder.attempted() == {"a", "b", "c"}
    assert "its environment is made" in folder.treadle("why", "env::qc").stdout


def test_what_looks_at_a_workflow_takes_environments_as_they_are(folder):
    env = conda_flow(folder)
    folder.treadle("check", "--strict", env=env)
    assert "a (in conda envs/qc.yml)" in folder.treadle("plan", "--tasks", env=env).stdout
    folder.treadle("graph", env=env)
    for name in "abc":
        folder.write(f"{name}.txt", "by hand")
    folder.treadle("touch", env=env)
    assert folder.will_run() == set()
    entry = next(task["environment"] for task in folder.plan()["tasks"] if task["id"] == "a")
    assert entry["conda"] == "envs/qc.yml"
    assert entry["made_by"] == "env::qc"
    assert "CONDA_PREFIX" in entry["entry"]


def test_a_task_can_be_tried_in_front_in_its_environment(folder):
    env = conda_flow(folder)
    done = folder.treadle("exec", "a", exits=1, env=env)
    assert "there is no conda environment in" in done.stderr
    folder.treadle("run", "env::qc", env=env)
    folder.treadle("exec", "a", env=env)
    assert folder.read("a.txt") == "tool of conda\n"
    assert "conda-meta" in folder.treadle("exec", "a", "--print", env=env).stdout


def test_discovered_tasks_have_environments_too(folder):
    folder.flow("""
        [[rules]]
        name = "find"
        output = ["found.toml"]
        checkpoint = true
        checkpoint_manifest = "found.toml"
        environment = { conda = "envs/qc.yml" }
        shell = '''tool > tool.txt; printf '[reentry]\\nsample = ["S1", "S2"]\\n' > {output}'''

        [[rules]]
        name = "same"
        output = ["{sample}.same.txt"]
        environment = { conda = "envs/qc.yml" }
        shell = "tool > {output}"

        [[rules]]
        name = "further"
        output = ["{sample}.further.txt"]
        environment = { conda = "envs/further.yml" }
        shell = "tool > {output}"

        [[rules]]
        name = "begun"
        output = ["begun.txt"]
        environment = { conda = "envs/further.yml" }
        shell = "tool > {output}"
    """)
    folder.write("envs/qc.yml", CONDA_FILE)
    folder.write("envs/further.yml", f"{CONDA_FILE}  - more\n")
    env = tools(folder, "conda")
    folder.treadle("run", env=env)
    assert folder.read("S2.further.txt") == "tool of conda\n"
    assert folder.read("calls").count("conda env create") == 2
    assert folder.will_run() == set()


def test_an_included_file_sees_the_groups_around_it_and_has_its_own(folder):
    env = conda_flow(
        folder,
        """
        [env_groups]
        qc = { conda = "envs/qc.yml" }

        [[include]]
        path = "sub/module.oxoflow"
        namespace = "sub"
        """,
    )
    folder.write(
        "sub/module.oxoflow",
        """
        [env_groups]
        own = { mamba = "envs/qc.yml" }
        [[rules]]
        name = "a"
        output = ["a.txt"]
        env_group = "qc"
        shell = "tool > {output}"
        [[rules]]
        name = "b"
        output = ["b.txt"]
        env_group = "own"
        shell = "tool > {output}"
        """,
    )
    tools(folder, "micromamba")
    folder.treadle("run", env=env)
    assert (folder.read("a.txt"), folder.read("b.txt")) == ("tool of conda\n", "tool of micromamba\n")
