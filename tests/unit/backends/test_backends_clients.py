"""Clients: which one is the current one, what they refuse, and their jobs."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from treadle import ResourceConfig, StepSpec
from treadle.backends.client_jobs import JobRequest
from treadle.backends.clients import (
    CLIENT,
    LocalClient,
    RayClient,
    client_named,
    current_client,
    refuse_impossible,
    use_client,
)
from treadle.backends.local import LocalBackend
from treadle.base.errors import StepError
from treadle.engine.backend import JobStatus
from waiting import until


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = LocalClient()
    yield made
    made.close()


def test_the_current_client_is_this_machine_where_nobody_says_otherwise(monkeypatch):
    monkeypatch.delenv(CLIENT, raising=False)
    assert current_client().is_local
    assert current_client() is current_client()


@pytest.mark.parametrize(
    ("name", "address"),
    [("ray", "ray"), ("ray://head:10001", "ray://head:10001"), ("head:6379", "head:6379")],
)
def test_a_variable_names_the_client(monkeypatch, name, address):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv(CLIENT, name)
    found = current_client()
    assert isinstance(found, RayClient)
    assert (found.name, found.address, found.is_local) == ("ray", address, False)


def test_what_is_said_here_beats_the_variable_and_ends_with_its_block(monkeypatch):
    monkeypatch.setenv(CLIENT, "ray")
    here = LocalClient()
    with use_client(here) as used:
        assert used is here
        with use_client("ray"):
            assert current_client().name == "ray"
        assert current_client() is here
    assert current_client().name == "ray"


def test_threads_that_were_not_told_do_not_see_the_client_of_another(monkeypatch):
    monkeypatch.delenv(CLIENT, raising=False)
    seen = []
    here = LocalClient()
    with use_client(here):
        thread = threading.Thread(target=lambda: seen.append(current_client()))
        thread.start()
        thread.join()
    assert seen[0] is not here


def test_a_name_that_means_no_client_is_an_error_with_a_way_out(monkeypatch):
    monkeypatch.setenv(CLIENT, "slurmm")
    with pytest.raises(StepError, match=r"'slurmm' names no client[\s\S]*TREADLE_CLIENT is local, ray"):
        current_client()


def test_a_client_only_chooses_a_backend():
    backend = client_named("local").backend()
    assert isinstance(backend, LocalBackend)
    backend.close()


def test_what_backends_cannot_do_is_refused_all_at_once(tmp_path):
    steps = [
        StepSpec("wide", resources=ResourceConfig(nodes=4)),
        StepSpec("boxed", resources=ResourceConfig(image="box.sif")),
        StepSpec("queued", resources=ResourceConfig(partition="long")),
        StepSpec("cheap", resources=ResourceConfig(preemptible=True)),
        StepSpec("large", resources=ResourceConfig(disk_gb=0.001)),
        StepSpec("plain"),
    ]
    asking = [(step, str(tmp_path / step.name)) for step in steps]
    with pytest.raises(StepError) as here:
        refuse_impossible(LocalClient(), asking)
    assert [one.code for one in here.value.diagnostics] == ["backend-cannot"] * 2
    assert "step 'wide' asks for what the client local cannot do: nodes (4)" in str(here.value)
    with pytest.raises(StepError) as there:
        refuse_impossible(RayClient("head:6379"), asking)
    assert len(there.value.diagnostics) == 4
    assert "partition (long)" in str(there.value)
    assert "disk_gb (0.001)" in str(there.value)


def test_disk_space_that_is_not_free_where_the_step_writes_is_refused(tmp_path, monkeypatch):
    """For a URL that is where it is staged."""
    staging = str(tmp_path / "staging")
    monkeypatch.setenv("TREADLE_STAGING", staging)
    asking = StepSpec("large", resources=ResourceConfig(disk_gb=10**7))
    not_yet = str(tmp_path / "not" / "yet" / "a")
    for path, folder in ((not_yet, not_yet), ("s3://b/a", staging)):
        with pytest.raises(StepError) as caught:
            refuse_impossible(LocalClient(), [(asking, path)])
        (one,) = caught.value.diagnostics
        told = rf"step 'large' asks for .* cannot do: disk_gb \(1e\+07: [0-9.]+ GB are free for {folder}\)"
        assert re.fullmatch(told, one.message)
    refuse_impossible(
        LocalClient(), [(StepSpec("s", resources=ResourceConfig(disk_gb=0.001)), str(tmp_path))]
    )


def test_without_ray_the_error_says_how_to_install_it():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from treadle.backends.clients import RayClient\n"
        "from treadle.base.errors import StepError\n"
        "try: RayClient()\n"
        "except StepError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'treadle[ray]'" in said


def test_choosing_a_client_imports_nothing_heavy():
    code = (
        "import sys, treadle; treadle.current_client(); treadle.RayClient('head:6379')\n"
        "print(sorted({'ray', 'cloudpickle', 'asyncio', 'subprocess', 'logging'} & set(sys.modules)))"
    )
    env = {name: value for name, value in os.environ.items() if name != CLIENT}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert out.stdout.strip() == "[]"


def test_a_job_gives_back_what_its_function_returned(client):
    base = 40
    job = client.submit(
        JobRequest(fn=lambda x, *, y: {"sum": base + x + y, "pid": os.getpid()}, args=(1,), kwargs={"y": 1})
    )
    assert job.wait() is JobStatus.ENDED
    assert job.result()["sum"] == 42
    assert job.result()["pid"] != os.getpid()
    assert job.status() is JobStatus.ENDED


def test_a_job_has_its_variables_and_its_log(client):
    def tell() -> str:
        print("on the way")
        return os.environ["WORD"] + os.environ[CLIENT]

    job = client.submit(JobRequest(fn=tell, name="tell", env_vars={"WORD": "hello "}))
    assert job.result(60) == "hello local"
    assert job.logs() == "on the way\n"


def test_what_a_job_raised_is_raised_with_its_traceback(client):
    def fail() -> None:
        raise ValueError("no such layer")

    job = client.submit(JobRequest(fn=fail))
    with pytest.raises(ValueError, match="no such layer") as found:
        job.result(60)
    assert "in fail" in str(found.value.__cause__)


def test_a_job_that_crashed_says_how_and_shows_its_log(client):
    def crash() -> None:
        print("so far so good", flush=True)
        os.kill(os.getpid(), 9)

    job = client.submit(JobRequest(fn=crash))
    with pytest.raises(StepError, match=r"SIGKILL[\s\S]*so far so good"):
        job.result(60)


def test_a_job_can_be_terminated(client, tmp_path):
    here = str(tmp_path / "up")

    def hang() -> None:
        Path(here).write_text(str(os.getpid()))
        time.sleep(300)

    job = client.submit(JobRequest(fn=hang))
    assert job.wait(0.01) is not JobStatus.ENDED
    with pytest.raises(TimeoutError):
        job.result(0.01)
    until(lambda: os.path.exists(here) and Path(here).read_text())
    job.terminate()
    with pytest.raises(StepError, match="cancelled"):
        job.result(60)
    assert not os.path.exists(f"/proc/{Path(here).read_text()}")


def test_a_time_limit_holds_though_nobody_waits(client):
    job = client.submit(JobRequest(fn=lambda: time.sleep(300), resources=ResourceConfig(time_limit=1)))
    until(lambda: job.status() is JobStatus.ENDED)
    with pytest.raises(StepError, match=r"\(time\)"):
        job.result()


def test_many_jobs_from_many_threads(client):
    results = {}

    def ask(n: int) -> None:
        results[n] = client.submit(JobRequest(fn=lambda: n * n)).result(60)

    client.submit(JobRequest(fn=lambda: None)).wait()
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: n * n for n in range(8)}


def test_functions_travel_in_private_files(client, tmp_path):
    here = str(tmp_path / "go")

    def wait() -> None:
        while not os.path.exists(here):
            time.sleep(0.01)

    job = client.submit(JobRequest(fn=wait))
    files = [path for path in (tmp_path / ".treadle" / "jobs").rglob("*") if path.suffix == ".request"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    Path(here).touch()
    assert job.result(60) is None


def test_a_function_that_cannot_be_sent_is_refused_in_words(client):
    lock = threading.Lock()
    with pytest.raises(StepError, match="cannot be sent to another process"):
        client.submit(JobRequest(fn=lambda: lock.acquire()))


def test_a_request_that_this_machine_cannot_do_is_refused(client):
    with pytest.raises(StepError, match=r"job 'wide' asks for .* nodes \(2\)"):
        client.submit(JobRequest(fn=print, name="wide", resources=ResourceConfig(nodes=2)))
    with pytest.raises(StepError, match=r"job 'large' asks for .* disk_gb \(1e\+07: "):
        client.submit(JobRequest(fn=print, name="large", resources=ResourceConfig(disk_gb=10**7)))


def test_closing_a_client_ends_its_jobs_and_removes_their_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client = LocalClient()
    job = client.submit(JobRequest(fn=lambda: time.sleep(300)))
    client.close()
    assert job.status() is JobStatus.ENDED
    assert list((tmp_path / ".treadle" / "jobs").iterdir()) == []
    client.close()


def test_jobs_end_with_a_driver_that_is_killed(tmp_path):
    code = (
        "import os, time, treadle\n"
        "from treadle.backends.client_jobs import JobRequest\n"
        "def hang(): open('up', 'w').write(str(os.getpid())); time.sleep(300)\n"
        "treadle.LocalClient().submit(JobRequest(fn=hang))\n"
        "while not os.path.exists('up') or not open('up').read(): time.sleep(0.01)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, timeout=60)
    pid = (tmp_path / "up").read_text()
    until(lambda: not os.path.exists(f"/proc/{pid}"))
