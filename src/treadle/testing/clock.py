"""A clock that jumps to the time that is waited for, so that tests of pauses take none."""

from __future__ import annotations

from selectors import BaseSelector


class JumpingClock:
    """Waiting moves it on. `waits` are the times that were waited for.

    A wait without limit is one for another thread or a process; it raises after 30 s of real time.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.start = start
        self.passed = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.start + self.passed

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def wait(self, selector: BaseSelector, timeout: float | None) -> list[object]:
        found = selector.select(0 if timeout is not None else 30.0)
        if timeout is None and not found:
            raise TimeoutError("nothing happened for 30 s, and nothing is due")
        if timeout and not found:
            self.waits.append(timeout)
            self.passed += timeout + 1e-6  # a sum of floats may fall short of the time that was meant
        return [key.data for key, _ in found]
