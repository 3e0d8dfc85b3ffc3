"""Hearing of the ends of processes, in each way that this system offers."""

from __future__ import annotations

import os
import select
import sys
import time

import pytest

from treadle.backends.local_exits import AskingExits, EpollExits, exits_here
from treadle.base import proc

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the ways of Linux")


@pytest.fixture(params=[EpollExits, AskingExits])
def exits(request):
    made = request.param()
    yield made
    made.close()


def begin(text: str) -> proc.Child:
    fd = os.open(os.devnull, os.O_WRONLY)
    try:
        return proc.spawn(["sh", "-c", text], env=dict(os.environ), cwd=os.getcwd(), stdout_fd=fd)
    finally:
        os.close(fd)


def test_an_end_is_told_until_it_is_forgotten(exits, tmp_path):
    os.mkfifo(tmp_path / "hold")
    child = begin(f"read x < '{tmp_path}/hold'")
    exits.watch(child)
    assert exits.take() == []
    (tmp_path / "hold").write_text("on\n")
    deadline = time.monotonic() + 30
    while exits.take() != [child.pid]:
        assert time.monotonic() < deadline
    assert exits.take() == [child.pid]
    os.waitpid(child.pid, 0)
    exits.forget(child)
    exits.forget(child)
    assert exits.take() == []
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(child.pidfd)


def test_there_is_a_descriptor_to_wait_at_or_an_interval_to_ask_in(exits):
    child = begin("true")
    exits.watch(child)
    assert (exits.fileno() is None) != (exits.interval() is None)
    os.waitpid(child.pid, 0)
    exits.forget(child)


def test_the_best_way_is_chosen():
    exits = exits_here()
    assert isinstance(exits, EpollExits) == proc.pidfds_work()
    exits.close()


def test_another_descriptor_can_be_waited_for_with_the_ends(exits):
    reader, writer = os.pipe()
    exits.listen(reader)
    child = begin("exit 0")
    exits.watch(child)
    assert exits.fileno() is not None
    os.write(writer, b"x")
    assert select.select([exits.fileno()], [], [], 30)[0] == [exits.fileno()]
    deadline = time.monotonic() + 30
    while exits.take() != [child.pid]:  # it is told of processes alone
        assert time.monotonic() < deadline
    os.waitpid(child.pid, 0)
    exits.forget(child)
    os.close(reader)
    os.close(writer)
