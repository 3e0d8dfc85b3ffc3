"""PBS: options in, answers out. The answers are those of `tests/fixtures/schedulers/openpbs-23.06.06.md`.

Those of Torque are written after its public manuals (qstat(1B), the error table of 6.1), not recorded.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import FOLDER, answers, recorded

from treadle.backends.cluster.dialect import Account, Limits, Phase, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.pbs import dialect_from_version
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import OptionError
from treadle.plan.task import Resources
from treadle.records.event import EndReason

VERSION = "openpbs-23.06.06"
pbs = dialect_of(ClusterSettings(backend="pbs"))
torque = dialect_of(ClusterSettings(backend="pbs", dialect="torque"))

TORQUE_TEXT = """Job Id: 12[3].server.site
    Job_Name = ta-1-3
    Job_Owner = me@login
    resources_used.cput = 00:01:05
    resources_used.mem = 2048kb
    resources_used.walltime = 00:02:00
    job_state = C
    exec_host = node7/0+node7/1
    ctime = Sun Nov 29 11:35:00 2026
    Variable_List = PBS_O_QUEUE=batch,PBS_O_HOME=/home/me,
\tPBS_O_PATH=/usr/bin:/bin
    exit_status = 3
    start_time = Sun Nov 29 11:36:00 2026
    comp_time = Sun Nov 29 11:38:00 2026
"""


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


def rows(said: Said) -> dict[str, Row]:
    found = pbs.polled(said)
    assert not isinstance(found, Silence)
    return {row.job: row for row in found}


def accounts(said: Said) -> dict[str, Account]:
    found = pbs.accounted(said)
    assert not isinstance(found, Silence)
    return {account.job: account for account in found}


def in_history(job: int | str, nth: int = 0) -> Account:
    """The recorded lines about a job, which were filtered, below the line that names it."""
    text = (FOLDER / f"{VERSION}.md").read_text()
    found = re.findall(rf"^(\$ qstat -x -f (?:-w )?'{re.escape(str(job))}[^\n]*)\n", text, re.MULTILINE)
    said = recorded(VERSION, found[0].removeprefix("$ "), nth)
    (account,) = accounts(Said(0, f"Job Id: {job}.localhost\n{said.out}")).values()
    return account


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


# The queue


def test_arrays_are_asked_for_as_a_whole() -> None:
    assert pbs.poll(["24[1]", "24[2]", "13"], "me") == [["qstat", "-f", "-F", "json", "-t", "24[]", "13"]]
    assert torque.poll(["24[1]", "13"], "me") == [["qstat", "-f", "-t", "24[]", "13"]]
    assert len(pbs.poll([str(n) for n in range(10_000)], "me")) == 5


def test_json_and_text_say_the_same() -> None:
    json = rows(recorded(VERSION, "qstat -f -F json 13.localhost"))
    text = rows(recorded(VERSION, "qstat -f 13.localhost"))
    assert json == text
    row = json["13"]
    assert (row.phase, row.state, row.name, row.host) == (Phase.RUNNING, "R", "fill", "localhost")


def test_broken_json_spoils_one_line_only() -> None:
    said = recorded(VERSION, "qstat -x -f -F json 16.localhost")
    broken = said.out.replace('"PBS_O_LANG":\t"C.UTF-8"', '"PBS_O_LANG":\t"C"{\\x,"').replace("92,", "92,,")
    assert broken != said.out
    whole, spoiled = accounts(said)["16"], accounts(Said(0, broken))["16"]
    assert spoiled == whole
    assert (whole.exit_code, whole.ended) == (0, None)


def test_an_array_s_own_row_runs_and_is_none_of_its_elements() -> None:
    row = rows(recorded(VERSION, "qstat -f '24[].localhost'"))["24[]"]
    assert (row.phase, row.state) == (Phase.RUNNING, "B")


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        *((letter, Phase.PENDING) for letter in "QHWT"),
        *((letter, Phase.RUNNING) for letter in "RSUEB"),
        ("?", Phase.UNKNOWN),
    ],
)
def test_phases(state: str, phase: Phase) -> None:
    row = rows(Said(0, f"Job Id: 5.host\n    job_state = {state}\n"))["5"]
    assert (row.phase, row.state, row.ended) == (phase, state, None)


def test_reasons_are_shown_and_hopeless_ones_told() -> None:
    waits = rows(
        Said(0, "Job Id: 5.h\n    job_state = Q\n    comment = Not Running: Not enough free nodes\n")
    )["5"]
    assert (waits.reason, waits.hopeless) == ("Not Running: Not enough free nodes", False)
    never = rows(
        Said(0, "Job Id: 5.h\n    job_state = Q\n    comment = Can Never Run: ncpus (R: 100 T: 8)\n")
    )["5"]
    assert never.hopeless


def test_a_held_job_says_so() -> None:
    said = recorded(VERSION, next(_commands("'12.localhost'")))
    row = rows(Said(0, f"Job Id: 12.localhost\n{said.out}"))["12"]
    assert (row.phase, row.state, row.reason, row.hopeless) == (Phase.PENDING, "H", "held (u)", False)


def test_a_job_whose_node_failed_waits_again() -> None:
    said = recorded(VERSION, next(_commands("'30.localhost'")))
    row = rows(Said(0, f"Job Id: 30.localhost\n{said.out}"))["30"]
    assert (row.phase, row.requeued, row.ended) == (Phase.PENDING, True, None)


def _commands(word: str) -> Any:
    text = (FOLDER / f"{VERSION}.md").read_text()
    return (found for found in re.findall(r"^\$ (qstat .*)$", text, re.MULTILINE) if word in found)


def test_jobs_that_are_not_known_leave_an_empty_answer() -> None:
    assert rows(recorded(VERSION, "qstat -f -F json 999999")) == {}
    assert rows(recorded(VERSION, "qstat -f 16.localhost")) == {}
    both = Said(153, '{"Jobs": {"7.h": {"job_state": "R"}}}', "qstat: Unknown Job Id 8.h\n")
    assert list(rows(both)) == ["7"]


@pytest.mark.parametrize(
    ("said", "down"),
    [
        (Said(None), True),
        (recorded(VERSION, "qstat -f -F json 1"), True),
        (Said(1, "", "qstat: invalid option -- 'F'\nusage: qstat"), False),
        (Said(0, "Segmentation fault"), False),
    ],
)
def test_a_queue_that_cannot_be_asked_says_nothing(said: Said, down: bool) -> None:
    answer = pbs.polled(said)
    assert isinstance(answer, Silence)
    assert answer.down is down


# History


def test_history_is_the_accounting() -> None:
    assert pbs.accounting(["24[1]", "13"], 0.0) == [["qstat", "-x", "-f", "-F", "json", "-t", "24[]", "13"]]
    answer = pbs.accounted(Said(1, "", "qstat: PBS is not configured to maintain job history"))
    assert isinstance(answer, Silence)
    assert not answer.down


def test_the_figures_of_a_job() -> None:
    account = in_history(31)
    begun = datetime(2026, 11, 29, 11, 40, 31).timestamp()
    assert (account.settled, account.exit_code, account.ended) == (True, 0, None)
    assert (account.start, account.end, account.host) == (begun, begun + 7, "localhost")
    assert (account.cpu, account.memory) == (5.0, 94536 * 1024)


@pytest.mark.parametrize(
    ("job", "code", "signal", "end"),
    [
        (17, 3, 0, EndReason.APP),
        (18, 137, 0, EndReason.APP),
        (19, 127, 0, EndReason.APP),
        (20, 0, 0, None),  # its output was lost, which only the files tell
        (21, None, 0, EndReason.TIME),
        (29, None, 0, EndReason.NODE),
        (32, 143, 15, EndReason.CANCELLED),
        (34, 137, 0, EndReason.APP),
        (35, None, 0, EndReason.TIME),
        (36, None, 0, EndReason.OOM),
        ("24[2]", 3, 0, EndReason.APP),
        ("24[4]", 0, 0, EndReason.CANCELLED),  # deleted while it waited: exit code 0
    ],
)
def test_ends_in_history(job: int | str, code: int | None, signal: int, end: EndReason | None) -> None:
    account = in_history(job)
    assert account.phase is Phase.ENDED
    assert (account.settled, account.exit_code, account.signal, account.ended) == (True, code, signal, end)


def test_no_exit_code_no_success() -> None:
    deleted = in_history(14, -1)
    assert (deleted.phase, deleted.settled, deleted.ended) == (Phase.ENDED, False, EndReason.CANCELLED)
    (never,) = accounts(Said(0, "Job Id: 73.h\n    job_state = F\n    substate = 92\n")).values()
    assert (never.settled, never.ended) == (False, EndReason.NEVER_STARTED)


def test_the_server_s_logs_are_read_too() -> None:
    (account,) = accounts(recorded(VERSION, "tracejob 13.localhost")).values()
    assert (account.job, account.settled, account.exit_code) == ("13", True, 0)
    assert (account.start, account.end) == (1795952129.0, 1795952135.0)
    assert accounts(recorded(VERSION, "tracejob 999999")) == {}


def test_a_job_of_torque_that_ended() -> None:
    (account,) = torque.accounted(Said(0, TORQUE_TEXT))
    assert (account.job, account.exit_code, account.ended) == ("12[3]", 3, EndReason.APP)
    assert (account.memory, account.cpu, account.host) == (2048 * 1024, 65.0, "node7")
    assert account.end - account.start == 120
    late = TORQUE_TEXT.replace("exit_status = 3", "exit_status = -11")
    (over,) = torque.accounted(Said(0, late))
    assert (over.exit_code, over.ended) == (None, EndReason.TIME)
    assert [command[0] for command in torque.accounting(["12[3]"], 0.0)] == ["qstat", "tracejob"]


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
