"""The reference of commands is what the parsers say."""

from __future__ import annotations

import importlib.util
import pathlib
import types

import pytest

from treadle.cli.main import COMMANDS

DOCS = pathlib.Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def maker() -> types.ModuleType:
    """docs/make_commands.py as a module."""
    spec = importlib.util.spec_from_file_location("make_commands", DOCS / "make_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_up_to_date(maker: types.ModuleType) -> None:
    page = (DOCS / "commands.md").read_text()
    assert maker.renewed(page) == page, "run: python docs/make_commands.py"


def test_every_command_is_told_about_and_no_other(maker: types.ModuleType) -> None:
    assert list(maker.ABOUT) == list(COMMANDS)
    assert list(maker.parsers()) == list(COMMANDS)


def test_a_page_that_is_behind_is_brought_up_to_date(maker: types.ModuleType) -> None:
    page = f"before\n{maker.BEGIN}old text\n{maker.END}after\n"
    renewed = maker.renewed(page)
    assert renewed.startswith(f"before\n{maker.BEGIN}")
    assert renewed.endswith(f"{maker.END}after\n")
    assert "old text" not in renewed
    assert "### treadle run" in renewed
