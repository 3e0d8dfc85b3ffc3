"""The house is in order: lint, format, types, and rooms that import only what stands below them."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections import Counter

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BIN = pathlib.Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--no-cache"],
        ["ruff", "format", "--check", "--no-cache"],
        ["mypy"],
        ["lint-imports"],
    ],
    ids=["lint", "format", "types", "imports"],
)
def test_the_house_is_in_order(command: list[str]) -> None:
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_told_without_importing_anything_heavy() -> None:
    code = "import sys; from treadle.cli.main import main; main(['--version']); print(*sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(out.split("\n", 1)[1].split())
    assert not loaded & {"msgspec", "rich", "asyncio", "dataclasses", "subprocess", "argparse", "tomli"}


def test_a_small_plan_is_made_without_importing_anything_heavy(tmp_path: pathlib.Path) -> None:
    (tmp_path / "main.oxoflow").write_text(
        '[workflow]\nname = "w"\n[[rules]]\nname = "r"\noutput = ["o"]\nshell = "touch {output}"\n'
    )
    code = "import sys; from treadle.cli.main import main; main(['plan', '-q']); print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    loaded = set(out.splitlines()[-1].split())
    assert not loaded & {
        "rich",
        "asyncio",
        "jinja2",
        "ray",
        "subprocess",
        "concurrent.futures",
        "difflib",
        "tomlkit",
    }


def test_every_name_of_a_test_file_is_there_once() -> None:
    names = Counter(file.name for file in (ROOT / "tests").rglob("*.py") if file.name != "conftest.py")
    assert [name for name, times in names.items() if times > 1 and name != "__init__.py"] == []
