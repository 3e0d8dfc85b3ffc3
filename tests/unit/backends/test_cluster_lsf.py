"""LSF: options in, answers out.

Nothing here was recorded. The answers are written after IBM's public manuals of LSF 9.1 and 10.1 (bsub,
bjobs, bacct, bhist, "Termination reasons displayed by bacct, bhist, and bjobs") and after what public issues
quote.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.backends.cluster.dialect import Account, Limits, Phase, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.plan.task import Resources
from treadle.records.event import EndReason

lsf = dialect_of(ClusterSettings(backend="lsf"))
FORMAT = "jobid jobindex stat exit_code exit_reason cpu_used max_mem exec_host job_name delimiter='|'"
BJOBS = ["bjobs", "-a", "-noheader", "-o", FORMAT]

BACCT = """
Accounting information about jobs that are:
  - submitted by users me,
  - accounted on all projects.
------------------------------------------------------------------------------

Job <123[2]>, Job Name <ta-1[2]>, User <me>, Project <default>, Status <EXIT>, Queue <nor
                     mal>, Command <job.sh>
Sun Nov 29 11:40:31: Submitted from host <login>, CWD </w>;
Sun Nov 29 11:40:38: Dispatched 1 Task(s) on Host(s) <node7>;
Sun Nov 29 11:41:31: Completed <exit>; TERM_MEM
                     LIMIT: job killed after reaching LSF memory usage limit.

Accounting information about this job:
     Share group charged </me>
     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP
      0.25        7             60     exit         0.0042   100M    200M
------------------------------------------------------------------------------

Job <124>, Job Name <ta-2>, User <me>, Project <default>, Status <DONE>, Queue <normal>,
                     Command <job.sh>
Sun Nov 29 11:40:31: Completed <done>.

Accounting information about this job:
     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP
     61.00        7             60     done         0.0042     2G      0M
------------------------------------------------------------------------------
"""


def request(**changes: Any) -> Request:
    usual: dict[str, Any] = {
        "name": "tk4x2abcd-1a.align",
        "script": "/w/run/1/job.sh",
        "log": "/w/run/1/job.log",
        "workdir": "/w",
        "resources": Resources(),
    }
    return Request(**usual | changes)


FULL = request(
    resources=Resources(
        threads=4,
        memory=8 * 1024**3 + 1,
        gpus=2,
        time_limit=3601,
        partition="long",
        account="lab",
        constraint="avx",
        extra_args=("-G team",),
    ),
    size=20,
    running=5,
    requeue=True,
    comment="run 1",
    exclude=("n1",),
    signal_before=61,
)


def rows(said: Said) -> dict[str, Row]:
    found = lsf.polled(said)
    assert not isinstance(found, Silence)
    return {row.job: row for row in found}


def accounts(said: Said) -> dict[str, Account]:
    found = lsf.accounted(said)
    assert not isinstance(found, Silence)
    return {account.job: account for account in found}


# What is sent


def test_a_small_job_asks_for_little() -> None:
    assert lsf.directives(request()) == [
        "#BSUB -J tk4x2abcd-1a.align",
        "#BSUB -o /w/run/1/job.log",
        "#BSUB -cwd /w",
        "#BSUB -n 1",
        "#BSUB -rn",
        '#BSUB -R "span[hosts=1]"',
    ]
    assert lsf.submit(request()) == (["bsub"], "/w/run/1/job.sh"), "the script comes from standard input"


def test_an_array_asks_for_everything_that_was_said() -> None:
    assert lsf.directives(FULL) == [
        '#BSUB -J "tk4x2abcd-1a.align[1-20]%5"',
        '#BSUB -Jd "run 1"',
        "#BSUB -o /w/run/1/job.log.%I",
        "#BSUB -cwd /w",
        "#BSUB -q long",
        "#BSUB -P lab",
        "#BSUB -n 4",
        "#BSUB -W 01:01",
        "#BSUB -r",
        "#BSUB -wa TERM",
        "#BSUB -wt 00:02",
        '#BSUB -R "span[hosts=1]"',
        "#BSUB -M 8388609",
        '#BSUB -R "rusage[mem=8193]"',
        "#BSUB -gpu num=2",
        "#BSUB -R \"select[avx && hname!='n1']\"",
    ]
    assert lsf.submit(FULL)[0] == ["bsub", "-G", "team"]
    assert lsf.element("123", 2) == "123[2]"


@pytest.mark.parametrize(("unit", "figure"), [("KB", 8388609), ("M", 8193), ("GB", 9), ("g", 9)])
def test_the_site_says_in_which_unit_memory_is_counted(unit: str, figure: int) -> None:
    lines = dialect_of(ClusterSettings(backend="lsf", memory_unit=unit)).directives(FULL)
    assert f"#BSUB -M {figure}" in lines
    assert f'#BSUB -R "rusage[mem={figure}]"' in lines


def test_what_a_directive_cannot_hold_goes_to_the_command() -> None:
    odd = request(workdir='/w/a "b" $x', log="/w/a b/job.log")
    assert '#BSUB -o "/w/a b/job.log"' in lsf.directives(odd)
    assert lsf.submit(odd) == (["bsub", "-cwd", '/w/a "b" $x'], "/w/run/1/job.sh")


@pytest.mark.parametrize(
    "option",
    ["-J x", "-Jx", "-J", "-o /x", "-o/x", "-oo /x", "-eo", "-cwd /x", "-K", "-Is", "-Jd x", "-r", "-rn"],
)
def test_options_of_the_engine_are_found(option: str) -> None:
    assert lsf.owned(["-R", "select[x]", option]) == [option]


def test_other_options_are_the_user_s() -> None:
    assert (
        lsf.owned(["-q long", "-G", "team", "-app x", "-outdir /x", "-env all", "-eptl 1:0", "-M 4", "-E x"])
        == []
    )


# Submission


@pytest.mark.parametrize(
    "out",
    [
        "Job <123> is submitted to queue <normal>.\n",
        "Job <123> is submitted to default queue <normal>.\n",
        "Cannot connect to LSF. Please wait ...\nJob <123> is submitted to queue <normal>.\n\nGood luck\n",
    ],
)
def test_the_id_is_found_among_other_lines(out: str) -> None:
    answer = lsf.submitted(Said(0, out))
    assert (answer.sort, answer.job) == (Sort.DONE, "123")


@pytest.mark.parametrize(
    ("err", "sort"),
    [
        ("nosuch: No such queue. Job not submitted.", Sort.REFUSED),
        ("User cannot use the queue. Job not submitted.", Sort.REFUSED),
        ("Bad resource requirement syntax. Job not submitted.", Sort.REFUSED),
        ("User's pending job threshold reached. Job not submitted.", Sort.LIMIT),
        ("Pending job threshold reached. Retrying in 60 seconds...", Sort.LIMIT),
        ("Cannot connect to LSF. Please wait ...", Sort.TRANSIENT),
        ("LSF is down. Please wait ...", Sort.TRANSIENT),
        ("batch daemon not responding ... still trying", Sort.TRANSIENT),
        ("Failed in an LSF library call: Communication time out. Job not submitted.", Sort.UNCLEAR),
    ],
)
def test_failures_are_sorted(err: str, sort: Sort) -> None:
    answer = lsf.submitted(Said(255, "", err))
    assert (answer.sort, answer.message) == (sort, err)


@pytest.mark.parametrize(
    "said", [Said(None), Said(0, "thanks\n"), Said(0), Said(1, "Job <1> is submitted to q\n", "x")]
)
def test_an_answer_that_may_hide_a_job_is_unclear(said: Said) -> None:
    assert lsf.submitted(said).sort is Sort.UNCLEAR


# The queue


def test_arrays_are_asked_for_as_a_whole() -> None:
    assert lsf.poll(["24[1]", "24[2]", "13"], "me") == [[*BJOBS, "24", "13"]]


def test_elements_and_their_states() -> None:
    found = rows(Said(255, "123|1|RUN||-|1.0 second(s)|5 Mbytes|4*node1:node2|ta[1]\n124|0|PEND||||||x\n"))
    assert {job: (row.phase, row.host, row.name) for job, row in found.items()} == {
        "123[1]": (Phase.RUNNING, "node1", "ta"),
        "124": (Phase.PENDING, "", "x"),
    }


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        *((state, Phase.PENDING) for state in ("PEND", "PSUSP", "WAIT")),
        *((state, Phase.RUNNING) for state in ("RUN", "USUSP", "SSUSP")),
        *((state, Phase.ENDED) for state in ("DONE", "POST_DONE", "POST_ERR")),
        *((state, Phase.UNKNOWN) for state in ("UNKWN", "ZOMBI", "NEW_IN_11")),
    ],
)
def test_phases(state: str, phase: Phase) -> None:
    row = rows(Said(0, f"5|0|{state}|||||n|x"))["5"]
    assert (row.phase, row.state, row.ended) == (phase, state, None)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("", EndReason.APP),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit", EndReason.TIME),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit", EndReason.OOM),
        ("TERM_OWNER: job killed by owner", EndReason.CANCELLED),
        ("TERM_ADMIN", EndReason.CANCELLED),
        ("TERM_PREEMPT", EndReason.PREEMPTED),
        ("TERM_CWD_NOTEXIST", EndReason.NEVER_STARTED),
        ("TERM_ZOMBIE", EndReason.NODE),
        ("TERM_OF_2031", EndReason.APP),
    ],
)
def test_bad_ends(reason: str, end: EndReason) -> None:
    said = Said(0, f"5|0|EXIT|130|{reason}|0.1 second(s)|5.2 Gbytes|n|x")
    assert rows(said)["5"].ended is end
    account = accounts(said)["5"]
    assert (account.settled, account.exit_code, account.signal, account.ended) == (True, 130, 2, end)


def test_the_figures_of_a_job() -> None:
    account = accounts(Said(0, "5|0|DONE|||61.5 second(s)|5.2 Gbytes|n|x"))["5"]
    assert (account.settled, account.exit_code, account.ended) == (True, 0, None)
    assert account.memory == round(5.2 * 1024**3)
    assert account.cpu == pytest.approx(61.5)


def test_jobs_that_are_not_known_leave_an_empty_answer() -> None:
    assert rows(Said(255, "", "Job <5> is not found\nJob <6> is not found\n")) == {}
    assert rows(Said(0, "", "No unfinished job found\n")) == {}
    assert rows(Said(0, "")) == {}


@pytest.mark.parametrize(
    ("said", "down"),
    [
        (Said(None), True),
        (Said(255, "", "LSF is down. Please wait ..."), True),
        (Said(0, "", "Cannot connect to LSF. Please wait ..."), True),
        (Said(255, "", "bjobs: illegal option -- o"), False),
        (Said(0, "Segmentation fault"), False),
    ],
)
def test_a_queue_that_cannot_be_asked_says_nothing(said: Said, down: bool) -> None:
    answer = lsf.polled(said)
    assert isinstance(answer, Silence)
    assert answer.down is down


# Accounting


def test_accounting_asks_the_queue_and_then_the_books() -> None:
    assert lsf.accounting(["24[1]", "13"], 0.0) == [[*BJOBS, "24", "13"], ["bacct", "-l", "24", "13"]]


def test_long_texts_are_unfolded() -> None:
    found = accounts(Said(0, BACCT))
    assert list(found) == ["123[2]", "124"]
    killed, done = found.values()
    assert (killed.ended, killed.exit_code, killed.name) == (EndReason.OOM, None, "ta-1")
    assert (killed.cpu, killed.memory) == (0.25, 100 * 1024**2)
    assert (done.ended, done.exit_code, done.cpu, done.memory) == (None, 0, 61.0, 2 * 1024**3)


def test_history_tells_exit_codes_and_signals() -> None:
    text = (
        "Job <{}>, Job Name <ta-1>, User <me>;\nThu Mar 13 17:32:06: {} The CPU time used is 0.1 seconds;\n"
    )
    (failed,) = accounts(Said(0, text.format(7, "Exited with exit code 3."))).values()
    assert (failed.exit_code, failed.signal, failed.ended) == (3, 0, EndReason.APP)
    (killed,) = accounts(Said(0, text.format(7, "Exited by signal 2."))).values()
    assert (killed.exit_code, killed.signal, killed.ended) == (130, 2, EndReason.APP)
    assert accounts(Said(0, text.format(7, "Running;"))) == {}


# Finding and limits


def test_jobs_are_found_by_name() -> None:
    queue, past = lsf.find(["ta-1"], "me", 0.0)
    assert queue == [*BJOBS, "-u", "me"]
    assert past == ["bhist", "-a", "-l", "-u", "me", "-J", "ta-1"]
    said = Said(0, "123|1|RUN||||||ta-1[1]\n123|2|RUN||||||ta-1[2]\n9|0|RUN||||||other\n")
    assert lsf.found(queue, said) == {"ta-1": "123", "other": "9"}
    assert lsf.found(past, Said(0, BACCT)) == {"ta-1": "123", "ta-2": "124"}


def test_the_site_s_largest_array() -> None:
    assert lsf.limits_of(Said(0, "        MAX_JOB_ARRAY_SIZE = 1000\n")) == Limits(array_size=1000)


# Anything at all

pieces = [
    *(
        "5|0|EXIT|",
        "130",
        "|",
        "TERM_X",
        "Job <5>",
        "Job <",
        ", Completed <exit>; ",
        "\n",
        "\n" + " " * 20,
        "²",
    ),
    *("CPU_T x\n 1.1.1 a b c d 9.9.9M\n", "9" * 30, "Exited with exit code ", "Job <5> is submitted"),
]
texts = st.lists(st.sampled_from(pieces) | st.text(max_size=8), max_size=14).map("".join)


@given(out=texts, err=texts, code=st.sampled_from([0, 1, None, 255]))
@settings(max_examples=300, deadline=None)
def test_junk_never_raises(out: str, err: str, code: int | None) -> None:
    said = Said(code, out, err)
    lsf.submitted(said)
    lsf.polled(said)
    lsf.accounted(said)
    lsf.limits_of(said)
    lsf.found(["bhist"], said)
    lsf.found(["bjobs"], said)
