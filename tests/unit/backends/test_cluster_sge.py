"""Grid Engine: options in, answers out. The answers are those of `tests/fixtures/schedulers/sge-8.1.9.md`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import answers, recorded

from treadle.backends.cluster.dialect import Account, Limits, Phase, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.plan.task import Resources
from treadle.records.event import EndReason

VERSION = "sge-8.1.9"
FILTERED = (
    " | grep -E '^(jobname|jobnumber|taskid|qsub_time|start_time|end_time|slots|failed|exit_status|"
    "ru_wallclock|ru_maxrss|cpu|maxvmem|deleted_by|granted_pe) '"
)
sge = dialect_of(ClusterSettings(backend="sge"))


def request(**changes: Any) -> Request:
    usual: dict[str, Any] = {
        "name": "tk4x2abcd-1a",
        "script": "/w/run/1/job.sh",
        "log": "/w/run/1/job.log",
        "workdir": "/w",
        "resources": Resources(),
    }
    return Request(**usual | changes)


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


# What is sent


def test_a_small_job_asks_for_little() -> None:
    assert sge.directives(request()) == [
        "#$ -N tk4x2abcd-1a",
        "#$ -S /bin/bash",
        "#$ -wd /w",
        "#$ -o /w/run/1/job.log",
        "#$ -j y",
        "#$ -r n",
    ]
    assert sge.submit(request()) == (["qsub", "-terse", "/w/run/1/job.sh"], "")


def test_an_array_asks_for_everything_that_was_said() -> None:
    site = ClusterSettings(
        backend="sge", parallel_environment="threads", memory_resource="mem_free", gpu_resource="gpus"
    )
    asked = Resources(
        threads=3,
        memory=10 * 1024**3,
        gpus=1,
        time_limit=3600,
        partition="long.q",
        account="lab",
        constraint="avx=1",
        extra_args=("-l scratch=1G",),
    )
    whole = request(resources=asked, size=20, running=5, requeue=True, exclude=("n1", "n2"))
    told = dialect_of(site)
    assert told.directives(whole) == [
        "#$ -N tk4x2abcd-1a",
        "#$ -S /bin/bash",
        "#$ -wd /w",
        "#$ -o /w/run/1/job.log.$TASK_ID",
        "#$ -j y",
        "#$ -r y",
        "#$ -q long.q",
        "#$ -P lab",
        "#$ -t 1-20",
        "#$ -tc 5",
        "#$ -pe threads 3",
        "#$ -l mem_free=3414M",  # 10 GiB / 3, rounded up
        "#$ -l h_rt=3600",
        "#$ -l gpus=1",
        "#$ -l avx=1",
    ]
    assert told.submit(whole)[0] == [
        *("qsub", "-terse", "-l", "hostname=!(n1|n2)", "-l", "scratch=1G", "/w/run/1/job.sh"),
    ]
    assert sge.element("35", 2) == "35.2"


@pytest.mark.parametrize(
    ("name", "taken"), [("1a b", "t1a_b"), ("x" * 40, "x" * 15), ("a'$(b)\n", "a___b__")]
)
def test_names_are_made_harmless(name: str, taken: str) -> None:
    assert sge.directives(request(name=name))[0] == f"#$ -N {taken}"


def test_what_a_directive_cannot_hold_goes_to_the_command() -> None:
    odd = request(workdir="/w/a b$x")
    assert not any("a b" in line for line in sge.directives(odd))
    assert sge.submit(odd)[0] == ["qsub", "-terse", "-wd", "/w/a b$x", "/w/run/1/job.sh"]


@pytest.mark.parametrize(
    "option",
    ["-N x", "-o", "-e /x", "-j n", "-t 1-3", "-tc 2", "-terse", "-sync y", "-cwd", "-wd /x", "-@ f"],
)
def test_options_of_the_engine_are_found(option: str) -> None:
    assert sge.owned(["-l", "h_vmem=1G", option]) == [option]


def test_other_options_are_the_user_s() -> None:
    assert (
        sge.owned(["-l h_fsize=1G", "-P", "lab", "-q long.q", "-notify", "-ac a=b", "-m", "e", "-tcl"]) == []
    )


# Submission


@pytest.mark.parametrize(
    ("command", "job"),
    [
        ("qsub -terse -cwd sok.sh", "3"),
        ("qsub -terse -cwd -t 1-10:3 sok.sh", "5"),
        ("qsub -cwd sok.sh", "2"),
        ("qsub -cwd -t 1-3 sok.sh", "4"),
    ],
)
def test_the_id_is_found(command: str, job: str) -> None:
    answer = sge.submitted(recorded(VERSION, command))
    assert (answer.sort, answer.job) == (Sort.DONE, job)


def test_banners_before_the_id_do_no_harm() -> None:
    assert sge.submitted(Said(0, "1 new message\n\n77.1-20:1\n")).job == "77"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("qsub -cwd -q nosuch.q sok.sh", 'Job was rejected because job requests unknown queue "nosuch.q"'),
        ("qsub -cwd -l nosuch=1 sok.sh", 'unknown resource "nosuch"'),
        ("qsub -cwd -w e -l h_vmem=900G sok.sh", "no suitable queues"),
        ("qsub -cwd missing.sh", "error opening missing.sh"),
    ],
)
def test_refusals_keep_the_scheduler_s_words(command: str, words: str) -> None:
    answer = sge.submitted(recorded(VERSION, command))
    assert answer.sort is Sort.REFUSED
    assert words in answer.message


@pytest.mark.parametrize(
    ("words", "sort"),
    [
        ("job rejected: Only 75 jobs are allowed per user (current job count: 75)", Sort.LIMIT),
        (
            "failed receiving gdi request response for mid=1 (got syncron message receive timeout)",
            Sort.UNCLEAR,
        ),
        ('denied: host "login" is no submit host', Sort.REFUSED),
    ],
)
def test_failures_are_sorted(words: str, sort: Sort) -> None:
    assert sge.submitted(Said(1, "", f"Unable to run job: {words}.\nExiting.\n")).sort is sort


def test_a_master_that_is_down_is_no_refusal() -> None:
    assert sge.submitted(recorded(VERSION, "qsub sok.sh")).sort is Sort.TRANSIENT


@pytest.mark.parametrize("said", [Said(None), Said(0, "thanks\n"), Said(0), Said(1, "12\n", "x")])
def test_an_answer_that_may_hide_a_job_is_unclear(said: Said) -> None:
    assert sge.submitted(said).sort is Sort.UNCLEAR


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


def test_the_site_s_limits() -> None:
    assert sge.limits_of(
        Said(0, "max_aj_tasks                 75000\nmax_u_jobs                   0\n")
    ) == Limits(array_size=75000)


# Anything at all

pieces = [
    *(
        "<job_info>",
        "<job_list state='r'>",
        "<JB_job_number>5²</JB_job_number>",
        "<JB_job_number>5</JB_job_number>",
    ),
    *(
        "<tasks>1-99999999:1</tasks>",
        "</job_list>",
        "</job_info>",
        "=====\n",
        "jobnumber 5²\n",
        "jobnumber 7\n",
    ),
    *(
        "failed 37 : x\n",
        "exit_status 137\n",
        "category h_rt=x\n",
        "taskid 3\n",
        "start_time -/-\n",
        "9" * 30,
    ),
]
texts = st.lists(st.sampled_from(pieces) | st.text(max_size=8), max_size=12).map("".join)


@given(out=texts, err=texts, code=st.sampled_from([0, 1, None]))
@settings(max_examples=300, deadline=None)
def test_junk_never_raises(out: str, err: str, code: int | None) -> None:
    said = Said(code, out, err)
    sge.submitted(said)
    sge.polled(said)
    sge.accounted(said)
    sge.limits_of(said)
    sge.found(["qacct"], said)
    sge.found(["qstat"], said)


def test_every_recording_is_read_without_a_fault() -> None:
    for said in answers(VERSION):
        sge.submitted(said)
        sge.polled(said)
        sge.accounted(said)
