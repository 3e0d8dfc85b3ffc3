"""What attempts are seen with: a driver of commands, one of steps, and worlds with fake schedulers."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

import pytest
from cluster_jobs import SHELLS, Job
from step_driver import StepDriver

from treadle.backends.local import LocalBackend
from treadle.base.groups import attempts_alive
from treadle.engine.backend import Accepted, Refused, Submission
from treadle.plan.task import Command, Policy, Resources, ScheduledTask
from treadle.records.event import Outcome


class Driver:
    """Drives one local backend in a folder of its own."""

    def __init__(self, folder: Path, gpus: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.backend = LocalBackend(gpus=gpus)
        self.live: dict[str, int] = {}
        self.ended: dict[int, Outcome] = {}
        self.n = 0
        self.run = f"run-{os.getpid()}-{folder.name}"
        self._waiting = select.poll()
        self._waiting.register(self.backend.fileno(), select.POLLIN)

    def submission(self, *argv: str, **changes) -> Submission:
        self.n += 1
        resources = Resources(time_limit=changes.pop("time_limit", None), gpus=changes.pop("ask_gpus", 0))
        policy = Policy(signal_before_end=changes.pop("signal_before_end", None))
        env = {"TREADLE_ATTEMPT": f"{self.run}.{self.n}", **changes.pop("env", {})}
        fields = {
            "task": ScheduledTask(id=f"t/n={self.n}", rule="t", command=Command(), policy=policy),
            "attempt": 1,
            "n": self.n,
            "name": f"{self.run}.{self.n}",
            "argv": argv,
            "env": env,
            "cwd": str(self.folder),
            "log": self.log(self.n),
            "resources": resources,
        }
        return Submission(**{**fields, **changes})

    def log(self, n: int) -> str:
        return str(self.folder / "logs" / str(n))

    def start(self, *argv: str, **changes) -> tuple[int, Accepted | Refused]:
        submission = self.submission(*argv, **changes)
        (answer,) = self.backend.submit([submission])
        if isinstance(answer, Accepted):
            self.live[answer.job] = submission.n
        return submission.n, answer

    def turn(self, longest: float = 30.0) -> None:
        """Wait for news as the engine does, and take them in."""
        wish = self.backend.next_timeout()
        wait = longest if wish is None else min(wish, longest)
        self._waiting.poll(wait * 1000)
        for report in self.backend.poll(list(self.live)):
            self.ended[self.live.pop(report.job)] = report.outcome

    def finish(self, *numbers: int) -> list[Outcome]:
        """Go on until these attempts (none named: all) have ended."""
        deadline = time.monotonic() + 60
        while set(numbers or self.live.values()) & set(self.live.values()):
            assert time.monotonic() < deadline
            self.turn()
        return [self.ended[n] for n in numbers]

    def sh(self, text: str, **changes) -> Outcome:
        """Run a text in sh to its end."""
        n, answer = self.start("sh", "-c", text, **changes)
        assert isinstance(answer, Accepted), answer
        (outcome,) = self.finish(n)
        return outcome

    def told(self, n: int | None = None) -> str:
        return Path(self.log(n or self.n)).read_text()

    def until(self, name: str) -> None:
        """Wait until an attempt has made a file."""
        deadline = time.monotonic() + 60
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline
            self.turn(0.01)

    def close(self) -> None:
        self.backend.cancel(list(self.live), force=True)
        self.finish()
        self.backend.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def local_with(folder):
    """Makes drivers of local backends, and sees to it that nothing of them is left."""
    made = []

    def make(**settings) -> Driver:
        made.append(Driver(folder, **settings))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def local(local_with):
    return local_with()


@pytest.fixture
def with_gpus(local_with):
    return local_with(gpus=("0", "1", "GPU-7"))


@pytest.fixture
def world_with(tmp_path):
    """Makes a world with a fake scheduler: `world_with("slurm", slots=8)`."""
    from cluster_world import World

    made = []

    def make(kind: str = "slurm", **site) -> World:
        made.append(World(tmp_path, kind, site))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(world_with):
    return world_with()


@pytest.fixture(params=SHELLS)
def job(tmp_path, request):
    """A job of a scheduler, in a folder with an odd name, by each shell."""
    return Job(tmp_path / "work folder's $x", request.param)


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """A run of steps that leaves no process and no payload."""
    monkeypatch.chdir(tmp_path)
    made = StepDriver(tmp_path)
    yield made
    made.close()
    assert attempts_alive(made.run.run) == []
    assert not os.path.isdir(made.run.payloads) or os.listdir(made.run.payloads) == []


@pytest.fixture
def other(tmp_path):
    """A second run over the same artifacts."""
    made = StepDriver(tmp_path, run="two")
    yield made
    made.close()
