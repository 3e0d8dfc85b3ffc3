"""Grid Engine: what the queue and accounting say of jobs, in the answers of a real one."""

from __future__ import annotations

from datetime import datetime

import pytest
from recorded import recorded

from treadle.backends.cluster.dialect import Account, Phase, Row, Said, Silence
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.records.event import EndReason

VERSION = "sge-8.1.9"
FILTERED = (
    " | grep -E '^(jobname|jobnumber|taskid|qsub_time|start_time|end_time|slots|failed|exit_status|"
    "ru_wallclock|ru_maxrss|cpu|maxvmem|deleted_by|granted_pe) '"
)
sge = dialect_of(ClusterSettings(backend="sge"))


def rows(said: Said) -> dict[str, Row]:
    found = sge.polled(said)
    assert not isinstance(found, Silence)
    return {row.job: row for row in found}


def accounts(said: Said) -> dict[str, Account]:
    found = sge.accounted(said)
    assert not isinstance(found, Silence)
    return {account.job: account for account in found}


def in_accounting(job: int) -> dict[str, Account]:
    try:
        return accounts(recorded(VERSION, f"qacct -j {job}", -1))
    except IndexError:
        return accounts(recorded(VERSION, f"qacct -j {job}{FILTERED}"))


def one_row(state: str) -> Row:
    document = (
        "<job_info><queue_info><job_list state='x'><JB_job_number>5</JB_job_number><JB_name>a&amp;b</JB_name>"
        f"<state>{state}</state></job_list></queue_info></job_info>"
    )
    return rows(Said(0, document))["5"]


# The queue


def test_all_of_the_user_s_jobs_are_asked_for_at_once() -> None:
    assert sge.poll(["24.1", "24.2", "13"], "me") == [["qstat", "-xml", "-s", "prs", "-u", "me"]]
    assert sge.poll([], "me") == []


def test_what_waits_and_what_runs() -> None:
    found = rows(recorded(VERSION, "qstat -xml"))
    assert {job: (row.phase, row.state) for job, row in found.items()} == {
        "20": (Phase.RUNNING, "r"),
        "21": (Phase.RUNNING, "r"),
        "22": (Phase.PENDING, "qw"),
        "19": (Phase.PENDING, "hqw"),
        "23": (Phase.PENDING, "hqw"),
    }
    assert (found["20"].host, found["20"].name) == ("localhost", "fill")
    assert found["19"].reason == "held"
    assert not found["19"].hopeless


def test_elements_that_wait_come_as_a_range() -> None:
    found = rows(recorded(VERSION, "qstat -xml", 1))
    assert {job: row.phase for job, row in found.items()} == {
        "35.1": Phase.RUNNING,
        "35.2": Phase.RUNNING,
        "35.3": Phase.PENDING,
        "35.4": Phase.PENDING,
    }


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        *((state, Phase.PENDING) for state in ("qw", "hqw", "Eqw", "Ehqw", "Rq", "hRwq")),
        *((state, Phase.RUNNING) for state in ("r", "t", "Rr", "hr", "s", "S", "T", "dr", "dt", "ds")),
        ("z", Phase.ENDED),
        ("?!", Phase.UNKNOWN),
        ("", Phase.UNKNOWN),
    ],
)
def test_letters_are_combined(state: str, phase: Phase) -> None:
    assert one_row(state).phase is phase


def test_an_error_state_never_starts() -> None:
    row = one_row("Eqw")
    assert (row.hopeless, row.reason) == (True, "in error state: qstat -j tells why")


def test_a_rescheduled_job_waits_again() -> None:
    assert (one_row("Rq").requeued, one_row("Rr").requeued) == (True, False)


def test_names_are_whole() -> None:
    assert one_row("r").name == "a&b"


def test_an_empty_queue_is_no_failure() -> None:
    assert sge.polled(Said(0, "")) == []


@pytest.mark.parametrize(
    ("said", "down"),
    [
        (Said(None), True),
        (Said(1, "", "error: commlib error: got select error (Connection refused)\n"), True),
        (Said(0, "<?xml version='1.0'?>\n<job_info><queue_info>\n<job_list state='running'>"), False),
        (recorded(VERSION, "qstat -xml -j 999999"), False),
    ],
)
def test_a_queue_that_cannot_be_asked_says_nothing(said: Said, down: bool) -> None:
    answer = sge.polled(said)
    assert isinstance(answer, Silence)
    assert answer.down is down


# Accounting


def test_few_jobs_are_asked_for_one_by_one_and_many_at_once() -> None:
    assert sge.accounting(["35.1", "35.2", "7"], 0.0) == [["qacct", "-j", "35"], ["qacct", "-j", "7"]]
    begun = datetime(2026, 11, 29, 12, 0, 0).timestamp()
    many = dialect_of(ClusterSettings(backend="sge"), user="me").accounting([str(n) for n in range(9)], begun)
    assert many == [["qacct", "-b", "202611291100", "-o", "me", "-j"]]


def test_the_figures_of_a_job() -> None:
    account = in_accounting(24)["24"]
    begun = datetime(2026, 11, 29, 11, 27, 39).timestamp()
    assert (account.settled, account.exit_code, account.signal, account.ended) == (True, 0, 0, None)
    assert (account.submit, account.start, account.end) == (begun, begun, begun + 3)
    assert (account.name, account.host) == ("ok", "localhost")
    assert account.cpu == pytest.approx(2.183)
    assert account.memory == round(89.730 * 1024**2)


@pytest.mark.parametrize(
    ("job", "code", "signal", "end"),
    [
        (20, 137, 9, EndReason.APP),  # deleted while it ran: as if killed, the caller remembers its own qdel
        (25, 3, 0, EndReason.APP),
        (26, 137, 9, EndReason.APP),
        (27, 127, 0, EndReason.APP),
        (28, None, 0, EndReason.NEVER_STARTED),  # its working folder is missing
        (31, 137, 9, EndReason.TIME),
        (33, 1, 0, EndReason.APP),
    ],
)
def test_ends_in_accounting(job: int, code: int | None, signal: int, end: EndReason) -> None:
    account = in_accounting(job)[str(job)]
    assert account.phase is Phase.ENDED
    assert (account.settled, account.exit_code, account.signal, account.ended) == (True, code, signal, end)


def test_time_and_memory_have_one_code_and_are_told_apart() -> None:
    record = recorded(VERSION, "qacct -j 31").out
    (over,) = accounts(Said(0, record.replace("-l h_rt=3", "-l h_rt=3600,h_vmem=100M"))).values()
    assert over.ended is EndReason.OOM


def test_of_several_records_the_last_one_counts() -> None:
    for job in (30, 36):
        account = in_accounting(job)[str(job)]
        assert (account.phase, account.settled, account.exit_code, account.ended) == (
            Phase.ENDED,
            True,
            0,
            None,
        )


def test_a_rescheduled_job_has_not_ended() -> None:
    lines = recorded(VERSION, f"qacct -j 36{FILTERED}").out.splitlines(keepends=True)
    (account,) = accounts(Said(0, "".join(lines[: len(lines) // 2]))).values()
    assert (account.phase, account.settled, account.ended) == (Phase.PENDING, False, None)
    assert (account.submit, account.start, account.end) == (None, None, None)


def test_elements_are_told_by_their_index() -> None:
    found = in_accounting(35)
    assert {job: account.exit_code for job, account in found.items()} == {"35.1": 0, "35.2": 3, "35.3": 0}


def test_a_job_that_is_not_known_yet_leaves_an_empty_answer() -> None:
    assert sge.accounted(recorded(VERSION, "qacct -j 22")) == []
    assert sge.accounted(recorded(VERSION, "qacct -j 35 -t 9")) == []
    assert isinstance(sge.accounted(Said(1, "", "error: no accounting file")), Silence)


# Finding and limits


def test_jobs_are_found_by_name() -> None:
    queue, past = sge.find(["arr"], "me", 0.0)
    assert queue == ["qstat", "-xml", "-s", "prs", "-u", "me"]
    assert past == ["qacct", "-j", "arr"]
    assert sge.found(queue, recorded(VERSION, "qstat -xml", 1)) == {"arr": "35"}
    assert sge.found(past, recorded(VERSION, f"qacct -j 35{FILTERED}")) == {"arr": "35"}
    assert sge.found(past, Said(1, "", "error: job name arr not found\n")) == {}
    assert sge.found(past, Said(1, "", "/sge/default/common/accounting: No such file or directory\n")) == {}
    assert isinstance(sge.found(queue, Said(None)), Silence)
