"""What a run of tiny tasks costs its driver, in things that can be counted, so that nobody doubles them."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest

MAIN = "from treadle.cli.main import main; main(['run', '-q', '-j2'])"
FEW, MANY = 20, 120
_HOOK = """
import sys
from collections import Counter
seen = Counter()
sys.addaudithook(lambda event, args: seen.update([event]))
"""


def _workflow(folder: pathlib.Path, tasks: int) -> pathlib.Path:
    folder.mkdir()
    (folder / "t.tsv").write_text("i\n" + "".join(f"{i}\n" for i in range(tasks)))
    (folder / "main.oxoflow").write_text(
        '[workflow]\nname = "tiny"\nshell_executable = "sh"\n[[tables]]\nname = "t"\nfile = "t.tsv"\n'
        '[[rules]]\nname = "w"\noutput = ["out/{i}"]\nshell = ": > {output}"\n'
    )
    return folder


def _said(code: str, folder: pathlib.Path, *before: str) -> str:
    """The last line of what a run in a process of its own prints."""
    done = subprocess.run(
        [*before, sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def _events(folder: pathlib.Path, tasks: int) -> Counter[str]:
    code = f"{_HOOK}{MAIN}\nprint(*(f'{{name}}={{count}}' for name, count in seen.items()))"
    said = _said(code, _workflow(folder, tasks))
    return Counter({name: int(count) for name, _, count in (word.partition("=") for word in said.split())})


def test_a_tiny_task_takes_over_a_log_and_starts_one_process(tmp_path: pathlib.Path) -> None:
    few, many = _events(tmp_path / "few", FEW), _events(tmp_path / "many", MANY)
    assert many["os.posix_spawn"] - few["os.posix_spawn"] == MANY - FEW
    # The log; and /proc, when the clock ticked while the process was started.
    assert MANY - FEW <= many["open"] - few["open"] <= 2 * (MANY - FEW)
    assert many["os.rename"] - few["os.rename"] <= MANY - FEW
    for event in ("os.listdir", "os.scandir", "os.mkdir", "os.remove", "subprocess.Popen"):
        assert many[event] - few[event] < 10, event


def _system_calls(folder: pathlib.Path, tasks: int) -> int:
    """Those of the driver's main thread alone."""
    trace = folder.with_suffix(".trace")
    _said(f"{MAIN}\nprint()", _workflow(folder, tasks), "strace", "-o", str(trace))
    return len(re.findall(r"\) += ", trace.read_text()))


def _why_no_strace() -> str:
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"strace may not look here: {done.stderr.strip()}"


def test_a_tiny_task_costs_its_driver_some_thirty_system_calls(tmp_path: pathlib.Path) -> None:
    if why := _why_no_strace():
        pytest.skip(why)
    few, many = _system_calls(tmp_path / "few", FEW), _system_calls(tmp_path / "many", MANY)
    assert (many - few) / (MANY - FEW) < 38


def test_a_run_imports_nothing_heavy(tmp_path: pathlib.Path) -> None:
    said = _said(f"{MAIN}\nimport sys; print(*sorted(sys.modules))", _workflow(tmp_path / "few", FEW))
    heavy = {
        "rich",
        "asyncio",
        "dataclasses",
        "subprocess",
        "logging",
        "json",
        "shutil",
        "_hashlib",
    }
    assert not heavy & set(said.split())


def test_the_collector_is_left_as_it_was(tmp_path: pathlib.Path) -> None:
    code = (
        f"import gc; before = gc.get_threshold(); {MAIN}; print(gc.get_threshold() == before, gc.isenabled())"
    )
    assert _said(code, _workflow(tmp_path / "few", FEW)) == "True True"
