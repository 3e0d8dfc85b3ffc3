"""Golden files: what a plan looks like to the byte. `pytest tests/golden --update-golden` writes them anew.

Read the difference before you commit it: each line of it is a change that users see.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

FOLDER = Path(__file__).parent
OPTION = "--update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="write golden files anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("plans/chain.json", text)`: the text is that of the file, which stands beside this one."""
    update = request.config.getoption(OPTION, default=False)

    def compare(name: str, text: str) -> None:
        path = FOLDER / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(f"{path.name}.{os.getpid()}")
            aside.write_text(text, encoding="utf-8")
            aside.replace(path)
            return
        if not path.exists():
            pytest.fail(f"there is no {path}: pytest tests/golden {OPTION} writes it")
        known = path.read_text(encoding="utf-8")
        if known != text:
            lines = difflib.unified_diff(
                known.splitlines(), text.splitlines(), "golden", "now", lineterm="", n=2
            )
            pytest.fail(f"{name} is another (pytest tests/golden {OPTION}):\n" + "\n".join(lines))

    return compare


@pytest.fixture
def golden_json(golden: Callable[[str, str], None]) -> Callable[[str, Any], None]:
    """`golden_json("plans/chain.json", value)`: the value as indented JSON, keys in the order they have."""

    def compare(name: str, value: Any) -> None:
        golden(name, msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")

    return compare
