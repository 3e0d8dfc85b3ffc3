"""Waiting for what must come: as long as a loaded machine may need, and no longer than that."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds for what must come; a loaded machine is slow, and a test that waits is not wrong


def until(condition: Callable[[], T], what: str = "it", seconds: float = PATIENCE) -> T:
    """Wait until `condition` holds, and give what it gave."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.005)
    return found
