"""`Folder`: a work folder, a workflow file, and the installed command, as the stories tell them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Any, Self

from waiting import until

TREADLE = str(pathlib.Path(sys.executable).with_name("treadle"))
HEAD = '[workflow]\nname = "story"\nstrict_shell = true\n'


class Folder:
    """A work folder, with words for what a person does in it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __truediv__(self, name: str) -> pathlib.Path:
        return self.path / name

    def below(self, name: str) -> Self:
        """A work folder below this one (it is made with the first file that is written there)."""
        return type(self)(self / name)

    def write(self, name: str, text: str) -> pathlib.Path:
        """Write a file (its folders are made)."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def flow(self, text: str, head: str = HEAD, name: str = "main.oxoflow") -> None:
        """Write the workflow file, with a usual head."""
        self.write(name, head + textwrap.dedent(text))

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def env(self, **more: str) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("TREADLE_")}
        return {**clean, "NO_COLOR": "1", "HOME": str(self.path), **more}

    def start(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Start the command and do not wait for it."""
        options.setdefault("env", self.env())
        return subprocess.Popen(
            [TREADLE, *args],
            cwd=options.pop("cwd", self.path),
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def treadle(self, *args: str, exits: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the command; it must end with `exits` (None: whatever) and never with a traceback."""
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        if exits is not None:
            assert process.returncode == exits, f"exit {process.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def until(self, name: str) -> None:
        """Wait until a file is there: a sign that a task gives."""
        until((self.path / name).exists, name)

    def snapshot(self, below: str = ".treadle") -> dict[str, bytes]:
        """Every file below a folder with its content: nothing was written when two are equal."""
        root = self.path / below
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def plan(self, *args: str) -> dict[str, Any]:
        """`treadle plan --json`, read."""
        found: dict[str, Any] = json.loads(self.treadle("plan", "--json", *args).stdout)
        return found

    def will_run(self, *args: str) -> set[str]:
        """Ids of the tasks that the preview says will run."""
        return {task["id"] for task in self.plan(*args)["tasks"] if task["will_run"]}

    def events(self, run: str = "latest") -> list[dict[str, Any]]:
        """The journal of a run."""
        journal = self.path / ".treadle" / "runs" / run / "events.jsonl"
        return [json.loads(line) for line in journal.read_text().splitlines()]

    def attempted(self, run: str = "latest") -> set[str]:
        """Ids of the tasks that a run tried."""
        return {event["task"] for event in self.events(run) if event["event"] == "attempt_submitted"}

    def settled(self) -> dict[str, str]:
        """How tasks ended by the journals of all runs: the last word on each."""
        ends = {}
        for run in self.runs():
            if (self / f".treadle/runs/{run}/events.jsonl").exists():
                ends |= {e["task"]: e["state"] for e in self.events(run) if e["event"] == "task_settled"}
        return ends

    def runs(self) -> list[str]:
        """Ids of the runs that are recorded."""
        folder = self.path / ".treadle" / "runs"
        return (
            sorted(entry.name for entry in folder.iterdir() if entry.name != "latest")
            if folder.exists()
            else []
        )

    def run_as_previewed(self, *args: str, exits: int = 0) -> set[str]:
        """Preview, run, and hold one against the other; returns what ran."""
        previewed = self.will_run(*args)
        before = self.runs()
        self.treadle("run", *args, exits=exits)
        new = [run for run in self.runs() if run not in before]
        ran = self.attempted(new[-1]) if new else set()
        assert ran == previewed
        return ran
