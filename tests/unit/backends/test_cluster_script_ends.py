"""The wrapper of commands for schedulers, run for real: signals, what is left running, and second starts."""

from __future__ import annotations

import os
import pty
import signal

import pytest
from cluster_jobs import SHELLS, Job

from treadle.backends.cluster.exit_file import look_for_exit
from treadle.backends.cluster.script import JobElement
from treadle.plan.task import Policy

TRAP = "trap 'echo term >>heard; exit 5' TERM; touch ready; while :; do sleep 0.05; done"


@pytest.mark.parametrize(("sent", "asked"), [(signal.SIGTERM, 15), (signal.SIGUSR2, 12), (signal.SIGHUP, 1)])
def test_a_signal_reaches_the_command_once_and_its_end_is_told(job, sent, asked):
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", TRAP),)))
    process = job.start()
    job.until("ready")
    process.send_signal(sent)
    assert process.wait(30) == 5
    assert (job.work / "heard").read_text() == "term\n"
    assert (job.end().exit_code, job.end().asked) == (5, asked)


def test_the_whole_group_hears_the_signal_and_nothing_of_it_is_left(job):
    text = f"( {TRAP} ) & sleep 300 & echo $! >part; mv part child; wait"
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", text),)))
    process = job.start()
    job.until("ready")
    job.until("child")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert (job.work / "heard").read_text() == "term\n"
    assert job.end().signal == 15
    assert not _lives(int((job.work / "child").read_text()))


def test_what_a_command_leaves_running_is_ended_with_it(job):
    assert job.alone("sh", "-c", "sleep 300 & echo $! >child") == 0
    assert not _lives(int((job.work / "child").read_text()))


def test_tasks_behind_the_one_that_was_asked_to_end_are_not_begun(job):
    first = job.submission(1, "sh", "-c", TRAP)
    second = job.submission(2, "touch", "second")
    job.write(JobElement(submissions=(first, second), independent=True))
    process = job.start()
    job.until("ready")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 5
    assert job.end(2).skipped
    assert not (job.work / "second").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_at_a_terminal_it_works_too(tmp_path, shell):
    job = Job(tmp_path / "w", shell)
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", TRAP),)))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(job.shell[0], [*job.shell, job.folder.script])
    job.until("ready")
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    os.close(terminal)
    assert job.end().asked == 15


def test_a_killed_job_leaves_a_start_and_no_end_and_is_not_started_twice(job):
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", "touch ready; sleep 300"),)))
    process = job.start()
    job.until("ready")
    members = _session(process.pid)
    for pid in members:
        os.kill(pid, signal.SIGKILL)
    process.wait(30)
    witness = look_for_exit(job.folder, 1)
    assert (witness.exit, witness.starts, witness.refused) == (None, 1, False)
    assert job.run() == 75
    witness = look_for_exit(job.folder, 1)
    assert (witness.exit, witness.starts, witness.refused) == (None, 1, True)


def test_a_refused_start_overwrites_nothing(job):
    assert job.alone("sh", "-c", "echo x >>count; exit 3") == 3
    before = job.end()
    assert job.run() == 75
    assert job.end() == before
    assert (job.work / "count").read_text() == "x\n"


def test_a_job_that_is_done_is_never_started_again(job):
    assert job.alone("sh", "-c", "echo x >>count", policy=Policy(restartable=True)) == 0
    assert job.run() == 0
    assert (job.work / "count").read_text() == "x\n"


def test_each_start_of_a_restartable_one_has_its_own_number_and_file(job):
    text = "echo x >>count; [ $(wc -l <count) -ge 3 ]"
    assert job.alone("sh", "-c", text, policy=Policy(restartable=True)) == 1
    assert [job.run(), job.run()] == [1, 0]
    assert (job.end().start_number, job.end().exit_code) == (3, 0)
    assert sorted(os.listdir(job.folder.root)) == ["1.1", "1.2", "1.3", "job.sh", "log"]
    assert os.listdir(job.folder.start(1, 2)) == ["exit.json"]


def test_of_many_starts_at_once_one_runs(job):
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", "echo x >>count; sleep 0.3"),)))
    codes = sorted(process.wait(60) for process in [job.start() for _ in range(6)])
    assert codes.count(0) == 1
    assert set(codes) == {0, 75}
    assert (job.work / "count").read_text() == "x\n"


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _session(leader: int) -> list[int]:
    """The processes of a session."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getsid(int(name)) == leader:
                    found.append(int(name))
            except ProcessLookupError:
                pass
    return found
