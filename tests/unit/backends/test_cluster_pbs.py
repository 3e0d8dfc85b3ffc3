"""PBS: options in, answers out. The answers are those of `tests/fixtures/schedulers/openpbs-23.06.06.md`.

Those of Torque are written after its public manuals (qstat(1B), the error table of 6.1), not recorded.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import answers, recorded

from treadle.backends.cluster.dialect import Limits, Request, Said, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.pbs import dialect_from_version
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import OptionError
from treadle.plan.task import Resources

VERSION = "openpbs-23.06.06"
pbs = dialect_of(ClusterSettings(backend="pbs"))
torque = dialect_of(ClusterSettings(backend="pbs", dialect="torque"))


def request(**changes: Any) -> Request:
    usual: dict[str, Any] = {
        "name": "tk4x2abcd-1a",
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
        time_limit=180_000,
        partition="long",
        account="lab",
        qos="high",
        constraint="bigmem",
        nodes=2,
        extra_args=("-m e",),
    ),
    size=20,
    running=5,
    requeue=True,
)


# What is sent


def test_a_small_job_asks_for_little() -> None:
    assert pbs.directives(request()) == [
        "#PBS -N tk4x2abcd-1a",
        "#PBS -o /w/run/1/job.log",
        "#PBS -j oe",
        "#PBS -S /bin/bash",
        "#PBS -r n",
        "#PBS -l select=1:ncpus=1",
    ]
    assert pbs.submit(request()) == (["qsub", "/w/run/1/job.sh"], "")


def test_an_array_asks_for_everything_that_was_said() -> None:
    assert pbs.directives(FULL) == [
        "#PBS -N tk4x2abcd-1a",
        "#PBS -o /w/run/1/job.log.^array_index^",
        "#PBS -j oe",
        "#PBS -S /bin/bash",
        "#PBS -r y",
        "#PBS -q long",
        "#PBS -A lab",
        "#PBS -l select=2:ncpus=4:mem=8193mb:ngpus=2:bigmem",
        "#PBS -l walltime=50:00:00",
        "#PBS -J 1-20",
    ]
    assert pbs.submit(FULL) == (["qsub", "-m", "e", "/w/run/1/job.sh"], "")
    assert pbs.element("123[]", 4) == "123[4]"
    assert pbs.log_of("/w/run/1/job.log", 4) == "/w/run/1/job.log.4"


def test_torque_has_words_of_its_own() -> None:
    assert torque.directives(FULL) == [
        "#PBS -N tk4x2abcd-1a",
        "#PBS -o /w/run/1/job.log",
        "#PBS -j oe",
        "#PBS -S /bin/bash",
        "#PBS -r y",
        "#PBS -q long",
        "#PBS -A lab",
        "#PBS -l nodes=2:ppn=4:gpus=2:bigmem",
        "#PBS -l mem=8193mb",
        "#PBS -l qos=high",
        "#PBS -l walltime=50:00:00",
        "#PBS -t 1-20%5",
    ]
    assert (torque.index_variable, pbs.index_variable) == ("PBS_ARRAYID", "PBS_ARRAY_INDEX")
    assert torque.log_of("/w/run/1/job.log", 4) == "/w/run/1/job.log-4"


def test_an_array_of_one_is_a_range_of_two() -> None:
    assert pbs.directives(request(size=1))[-1] == "#PBS -J 1-2:2"


@pytest.mark.parametrize(("name", "taken"), [("1a b", "t1a_b"), ("x" * 40, "x" * 15), ("a'$(b)", "a___b_")])
def test_names_are_made_harmless(name: str, taken: str) -> None:
    assert pbs.directives(request(name=name))[0] == f"#PBS -N {taken}"


def test_what_a_directive_cannot_hold_goes_to_the_command() -> None:
    odd = request(log="/w/a b$x/job.log")
    assert not any("a b" in line for line in pbs.directives(odd))
    assert pbs.submit(odd)[0] == ["qsub", "-o", "/w/a b$x/job.log", "/w/run/1/job.sh"]


@pytest.mark.parametrize(
    "option",
    [
        *("-N x", "-Nx", "-o /x", "-e/x", "-j eo", "-J 1-3", "-I", "-zI", "-W block=true", "-Wblock=true"),
        *("-r y", "-S /bin/sh", "-hNx", "-W interactive=true"),
    ],
)
def test_options_of_the_engine_are_found_in_every_spelling(option: str) -> None:
    assert pbs.owned(["-l", "mem=1gb", option]) == [option]


def test_waiting_for_the_end_is_found_in_two_words() -> None:
    assert pbs.owned(["-W", "block=true", "-W", "umask=022"]) == ["block=true"]


def test_other_options_are_the_user_s() -> None:
    assert (
        pbs.owned(["-m e", "-M", "me@x", "-W umask=022", "-l place=scatter", "-q long", "-V", "-p", "10"])
        == []
    )
    assert torque.owned(["-t 1-3", "-d /x", "-l pmem=1gb"]) == ["-t 1-3", "-d /x"]


# Submission


@pytest.mark.parametrize(
    ("command", "job"),
    [("qsub pok.sh", "1"), ("qsub -J 1-4 pok.sh", "2[]"), ("qsub -W depend=afterok:999999 pok.sh", "9")],
)
def test_the_id_is_found_and_its_server_left_out(command: str, job: str) -> None:
    answer = pbs.submitted(recorded(VERSION, command))
    assert (answer.sort, answer.job) == (Sort.DONE, job)


def test_banners_before_the_id_do_no_harm() -> None:
    answer = pbs.submitted(Said(0, "This is cluster 2\n\n123.pbs01.site.org\n"))
    assert (answer.sort, answer.job) == (Sort.DONE, "123")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("qsub -q nosuch pok.sh", "Unknown queue"),
        ("qsub -l select=1:nosuch=1 pok.sh", "Unknown resource: nosuch"),
        ("qsub -l walltime=xx pok.sh", "Illegal attribute or resource value Resource_List.walltime"),
    ],
)
def test_refusals_keep_the_scheduler_s_words(command: str, words: str) -> None:
    answer = pbs.submitted(recorded(VERSION, command))
    assert (answer.sort, answer.message) == (Sort.REFUSED, words)


@pytest.mark.parametrize(
    ("err", "sort"),
    [
        ("qsub: would exceed queue generic's per-user limit of jobs in 'Q' state", Sort.LIMIT),
        ("qsub: Maximum number of jobs already in queue", Sort.LIMIT),
        ("qsub: Job violates queue and/or server resource limits", Sort.REFUSED),
        ("qsub: Access to queue is denied", Sort.REFUSED),
        ("qsub: Invalid account", Sort.REFUSED),
        ("qsub: End of File", Sort.UNCLEAR),
    ],
)
def test_failures_are_sorted(err: str, sort: Sort) -> None:
    assert pbs.submitted(Said(1, "", err)).sort is sort


def test_a_server_that_is_down_is_no_refusal() -> None:
    said = recorded(VERSION, "qsub pok.sh", 1)
    assert said.code == 162
    assert pbs.submitted(said).sort is Sort.TRANSIENT


@pytest.mark.parametrize("said", [Said(None), Said(0, "thanks\n"), Said(0), Said(1, "12.host\n", "x")])
def test_an_answer_that_may_hide_a_job_is_unclear(said: Said) -> None:
    assert pbs.submitted(said).sort is Sort.UNCLEAR


# Finding, limits, dialects


def test_jobs_are_found_by_name_in_the_queue_and_then_in_the_history() -> None:
    queue, past = pbs.find(["ta-1"], "me", 0.0)
    assert queue == ["qselect", "-u", "me", "-N", "ta-1"]
    assert past == ["qselect", "-x", "-u", "me", "-N", "ta-1"]
    assert pbs.found(queue, Said(0, "24[].localhost\n")) == {"ta-1": "24[]"}
    assert pbs.found(queue, Said(0, "")) == {}
    assert pbs.found(past, Said(1, "", "qselect: PBS is not configured to maintain job history")) == {}
    assert isinstance(
        pbs.found(queue, Said(255, "", "qselect: cannot connect to server h (errno=15010)")), Silence
    )


def test_the_site_s_limits() -> None:
    said = Said(0, "Server: h\n    max_array_size = 1500\n    max_queued = [u:PBS_GENERIC=100]\n")
    assert pbs.limits_of(said) == Limits(array_size=1500, submitted=100)
    assert pbs.limits_of(Said(None)) == Limits()


def test_which_of_the_two_is_told_by_its_version() -> None:
    assert dialect_from_version(recorded(VERSION, "qstat --version")) == "pbspro"
    assert (
        dialect_from_version(
            Said(0, "", "Version: 6.1.2\nCommit: 661e092552de43a785c15d39a3634a541d86898e\n")
        )
        == "torque"
    )
    assert dialect_from_version(Said(None)) == ""


def test_a_dialect_that_there_is_not_is_refused() -> None:
    with pytest.raises(OptionError, match="there is no dialect 'maui' of PBS"):
        dialect_of(ClusterSettings(backend="pbs", dialect="maui"))
    with pytest.raises(OptionError, match="there is no batch system 'condor'"):
        dialect_of(ClusterSettings(backend="condor"))


# Anything at all


pieces = [
    '{"Jobs":{"1.h":{',
    '"Exit_status":',
    "Job Id: 5[2].h\n",
    "    job_state = F\n",
    "\t",
    "}",
    "9" * 30,
    "é\n",
    "Job: 3.h\n",
]
texts = st.lists(st.sampled_from(pieces) | st.text(max_size=8), max_size=12).map("".join)


@given(out=texts, err=texts, code=st.sampled_from([0, 1, None, 153]))
@settings(max_examples=300, deadline=None)
def test_junk_never_raises(out: str, err: str, code: int | None) -> None:
    said = Said(code, out, err)
    for dialect in (pbs, torque):
        dialect.submitted(said)
        dialect.polled(said)
        dialect.accounted(said)
        dialect.limits_of(said)
        dialect.found(["qselect", "-N", "x"], said)


def test_every_recording_is_read_without_a_fault() -> None:
    for said in answers(VERSION):
        pbs.submitted(said)
        pbs.polled(said)
        pbs.accounted(said)
