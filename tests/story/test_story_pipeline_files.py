"""The file of a pipeline: its name, its place, its modules beside it, and what is wrong with it."""

from __future__ import annotations

import pytest
from story_folder import Folder
from story_pipeline import DIAMOND, pipeline


def test_two_pipelines_in_one_folder_share_what_is_the_same(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    pipeline(folder, DIAMOND.replace('StepSpec("d"', 'StepSpec("e"'), "second.py")
    folder.treadle("run", "pipeline.py")
    assert {task.rpartition("_")[0] for task in folder.will_run("second.py")} == {"@e"}


def test_side_modules_are_imported_from_beside_the_file_wherever_it_is_called_from(folder: Folder) -> None:
    pipeline(folder, "import tools\nsteps = [tools.made]\n", "code/pipeline.py")
    pipeline(
        folder,
        "def fn(out):\n    import more\n    return more.VALUE\n"
        'made = StepSpec("made", fn=fn, isolation="process")\n',
        "code/tools.py",
    )
    folder.write("code/more.py", "VALUE = 7\n")
    folder.treadle("run", "code/pipeline.py")
    assert (folder / ".treadle").exists()
    assert not (folder / "code" / ".treadle").exists()


@pytest.mark.parametrize("name", ["my-flow.py", "1.py", "json.py", "a b.py", "ü.py", "random.py"])
def test_odd_file_names_run_in_threads_and_processes(folder: Folder, name: str) -> None:
    pipeline(
        folder,
        """
class Box:
    pass

def fn(out):
    Box()
    pathlib.Path(out).write_text("made")

steps = [StepSpec("a", fn=fn), StepSpec("b", fn=fn, isolation="process")]
""",
        name,
    )
    assert "2 done" in folder.treadle("run", f"./{name}").stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = (\n", "this is not Python"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import nosuchmodule\n", "No module named 'nosuchmodule'"),
        ("raise SystemExit(4)\n", "SystemExit: 4"),
        ('steps = [StepSpec("")]\n', "a step needs a name"),
        ('steps = [StepSpec("a", hash_attrs={"x": float("nan")})]\n', "hash_attrs"),
        ("steps = [1]\n", "holds no list of steps"),
        ("def steps():\n    return 5\n", "returned int, not steps"),
        ("def steps():\n    yield 5\n", "item 0 of steps is int, not a StepSpec"),
        ("import sys; sys.setrecursionlimit(60)\ndef f(): f()\nf()\n", "RecursionError"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_as_its_own(folder: Folder, text: str, says: str) -> None:
    pipeline(folder, text)
    for command in ("plan", "run"):
        told = folder.treadle(command, "pipeline.py", exits=2).stderr
        assert says in told
        assert "This is a bug" not in told


def test_a_file_that_is_not_there_is_an_error_with_the_nearest(folder: Folder) -> None:
    pipeline(folder, DIAMOND)
    assert "did you mean 'pipeline.py'?" in folder.treadle("run", "pipelin.py", exits=2).stderr


def test_a_work_folder_of_its_own_is_where_steps_run(folder: Folder) -> None:
    pipeline(folder, 'steps = [StepSpec("a", fn=lambda out: open("here", "w").write("x") and None)]\n')
    (folder / "work").mkdir()
    folder.treadle("run", "pipeline.py", "--workdir", "work")
    assert (folder / "work" / "here").exists()
    assert not (folder / ".treadle").exists()
    assert "1 done" in folder.treadle("status", "--workdir", "work").stdout


def test_a_file_without_a_guard_runs_each_step_once_in_processes_too(folder: Folder) -> None:
    pipeline(
        folder,
        """
def fn(out):
    with open("ran", "a") as file:
        file.write("x")

steps = [StepSpec("far", fn=fn, isolation="process"), StepSpec("near", fn=fn)]
StepRunner().run(steps)
""",
    )
    folder.treadle("run", "pipeline.py")
    assert folder.read("ran") == "xx"
    assert len(folder.runs()) == 1
