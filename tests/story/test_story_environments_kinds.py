"""Every kind of software environment, entered alike on this machine and on every scheduler."""

from __future__ import annotations

import pathlib
import shutil

import pytest
from story_environments import CONDA, CONDA_FILE, MODULES, conda_flow, tools

from cluster_runs import Place, fake_site
from waiting import until

REAL_MODULES = pathlib.Path("/usr/share/modules/init/bash")


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
