"""Threads in which steps run: as many as are needed, told of through one descriptor, left behind at last."""

from __future__ import annotations

import contextvars
import select
import threading
import time

import pytest

from treadle.backends.step_threads import StepThreads
from treadle.engine.signals import Wake

NAME = contextvars.ContextVar("NAME", default="nobody")


class Pool:
    def __init__(self) -> None:
        self.wake = Wake()
        self.threads = StepThreads(self.wake.ring)
        self._asked = select.poll()
        self._asked.register(self.wake.reader, select.POLLIN)

    def next(self, bound: float = 30.0):
        """Those that ended, once there are some; waits as the backend does."""
        until = time.monotonic() + bound
        while True:
            at = self.threads.next_at()
            wait = bound if at is None else max(0.0, at - time.monotonic())
            self._asked.poll(wait * 1000)
            self.wake.drain()
            if taken := self.threads.take():
                return taken
            assert time.monotonic() < until


@pytest.fixture
def pool():
    made = Pool()
    yield made
    made.threads.close()
    made.wake.close()


def test_what_a_call_returns_comes_back(pool):
    pool.threads.begin("a", lambda asked: 42)
    (one,) = pool.next()
    assert (one.job, one.value, one.raised) == ("a", 42, False)
    assert 0 < one.begun_on <= one.ended_on


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_whatever_a_call_raises_comes_back(pool, kind):
    def call(asked):
        raise kind("no")

    pool.threads.begin("a", call)
    (one,) = pool.next()
    assert one.raised
    assert type(one.value) is kind
    pool.threads.begin("b", lambda asked: "the thread lives on")
    assert pool.next()[0].value == "the thread lives on"


def test_calls_run_at_the_same_time(pool):
    together = threading.Barrier(5, timeout=30)
    for number in range(5):
        pool.threads.begin(str(number), lambda asked: together.wait())
    ended = []
    while len(ended) < 5:
        ended += pool.next()
    assert not any(one.raised for one in ended)


def test_threads_are_used_again(pool):
    names = set()
    for number in range(20):
        pool.threads.begin(str(number), lambda asked: threading.current_thread().name)
        names |= {one.value for one in pool.next()}
    assert len(names) == 1


def test_calls_see_the_context_of_who_began_them(pool):
    NAME.set("first")
    pool.threads.begin("a", lambda asked: NAME.get())
    NAME.set("second")
    pool.threads.begin("b", lambda asked: NAME.set("inner") and NAME.get())
    seen = {}
    while len(seen) < 2:
        seen |= {one.job: one.value for one in pool.next()}
    assert seen == {"a": "first", "b": "inner"}
    assert NAME.get() == "second"


def test_a_call_that_hears_of_it_ends_by_itself(pool):
    begun = threading.Event()

    def call(asked):
        begun.set()
        while not asked():
            time.sleep(0.001)
        return "saved"

    pool.threads.begin("a", call)
    assert begun.wait(30)
    assert pool.threads.end("a", grace=30)
    (one,) = pool.next()
    assert (one.value, one.asked, one.given_up) == ("saved", True, False)
    assert pool.threads.next_at() is None


def test_a_call_that_does_not_end_is_left_behind(pool):
    begun, end = threading.Event(), threading.Event()

    def call(asked):
        begun.set()
        end.wait(60)

    pool.threads.begin("deaf", call)
    assert begun.wait(30)
    before = time.monotonic()
    pool.threads.end("deaf", grace=0.05)
    (one,) = pool.next()
    assert one.given_up
    assert 0.05 <= time.monotonic() - before < 10
    pool.threads.begin("next", lambda asked: "another thread")
    assert pool.next()[0].value == "another thread"
    end.set()
    for number in range(5):  # what was left behind is told no more, and its thread serves again
        pool.threads.begin(str(number), lambda asked: "fine")
        assert [one.value for one in pool.next()] == ["fine"]


def test_a_call_can_be_ended_right_after_it_was_begun(pool):
    end = threading.Event()
    pool.threads.begin("a", lambda asked: end.wait(60))
    called = []
    pool.threads.begin("b", lambda asked: called.append(asked()))
    pool.threads.end("b", grace=0.0)
    taken = pool.next()
    assert [one.job for one in taken] == ["b"]
    end.set()
    assert [one.job for one in pool.next()] == ["a"]


def test_who_is_not_here_cannot_be_ended(pool):
    assert not pool.threads.end("nobody", grace=1)


def test_no_thread_is_left_when_all_is_closed_and_done(pool):
    before = set(threading.enumerate())
    begun, end = threading.Event(), threading.Event()

    def deaf(asked):
        begun.set()
        end.wait(60)

    pool.threads.begin("deaf", deaf)
    assert begun.wait(30)
    pool.threads.end("deaf", grace=0.0)
    pool.next()
    pool.threads.begin("b", lambda asked: None)
    pool.next()
    assert len(set(threading.enumerate()) - before) == 2
    pool.threads.close()
    end.set()
    deadline = time.monotonic() + 30
    while set(threading.enumerate()) - before:
        assert time.monotonic() < deadline
        time.sleep(0.001)


# The line


@pytest.fixture
def narrow(pool):
    pool.threads.most = 2
    return pool


def test_no_more_run_at_a_time_than_may_and_the_others_go_in_their_order(narrow):
    gates = [threading.Event() for _ in range(6)]
    order, running, most = [], [], []

    def call(number):
        def run(asked):
            order.append(number)
            running.append(number)
            most.append(len(running))
            assert gates[number].wait(30)
            running.remove(number)

        return run

    waits = [narrow.threads.begin(str(number), call(number)) for number in range(6)]
    assert waits == [False, False, True, True, True, True]
    ended = []
    for at, gate in enumerate(gates):
        gate.set()
        while len(ended) <= at:
            ended += [int(one.job) for one in narrow.next()]
    assert sorted(ended) == list(range(6))
    assert sorted(order[:2]) == [0, 1]
    assert order[2:] == [2, 3, 4, 5]
    assert max(most) == 2


def test_what_waited_and_goes_on_is_told_as_begun_once_and_soon(narrow):
    gates = {name: threading.Event() for name in "abcd"}
    began = threading.Event()

    def call(name):
        def run(asked):
            if name == "c":
                began.set()
            assert gates[name].wait(30)

        return run

    for name in gates:
        narrow.threads.begin(name, call(name))
    assert narrow.threads.take() == []
    assert narrow.threads.begun() == []
    gates["a"].set()
    assert [one.job for one in narrow.next()] == ["a"]
    assert began.wait(30)
    found, until = narrow.threads.begun(), time.monotonic() + 30
    while not found:
        assert narrow.threads.next_at() is not None  # nobody need ring for it
        assert narrow.threads.take() == []
        found = narrow.threads.begun()
        assert time.monotonic() < until
    assert found == ["c"]
    assert narrow.threads.begun() == []
    for gate in gates.values():
        gate.set()


def test_what_waits_can_be_withdrawn_and_is_never_called(narrow):
    gate = threading.Event()
    called = []
    for name in "ab":
        narrow.threads.begin(name, lambda asked: gate.wait(30))
    for name in "cd":
        narrow.threads.begin(name, lambda asked, name=name: called.append(name))
    assert narrow.threads.withdraw("c")
    assert not narrow.threads.withdraw("c")
    assert not narrow.threads.withdraw("nobody")
    gate.set()
    ended = []
    while len(ended) < 3:
        ended += [one.job for one in narrow.next()]
    assert sorted(ended) == ["a", "b", "d"]
    assert called == ["d"]


def test_what_has_begun_cannot_be_withdrawn(narrow):
    gate, began = threading.Event(), threading.Event()
    narrow.threads.begin("a", lambda asked: began.set() or gate.wait(30))
    assert began.wait(30)
    assert not narrow.threads.withdraw("a")
    gate.set()
    assert [one.job for one in narrow.next()] == ["a"]


def test_many_short_calls_ring_seldom_and_all_are_told():
    rings = []
    threads = StepThreads(lambda: rings.append(1), 1)
    gate = threading.Event()
    threads.begin("first", lambda asked: gate.wait(30))
    for number in range(200):
        threads.begin(str(number), lambda asked: None)
    gate.set()
    ended, until = [], time.monotonic() + 30
    while len(ended) < 201:
        ended += [one.job for one in threads.take()]
        assert time.monotonic() < until
    assert ended == ["first", *map(str, range(200))]
    threads.close()


def test_a_call_that_fails_rings_at_once_whatever_waits():
    rang = threading.Event()
    threads = StepThreads(rang.set, 1)

    def fail(asked):
        raise ValueError

    threads.begin("bad", fail)
    for number in range(50):
        threads.begin(str(number), lambda asked: None)
    assert rang.wait(30)
    threads.close()


def test_after_a_call_that_failed_nothing_begins_before_that_was_dealt_with(narrow):
    narrow.threads.most = 1
    called = []

    def fail(asked):
        assert gate.wait(30)
        raise ValueError

    gate = threading.Event()
    narrow.threads.begin("bad", fail)
    for name in "abc":
        narrow.threads.begin(name, lambda asked, name=name: called.append(name))
    gate.set()
    narrow.threads.go_on()  # it was not even heard of
    assert [one.job for one in narrow.next()] == ["bad"]
    assert narrow.threads.withdraw("a")
    assert narrow.threads.withdraw("b")
    assert called == []
    narrow.threads.go_on()
    assert [one.job for one in narrow.next()] == ["c"]
    assert called == ["c"]


# The pace


def _until_told(pool, many):
    ended = []
    while len(ended) < many:
        ended += [one.job for one in pool.next()]
    return ended


def test_among_calls_that_do_nothing_one_that_waits_for_a_later_one_gets_it(narrow):
    later = threading.Event()
    for number in range(500):
        narrow.threads.begin(str(number), lambda asked: None)
    narrow.threads.begin("waits", lambda asked: later.wait(30))
    for number in range(500, 600):
        narrow.threads.begin(str(number), lambda asked: None)
    narrow.threads.begin("sets", lambda asked: later.set())
    values = {}
    while len(values) < 602:
        values |= {one.job: one.value for one in narrow.next()}
    assert values["waits"] is True


def test_threads_that_were_parked_end_with_the_others():
    before = threading.active_count()
    threads = StepThreads(lambda: None, 4)
    for number in range(400):
        threads.begin(str(number), lambda asked: None)
    ended, until = 0, time.monotonic() + 30
    while ended < 400:
        ended += len(threads.take())
        assert time.monotonic() < until
    threads.close()
    while threading.active_count() > before:
        assert time.monotonic() < until


def test_an_end_is_told_though_another_call_is_begun_at_that_moment_and_goes_on(narrow):
    for number in range(100):
        gate = threading.Event()
        narrow.threads.begin(f"fast {number}", lambda asked: None)
        narrow.threads.begin(f"slow {number}", lambda asked, gate=gate: gate.wait(30))
        assert [one.job for one in narrow.next(5.0)] == [f"fast {number}"]
        gate.set()
        assert [one.job for one in narrow.next()] == [f"slow {number}"]
