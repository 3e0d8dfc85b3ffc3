"""`ClusterClient`: functions as jobs of a scheduler, and what its names mean."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator

import pytest

from treadle import StepRunner, StepSpec
from treadle.backends.client_jobs import JobRequest
from treadle.backends.clients import choose_client, client_named, current_client, use_client
from treadle.backends.cluster.client import ClusterClient
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import StepError
from treadle.steps.resources import ResourceConfig
from treadle.testing.schedulers import FakeCluster

PATIENCE = 60.0


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A current folder without profiles, and a home without any."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREADLE_CLIENT", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    monkeypatch.setattr("treadle.backends.clients._named", {})
    return tmp_path


@pytest.fixture
def fake(here: pathlib.Path) -> Iterator[FakeCluster]:
    with FakeCluster("slurm", here / "fake") as cluster:
        yield cluster


def profile(here: pathlib.Path, name: str, text: str) -> None:
    (here / "profiles").mkdir(exist_ok=True)
    (here / "profiles" / f"{name}.toml").write_text(text)


def test_functions_are_jobs_whose_values_and_errors_come_back(fake: FakeCluster) -> None:
    def add(left: int, right: int = 1) -> int:
        print("adding")
        return left + right

    def fail() -> None:
        raise ValueError("no")

    client = ClusterClient(ClusterSettings(backend="slurm", bin_dir=fake.bin, poll_interval=0.2))
    try:
        added = client.submit(JobRequest(fn=add, args=(2,), kwargs={"right": 3}))
        failed = client.submit(JobRequest(fn=fail, resources=ResourceConfig(cpu=2)))
        assert added.result(PATIENCE) == 5
        assert "adding" in added.logs()
        with pytest.raises(ValueError, match="no"):
            failed.result(PATIENCE)
    finally:
        client.close()
    assert sorted(job.cpus for job in fake.jobs()) == [1, 2]


def test_a_job_that_is_told_to_end_is_cancelled(fake: FakeCluster) -> None:
    def sleep() -> None:
        import time

        time.sleep(60)

    client = ClusterClient(ClusterSettings(backend="slurm", bin_dir=fake.bin, poll_interval=0.2))
    try:
        job = client.submit(JobRequest(fn=sleep))
        fake.wait_for(lambda jobs: any(one.state == "running" for one in jobs), PATIENCE)
        job.terminate()
        with pytest.raises(StepError):
            job.result(PATIENCE)
    finally:
        client.close()


def test_a_name_is_a_scheduler_or_a_profile(here: pathlib.Path) -> None:
    profile(here, "lab", '[cluster]\nbackend = "sge"\nparallel_env = "threads"\n')
    assert client_named("slurm").name == "slurm"
    lab = client_named("lab")
    assert isinstance(lab, ClusterClient)
    assert (lab.name, lab.address, lab.settings.parallel_environment) == ("sge", "lab", "threads")


def test_treadle_client_may_name_a_profile(here: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(here, "lab", '[cluster]\nbackend = "pbs"\n')
    monkeypatch.setenv("TREADLE_CLIENT", "lab")
    assert current_client().name == "pbs"


def test_what_is_wrong_with_a_profile_is_told(here: pathlib.Path) -> None:
    profile(here, "lab", '[cluster]\nbackend = "slurm"\nwalltime = 5\nextra_args = ["--array=1"]\n')
    with pytest.raises(StepError, match="seconds or minutes"):
        client_named("lab")


@pytest.mark.parametrize("text", ["", '[cluster]\nbackend = "local"\n', '[cluster]\nqos = "q"\n'])
def test_a_profile_that_names_no_scheduler_is_no_client(here: pathlib.Path, text: str) -> None:
    profile(here, "lab", text)
    with pytest.raises(StepError, match="no profile that does") as caught:
        client_named("lab")
    assert "slurm, pbs, sge, lsf, lab" in str(caught.value)


def test_an_unknown_name_lists_what_there_is(here: pathlib.Path) -> None:
    with pytest.raises(StepError, match="names no client"):
        client_named("nowhere")


def test_a_client_of_ones_own_choice_stands_above_the_profile(here: pathlib.Path) -> None:
    mine, other = (ClusterClient(ClusterSettings(backend=name)) for name in ("slurm", "lsf"))
    with use_client(mine):
        choose_client(other)
        assert current_client() is mine


def test_what_a_scheduler_cannot_do_is_refused(here: pathlib.Path) -> None:
    client = ClusterClient(ClusterSettings(backend="slurm"))
    assert client.cannot(ResourceConfig(nodes=2, image="i")) == ["nodes (2)", "image (i)"]
    assert client.cannot(ResourceConfig(cpu=4)) == []


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_jobs_of_steps_are_in_flight_than_was_said(fake: FakeCluster, most: int) -> None:
    def work(out: str) -> None:
        pathlib.Path(out).write_text("made")

    client = ClusterClient(ClusterSettings(backend="slurm", bin_dir=fake.bin, poll_interval=0.2))
    one = ResourceConfig(cpu=1)
    steps = [StepSpec("s", fn=work, hash_attrs={"i": i}, resources=one) for i in range(7)]
    assert StepRunner(client=client).run(steps, max_remote=most).counts == {"succeeded": 7}
    journal = pathlib.Path(".treadle/runs/latest/events.jsonl").read_text().splitlines()
    flying, seen = 0, []
    for event in (json.loads(line)["event"] for line in journal):
        flying += {"attempt_submitted": 1, "task_settled": -1}.get(event, 0)
        seen.append(flying)
    assert max(seen) == most
    assert len(fake.jobs()) == 7
