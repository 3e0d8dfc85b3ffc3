"""Local attempts that run to their end: what comes out, and what they see."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from treadle.backends import local as local_backend
from treadle.base import proc
from treadle.engine.backend import Accepted, JobStatus, Refused
from treadle.records.event import EndReason


def test_a_success_is_told_with_its_times_and_host(local):
    before = time.time()
    outcome = local.sh("echo hello; echo problem >&2")
    assert (outcome.reason, outcome.exit_code, outcome.signal, outcome.message) == (EndReason.OK, 0, 0, "")
    assert before <= outcome.start <= outcome.end <= time.time() + 1
    assert outcome.usage.wall == pytest.approx(outcome.end - outcome.start, abs=1e-5)
    assert outcome.usage.cpu >= 0
    assert outcome.host == os.uname().nodename
    assert local.told() == "hello\nproblem\n"


@pytest.mark.parametrize("code", [1, 2, 127, 255])
def test_exit_codes_come_back(local, code):
    outcome = local.sh(f"exit {code}")
    assert (outcome.reason, outcome.exit_code, outcome.signal) == (EndReason.APP, code, 0)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM", "SIGXCPU"])
def test_signals_that_we_did_not_send_are_failures_of_the_task(local, name):
    outcome = local.sh(f"kill -{name[3:]} $$")
    number = getattr(signal, name)
    assert (outcome.reason, outcome.exit_code, outcome.signal) == (EndReason.APP, None, number)
    assert name in outcome.message


def test_an_end_is_told_once_and_only_to_who_asks(local):
    _, answer = local.start("true")
    job = answer.job
    local.live.clear()
    deadline = time.monotonic() + 30
    while not (found := local.backend.poll([job, "1"])):
        assert local.backend.poll(["1"]) == []
        assert time.monotonic() < deadline
    assert [(one.job, one.status) for one in found] == [(job, JobStatus.ENDED)]
    assert local.backend.poll([job]) == []


def test_after_many_attempts_the_driver_asks_once_to_be_woken_soon(local, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(local_backend, "_MANY", 3)
    monkeypatch.setattr(local_backend, "wake_soon", lambda: asked.append(local.n))
    for _ in range(5):
        local.sh("true")
    assert asked == [3]


def test_a_waiting_driver_is_not_woken_before_there_is_news(local):
    os.mkfifo(local.folder / "hold")
    n, _ = local.start("sh", "-c", "read x < hold; exit 4")
    waiting = select.poll()
    waiting.register(local.backend.fileno(), select.POLLIN)
    assert waiting.poll(50) == []
    (local.folder / "hold").write_text("on\n")
    assert waiting.poll(30_000) != []
    assert local.finish(n)[0].exit_code == 4


def test_what_a_task_leaves_running_is_ended_before_its_end_is_told(local):
    text = "(trap '' TERM HUP; while :; do date >> late; done) & until [ -s late ]; do :; done"
    assert local.sh(text).reason is EndReason.OK
    size = os.path.getsize(local.folder / "late")
    assert not [one for one in processes() if f"{local.run}.".encode() in one]
    assert os.path.getsize(local.folder / "late") == size


def processes() -> list[bytes]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    found.append(file.read())
            except OSError:
                pass
    return found


def test_a_large_output_goes_to_the_log_and_not_through_the_driver(local):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert local.sh("head -c 50000000 /dev/zero").exit_code == 0
    assert os.path.getsize(local.log(1)) == 50_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_a_log_is_appended_to_and_its_folder_is_made(local):
    log = str(local.folder / "deep" / "er" / "log")
    for word in ("one", "two"):
        local.sh(f"echo {word}", log=log)
    assert Path(log).read_text() == "one\ntwo\n"


def test_a_private_log_is_for_its_owner_alone(local):
    local.sh("true")
    local.sh("true", private_log=True)
    (local.folder / "there").touch(0o644)
    local.sh("true", private_log=True, log=str(local.folder / "there"))
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (local.log(2), local.folder / "there")]
    assert modes == [0o600, 0o600]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(os.stat(local.log(1)).st_mode) == 0o666 & ~umask


def test_the_log_of_a_job_can_be_asked_for(local):
    n, answer = local.start("true")
    assert local.backend.logs(answer.job) == [local.log(n)]
    local.finish()
    assert local.backend.logs(answer.job) == [local.log(n)]
    assert local.backend.logs("no-such-job") == []


def test_a_child_inherits_no_descriptor_and_default_signals(local):
    for _ in range(3):  # others run beside it, whose descriptors the driver holds
        local.start("sleep", "300")
    text = (
        "import os, json, signal; print(json.dumps([sorted(map(int, os.listdir('/proc/self/fd'))),"
        " [n for n in range(1, 32) if n not in (9, 19, 13, 25) and signal.getsignal(n) == signal.SIG_IGN],"
        " sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))]))"
    )
    n, _ = local.start(sys.executable, "-c", text)
    local.finish(n)
    assert json.loads(local.told(n)) == [[0, 1, 2, 3], [], []]  # 3: the listing itself


def test_arguments_variables_and_folders_with_odd_names_arrive(local):
    odd = ["", " a b", "'\"", "$HOME `x`", "new\nline", "ümlaut ☃", "-n", "--", "*"]
    cwd = local.folder / "it's a $folder"
    cwd.mkdir()
    text = (
        "import os, sys, json;"
        "print(json.dumps([sys.argv[1:], os.environ['ODD'], os.getcwd(), os.environ['PWD']]))"
    )
    n, _ = local.start(sys.executable, "-X", "utf8", "-c", text, *odd, env={"ODD": "a\n'b\"☃"}, cwd=str(cwd))
    local.finish(n)
    assert json.loads(local.told(n)) == [odd, "a\n'b\"☃", str(cwd), str(cwd)]


def test_the_environment_is_ours_with_the_task_s_on_top(local_with, monkeypatch):
    monkeypatch.setenv("OURS", "1")
    monkeypatch.setenv("BOTH", "ours")
    driver = local_with()
    driver.sh("echo $OURS $BOTH", env={"BOTH": "task's"})
    assert driver.told() == "1 task's\n"


def test_what_cannot_start_is_refused_with_the_way_out_and_the_others_run(local):
    orphan = local.folder / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    (local.folder / "plain").write_text("x")
    cases = [
        (("no-such-tool",), {}, "install it"),
        (("./missing",), {}, "no such file"),
        ((str(orphan),), {}, "first line"),
        ((str(local.folder / "plain"),), {}, "chmod"),
        (("sh", "-c", "x" * 3_000_000), {}, "input.list"),
        (("true",), {"cwd": str(local.folder / "gone")}, "make that folder"),
        (("true",), {"log": str(local.folder / "plain" / "log")}, "cannot write the log|a folder is needed"),
        (("echo", "nul\0"), {}, "NUL"),
    ]
    batch = [local.submission(*argv, **changes) for argv, changes, _ in cases] + [local.submission("true")]
    *refused, accepted = local.backend.submit(batch)
    for answer, (argv, _, words) in zip(refused, cases):
        assert isinstance(answer, Refused), argv
        assert any(word in answer.message for word in words.split("|")), answer.message
    assert isinstance(accepted, Accepted)
    local.live[accepted.job] = batch[-1].n
    local.finish()


def test_an_accepted_attempt_can_be_known_again_after_a_restart(local):
    n, answer = local.start("sleep", "300")
    assert proc.attempts_alive(local.run) == [
        (int(answer.job), int(answer.job), answer.started, f"{local.run}.{n}")
    ]


def test_three_hundred_attempts_leave_no_descriptor_and_no_zombie(local):
    local.sh("true")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(150):
        for _ in range(2):
            local.start("sh", "-c", ":")
        local.finish()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert len(local.ended) == 301
    assert {outcome.reason for outcome in local.ended.values()} == {EndReason.OK}
    assert zombies() == []


def zombies() -> list[str]:
    """Children of this process that have ended and were not waited for."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # gone meanwhile
            continue
        if state == "Z" and parent == str(os.getpid()):
            found.append(entry.parent.name)
    return found


def test_an_exit_status_that_was_taken_by_others_is_lost_and_said(local):
    n, answer = local.start("true")
    os.waitpid(int(answer.job), 0)
    (outcome,) = local.finish(n)
    assert outcome.reason is EndReason.LOST
    assert "took its exit status" in outcome.message


def test_the_script_of_an_attempt_does_by_hand_what_the_attempt_does(local):
    cwd = local.folder / "it's a $folder"
    cwd.mkdir()
    env = {"ODD": "a\n'b\"$HOME", "PLAIN": "x", "not-a-name": "y z"}
    argv = (
        "bash",
        "-c",
        'printf "%s|" "$0" "$@" "$ODD" "$PLAIN" "$PWD"; env | grep not-a; cat',
        "a'b",
        "-n",
        "",
    )
    n, _ = local.start(*argv, env=env, cwd=str(cwd))
    local.finish(n)
    script = local.backend.render_script(local.submission(*argv, env=env, cwd=str(cwd)))
    by_hand = subprocess.run(["sh"], input=script, capture_output=True, text=True)
    assert by_hand.stdout == local.told(n)
    assert "not-a-name=y z" in by_hand.stdout


def test_abilities_are_told_as_data(local, with_gpus):
    assert local.backend.name == "local"
    assert local.backend.abilities.notifies
    assert not local.backend.abilities.gpus
    assert with_gpus.backend.abilities.gpus
    assert not local.backend.abilities.adoption
    assert local.backend.find(["x"]) == {}
    assert local.backend.accounting(["1"]) == {}


def test_gpus_are_handed_out_and_come_back(with_gpus):
    show = 'echo ids=$CUDA_VISIBLE_DEVICES; [ -n "$HOLD" ] && read x < hold; true'
    os.mkfifo(with_gpus.folder / "hold")
    two, _ = with_gpus.start("sh", "-c", show, ask_gpus=2, env={"HOLD": "1"})
    one, _ = with_gpus.start("sh", "-c", show, ask_gpus=1)
    with_gpus.finish(one)
    _, answer = with_gpus.start("sh", "-c", show, ask_gpus=2)
    assert isinstance(answer, Refused)
    assert "asks for 2 GPUs, and 1 of 3" in answer.message
    (with_gpus.folder / "hold").write_text("on\n")
    with_gpus.finish(two)
    three, _ = with_gpus.start("sh", "-c", show, ask_gpus=3)
    with_gpus.finish(three)
    assert [with_gpus.told(n) for n in (two, one, three)] == ["ids=0,1\n", "ids=GPU-7\n", "ids=0,1,GPU-7\n"]


def test_a_task_that_cannot_start_gives_its_gpus_back(with_gpus):
    with_gpus.start("no-such-tool", ask_gpus=3)
    assert with_gpus.sh("true", ask_gpus=3).exit_code == 0


def test_tasks_that_ask_for_no_gpu_see_none_unless_their_rule_says_so(with_gpus):
    with_gpus.sh("echo [${CUDA_VISIBLE_DEVICES-unset}]")
    with_gpus.sh("echo [$CUDA_VISIBLE_DEVICES]", env={"CUDA_VISIBLE_DEVICES": "1"})
    assert (with_gpus.told(1), with_gpus.told(2)) == ("[]\n", "[1]\n")


def test_without_a_pool_the_variable_is_left_alone(local_with, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    driver = local_with()
    driver.sh("echo [$CUDA_VISIBLE_DEVICES]")
    assert driver.told() == "[5]\n"


def test_the_peak_memory_of_a_living_attempt_is_seen(local):
    text = "x = bytearray(b'1') * 200_000_000\nimport time; open('made', 'w').close(); time.sleep(300)"
    n, answer = local.start("sh", "-c", f'{sys.executable} -c "$0"; true', text)
    local.until("made")
    deadline = time.monotonic() + 20
    attempt = local.backend._running[int(answer.job)]
    while attempt.peak < 190_000_000:
        assert time.monotonic() < deadline
        local.turn()
    local.backend.cancel([answer.job], force=True)
    (outcome,) = local.finish(n)
    assert 190_000_000 < outcome.usage.memory < 300_000_000


def test_the_memory_of_a_short_attempt_is_unknown(local):
    assert local.sh("true").usage.memory is None
