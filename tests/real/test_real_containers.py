"""Containers of real podman, where it can run some: what they see, SIGTERM in them, and that none is left.

Its image is made here, of this machine's own bash and a few programs.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from cluster_runs import Place
from waiting import until

pytestmark = pytest.mark.real
IMAGE = "localhost/treadle-test:1"
PROGRAMS = ("bash", "cat", "id", "ls", "sleep")
FLOW = """
[workflow]
name = "inside"
strict_shell = true

[config]
key = { default = "a secret", sensitive = true }

[defaults]
container_program = "podman"

[[rules]]
name = "sees"
input = ["in/a.txt"]
output = ["out/a.txt"]
environment = { docker = "IMAGE", args = ["--network", "none"], binds = ["extra:/extra:ro"] }
envvars = { WORD = "two words", MINE = "{config.key}" }
on_success = "echo hook of $WORD"
shell = '''
cat {input} /extra/b.txt > {output}
echo "$WORD, $MINE, $HOME, $PWD, ${OUTSIDE-none}" >> {output}
'''

[[rules]]
name = "waits"
output = ["w.txt"]
environment = { docker = "IMAGE", args = ["--network", "none"] }
shell = "trap 'echo heard > heard; exit 3' TERM; echo > begun; while :; do sleep 0.1; done"
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny image, once it is shown that podman runs it."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not here")
    folder = tmp_path_factory.mktemp("image")
    archive = folder / "image.tar"
    files = {}
    for name in PROGRAMS:
        program = str(shutil.which(name))
        files[f"bin/{name}"] = program
        told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        files |= {path.lstrip("/"): path for path in re.findall(r"(/\S+) \(0x", told)}
    (folder / "tmp").mkdir()
    with tarfile.open(archive, "w", dereference=True) as file:
        for inside, path in {**files, "tmp": str(folder / "tmp")}.items():
            file.add(path, inside)
    with archive.open("rb") as data:
        done = subprocess.run(["podman", "import", "-", IMAGE], stdin=data, capture_output=True, check=False)
    run = ["podman", "run", "--rm", "--pull", "never", "--network", "none", IMAGE, "bash", "-c", "exit 7"]
    if done.returncode != 0 or subprocess.run(run, capture_output=True, check=False).returncode != 7:
        pytest.skip("podman cannot run a container here")
    return IMAGE


@pytest.fixture
def place(image: str, tmp_path: Path) -> Place:
    place = Place(tmp_path / "the work")
    place.write("main.oxoflow", FLOW.replace("IMAGE", image))
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.txt").write_text("far away\n")
    (place / "in").mkdir()
    (place / "in" / "a.txt").symlink_to(tmp_path / "far" / "a.txt")
    place.write("extra/b.txt", "extra\n")
    return place


def names() -> str:
    told = subprocess.run(["podman", "ps", "-a", "--format", "{{.Names}}"], capture_output=True, check=True)
    return told.stdout.decode()


def test_a_command_in_podman_sees_its_files_and_what_it_is_given(place: Place) -> None:
    place.treadle("run", "sees", env={**place.env(), "OUTSIDE": "set"})
    lines = place.read("out/a.txt").splitlines()
    assert lines == ["far away", "extra", f"two words, a secret, /tmp, {place.path}, none"]
    assert "hook of two words" in place.treadle("logs", "sees")
    assert (place / "out" / "a.txt").owner() == (place / "main.oxoflow").owner()


def test_a_cancelled_container_hears_sigterm_and_is_gone(place: Place) -> None:
    run = place.start("run", "waits")
    until((place / "begun").exists, "the container")
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=60)
    assert run.returncode == 143
    assert place.read("heard") == "heard\n"
    until(lambda: place.runs()[-1] not in names(), "its end")
