"""What of the Ray backend needs no Ray: resources, errors, tickets, the attempt on its node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.backends import ray_ticket
from treadle.backends.payload import PYTHON, make_private_folder
from treadle.backends.ray_attempt import RayAttempt
from treadle.backends.ray_cluster import RayCluster, capped, impossible, lacking, ray_options
from treadle.backends.ray_errors import outcome_of
from treadle.backends.ray_ticket import Ticket, decode_told, encode_ticket
from treadle.backends.tethered import tethered_argv
from treadle.base.errors import SchedulerError
from treadle.base.proc import live_members
from treadle.engine.backend import Submission
from treadle.plan.task import Resources, ScheduledTask
from treadle.records.event import EndReason
from waiting import until

GIB = 1024**3
NODES = [{"CPU": 4.0, "memory": 8.0 * GIB}, {"CPU": 16.0, "memory": 4.0 * GIB, "GPU": 2.0, "licence": 1.0}]


def test_resources_are_asked_of_ray_by_its_names():
    asked = Resources(threads=3, memory=GIB, gpus=1, gpu_model="A100", groups=(("licence", 1), ("mine", 2)))
    assert ray_options(asked, NODES) == {
        "num_cpus": 3,
        "num_gpus": 1,
        "memory": GIB,
        "accelerator_type": "A100",
        "resources": {"licence": 1},
    }


def test_what_no_ray_can_do_is_named_with_what_was_asked():
    asked = Resources(nodes=2, partition="long", account="x", gpu_memory=2 * GIB, extra_args=("--nice",))
    assert impossible(asked) == [
        "nodes (2)",
        "partition (long)",
        "account (x)",
        "gpu_memory (2G)",
        "extra_args (--nice)",
    ]
    assert impossible(Resources(threads=100, nodes=1, tasks_per_node=1, disk=GIB)) == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Resources(threads=16), ""),
        (Resources(threads=4, memory=8 * GIB), ""),
        (Resources(threads=17), "no node of the cluster has 17 CPU (the largest has 16)"),
        (Resources(memory=9 * GIB), "no node of the cluster has 9G memory (the largest has 8G)"),
        (Resources(gpus=3), "no node of the cluster has 3 GPU (the largest has 2)"),
        (Resources(threads=16, memory=8 * GIB), "no node of the cluster has"),
    ],
)
def test_what_no_node_can_hold_is_told(asked, words):
    found = lacking(ray_options(asked, NODES), NODES)
    assert found.startswith(words)
    assert bool(found) == bool(words)


def test_a_machine_of_our_own_cuts_requests_to_what_it_has():
    options = ray_options(Resources(threads=64, memory=64 * GIB, gpus=2), NODES)
    assert capped(options, NODES) == {"num_cpus": 16.0, "num_gpus": 2, "memory": 8 * GIB}


class NodeDiedError(Exception):
    pass


class RuntimeEnvSetupError(Exception):
    pass


WORKER_DIED = (
    "The actor died unexpectedly before finishing this task.\n\tclass_name: RayAttempt\n\tpid: 2143\n"
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
    "detail: Worker unexpectedly exits with a connection error code 2. End of file. Some common causes "
    "include: (1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force "
    "was called, or (3) the worker crashed unexpectedly due to SIGSEGV or another unexpected error."
)


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (Exception(WORKER_DIED), EndReason.APP, "its process died: Worker unexpectedly exits"),
        (
            Exception("1 worker(s) were killed due to the node running low on memory."),
            EndReason.OOM,
            "memory",
        ),
        (NodeDiedError("Task failed"), EndReason.NODE, "its node was lost"),
        (Exception("The actor died because its node has died. Node Id: ab"), EndReason.NODE, "its node"),
        (RuntimeEnvSetupError("no such image"), EndReason.NEVER_STARTED, "no such image"),
        (
            Exception("ModuleNotFoundError: No module named 'treadle'"),
            EndReason.NEVER_STARTED,
            "not installed",
        ),
        (Exception("something else"), EndReason.LOST, "something else"),
    ],
)
def test_errors_of_ray_have_reasons(error, reason, words):
    outcome = outcome_of(error)
    assert outcome.reason is reason
    assert words in outcome.message
    assert len(outcome.message) < 700


def test_an_address_is_as_it_was_given_else_as_the_environment_says(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "head:1")
    assert (RayCluster().address, RayCluster().owned) == ("head:1", False)
    assert RayCluster("other:2").address == "other:2"
    monkeypatch.delenv("RAY_ADDRESS")
    assert RayCluster().owned


_NO_SERVER = "Initialization failure from server:\nTraceback:\nRuntimeError: it is busy"


@pytest.mark.parametrize("failures", [1, 2])
def test_a_head_that_had_no_time_for_this_client_is_asked_once_more(monkeypatch, failures):
    asked = []

    def init(**options):
        asked.append(options["address"])
        if len(asked) <= failures:
            raise ConnectionAbortedError(_NO_SERVER)

    monkeypatch.setattr("ray.init", init)
    cluster = RayCluster("ray://head:1")
    if failures == 1:
        cluster.join()
    else:
        with pytest.raises(SchedulerError, match=r"cannot be joined: .* RuntimeError: it is busy"):
            cluster.join()
    assert asked == ["ray://head:1"] * 2


def submission(folder: Path, text: str, **changes) -> Submission:
    task = ScheduledTask(id="t", rule="t", inputs=tuple(f"in{n}" for n in range(10_000)))
    made = Submission(
        task=task,
        attempt=1,
        n=1,
        name="tx-1",
        argv=("bash", "-c", text),
        env={"TREADLE_ATTEMPT": f"{folder.name}.1", "WORD": "hello"},
        cwd=str(folder),
        log=str(folder / "logs" / "1"),
        resources=Resources(gpus=1),
        grace=0.3,
    )
    return replace(made, **changes)


def attempt(folder: Path, text: str, **changes) -> tuple[RayAttempt, Path]:
    told = folder / "payloads" / "1.result"
    make_private_folder(str(told.parent))
    wire = encode_ticket(Ticket(submission=submission(folder, text, **changes)), str(told))
    return RayAttempt(wire, leaves=False), told


def test_a_ticket_carries_the_task_but_not_its_files(tmp_path):
    assert len(encode_ticket(Ticket(submission=submission(tmp_path, "true")), "")) < 5000


def test_an_attempt_works_though_nobody_asks_and_writes_down_its_end(tmp_path):
    _, told = attempt(tmp_path, 'echo "$WORD"; exit 3')
    until(told.exists)
    assert decode_told(told.read_bytes()).outcome.exit_code == 3
    assert (tmp_path / "logs" / "1").read_text() == "hello\n"


def test_folders_of_the_driver_that_a_node_does_not_see_are_not_made_there(tmp_path):
    wire = encode_ticket(
        Ticket(submission=submission(tmp_path, "true")), str(tmp_path / "elsewhere" / "1.result")
    )
    assert decode_told(RayAttempt(wire, leaves=False).told()).outcome.reason is EndReason.OK
    assert not (tmp_path / "elsewhere").exists()


def test_an_attempt_tells_all_who_ask(tmp_path):
    one, _ = attempt(tmp_path, "true")
    assert decode_told(one.told()) == decode_told(one.told())
    assert decode_told(one.told()).outcome.reason is EndReason.OK


def test_an_attempt_ends_when_it_is_asked_to(tmp_path):
    one, _ = attempt(tmp_path, "touch up; sleep 300 & wait")
    until((tmp_path / "up").exists)
    one.end(False)
    assert decode_told(one.told()).outcome.reason is EndReason.CANCELLED


def test_a_program_that_is_not_on_the_node_is_named(tmp_path):
    one, _ = attempt(tmp_path, "", argv=("no-such-program",))
    outcome = decode_told(one.told()).outcome
    assert outcome.reason is EndReason.NEVER_STARTED
    assert "no 'no-such-program' is on PATH" in outcome.message


def test_a_folder_that_is_not_on_the_node_is_named(tmp_path):
    one, _ = attempt(tmp_path, "true", cwd=str(tmp_path / "elsewhere"))
    assert "elsewhere" in decode_told(one.told()).outcome.message


def test_another_version_is_refused_before_the_rest_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_ticket, "__version__", "9.9")
    wire = encode_ticket(Ticket(submission=submission(tmp_path, "touch made")), "")
    one = RayAttempt(wire.partition(b"\n")[0] + b"\nof a shape that nobody here knows", leaves=False)
    outcome = decode_told(one.told()).outcome
    assert outcome.reason is EndReason.NEVER_STARTED
    assert f"the driver runs Python {PYTHON} with Treadle 9.9" in outcome.message


def test_a_ticket_in_a_file_must_be_ours_alone_and_is_removed(tmp_path):
    folder = tmp_path / "payloads"
    make_private_folder(str(folder))
    file = folder / "1.call"
    file.write_bytes(encode_ticket(Ticket(submission=submission(tmp_path, "true")), ""))
    file.chmod(0o644)
    outcome = decode_told(RayAttempt(b"", str(file), leaves=False).told()).outcome
    assert outcome.reason is EndReason.NEVER_STARTED
    assert "0600" in outcome.message
    file.chmod(0o600)
    assert decode_told(RayAttempt(b"", str(file), leaves=False).told()).outcome.reason is EndReason.OK
    assert not file.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="signals of descriptors are Linux's")
def test_a_tethered_command_and_all_its_group_end_with_who_holds_the_pipe(tmp_path):
    reader, writer = os.pipe()
    text = "trap '' TERM; sleep 300 & touch up; sleep 300; touch survived"
    child = subprocess.Popen(tethered_argv(["bash", "-c", text], reader), cwd=tmp_path, process_group=0)
    until((tmp_path / "up").exists)
    os.close(writer)
    assert child.wait(30) == -signal.SIGKILL
    until(lambda: live_members(child.pid) == [])
    os.close(reader)


def test_a_tethered_command_is_else_as_it_would_be_without(tmp_path):
    reader, writer = os.pipe()
    code = "import json, os, signal, sys; print(json.dumps([sys.argv[1:], signal.getsignal(signal.SIGPIPE)]))"
    argv = tethered_argv([sys.executable, "-c", code, "a b", "$c"], reader)
    said = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(said.stdout)[0] == ["a b", "$c"]
    gone = subprocess.run(tethered_argv(["no-such-program"], reader), capture_output=True, text=True)
    assert (gone.returncode, "no-such-program" in gone.stderr) == (127, True)
    os.close(reader)
    os.close(writer)
