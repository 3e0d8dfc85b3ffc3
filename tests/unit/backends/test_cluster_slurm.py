"""SLURM: options in, answers out. The answers are those of `tests/fixtures/schedulers/slurm-22.05.8.md`."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import answers, recorded

from treadle.backends.cluster.dialect import Account, Phase, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.slurm_accounts import FIELDS
from treadle.plan.task import Resources
from treadle.records.event import EndReason

VERSION = "slurm-22.05.8"
QUEUE = "'%i|%F|%K|%T|%t|%r|%M|%l|%S|%e|%R|%N'"
COLUMNS = (
    "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,Elapsed,ElapsedRaw,MaxRSS,TotalCPU,Submit,Start,End,"
    "NodeList,ReqMem,Timelimit,Reason"
)
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


def in_queue(job: int | str, nth: int = 0) -> list[Row]:
    """The recorded rows of a job, in the columns that the dialect asks for."""
    said = recorded(VERSION, f"squeue -h -t all -j {job} -o {QUEUE}", nth)
    rows = [line.split("|") for line in said.out.splitlines()]
    return polled("\n".join(f"{row[0]}|{row[3]}|{row[5]}|{row[11]}|name" for row in rows))


def polled(out: str) -> list[Row]:
    rows = slurm.polled(Said(0, out))
    assert not isinstance(rows, Silence)
    return rows


def accounts(said: Said) -> dict[str, Account]:
    """The recorded rows of sacct (with their header), in the columns that the dialect asks for."""
    header, *lines = [line.split("|") for line in said.out.splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    out = "\n".join("|".join(row.get(field, "") for field in FIELDS) for row in rows)
    found = slurm.accounted(Said(0, out))
    assert not isinstance(found, Silence)
    return {account.job: account for account in found}


def in_accounting(job: int, nth: int = 0, more: str = "") -> Account:
    said = recorded(VERSION, f"sacct -j {job} -P -o {COLUMNS}{more}", nth)
    return accounts(said)[str(job)]


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


# The queue


def test_arrays_are_asked_for_once_and_written_out() -> None:
    assert slurm.poll(["24_1", "24_2", "7", "24_3"], "me") == [
        ["squeue", "-h", "-r", "-t", "all", "-j", "24,7", "-o", "%i|%T|%r|%N|%j"]
    ]
    assert len(slurm.poll([str(10_000_000 + n) for n in range(10_000)], "me")) == 1
    assert slurm.poll([], "me") == []


def test_jobs_of_another_cluster_are_asked_for_there() -> None:
    assert slurm.poll(["3;lab", "4"], "me") == [
        ["squeue", "-h", "-r", "-t", "all", "-M", "lab", "-j", "3", "-o", "%i;lab|%T|%r|%N|%j"],
        ["squeue", "-h", "-r", "-t", "all", "-j", "4", "-o", "%i|%T|%r|%N|%j"],
    ]
    (row,) = polled("CLUSTER: lab\n3_1;lab|RUNNING|None|n1|x\n")
    assert row.job == slurm.element("3;lab", 1)
    (account,) = slurm.accounted(Said(0, "lab|3_1|COMPLETED|0:0||||n1|||x"))
    assert account.job == "3_1;lab"
    assert slurm.cancel(["3;lab"]) == [["scancel", "-M", "lab", "3"]]


@pytest.mark.parametrize(
    ("job", "phase", "reason"),
    [
        (11, Phase.PENDING, "JobHeldUser"),
        (12, Phase.PENDING, "BeginTime"),
        (16, Phase.PENDING, "Resources"),
        (14, Phase.RUNNING, ""),
        (18, Phase.ENDED, ""),
        (29, Phase.RUNNING, ""),  # suspended
    ],
)
def test_phases(job: int, phase: Phase, reason: str) -> None:
    (row,) = in_queue(job)
    assert (row.job, row.phase, row.reason, row.hopeless, row.ended) == (str(job), phase, reason, False, None)


@pytest.mark.parametrize(
    ("job", "end"),
    [
        (19, EndReason.APP),
        (20, EndReason.APP),
        (23, EndReason.OOM),
        (30, EndReason.NODE),
        (32, EndReason.TIME),
    ],
)
def test_bad_ends(job: int, end: EndReason) -> None:
    (row,) = in_queue(job)
    assert (row.phase, row.ended) == (Phase.ENDED, end)


def test_a_node_that_failed_is_named() -> None:
    (row,) = in_queue(30)
    assert row.host == "x2"


def test_elements_that_wait_are_written_out_even_without_r() -> None:
    rows = {row.job: row.phase for row in in_queue(24)}
    assert rows == {
        "24_0": Phase.RUNNING,
        "24_1": Phase.RUNNING,
        "24_2": Phase.PENDING,
        "24_3": Phase.PENDING,
        "24_4": Phase.PENDING,
    }


@pytest.mark.parametrize(
    ("printed", "phase", "end"),
    [
        ("PD", Phase.PENDING, None),
        ("CG", Phase.RUNNING, None),
        ("CD", Phase.ENDED, None),
        ("CA", Phase.ENDED, EndReason.CANCELLED),
        ("OOM", Phase.ENDED, EndReason.OOM),
        ("CANCELLED by 1000", Phase.ENDED, EndReason.CANCELLED),
        ("CANCELLED+", Phase.ENDED, EndReason.CANCELLED),
        ("OUT_OF_ME+", Phase.ENDED, EndReason.OOM),
        ("OUT_OF_MEM", Phase.ENDED, EndReason.OOM),
        ("BOOT_FAIL", Phase.ENDED, EndReason.NODE),
        ("DEADLINE", Phase.ENDED, EndReason.TIME),
        ("REVOKED", Phase.ENDED, EndReason.LOST),
        ("PREEMPTED", Phase.ENDED, EndReason.PREEMPTED),
        ("SPECIAL_EXIT", Phase.PENDING, None),
        ("STOPPED", Phase.RUNNING, None),
        ("BEAMED_UP", Phase.UNKNOWN, None),
        ("", Phase.UNKNOWN, None),
    ],
)
def test_states_in_all_spellings(printed: str, phase: Phase, end: EndReason | None) -> None:
    (row,) = polled(f"5|{printed}|None||x")
    assert (row.phase, row.ended, row.state) == (phase, end, printed)


@pytest.mark.parametrize(
    "reason",
    [
        *("DependencyNeverSatisfied", "PartitionTimeLimit", "BadConstraints", "InvalidAccount"),
        *(
            "QOSMaxWallDurationPerJobLimit",
            "QOSMaxMemoryPerJob",
            "AssocMaxCpuPerJobLimit",
            "QOSMaxGRESPerNode",
        ),
    ],
)
def test_reasons_that_cannot_heal(reason: str) -> None:
    (row,) = polled(f"5|PENDING|{reason}||x")
    assert row.hopeless


@pytest.mark.parametrize(
    "reason",
    [
        *("Resources", "Priority", "JobHeldUser", "JobHeldAdmin", "PartitionDown", "QOSMaxJobsPerUserLimit"),
        *("QOSMaxCpuPerUserLimit", "AssocGrpCpuLimit", "ReqNodeNotAvail, UnavailableNodes:x2", "None"),
        *("PartitionConfig", "PartitionNodeLimit", "PartitionInactive", "Constraints", "ReservationDeleted"),
        *("QOSResourceLimit", "MaxCpuPerAccount", "QOSUsageThreshold", "AccountingPolicy"),
    ],
)
def test_reasons_that_may_heal(reason: str) -> None:
    (row,) = polled(f"5|PENDING|{reason}||x")
    assert not row.hopeless


def test_a_requeued_job_waits_again() -> None:
    assert [row.requeued for row in in_queue(28)] == [True]
    (held,) = in_queue(28, 2)
    assert (held.phase, held.requeued, held.hopeless) == (Phase.PENDING, True, False)


def test_one_purged_id_is_an_empty_answer() -> None:
    assert slurm.polled(recorded(VERSION, "squeue -j 999999")) == []
    assert slurm.polled(recorded(VERSION, "squeue -h -j 999999,1")) == []


@pytest.mark.parametrize(
    "said",
    [
        Said(None),
        recorded(VERSION, "squeue -h -j 14", -1),
        Said(1, "", "slurm_load_jobs error: Socket timed out on send/recv operation"),
        Said(0, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
    ],
)
def test_a_queue_that_cannot_be_reached_says_nothing(said: Said) -> None:
    answer = slurm.polled(said)
    assert isinstance(answer, Silence)
    assert answer.down


def test_an_odd_row_of_someone_else_is_skipped() -> None:
    assert [row.job for row in polled("what\n5|RUNNING|None|n1|a|b\n12+0|RUNNING|None|n|x")] == ["5"]
    assert isinstance(slurm.polled(Said(0, "Segmentation fault\n")), Silence)


# Accounting


def test_accounting_is_asked_in_one_command_from_before_the_submission() -> None:
    begun = datetime(2026, 11, 29, 12, 0, 0).timestamp()
    assert slurm.accounting(["24_1", "24_2", "7"], begun) == [
        [
            *("sacct", "-P", "-n", "-D", "-S", "2026-11-29T11:00:00", "-j", "24,7", "-o"),
            "JobID,State,ExitCode,Submit,Start,End,NodeList,TotalCPU,MaxRSS,JobName",
        ]
    ]


def test_the_figures_of_a_job() -> None:
    account = in_accounting(18)
    end = datetime(2026, 11, 29, 11, 59, 32).timestamp()
    assert (account.settled, account.exit_code, account.signal, account.ended) == (True, 0, 0, None)
    assert (account.end, account.host, account.name) == (end, "x1", "ok")
    assert account.end - account.start == 3
    assert account.cpu == pytest.approx(2.569)
    assert account.memory == 97060 * 1024, "the peak stands in the row of a step"


@pytest.mark.parametrize(
    ("job", "code", "signal", "end"),
    [
        (11, 0, 0, EndReason.CANCELLED),
        (14, 0, 0, EndReason.CANCELLED),
        (19, 3, 0, EndReason.APP),
        (20, 0, 9, EndReason.APP),
        (21, 127, 0, EndReason.APP),
        (22, 0, 0, EndReason.NEVER_STARTED),  # 0:53, its output folder is missing
        (23, 0, 0, EndReason.OOM),  # 0:125
        (30, 0, 0, EndReason.NODE),
        (32, 0, 0, EndReason.TIME),
        (36, 7, 0, EndReason.APP),
    ],
)
def test_ends_in_accounting(job: int, code: int, signal: int, end: EndReason) -> None:
    account = in_accounting(job, -1)
    assert account.phase is Phase.ENDED
    assert (account.settled, account.exit_code, account.signal, account.ended) == (True, code, signal, end)


def test_elements_are_told_by_their_index_not_by_the_raw_id() -> None:
    found = accounts(recorded(VERSION, f"sacct -j 24 -P -o {COLUMNS}", 1))
    assert {job: account.exit_code for job, account in found.items()} == {
        "24_0": 0,
        "24_1": 0,
        "24_2": 3,
        "24_3": 0,
    }
    assert found["24_2"].memory == 3216 * 1024


def test_the_peak_is_the_largest_of_all_steps() -> None:
    rows = "1|COMPLETED|0:0|||2026-11-29T11:59:32|n|00:01||x\n1.batch|COMPLETED|0:0|||||00:01|2M|batch\n"
    (account,) = slurm.accounted(
        Said(0, rows + "1.0|COMPLETED|0:0|||||00:01|96996K|true\n1.extern|C|0:0|||||0|1K|e")
    )
    assert account.memory == 96996 * 1024


def test_of_a_requeued_job_the_last_run_counts() -> None:
    again = in_accounting(28, more=" -D")
    assert (again.phase, again.settled, again.exit_code) == (Phase.RUNNING, False, None)
    failed_node = in_accounting(31, more=" -D")
    assert (failed_node.phase, failed_node.ended) == (Phase.RUNNING, None)


def test_a_final_state_whose_end_is_unknown_is_not_settled() -> None:
    (early,) = slurm.accounted(
        Said(0, "5|FAILED|0:0|2026-11-29T11:59:29|2026-11-29T11:59:29|Unknown|x1|||wrap")
    )
    assert (early.settled, early.exit_code) == (False, None)
    (lie,) = slurm.accounted(Said(0, "5|FAILED|0:0|1795952657|1795952658|1795952659|x1|||wrap"))
    assert (lie.settled, lie.exit_code, lie.end) == (False, None, 1795952659.0)


def test_an_array_cancelled_while_it_waits_is_one_row() -> None:
    found = slurm.accounted(Said(0, "10_[1,4-5]|CANCELLED by 0|0:0||None|2026-11-29T11:44:01||||x"))
    assert [(one.job, one.ended) for one in found] == [
        (f"10_{index}", EndReason.CANCELLED) for index in (1, 4, 5)
    ]


def test_accounting_that_lags_says_nothing_of_the_job() -> None:
    assert slurm.accounted(Said(0, "")) == []


@pytest.mark.parametrize(("command", "down"), [("sacct -j 15", True), ("sacct -j 1", False)])
def test_accounting_that_is_away_or_switched_off_is_silence(command: str, down: bool) -> None:
    answer = slurm.accounted(recorded(VERSION, command, -1))
    assert isinstance(answer, Silence)
    assert answer.down is down


def test_times_are_those_of_this_machine_or_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slurm.environment["SLURM_TIME_FORMAT"] == "%s"
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        (one,) = slurm.accounted(
            Said(0, "5|COMPLETED|0:0|2026-11-29T11:59:29|1795953569|2026-11-29T12:00:00|x|||w")
        )
        assert (one.submit, one.start, one.end) == (1795971569.0, 1795953569.0, 1795971600.0)
    finally:
        monkeypatch.undo()
        time.tzset()


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
