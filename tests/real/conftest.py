"""Real batch systems, each started once in a session by the first test that asks for it.

Tests that use one belong together (xdist: `--dist loadgroup`), so that one worker starts it and no test stops
a controller under another's feet. A worker that starts a second one does no harm: they share nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from schedulers.start import Scheduler, missing

_STARTED = ("slurm", "slurm_without_accounting", "sge")
FORGETS_AFTER = 5
"""Seconds after which SLURM without accounting begins to forget what has ended."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        used = [name for name in getattr(item, "fixturenames", ()) if name in _STARTED]
        if used and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(used[0]))


@pytest.fixture(scope="session")
def slurm() -> Iterator[Scheduler]:
    """SLURM with slurmdbd and MariaDB, two nodes."""
    yield from _started("slurm")


@pytest.fixture(scope="session")
def slurm_without_accounting() -> Iterator[Scheduler]:
    """SLURM that keeps no accounts, and whose queue soon forgets."""
    yield from _started("slurm", accounting=False, remembered=FORGETS_AFTER)


@pytest.fixture(scope="session")
def sge() -> Iterator[Scheduler]:
    """Grid Engine with one host."""
    yield from _started("sge")


def _started(kind: str, **options: Any) -> Iterator[Scheduler]:
    if why := missing(kind, accounting=options.get("accounting", True)):
        pytest.skip(why)
    scheduler = Scheduler(kind, **options)
    yield scheduler
    scheduler.close()
