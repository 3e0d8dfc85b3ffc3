"""SLURM: options in, answers out. The answers are those of `tests/fixtures/schedulers/slurm-22.05.8.md`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import answers, recorded

from treadle.backends.cluster.dialect import Request, Said, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.plan.task import Resources

VERSION = "slurm-22.05.8"
FAILED = "sbatch: error: Batch job submission failed: "
POLICY = f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
slurm = dialect_of(ClusterSettings(backend="slurm"))


def request(**changes: Any) -> Request:
    usual: dict[str, Any] = {
        "name": "tk4x2abcd-1a.align",
        "script": "/w/run/1/job.sh",
        "log": "/w/run/1/job.log",
        "workdir": "/w",
        "resources": Resources(),
    }
    return Request(**usual | changes)


# What is sent


def test_a_small_job_asks_for_little() -> None:
    assert slurm.directives(request()) == [
        "#SBATCH --job-name=tk4x2abcd-1a.align",
        "#SBATCH --chdir=/w",
        "#SBATCH --output=/w/run/1/job.log",
        "#SBATCH --open-mode=append",
        "#SBATCH --no-requeue",
        "#SBATCH --cpus-per-task=1",
    ]
    assert slurm.submit(request()) == (["sbatch", "--parsable", "/w/run/1/job.sh"], "")


def test_an_array_asks_for_everything_that_was_said() -> None:
    asked = Resources(
        threads=8,
        memory=8 * 1024**3 + 1,
        gpus=2,
        gpu_model="a100",
        disk=10 * 1024**2,
        time_limit=90_061,
        partition="long",
        account="lab",
        qos="high",
        constraint="avx",
        nodes=2,
        tasks_per_node=4,
        extra_args=("--mail-type=END", "-C avx2"),
    )
    whole = request(
        resources=asked,
        size=20,
        running=5,
        comment="run=1",
        exclude=("n1", "n2"),
        requeue=True,
        signal_before=60,
    )
    assert slurm.directives(whole) == [
        "#SBATCH --job-name=tk4x2abcd-1a.align",
        "#SBATCH --chdir=/w",
        "#SBATCH --output=/w/run/1/job.log.%a",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        "#SBATCH --partition=long",
        "#SBATCH --account=lab",
        "#SBATCH --qos=high",
        "#SBATCH --constraint=avx",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --mem=8193M",
        "#SBATCH --tmp=10M",
        "#SBATCH --time=1-01:01:01",
        "#SBATCH --gres=gpu:a100:2",
        "#SBATCH --comment=run=1",
        "#SBATCH --exclude=n1,n2",
        "#SBATCH --signal=B:TERM@60",
        "#SBATCH --array=1-20%5",
    ]
    assert slurm.submit(whole)[0] == [
        *("sbatch", "--parsable", "--mail-type=END", "-C", "avx2", "/w/run/1/job.sh"),
    ]
    assert slurm.log_of("/w/run/1/job.log", 3) == "/w/run/1/job.log.3"
    assert slurm.element("25", 3) == "25_3"


def test_the_settings_fill_what_a_task_leaves_open() -> None:
    site = ClusterSettings(
        backend="slurm", partition="main", account="all", walltime=60, extra_args=("--nice",)
    )
    told = dialect_of(site)
    lines = told.directives(request(resources=Resources(partition="long")))
    assert "#SBATCH --partition=long" in lines
    assert {"#SBATCH --account=all", "#SBATCH --time=0-00:01:00"} <= set(lines)
    assert told.submit(request())[0] == ["sbatch", "--parsable", "--nice", "/w/run/1/job.sh"]


def test_what_a_directive_cannot_hold_goes_to_the_command() -> None:
    odd = request(workdir="/w/a b$x", log="/w/a b$x/100%/job.log", comment='say "hi"\nand more')
    lines = slurm.directives(odd)
    assert not any("a b" in line or "hi" in line for line in lines)
    assert slurm.submit(odd)[0] == [
        *("sbatch", "--parsable", "--chdir=/w/a b$x", "--output=/w/a b$x/100%%/job.log"),
        *('--comment=say "hi" and more', "/w/run/1/job.sh"),
    ]


@pytest.mark.parametrize(
    ("name", "taken"),
    [("x y'z$(a)\n", "x_y_z__a__"), ("7up", "t7up"), ("", "t"), ("ä|b", "t__b"), ("a" * 300, "a" * 120)],
)
def test_names_are_made_harmless(name: str, taken: str) -> None:
    assert slurm.directives(request(name=name))[0] == f"#SBATCH --job-name={taken}"


@pytest.mark.parametrize(
    "option",
    [
        *("-J x", "-Jx", "--job-name=x", "--job-name x", "--job=x", "--out=x", "-ox", "-e x", "--error=x"),
        *("-a1-3", "--array=1", "--arr 1", "--parsable", "--wrap=ls", "-D/x", "--chdir=/x", "--comment=x"),
        *("-HJx", "-QW", "--no-requeue", "--requeue", "--test-only", "--wait", "--"),
    ],
)
def test_options_of_the_engine_are_found_in_every_spelling(option: str) -> None:
    assert slurm.owned(["--mem=1", option, "-p", "x"]) == [option]


def test_other_options_are_the_user_s() -> None:
    mine = [
        "-p",
        "x",
        "-pJo",
        "-A lab",
        "--mem=4G",
        "--exclude=n",
        "--mail-user=J",
        "-C",
        "a&b",
        "--gres",
        "gpu:1",
    ]
    assert slurm.owned(mine) == []


# Submission


@pytest.mark.parametrize(
    ("command", "job"),
    [("sbatch --parsable ok.sh", "2"), ("sbatch --parsable -M lab ok.sh", "3;lab"), ("sbatch ok.sh", "1")],
)
def test_the_id_is_found(command: str, job: str) -> None:
    answer = slurm.submitted(recorded(VERSION, command))
    assert (answer.sort, answer.job) == (Sort.DONE, job)


def test_banners_before_the_id_do_no_harm() -> None:
    answer = slurm.submitted(Said(0, "Welcome to node 7\n 12 jobs today\n\n25\n\n", "sbatch: note\n"))
    assert (answer.sort, answer.job) == (Sort.DONE, "25")


@pytest.mark.parametrize(
    "command",
    [
        *("sbatch -p nosuch ok.sh", "sbatch --mem=900G ok.sh", "sbatch -t xx ok.sh", "sbatch missing.sh"),
        "sbatch --wrap 'exit 0' --array=0-20000",
    ],
)
def test_refusals_keep_the_scheduler_s_words(command: str) -> None:
    said = recorded(VERSION, command)
    answer = slurm.submitted(said)
    assert answer.sort is Sort.REFUSED
    last = said.err.strip().splitlines()[-1].removeprefix("sbatch: error: ")
    assert last in answer.message
    assert "sbatch: error" not in answer.message


@pytest.mark.parametrize(
    ("words", "sort"),
    [
        ([FAILED + "Invalid account or account/partition combination specified"], Sort.REFUSED),
        (["sbatch: error: QOSMaxSubmitJobPerUserLimit", POLICY], Sort.LIMIT),
        (["sbatch: error: AssocMaxSubmitJobLimit", POLICY], Sort.LIMIT),
        (["sbatch: error: QOSMaxWallDurationPerJobLimit", POLICY], Sort.REFUSED),
        (["sbatch: error: QOSGrpGRES", POLICY], Sort.REFUSED),
        ([POLICY], Sort.LIMIT),
        ([FAILED + "Unable to contact slurm controller (connect failure)"], Sort.TRANSIENT),
        ([FAILED + "Resource temporarily unavailable"], Sort.TRANSIENT),
        (["sbatch: error: Munge encode failed: Failed to access socket"], Sort.TRANSIENT),
        ([FAILED + "Socket timed out on send/recv operation"], Sort.UNCLEAR),
        ([FAILED + "Zero Bytes were transmitted or received"], Sort.UNCLEAR),
        ([], Sort.UNCLEAR),
    ],
)
def test_failures_are_sorted(words: list[str], sort: Sort) -> None:
    assert slurm.submitted(Said(1, "", "\n".join(words))).sort is sort


def test_a_controller_that_is_down_is_no_refusal() -> None:
    assert slurm.submitted(recorded(VERSION, "sbatch ok.sh", -1)).sort is Sort.TRANSIENT


@pytest.mark.parametrize(
    "said", [Said(None), Said(0, "all is well\n"), Said(0, ""), Said(-9), Said(1, "25\n", "x")]
)
def test_an_answer_that_may_hide_a_job_is_unclear(said: Said) -> None:
    assert slurm.submitted(said).sort is Sort.UNCLEAR


# Finding, cancelling, limits


def test_jobs_are_found_by_name_in_the_queue_and_then_in_accounting() -> None:
    queue, past = slurm.find(["ta-1", "ta-2"], "me", 0.0)
    assert queue[:9] == ["squeue", "-h", "-r", "-t", "all", "-u", "me", "-n", "ta-1,ta-2"]
    assert past[0] == "sacct"
    assert "--name=ta-1,ta-2" in past
    assert slurm.found(
        queue, Said(0, "24_1|RUNNING|None|n|ta-1\n24_2|PENDING|None||ta-1\n9|RUNNING|None|n|ta-2")
    ) == {
        "ta-1": "24",
        "ta-2": "9",
    }
    assert slurm.found(past, Said(0, "7|COMPLETED|0:0|||2026-11-29T11:59:32|n|||ta-1")) == {"ta-1": "7"}
    assert isinstance(slurm.found(queue, Said(None)), Silence)
    assert slurm.found(past, recorded(VERSION, "sacct -j 1")) == {}, "there is no accounting here"
    assert isinstance(slurm.found(past, recorded(VERSION, "sacct -j 15")), Silence)


def test_many_are_cancelled_at_once() -> None:
    commands = slurm.cancel([f"24_{index}" for index in range(1, 1201)])
    assert [len(command) for command in commands] == [501, 501, 201]


def test_the_site_s_largest_array() -> None:
    said = Said(0, "MaxArraySize            = 1001\nMaxJobCount             = 10000\n")
    assert slurm.limits_of(said).array_size == 1000
    assert slurm.limits_of(Said(1, "", "no")).array_size is None


# Anything at all


texts = st.text(
    alphabet=st.sampled_from('0123456789|_[]%;,.+- \n\tCANCELLED by:RUNNING{}"<>=É'), max_size=200
)


@given(out=texts, err=texts, code=st.sampled_from([0, 1, None, 255]))
@settings(max_examples=300, deadline=None)
def test_junk_never_raises(out: str, err: str, code: int | None) -> None:
    said = Said(code, out, err)
    assert slurm.submitted(said).sort is not Sort.DONE or code == 0
    slurm.polled(said)
    slurm.accounted(said)
    slurm.limits_of(said)
    slurm.found(["sacct"], said)
    slurm.found(["squeue"], said)


def test_every_recording_is_read_without_a_fault() -> None:
    for said in answers(VERSION):
        slurm.submitted(said)
        slurm.polled(said)
        slurm.accounted(said)
