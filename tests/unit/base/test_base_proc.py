"""Starting processes."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from treadle.base import proc

PROBE = """
import json, os, signal
print(json.dumps({
    "fds": sorted(int(fd) for fd in os.listdir("/dev/fd")),
    "ignored": [n for n in range(1, 32) if n not in (9, 19) and signal.getsignal(n) == signal.SIG_IGN],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "group": os.getpgrp(), "pid": os.getpid(), "cwd": os.getcwd(), "stdin": os.readlink("/proc/self/fd/0"),
}))
"""


class Started:
    def __init__(self, tmp_path):
        self.log = tmp_path / "log"

    def run(self, *argv, cwd=None, env=None) -> tuple[int, str]:
        fd = os.open(self.log, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            child = proc.spawn(argv, env=env or dict(os.environ), cwd=str(cwd or os.getcwd()), stdout_fd=fd)
        finally:
            os.close(fd)
        _, status = os.waitpid(child.pid, 0)
        if child.pidfd >= 0:
            os.close(child.pidfd)
        return os.waitstatus_to_exitcode(status), self.log.read_text()


@pytest.fixture
def started(tmp_path):
    return Started(tmp_path)


@pytest.fixture
def away(tmp_path):
    folder = tmp_path / "a folder'$(x)"
    folder.mkdir()
    return folder


def test_both_streams_go_to_the_descriptor_and_the_code_comes_back(started):
    assert started.run("sh", "-c", "echo out; echo err >&2; exit 7") == (7, "out\nerr\n")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_child_begins_as_new(started, away, elsewhere):
    leaked = os.dup(0)
    os.set_inheritable(leaked, True)
    proc._prepared = False  # as at the first child: what we were started with is inheritable
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        cwd = away if elsewhere else None
        code, text = started.run(sys.executable, "-c", PROBE, cwd=cwd)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.close(leaked)
    found = json.loads(text)
    assert code == 0
    assert found["fds"] in ([0, 1, 2], [0, 1, 2, 3])  # 3: the listing itself
    assert found["ignored"] == [signal.SIGPIPE, signal.SIGXFSZ]  # by the child, which is Python
    assert found["blocked"] == []
    assert found["group"] == found["pid"]
    assert found["cwd"] == str(cwd or os.getcwd())
    assert found["stdin"] == "/dev/null"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_arguments_and_variables_arrive_as_they_are(started, away, elsewhere):
    odd = ["", " ", "a b", "'", '"', "$HOME", "`x`", "new\nline", "ümlaut ☃", "-n", "--", "*", "\\", "\t"]
    env = {"PATH": os.environ["PATH"], "ODD": "x\n'\"$y", "ü": "é"}
    text = "import sys, os, json; print(json.dumps([sys.argv[1:], os.environ['ODD'], os.environ['ü']]))"
    code, told = started.run(
        sys.executable, "-X", "utf8", "-c", text, *odd, env=env, cwd=away if elsewhere else None
    )
    assert code == 0
    assert json.loads(told) == [odd, "x\n'\"$y", "é"]


def test_a_name_is_looked_up_on_the_path_of_the_child(started, tmp_path):
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho it was $1\n")
    tool.chmod(0o755)
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin"}
    assert started.run("tool", "me", env=env) == (0, "it was me\n")
    with pytest.raises(FileNotFoundError):
        started.run("tool", "me")


def test_a_relative_entry_of_the_path_is_seen_from_the_work_folder(started, away):
    (away / "tool").write_text("#!/bin/sh\necho here\n")
    (away / "tool").chmod(0o755)
    assert started.run("tool", env={"PATH": "/bin:."}, cwd=away) == (0, "here\n")


def test_a_program_that_moved_on_the_path_is_found_again(started, tmp_path):
    tools = [tmp_path / name / "tool" for name in "ab"]
    for tool in tools:
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\necho {tool.parent.name}\n")
        tool.chmod(0o755)
    env = {"PATH": f"{tools[0].parent}:{tools[1].parent}:/bin"}
    assert started.run("tool", env=env) == (0, "a\n")
    tools[0].unlink()
    with pytest.raises(FileNotFoundError):
        started.run("tool", env=env)
    assert started.run("tool", env=env) == (0, "b\n")


def test_what_cannot_start_raises_with_the_name(started, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program")
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    headless = tmp_path / "headless"
    headless.write_text("echo x\n")
    headless.chmod(0o755)
    for argv, number in [
        (["no-such-tool"], errno.ENOENT),
        ([str(plain)], errno.EACCES),
        ([str(orphan)], errno.ENOENT),
        ([str(headless)], errno.ENOEXEC),
        (["sh", "-c", "x" * 3_000_000], errno.E2BIG),
    ]:
        with pytest.raises(OSError, match=r"(?i)no such|denied|exec|long") as caught:
            started.run(*argv)
        assert caught.value.errno == number
        if number != errno.E2BIG:
            assert caught.value.filename == argv[0]


def test_a_folder_that_cannot_be_entered_raises_with_its_name(started, tmp_path):
    (tmp_path / "file").write_text("")
    for name, number in (("missing", errno.ENOENT), ("file", errno.ENOTDIR)):
        with pytest.raises(OSError, match=name) as caught:
            started.run("true", cwd=tmp_path / name, env={"PATH": "/usr/bin:/bin"})
        assert caught.value.errno == number
        assert caught.value.filename == str(tmp_path / name)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_start_times_are_those_of_the_kernel(started, tmp_path):
    for _ in range(30):
        fd = os.open(os.devnull, os.O_WRONLY)
        child = proc.spawn(["true"], env=dict(os.environ), cwd=os.getcwd(), stdout_fd=fd)
        os.close(fd)
        assert child.started == proc.start_time(child.pid) > 0  # a zombie still tells it
        os.waitpid(child.pid, 0)
        os.close(child.pidfd)


def test_children_can_be_waited_for_when_the_caller_ignores_their_ends():
    text = (
        "import os\nfrom treadle.base import proc\n"
        "child = proc.spawn(['sh', '-c', 'exit 3'], env=dict(os.environ), cwd=os.getcwd(), stdout_fd=1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]))\n"
    )
    wrapped = (
        "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])\n"
    )
    told = subprocess.run([sys.executable, "-c", wrapped, text], capture_output=True, text=True)
    assert told.stdout == "3\n", told.stderr


def test_a_missing_standard_input_does_not_mix_up_descriptors(tmp_path):
    text = (
        "import os\nos.close(0)\nfrom treadle.base import proc\n"
        f"fd = os.open({str(tmp_path / 'log')!r}, os.O_WRONLY | os.O_CREAT)\nassert fd == 0\n"
        "child = proc.spawn(['sh', '-c', 'echo out; cat; echo err >&2'], env=dict(os.environ),"
        " cwd=os.getcwd(), stdout_fd=fd)\n"
        "os.waitpid(child.pid, 0)\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
    assert (tmp_path / "log").read_text() == "out\nerr\n"
