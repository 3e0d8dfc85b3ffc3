"""SLURM: what accounting says of jobs, in the answers of a real one."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from recorded import recorded

from treadle.backends.cluster.dialect import Account, Phase, Said, Silence
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.slurm_accounts import FIELDS
from treadle.records.event import EndReason

VERSION = "slurm-22.05.8"
COLUMNS = (
    "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,Elapsed,ElapsedRaw,MaxRSS,TotalCPU,Submit,Start,End,"
    "NodeList,ReqMem,Timelimit,Reason"
)
slurm = dialect_of(ClusterSettings(backend="slurm"))


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
        (22, 0, 0, EndReason.APP),  # 0:53, its output folder is missing
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
