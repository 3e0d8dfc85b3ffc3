"""Fixtures of included files; tests of profiles have worlds of their own."""

from __future__ import annotations

import pathlib

import pytest
from include_world import World


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    """A folder for workflow files that include each other."""
    return World(tmp_path)
