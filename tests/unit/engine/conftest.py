"""Fixtures of the loop; tests of other backends have benches of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A work folder whose plans are driven with a fake backend."""
    return Bench(tmp_path)
