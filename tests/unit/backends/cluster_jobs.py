"""Jobs for tests of the wrapper: rendered, run by a real shell as a scheduler would, and what they left."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from treadle.backends.cluster.dialect import Request
from treadle.backends.cluster.exit_file import ExitFile, look_for_exit
from treadle.backends.cluster.script import JobElement, files_of, render_job
from treadle.base.files import make_parents, write_whole
from treadle.base.layout import RunFolder
from treadle.engine.backend import Submission
from treadle.plan.task import Command, Policy, Resources, ScheduledTask

RUN = "20261129T110501Z-ab12"
SHELLS = [one for one in ("dash", "bash --posix", "bash") if shutil.which(one.split()[0])]
"""Those of this machine that a node may have."""


class Plain:
    """The words of a scheduler that has hardly any."""

    index_variable = "FAKE_INDEX"
    id_variable = "FAKE_ID"

    def directives(self, request: Request) -> list[str]:
        return [f"#FAKE --name={request.name}", f"#FAKE --array=1-{request.size}"]


class Job:
    """One job in a work folder; `shell` is who runs the script."""

    def __init__(self, folder: Path, shell: str = "sh") -> None:
        self.work = folder
        self.shell = shell.split()
        self.run_folder = RunFolder(str(folder / ".treadle" / "runs" / RUN))
        self.folder = self.run_folder.job(1, "t/n=1")
        self.root = ""
        os.makedirs(self.folder.root)
        os.makedirs(self.run_folder.logs)

    def submission(self, n: int, *argv: str, **changes) -> Submission:
        command = Command(secrets=changes.pop("secrets", ()), script_file=changes.pop("script_file", ""))
        task = ScheduledTask(
            id=f"t/n={n}",
            rule="t",
            command=command,
            inputs=tuple(changes.pop("inputs", ())),
            outputs=tuple(changes.pop("outputs", ())),
            policy=changes.pop("policy", Policy()),
        )
        fields = {
            "task": task,
            "attempt": 1,
            "n": n,
            "name": f"t{n}",
            "argv": argv,
            "env": {"TREADLE_ATTEMPT": f"{RUN}.{n}", **changes.pop("env", {})},
            "cwd": str(self.work),
            "log": self.run_folder.attempt_log(n),
            "resources": Resources(),
        }
        return Submission(**{**fields, **changes})

    def write(self, *elements: JobElement, array: bool = False) -> str:
        request = Request(
            name="t1",
            script=self.folder.script,
            log=self.folder.log,
            workdir=str(self.work),
            resources=Resources(),
            size=len(elements) if array else 0,
        )
        for file in files_of(elements, self.folder):
            make_parents(file.path)
            write_whole(file.path, file.text.encode(), file.mode)
        text = render_job(elements, Plain(), request, self.folder, root=self.root)
        write_whole(self.folder.script, text.encode())
        return text

    def start(self, index: int | None = None, **env: str) -> subprocess.Popen[str]:
        """As a scheduler does: from some other folder, in a session of its own, the log as its output."""
        env = {**os.environ, "FAKE_ID": "4711", **env}
        if index is not None:
            env["FAKE_INDEX"] = str(index)
        with open(self.folder.log, "a") as log:
            return subprocess.Popen(
                [*self.shell, self.folder.script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=env,
                start_new_session=True,
                text=True,
            )

    def run(self, index: int | None = None, **env: str) -> int:
        return self.start(index, **env).wait(60)

    def alone(self, *argv: str, **changes) -> int:
        """Write and run a job of one attempt."""
        self.write(JobElement(submissions=(self.submission(1, *argv, **changes),)))
        return self.run()

    def end(self, n: int = 1) -> ExitFile:
        witness = look_for_exit(self.folder, n, f"{RUN}.{n}", refresh=True)
        assert witness.exit is not None, (witness, self.said())
        return witness.exit

    def said(self) -> str:
        """What the wrapper said."""
        return Path(self.folder.log).read_text()

    def log(self, n: int = 1) -> str:
        return Path(self.run_folder.attempt_log(n)).read_text()

    def until(self, name: str) -> None:
        """Wait until the job has made a file."""
        deadline = time.monotonic() + 30
        while not (self.work / name).exists():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.01)
