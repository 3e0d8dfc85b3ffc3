"""Threads of the driver in which steps run: made as they are needed, told of through one descriptor.

A thread cannot be killed. One whose step does not end though it was asked to is left behind: its step is
told as ended, and what it still does goes on under its lease.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from treadle.backends.step_pace import Pace

# Seconds. What took less need not ring while others wait in line: all is looked at this soon after the last
# end that was told. If none ended meanwhile, whatever runs has been running for longer, and rings in the end.
_SHORT, _SOON = 0.004, 0.005
_LATEST = 0.5  # as long as others wait


class ThreadJob:
    """One function in a thread. `value` is what it returned, or the exception that it raised (`raised`).

    `waited`: it was told as one that may have to wait in line.
    """

    __slots__ = (
        "asked",
        "begun_on",
        "call",
        "context",
        "cpu",
        "ended_on",
        "given_up",
        "job",
        "raised",
        "value",
        "waited",
    )

    def __init__(self, job: str, call: Callable[[Callable[[], bool]], Any]) -> None:
        self.job = job
        self.call = call
        self.context = copy_context()
        self.asked = False
        self.given_up = False
        self.waited = False
        self.begun_on = 0.0
        self.ended_on = 0.0
        self.cpu = 0.0
        self.raised = False
        self.value: Any = None

    def is_asked_to_end(self) -> bool:
        return self.asked


class StepThreads:
    """Runs calls in daemon threads in their order, `most` at once (None: as many as there are calls).

    `ring` is called when one ended; while many short ones wait in line, only now and then. Calls see the
    context variables of who began them. They get a function that says whether they are to end. After one that
    raised nothing new begins until `go_on` or `begin`: whoever hears of it may want to withdraw the rest. All
    methods are for one thread.
    """

    def __init__(self, ring: Callable[[], None], most: int | None = None) -> None:
        self.most = most
        self._ring = ring
        self._waiting: SimpleQueue[ThreadJob | None] = SimpleQueue()
        self._line: dict[str, ThreadJob] = {}  # not begun: who takes one out of it, in one act, has it
        self._ended: deque[ThreadJob] = deque()
        self._begun: deque[ThreadJob] = deque()  # of those that waited
        self._failing: deque[ThreadJob] = deque()  # raised, and not taken yet
        self._going = threading.Event()
        self._going.set()
        self._living: dict[str, ThreadJob] = {}
        self._ending: dict[str, float] = {}
        self._pace = Pace()
        self._low = 0  # of the line: it is long enough above
        self._look_at: float | None = None
        self._pause = _SOON
        self._threads = 0  # that serve; those left behind do not
        self._made = 0
        self._rung = False

    def begin(self, job: str, call: Callable[[Callable[[], bool]], Any]) -> bool:
        """Call `call` as soon as a thread is free; whether it may have to wait for that.

        Raises RuntimeError when not a single thread can be had.
        """
        self.go_on()
        self._living[job] = one = ThreadJob(job, call)
        if len(self._living) > self._threads and (self.most is None or self._threads < self.most):
            self._add_thread(one)
        if self.most is None or len(self._living) <= self.most:
            self._pace.widen()
        one.waited = len(self._living) > self._threads
        if self._look_at is None:
            self._pause, self._look_at = _SOON, time.monotonic() + _SOON
        # First of all: an end at this moment must not take it for a long line.
        self._low = (len(self._line) + 1) // 2
        self._line[job] = one
        self._waiting.put(one)
        return one.waited

    def _add_thread(self, one: ThreadJob) -> None:
        try:
            threading.Thread(target=self._work, name=f"treadle {one.job}", daemon=True).start()
        except RuntimeError:  # the limit on threads is reached: those that there are must do
            if self._threads <= 0:
                del self._living[one.job]
                raise
        else:
            self._threads += 1
            self._made += 1
            self._pace.added()

    def _work(self) -> None:
        pace, before = self._pace, time.thread_time()
        while (one := self._waiting.get()) is not None:
            if not self._going.is_set():
                self._going.wait()
            if self._line.pop(one.job, None) is None:
                del one
                continue  # it was withdrawn
            one.begun_on = time.time()
            if one.waited:
                self._begun.append(one)
            try:
                one.value = one.context.run(one.call, one.is_asked_to_end)
            except BaseException as error:  # a SystemExit of a step is its own failure, too
                one.value, one.raised = error, True
                self._failing.append(one)  # first: who looks at it sees that this is not over
                self._going.clear()
            one.ended_on = time.time()
            now = time.thread_time()
            one.cpu, before = now - before, now
            self._ended.append(one)
            urgent = one.raised or len(self._line) <= self._low or one.ended_on - one.begun_on >= _SHORT
            if urgent and not self._rung:
                self._rung = True
                self._ring()
            del one  # what it holds must not live until the next one comes
            if pace.is_crowded:
                pace.park()

    def take(self) -> list[ThreadJob]:
        """Those that have ended, and those whose time to end is over, without waiting."""
        self._rung = False  # before the look: who ends after it rings again
        taken = []
        while self._ended:
            one = self._ended.popleft()
            if one.raised:
                self._failing.popleft()
            if self._living.pop(one.job, None) is not None:
                self._ending.pop(one.job, None)
                taken.append(one)
            else:
                self._threads += 1  # it had been left behind: its thread is free again
        now = time.monotonic() if self._living else 0.0
        taken += [self._leave(job) for job, at in tuple(self._ending.items()) if at <= now]
        if not self._living:
            self._look_at = None
        elif taken:
            self._pause, self._look_at = _SOON, now + _SOON
            if self._line:
                told = [one for one in taken if one.ended_on]
                wall = sum([one.ended_on - one.begun_on for one in told])
                self._pace.judge(len(told), wall, sum([one.cpu for one in told]))
        elif self._look_at is not None and self._look_at <= now:
            # A thread may have been held up between an end that did not ring and what it took on next.
            self._pause = min(2 * self._pause, _LATEST)
            self._look_at = now + self._pause if self._line else None
            self._pace.widen()
        return taken

    def go_on(self) -> None:
        """What was taken has been dealt with: go on after a failure."""
        if not self._going.is_set() and not self._failing:
            self._going.set()

    def begun(self) -> list[str]:
        """Those that had to wait, have begun since, and go on; to be asked after `take`."""
        found = []
        while self._begun:
            one = self._begun.popleft()
            if not one.ended_on and one.job in self._living:
                found.append(one.job)
        return found

    def _leave(self, job: str) -> ThreadJob:
        del self._ending[job]
        one = self._living.pop(job)
        one.given_up = True
        if self._line.pop(job, None) is None:
            self._threads -= 1
        return one

    def end(self, job: str, grace: float) -> bool:
        """Ask a call to end; after `grace` seconds it is told as ended whatever it does. False: not here."""
        one = self._living.get(job)
        if one is None:
            return False
        one.asked = True
        at = time.monotonic() + (grace if job not in self._line else 0.0)
        self._ending[job] = min(at, self._ending.get(job, at))
        return True

    def withdraw(self, job: str) -> bool:
        """Take a call that has not begun out of the line, for good. False: it has begun, or is not here."""
        if self._line.pop(job, None) is None:
            return False
        del self._living[job]
        self._ending.pop(job, None)
        return True

    def next_at(self) -> float | None:
        """When `take` must be called whatever happens (monotonic; None: only when it rings)."""
        soonest = min(self._ending.values(), default=None)
        if self._look_at is None or (soonest is not None and soonest < self._look_at):
            return soonest
        return self._look_at

    def close(self) -> None:
        """Let idle threads end, others after their call. What waits is not called any more."""
        self._line.clear()
        self._going.set()
        self._pace.widen()
        for _ in range(self._made):
            self._waiting.put(None)
