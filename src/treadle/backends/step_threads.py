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


class ThreadJob:
    """One function in a thread. `value` is what it returned, or the exception that it raised (`raised`)."""

    __slots__ = ("asked", "begun_on", "call", "context", "ended_on", "given_up", "job", "raised", "value")

    def __init__(self, job: str, call: Callable[[Callable[[], bool]], Any]) -> None:
        self.job = job
        self.call = call
        self.context = copy_context()
        self.asked = False
        self.given_up = False
        self.begun_on = 0.0
        self.ended_on = 0.0
        self.raised = False
        self.value: Any = None

    def is_asked_to_end(self) -> bool:
        return self.asked


class StepThreads:
    """Runs calls in daemon threads, as many at once as there are calls; `ring` is called when one ended.

    Calls see the context variables of who began them. They get a function that says whether they are to end.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._waiting: SimpleQueue[ThreadJob | None] = SimpleQueue()
        self._ended: deque[ThreadJob] = deque()
        self._living: dict[str, ThreadJob] = {}
        self._ending: dict[str, float] = {}
        self._threads = 0  # that serve; those left behind do not
        self._made = 0
        self._rung = False

    def begin(self, job: str, call: Callable[[Callable[[], bool]], Any]) -> None:
        """Call `call` in a thread, soon. Raises RuntimeError when not a single thread can be had."""
        self._living[job] = one = ThreadJob(job, call)
        if len(self._living) > self._threads:
            self._add_thread(one)
        self._waiting.put(one)

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

    def _work(self) -> None:
        while (one := self._waiting.get()) is not None:
            if not one.given_up:
                one.begun_on = time.time()
                try:
                    one.value = one.context.run(one.call, one.is_asked_to_end)
                except BaseException as error:  # a SystemExit of a step is its own failure, too
                    one.value, one.raised = error, True
                one.ended_on = time.time()
            self._ended.append(one)
            if not self._rung:
                self._rung = True
                self._ring()
            del one  # what it holds must not live until the next one comes

    def take(self) -> list[ThreadJob]:
        """Those that have ended, and those whose time to end is over, without waiting."""
        self._rung = False  # before the look: who ends after it rings again
        taken = []
        while self._ended:
            one = self._ended.popleft()
            if self._living.pop(one.job, None) is not None:
                self._ending.pop(one.job, None)
                taken.append(one)
            else:
                self._threads += 1  # it had been left behind: its thread is free again
        now = time.monotonic() if self._ending else 0.0
        taken += [self._leave(job) for job, at in tuple(self._ending.items()) if at <= now]
        return taken

    def _leave(self, job: str) -> ThreadJob:
        del self._ending[job]
        one = self._living.pop(job)
        one.given_up = True
        self._threads -= 1
        return one

    def end(self, job: str, grace: float) -> bool:
        """Ask a call to end; after `grace` seconds it is told as ended whatever it does. False: not here."""
        one = self._living.get(job)
        if one is None:
            return False
        one.asked = True
        at = time.monotonic() + (grace if one.begun_on else 0.0)
        self._ending[job] = min(at, self._ending.get(job, at))
        return True

    def next_at(self) -> float | None:
        """When `take` must be called whatever happens (monotonic; None: only when it rings)."""
        return min(self._ending.values(), default=None)

    def close(self) -> None:
        """Let idle threads end; those that still run end after their call."""
        for _ in range(self._made):
            self._waiting.put(None)
