"""Steps where the world is odd: a disk that is full, artifacts in an object store, development versions."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from story_steps import Calls, put, run_script
from story_trouble import mortal

from mounts import Mount, small_disk
from treadle import StepRunError, StepRunner, StepSpec
from treadle.api.pipe import Request
from treadle.api.step_paths import step_paths
from treadle.base.errors import DiskError


@pytest.fixture
def small(mount: Mount) -> pathlib.Path:
    return small_disk(mount, "small", "2m")


def test_a_full_disk_is_said_and_waited_for_and_ctrl_c_ends_the_wait(small: pathlib.Path) -> None:
    text = """
        import signal, warnings
        def told(message, category, *place):
            print(category.__name__, message, flush=True)
            signal.raise_signal(signal.SIGINT)
        warnings.showwarning = lambda message, category, *place: told(message, category)
        def put(out):
            pathlib.Path(out).write_text("x")
        def fill(out):
            pathlib.Path(out).write_bytes(b"x" * 4_000_000)
        first = StepSpec("first", fn=put)
        try:
            StepRunner().run([first, StepSpec("fill", fn=fill, deps=[first])])
        except KeyboardInterrupt:
            print("interrupted", os.path.exists(first.output_path))
        print(os.listdir(".treadle/artifacts/.treadle-artifacts/work"))
    """
    told = run_script(small, text)
    assert "StepWarning the disk is full: the run waits for space" in told
    assert told.endswith("interrupted True\n[]\n")


@pytest.mark.parametrize("isolation", [None, "process"])
def test_what_finds_no_room_elsewhere_fails_and_is_not_begun_again_and_again(
    tmp_path: pathlib.Path, isolation: str | None
) -> None:
    calls = tmp_path / "calls"

    def fetch(out: str) -> None:
        with calls.open("a") as file:
            file.write("x")
        if calls.stat().st_size == 1:
            raise DiskError("cannot write '/elsewhere': No space left on device", code="disk-full")

    with pytest.raises(StepRunError, match="fetch"):
        StepRunner(workdir=tmp_path).run([StepSpec("fetch", fn=fetch, isolation=isolation)])
    assert calls.read_text() == "x"


def test_path_names_the_place_in_an_object_store_where_the_artifact_really_stands(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "pipeline.py"
    file.write_text(
        "import pathlib\nfrom treadle import StepSpec\ndef put(out):\n    pathlib.Path(out).write_text('x')\n"
        "step = StepSpec('made', fn=put)\nsteps = [step]\n"
    )
    prefix = "memory://promises/path"
    request = Request(file=str(file), workdir=str(tmp_path), prefix=prefix)
    (before,) = step_paths(request)
    made = StepSpec("made", fn=put("x"))
    assert before.path == f"{prefix}/{made.name_with_hash}"
    report = StepRunner(workdir=tmp_path, prefix=prefix).run([made])
    (after,) = step_paths(request)
    assert after.path == f"{before.path}/{report.run}.1/{made.name_with_hash}"


def test_a_development_version_is_made_once_in_a_run_however_often_it_comes(tmp_path: pathlib.Path) -> None:
    calls = Calls()
    make = calls.put("dev")

    def often() -> Iterator[StepSpec]:
        for n in range(50):
            dev = StepSpec("dev", fn=make, version="0.1-dev")
            yield dev
            yield StepSpec("above", fn=put("x"), version="dev", deps=[dev], hash_attrs={"n": n})

    runner = StepRunner(workdir=tmp_path)
    assert runner.run(often()).counts == {"succeeded": 51}
    assert calls.names == ["dev"]
    dev = StepSpec("dev", fn=make, version="0.1-dev")
    line = runner.run([dev, StepSpec("dev", fn=make, version="0.1-dev")])[dev]
    assert (line.state, line.reason) == ("succeeded", "mutable")
    assert calls.names == ["dev", "dev"]


@pytest.mark.parametrize("isolation", [None, "process"])
def test_a_rebuilt_development_version_is_a_file_or_a_folder_or_nothing_and_no_mixture(
    tmp_path: pathlib.Path, isolation: str | None
) -> None:
    def folder(*names: str) -> object:
        def make(out: str) -> None:
            pathlib.Path(out).mkdir()
            for name in names:
                (pathlib.Path(out) / name).write_text(name)

        return make

    runner = StepRunner(workdir=tmp_path)

    def made(fn: object) -> pathlib.Path:
        step = StepSpec("dev", fn=fn, version="dev", isolation=isolation)  # type: ignore[arg-type]
        return pathlib.Path(runner.run([step])[step].path)

    path = made(folder("a", "b"))
    assert sorted(one.name for one in made(folder("c")).iterdir()) == ["c"]
    assert made(put("file")).read_text() == "file"
    made(lambda out: {"value": 1})
    assert not path.exists()
    assert sorted(one.name for one in made(folder("d")).iterdir()) == ["d"]


def test_a_folder_that_nobody_may_write_to_can_be_rebuilt_and_discarded(tmp_path: pathlib.Path) -> None:
    text = """
        def make(out):
            os.mkdir(out)
            pathlib.Path(out, "x").write_text(str(time.time_ns()))
            os.chmod(pathlib.Path(out, "x"), 0o400)
            os.chmod(out, 0o500)
        def fail(out):
            make(out)
            raise ValueError
        step = StepSpec("step", fn=make, version="dev")
        found = [(str(StepRunner().run([step])), pathlib.Path(step.output_path, "x").read_text())
                 for _ in range(3)]
        assert len(set(found)) == 3, found
        assert os.stat(step.output_path).st_mode & 0o777 == 0o500
        try:
            StepRunner().run([StepSpec("bad", fn=fail)])
        except StepRunError as error:
            print(error.exceptions)
        print(os.listdir(".treadle/artifacts/.treadle-artifacts/work"))
        os.chmod(step.output_path, 0o700)
    """
    assert run_script(tmp_path, text, preexec_fn=mortal) == "(ValueError(),)\n[]\n"


def test_what_may_not_be_written_or_read_is_told_with_its_path_and_stops_nothing_else(
    tmp_path: pathlib.Path,
) -> None:
    text = """
        def put(out):
            pathlib.Path(out).write_text("x")
        os.mkdir("closed", 0o500)
        lost, fine = StepSpec("lost", fn=put, output_path_prefix="closed/x"), StepSpec("fine", fn=put)
        try:
            StepRunner().run([lost, fine])
        except StepRunError as error:
            print(error.report.counts, "closed/x" in str(error.exceptions[0]))
        print(StepRunner(workdir="closed").run([fine], dry_run=True))
        try:
            StepRunner(workdir="closed").run([fine])
        except Exception as error:
            print(type(error).__name__, "closed/.treadle" in str(error), "permissions" in str(error))
    """
    told = run_script(tmp_path, text, preexec_fn=mortal)
    assert told == "{'failed': 1, 'succeeded': 1} True\n1 will run\nDiskError True True\n"


def test_the_prefix_is_read_when_a_run_is_planned_and_not_when_a_step_is_made(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREADLE_PREFIX", raising=False)
    calls = Calls()
    step = StepSpec("step", fn=calls.put("step"))
    runner = StepRunner()
    before = step.output_path
    monkeypatch.setenv("TREADLE_PREFIX", str(tmp_path / "elsewhere"))
    report = runner.run([step])
    assert report[step].path == str(tmp_path / "elsewhere" / step.name_with_hash) == step.output_path
    assert not pathlib.Path(before).exists()
    assert StepRunner(prefix="third").run([step])[step].path == str(tmp_path / "third" / step.name_with_hash)
    assert calls.names == ["step", "step"]


def test_what_a_run_leaves_holds_no_pickle(tmp_path: pathlib.Path) -> None:
    text = """
        from dataclasses import dataclass
        @dataclass
        class Score:
            x: int
        class Odd(Exception):
            pass
        def score(out):
            return Score(3)
        def fail(out):
            raise Odd("oh")
        kinds = [dict(), dict(isolation="process")]
        steps = [StepSpec(fn.__name__ + str(n), fn=fn, **kind)
                 for fn in (score, fail) for n, kind in enumerate(kinds)]
        try:
            StepRunner().run(steps)
        except StepRunError as error:
            print(error.report.counts)
    """
    assert run_script(tmp_path, text) == "{'failed': 2, 'succeeded': 2}\n"
    files = [path for path in (tmp_path / ".treadle").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [path for path in files if b"\x80\x05" in path.read_bytes()] == []


def test_of_what_is_around_a_run_only_the_client_reaches_a_process(tmp_path: pathlib.Path) -> None:
    (tmp_path / "around.py").write_text(
        "from contextvars import ContextVar\nword = ContextVar('word', default='none')\n"
    )
    text = """
        import around
        from treadle import LocalClient, use_client
        def look(out):
            return [around.word.get(), os.environ.get("TREADLE_CLIENT", "")]
        steps = [StepSpec("thread", fn=look), StepSpec("process", fn=look, isolation="process")]
        around.word.set("said")
        with use_client(LocalClient()):
            StepRunner().run(steps)
        print([step.load()[0] for step in steps], steps[1].load()[1])
    """
    assert run_script(tmp_path, text) == "['said', 'none'] local\n"
