"""Grid Engine: options in, answers out. The answers are those of `tests/fixtures/schedulers/sge-8.1.9.md`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import answers, recorded

from treadle.backends.cluster.dialect import Limits, Request, Said, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.plan.task import Resources

VERSION = "sge-8.1.9"
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


# Finding and limits


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
