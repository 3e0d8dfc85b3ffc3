"""Commands in containers: what they see, as whom they run, and that none is left behind."""

from __future__ import annotations

import os
import pathlib
import signal
import time

from story_environments import tools

from cluster_runs import Place, fake_site
from waiting import until

FLOW = """
[config]
key = { default = "a secret", sensitive = true }
database = { default = "refs/nt", type = "path" }

[[rules]]
name = "inside"
input = ["in/a.txt"]
output = ["out.txt"]
environment = { docker = "tool:1", args = ["--network", "none"] }
envvars = { WORD = "two words", MINE = "{config.key}" }
on_success = "echo $IMAGE > hook.txt"
shell = '''printf '%s\\n' "$IMAGE" "$PWD" "$WORD" "$MINE" "$HOME" "${OUTSIDE-none}" "$BINDS" > {output}'''
"""


def inside(folder, name: str = "out.txt") -> dict[str, str]:
    words = ("image", "folder", "word", "mine", "home", "outside", "binds")
    return dict(zip(words, folder.read(name).splitlines(), strict=True))


def linked(folder) -> tuple[pathlib.Path, pathlib.Path]:
    """The flow, its input and its database being links that lead out of the work folder."""
    folder.flow(FLOW)
    elsewhere = folder.path.parent / f"{folder.path.name} elsewhere"
    for name in ("data", "far", "refs"):
        (elsewhere / name).mkdir(parents=True)
    (elsewhere / "far" / "b.txt").write_text("b")
    (elsewhere / "data" / "a.txt").symlink_to("../far/b.txt")
    (folder / "in").symlink_to(elsewhere / "data")
    (folder / "refs").symlink_to(elsewhere / "refs")
    return folder.path, elsewhere


def test_a_command_in_docker_sees_its_files_and_what_it_is_given_and_nothing_else(folder):
    home, elsewhere = linked(folder)
    folder.treadle("run", env=tools(folder, "docker", OUTSIDE="set", TMPDIR=str(elsewhere)))
    found = inside(folder)
    binds = set(found.pop("binds").strip(":").split(":"))
    assert found == {
        "image": "tool:1",
        "folder": str(home),
        "word": "two words",
        "mine": "a secret",
        "home": "/tmp",
        "outside": "none",
    }
    assert folder.read("hook.txt") == "tool:1\n"
    wanted = {str(home), *(str(elsewhere / name) for name in ("data", "far", "refs"))}
    assert wanted <= binds
    assert "a secret" not in folder.read("calls")


def test_a_profile_may_let_apptainer_run_the_images_and_no_task_runs_again_for_that(folder):
    linked(folder)
    folder.write("profiles/site.toml", '[defaults]\ncontainer_program = "apptainer"\n')
    env = tools(folder, "docker", "apptainer")
    folder.flow(FLOW.replace(', args = ["--network", "none"]', ""))
    folder.treadle("run", env=env)
    assert folder.will_run("--profile", "site") == set()
    (folder / "out.txt").unlink()
    folder.treadle("run", "--profile", "site", env=env)
    assert folder.attempted() == {"env::tool-1", "inside"}
    found = inside(folder)
    assert found["image"] == "docker://tool:1"
    assert found["mine"] == "a secret"
    assert "exec --pwd" in folder.read("calls")


def test_another_content_of_an_image_file_runs_again_what_runs_in_it(folder):
    folder.flow("""
        [[rules]]
        name = "a"
        output = ["a.txt"]
        environment = { apptainer = "my tool.sif", binds = ["extra dir:/opt/it:ro"], args = ["--cleanenv"] }
        shell = "echo $IMAGE > {output}"
    """)
    folder.write("my tool.sif", "one\n")
    (folder / "extra dir").mkdir()
    env = tools(folder, "apptainer")
    folder.treadle("run", env=env)
    assert folder.read("a.txt") == "one\n"
    assert f"--bind {folder.path}/extra dir:/opt/it:ro --cleanenv" in folder.read("calls")
    assert folder.will_run() == set()
    folder.write("my tool.sif", "two\n")
    assert folder.will_run() == {"a"}


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + 60
    while pathlib.Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "the container is still there"
        time.sleep(0.01)


WAITS = """
[[rules]]
name = "waits"
output = ["out.txt"]
environment = { docker = "tool:1" }
shell = '''trap '{on_term}' TERM; echo $$ > pid.part; mv pid.part pid; while :; do sleep 0.1; done'''
"""


def test_a_cancelled_task_hears_sigterm_in_its_container(folder):
    folder.flow(WAITS.replace("{on_term}", "echo heard > heard; exit 3"))
    run = folder.start("run", env=tools(folder, "docker"))
    folder.until("pid")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert folder.read("heard") == "heard\n"
    assert not os.listdir(folder / "containers")


def test_a_cancelled_job_hears_sigterm_in_its_container(tmp_path, fake_cluster):
    place = Place(tmp_path, fake_site(fake_cluster("slurm")))
    flow = WAITS.replace("{on_term}", "echo heard > heard; exit 3")
    place.write("main.oxoflow", f'[workflow]\nname = "story"\nstrict_shell = true\n{flow}')
    run = place.start("run", env=tools(place, "docker"))
    until((place / "pid").exists, "the container")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert place.read("heard") == "heard\n"
    until(lambda: not os.listdir(place / "containers"), "its end")


def test_a_client_that_is_killed_takes_its_container_along(folder):
    folder.flow(WAITS.replace("{on_term}", ": > heard"))
    run = folder.start("run", env=tools(folder, "docker"))
    folder.until("pid")
    run.send_signal(signal.SIGINT)
    folder.until("heard")
    run.send_signal(signal.SIGINT)  # twice: at once, by SIGKILL
    run.communicate(timeout=60)
    until_gone(int(folder.read("pid")))


def test_a_container_that_fails_fails_the_task_with_its_exit_code(folder):
    folder.flow(WAITS.replace("trap '{on_term}' TERM;", "exit 7;"))
    assert "exit code 7" in folder.treadle("run", exits=1, env=tools(folder, "docker")).stderr


def test_a_task_with_a_private_folder_works_there_in_its_container(folder):
    folder.flow("""
        [[rules]]
        name = "a"
        input = ["in.txt"]
        output = ["deep/a.txt"]
        scratch = true
        environment = { apptainer = "t.sif" }
        shell = "cat {input} > {output}; echo $PWD >> {output}"
    """)
    folder.write("in.txt", "in\n")
    folder.write("t.sif", "t\n")
    folder.treadle("run", env=tools(folder, "apptainer"))
    first, where = folder.read("deep/a.txt").splitlines()
    assert first == "in"
    assert where != str(folder.path)
    assert f"--bind {where.removesuffix('/up')}:" in folder.read("calls")
