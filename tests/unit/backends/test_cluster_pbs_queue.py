"""PBS: what the queue and the history say of jobs, in the answers of real ones."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from recorded import FOLDER, recorded

from treadle.backends.cluster.dialect import Account, Phase, Row, Said, Silence
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
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
