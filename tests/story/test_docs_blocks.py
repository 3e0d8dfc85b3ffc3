"""Every code block of the README, of docs/ and of the pages beside the examples does what the page says.

A page is read from top to bottom in one folder. A block is

- a file, when the line before it is `<!-- file: NAME -->`;
- `console`: lines after `$ ` are run and what they print is compared (`...` stands for anything);
- `sh`: run as it is, and must succeed (`<!-- not run -->` before it: a command for another place);
- `toml` without a file name: read as (a part of) a workflow file;
- `python`: run as it is.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from treadle.rules.file.read import ReadOptions, read_text

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
BLOCK = re.compile(r"(?:<!-- (.+?) -->\n)?```(\w*)\n(.*?)```", re.S)


def environment(folder: pathlib.Path) -> dict[str, str]:
    path = f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin:/usr/local/bin"
    return {"PATH": path, "HOME": str(folder), "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "100"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_does_what_it_says(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".treadle", "results")
    )
    cwd = tmp_path
    for mark, language, body in BLOCK.findall(page.read_text()):
        if mark.startswith("file: "):
            target = cwd / mark.removeprefix("file: ")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body)
        elif mark == "not run":
            continue
        elif language == "sh":
            cwd = run_shell(body, cwd, tmp_path)
        elif language == "console":
            cwd = run_console(body, cwd, tmp_path)
        elif language == "toml":
            read_fragment(body, cwd)
        elif language == "python":
            subprocess.run([sys.executable, "-c", body], cwd=cwd, env=environment(tmp_path), check=True)
        else:
            assert language in ("", "text", "json"), f"a {language} block that nobody tests"


def run_shell(body: str, cwd: pathlib.Path, home: pathlib.Path) -> pathlib.Path:
    """Run a block in bash; `make` lines set up this checkout and are what the whole suite stands on."""
    lines = [line for line in body.splitlines() if not line.startswith("make ")]
    _, cwd = bash("set -e\n" + "\n".join(lines), cwd, home, check=True)
    return cwd


def run_console(body: str, cwd: pathlib.Path, home: pathlib.Path) -> pathlib.Path:
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        printed, cwd = bash(command, cwd, home, check=False)
        printed = comparable(printed)
        pattern = "".join(
            ".*" if piece == "..." else re.escape(piece) for piece in re.split(r"(\.\.\.)", expected.strip())
        )
        assert re.fullmatch(pattern, printed.strip(), re.S), (
            f"$ {command}\n{printed}\n--- but the page says\n{expected}"
        )
    return cwd


def comparable(printed: str) -> str:
    """Without the time behind `done TASK`: a slow machine tells it and a fast one does not."""
    return re.sub(r"^(\[ *\d+/\d+\] done \S+) \([0-9.dhms]+\)$", r"\1", printed, flags=re.M)


def bash(text: str, cwd: pathlib.Path, home: pathlib.Path, *, check: bool) -> tuple[str, pathlib.Path]:
    """What it printed, and the folder it ended in."""
    ended = home / ".cwd"
    done = subprocess.run(
        ["bash", "-c", f"{text}\nstatus=$?; pwd > '{ended}'; exit $status"],
        cwd=cwd,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert not check or done.returncode == 0, f"{text}\n{done.stdout}"
    return done.stdout, pathlib.Path(ended.read_text().strip()) if ended.exists() else cwd


def read_fragment(body: str, cwd: pathlib.Path) -> None:
    """A part of a workflow file is read with a head and, where it has none, a rule."""
    head = "" if "[workflow]" in body else '[workflow]\nname = "page"\n'
    rest = "" if "[[rules]]" in body else '\n[[rules]]\nname = "r"\noutput = ["o"]\nshell = "touch o"\n'
    read_text(head + body + rest, "page.oxoflow", str(cwd), ReadOptions())
