"""The text of a private folder, run by real shells."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from treadle.base.layout import RunFolder, beside_target
from treadle.engine.compose import Composed, Place, compose
from treadle.engine.scratch import clear_scratch, scratch_key, scratch_of
from treadle.plan.environment import Environment
from treadle.plan.task import Command, Policy, Resources
from treadle.testing.plans import task

SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]


def composed(
    home: Path,
    text: str,
    *,
    inputs: tuple[str, ...] = (),
    outputs: tuple[str, ...] = ("out",),
    kind: str = "minimal",
    base: str = "",
    environment: Environment | None = None,
) -> Composed:
    policy = Policy(scratch=kind, environment=environment)
    one = task("a", command=Command(text=text), policy=policy, inputs=inputs, outputs=outputs)
    place = Place(str(home), str(home), 1 << 30, base)
    run = RunFolder(str(home / ".treadle/runs/r"))
    return compose(
        one, Resources(), place, text_file="t", input_list="l", scratch=scratch_of(one, place, "p", run, 3)
    )


def done(home: Path, made: Composed, *, shell: str = "sh", **env: str) -> subprocess.CompletedProcess[str]:
    argv = [shell, *made.argv[1:]]
    whole = {**os.environ, **env}
    return subprocess.run(argv, cwd=home, env=whole, capture_output=True, text=True, check=False)


def kept(home: Path) -> list[str]:
    return sorted(os.listdir(home / ".treadle/scratch"))


def test_without_scratch_the_command_is_as_it_was(tmp_path: Path) -> None:
    assert composed(tmp_path, "echo hi", kind="").argv == ("bash", "-c", "echo hi")
    assert composed(tmp_path, "echo hi").argv[-3:] == ("bash", "-c", "echo hi")


def test_the_environment_is_entered_in_the_private_folder_and_left_before_outputs_are_put_in_place(
    tmp_path: Path,
) -> None:
    entry = 'pwd > entered; export MARK=inside; "$@"; code=$?; echo left >> out; exit "$code"'
    environment = Environment(kind="own", said=(), entry=entry)
    made = composed(tmp_path, "echo $MARK > out; cat entered >> out", environment=environment)
    assert made.argv[0] == "sh"
    assert made.argv[4:8] == ("bash", "-c", entry, "treadle")
    assert done(tmp_path, made).returncode == 0
    inside, where, left = (tmp_path / "out").read_text().splitlines()
    assert (inside, left) == ("inside", "left")
    assert where.startswith(f"{tmp_path}/.treadle/scratch/")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_works_apart_and_its_output_comes_home(tmp_path: Path, shell: str) -> None:
    (tmp_path / "in").write_text("x\n")
    made = composed(tmp_path, "echo junk > junk; cat in > out", inputs=("in",))
    ended = done(tmp_path, made, shell=shell)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == [".treadle", "in", "out"]
    assert kept(tmp_path) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_a_signal_ends_the_command_and_not_what_sees_to_the_folder(tmp_path: Path, shell: str) -> None:
    made = composed(tmp_path, "trap 'exit 9' TERM; kill -TERM 0; sleep 60")
    child = subprocess.Popen(
        [shell, *made.argv[1:]], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _, said = child.communicate(timeout=60)
    assert child.returncode == 9
    assert "its private folder is kept until the next attempt" in said
    assert len(kept(tmp_path)) == 1


def test_one_that_was_asked_to_end_while_its_folder_was_made_does_not_begin(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "mktemp"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nkill -TERM $PPID\nexec {shutil.which("mktemp")} "$@"\n')
    fake.chmod(0o755)
    ended = done(tmp_path, composed(tmp_path, "touch began"), PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert ended.returncode == 128 + signal.SIGTERM
    assert kept(tmp_path) == []


def test_a_full_disk_is_said_in_words(tmp_path: Path) -> None:
    fakes = tmp_path / "bin"
    fakes.mkdir()
    (fakes / "df").write_text("#!/bin/sh\necho head\necho /dev/x 1000 990 10 99% /x\n")
    (fakes / "df").chmod(0o755)
    ended = done(tmp_path, composed(tmp_path, "false"), PATH=f"{fakes}:{os.environ['PATH']}")
    assert ended.returncode == 1
    assert "hardly anything is free on the file system of" in ended.stderr
    assert kept(tmp_path) == []  # else nobody could go on there


def test_outputs_that_cannot_be_put_in_place_fail_the_attempt_and_leave_nothing_beside(
    tmp_path: Path,
) -> None:
    (tmp_path / "two").mkdir()
    ended = done(tmp_path, composed(tmp_path, "echo 1 > one; echo 2 > two", outputs=("one", "two")))
    assert ended.returncode == 1
    assert "'two' is a folder, and the task made a file of that name" in ended.stderr
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".treadle-")]
    assert len(kept(tmp_path)) == 1


def test_an_output_on_another_file_system_is_copied_with_its_time(tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if not os.access(other, os.W_OK) or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system here")
    base = other / f"treadle-test-{os.getpid()}"
    try:
        text = "mkdir -p out/x; echo 1 > out/x/y; touch -d 2001-02-03 out/x/y"
        assert done(tmp_path, composed(tmp_path, text, base=str(base))).returncode == 0
        assert (tmp_path / "out/x/y").stat().st_mtime < 1e9
        assert list(base.iterdir()) == []
    finally:
        shutil.rmtree(base, ignore_errors=True)


def test_what_an_attempt_cannot_delete_at_once_is_made_deletable(tmp_path: Path) -> None:
    ended = done(tmp_path, composed(tmp_path, "mkdir -p deep/er; touch deep/er/x out; chmod -R a-w deep"))
    assert ended.returncode == 0
    assert kept(tmp_path) == []


def test_two_tasks_and_two_work_folders_have_keys_of_their_own(tmp_path: Path) -> None:
    run = RunFolder("/w/.treadle/runs/r")
    keys = set()
    for home, out in (("/w", "a"), ("/w", "b"), ("/v", "a")):
        one = task("a", policy=Policy(scratch="minimal"), outputs=(out,))
        found = scratch_of(one, Place(home, home, 1), "p", run, 1)
        assert found is not None
        keys.add(found.key)
    assert len(keys) == 3


def test_hostile_names_are_quoted(tmp_path: Path) -> None:
    name = 'it\'s $(touch x) `y` "z" *'
    (tmp_path / name).write_text("in\n")
    made = composed(tmp_path, "cat it*z* > -n", inputs=(name,), outputs=("-n",))
    ended = done(tmp_path, made)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "-n").read_text() == "in\n"
    assert not (tmp_path / "x").exists()


def test_what_a_killed_attempt_left_is_removed_and_nothing_of_others(tmp_path: Path) -> None:
    killed = composed(tmp_path, "touch out; kill -KILL $PPID; sleep 60", outputs=("out/x",))
    (tmp_path / "out").mkdir()
    other = tmp_path / ".treadle/scratch/treadle-0123456789abcdef.r.9.xyz"
    other.mkdir(parents=True)
    child = subprocess.Popen(killed.argv, cwd=tmp_path, start_new_session=True)
    child.wait(timeout=60)
    os.killpg(child.pid, signal.SIGKILL)
    beside = tmp_path / "out" / f"{beside_target(scratch_key(str(tmp_path), 'out/x'))}0"
    beside.write_text("half")
    assert len(kept(tmp_path)) == 2
    clear_scratch(str(tmp_path), "out/x", ("out/x",))
    assert kept(tmp_path) == [other.name]
    assert os.listdir(tmp_path / "out") == []


def test_the_place_may_name_variables_and_the_home_of_the_node(tmp_path: Path) -> None:
    home = tmp_path / "home of `me`"
    made = composed(tmp_path, "pwd > out", base="~/${A_B}/$A_B'$(x)")
    assert done(tmp_path, made, HOME=str(home), A_B="one two").returncode == 0
    assert (tmp_path / "out").read_text().startswith(f"{home}/one two/one two'$(x)/treadle-")
    refused = done(tmp_path, composed(tmp_path, ":", base="$NOT_SET/x"))
    assert refused.returncode != 0
    assert "NOT_SET" in refused.stderr
