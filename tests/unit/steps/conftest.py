"""Fixtures of artifacts; tests of another kind of store have one of their own."""

from __future__ import annotations

import pytest

from treadle.steps.local_store import LocalStore


@pytest.fixture
def store() -> LocalStore:
    """A store on plain file systems."""
    return LocalStore()
