"""Software environments: made once, when somebody needs them, and everything of a command runs inside."""

from __future__ import annotations

import pathlib
import shutil
import signal
import zipfile

import pytest
from story_environments import CONDA_FILE, MODULES, tools

from cluster_runs import Place, fake_site, until

REAL_MODULES = pathlib.Path("/usr/share/modules/init/bash")

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


KINDS = """
[[rules]]
name = "mamba"
output = ["mamba.txt"]
environment = { mamba = "envs/qc.yml" }
shell = "tool > {output}; echo $FROM_ACTIVATION >> {output}"

[[rules]]
name = "named"
output = ["named.txt"]
environment = { conda = "mine" }
shell = "tool > {output}"

[[rules]]
name = "pixi"
output = ["pixi.txt"]
environment = { pixi = "project", pixi_environment = "test" }
shell = "echo $PIXI > {output}"

[[rules]]
name = "modules"
output = ["modules.txt"]
environment = { modules = ["good/1", "good/2"] }
envvars = { MODULESHOME = "site" }
shell = "echo $GOOD $LOADEDMODULES > {output}"

[[rules]]
name = "image"
output = ["image.txt"]
environment = { singularity = "docker://tool:2" }
shell = "echo $IMAGE > {output}"

[[rules]]
name = "docker"
output = ["docker.txt"]
environment = { docker = "tool:1" }
pre_exec = "A=$IMAGE"
shell = "echo $A > {output}; false; echo not strict >> {output}"
"""
MADE = {
    "mamba.txt": b"tool of micromamba\nyes\n",
    "named.txt": b"of my own\n",
    "pixi.txt": b"test\n",
    "modules.txt": b"yes good/1:good/2\n",
    "image.txt": b"docker://tool:2\n",
    "docker.txt": b"tool:1\nnot strict\n",
}


def all_kinds(place) -> dict[str, str]:
    """A workflow with a rule for each kind of environment, and stand-ins for all programs."""
    place.write("main.oxoflow", '[workflow]\nname = "kinds"\n' + KINDS)
    place.write("envs/qc.yml", CONDA_FILE)
    place.write("project/pixi.toml", "[project]\n")
    place.write("an env/conda-meta/history", "")
    place.write("an env/bin/tool", "#!/bin/sh\necho of my own\n").chmod(0o755)
    place.write("site/init/bash", MODULES)
    names = ("conda", "micromamba", "pixi", "apptainer", "docker")
    return tools(place, *names)


def test_every_kind_of_environment_is_entered(folder):
    env = all_kinds(folder)
    folder.treadle("run", env=env)
    assert {name: (folder / name).read_bytes() for name in MADE} == MADE
    assert folder.will_run() == set()


def test_a_work_folder_of_any_name_will_do(tmp_path):
    place = Place(tmp_path / """it's $HOME "in" `here`, a b""")
    place.treadle("run", env=all_kinds(place))
    assert {name: (place / name).read_bytes() for name in MADE} == MADE


def test_a_module_that_is_not_there_fails_the_task_with_words_though_module_succeeds(folder):
    env = all_kinds(folder)
    folder.flow(KINDS.replace('"good/2"', '"bad"'))
    folder.treadle("run", "modules", exits=1, env=env)
    log = folder.treadle("logs", "modules").stdout
    assert "Unable to locate a modulefile for 'bad'" in log
    assert "module load bad left it unloaded" in log


def test_a_module_command_that_fails_fails_the_task(folder):
    env = all_kinds(folder)
    folder.write("site/init/bash", "module() { echo broken; return 3; }")
    folder.treadle("run", "modules", exits=1, env=env)
    assert "module load good/1 good/2 failed" in folder.treadle("logs", "modules").stdout


@pytest.mark.skipif(not REAL_MODULES.exists(), reason="there are no Environment Modules here")
def test_real_environment_modules_are_loaded(folder):
    folder.write("modulefiles/tool/1", "#%Module\nsetenv TOOL of-a-module\n")
    folder.flow("""
        [[rules]]
        name = "a"
        output = ["a.txt"]
        environment = { modules = "tool/1" }
        shell = "echo $TOOL > {output}"

        [[rules]]
        name = "b"
        output = ["b.txt"]
        environment = { modules = "tool/2" }
        shell = "touch {output}"
    """)
    env = folder.env(MODULEPATH=str(folder / "modulefiles"))
    folder.treadle("run", "a", env=env)
    assert folder.read("a.txt") == "of-a-module\n"
    folder.treadle("run", "b", exits=1, env=env)
    assert "module load tool/2" in folder.treadle("logs", "b").stdout


def test_a_job_that_makes_an_environment_is_taken_over_when_the_driver_was_killed(tmp_path, fake_cluster):
    place = Place(tmp_path / "work", fake_site(fake_cluster("slurm"), env_setup="job"))
    place.write("main.oxoflow", f'[workflow]\nname = "story"\n{CONDA}')
    place.write("envs/qc.yml", CONDA_FILE)
    place.write("hold", "")
    env = tools(place, "conda")
    run = place.start("run", env=env)
    until(lambda: (place / "half").exists(), "the making")
    run.kill()
    run.communicate()
    (place / "hold").unlink()
    place.treadle("run", env=env)
    assert place.read("b.txt") == "tool of conda\n"
    assert place.read("calls").count("conda env create") == 1


@pytest.mark.parametrize("kind", ["slurm", "pbs", "sge", "lsf"])
def test_environments_are_the_same_on_every_scheduler(tmp_path, fake_cluster, monkeypatch, kind):
    here = Place(tmp_path / "work")
    env = all_kinds(here)
    here.treadle("run", env=env)
    told, jobs = here.evidence(), [(job.task, job.exit_code) for job in here.jobs()]
    assert told
    shutil.rmtree(here / ".treadle")
    for name in MADE:
        (here / name).unlink()
    monkeypatch.setenv("PATH", env["PATH"])  # of the nodes, too
    there = Place(here.path, fake_site(fake_cluster(kind)))
    there.treadle("run", env=env)
    assert {name: (there / name).read_bytes() for name in MADE} == MADE
    assert there.evidence() == told
    assert [(job.task, job.exit_code) for job in there.jobs()] == jobs
