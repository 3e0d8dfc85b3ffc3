"""One run's folder: its journal, what its attempts on this machine read and write; their private folders."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from treadle.base.layout.job import JobFolder

_NOT_PLAIN = r"[^A-Za-z0-9._-]+"
_WORDS = 60  # characters of a task's id in the name of a folder


def scratch_stem(key: str) -> str:
    """What the names of a task's private folders begin with; its attempt follows."""
    return f"treadle-{key}."


def scratch_run(name: str) -> str:
    """The run of an attempt by the name of its private folder; an empty text where there is none."""
    parts = name.split(".")
    return parts[1] if len(parts) == 4 else ""


def beside_target(key: str) -> str:
    """What the name of an output begins with that was copied beside its target; its index follows."""
    return f".treadle-{key}-"


def private_log(log: str) -> str:
    """Where what belongs into `log` stands as long as it may hold secrets."""
    return f"{log}.private"


class RunFolder(Struct, frozen=True):
    """One run's directory, `.treadle/runs/<run>/`."""

    root: str

    @property
    def run(self) -> str:
        """The run's id, such as `20261129T110501Z-ab12`."""
        return os.path.basename(self.root)

    def beside(self, run: str) -> RunFolder:
        """The folder of another run of the same work folder."""
        return RunFolder(os.path.join(os.path.dirname(self.root), run))

    @property
    def events(self) -> str:
        return os.path.join(self.root, "events.jsonl")

    @property
    def owner(self) -> str:
        return os.path.join(self.root, "owner")

    @property
    def plan(self) -> str:
        return os.path.join(self.root, "plan.json")

    @property
    def backend(self) -> str:
        """The settings of the scheduler that the run uses."""
        return os.path.join(self.root, "backend.json")

    @property
    def driver_log(self) -> str:
        """What a driver in the background says."""
        return os.path.join(self.root, "driver.log")

    @property
    def engine_log(self) -> str:
        return os.path.join(self.root, "engine.log")

    @property
    def logs(self) -> str:
        return os.path.join(self.root, "logs")

    @property
    def texts(self) -> str:
        """Command texts that are too long for an argument, and scripts of failed attempts."""
        return os.path.join(self.root, "texts")

    def attempt_log(self, n: int) -> str:
        """What local attempt `n` of the run wrote to stdout and stderr."""
        return f"{self.root}/logs/{n}"

    def private_log(self, n: int) -> str:
        """The same while it may still hold secrets: masked into `attempt_log` once the attempt has ended."""
        return private_log(self.attempt_log(n))

    def scratch_text(self, n: int) -> str:
        """How local attempt `n` gets its private folder, where that is too long for an argument."""
        return f"{self.root}/texts/{n}.scratch.sh"

    def attempt_text(self, n: int) -> str:
        """The script of local attempt `n`: written when it failed, or was too long for an argument."""
        return f"{self.root}/texts/{n}.sh"

    @property
    def payloads(self) -> str:
        """A 0700 folder: what worker processes are given, and what they give back."""
        return os.path.join(self.root, "payloads")

    def payload(self, n: int) -> str:
        """The function and its order for the worker process of attempt `n`."""
        return f"{self.root}/payloads/{n}.call"

    def result(self, n: int) -> str:
        """What the worker process of attempt `n` gave back."""
        return f"{self.root}/payloads/{n}.result"

    def request(self, n: int) -> str:
        """The function and the arguments of job `n` of a client."""
        return f"{self.root}/payloads/{n}.request"

    def returned(self, n: int) -> str:
        """What that function returned or raised."""
        return f"{self.root}/payloads/{n}.returned"

    def input_list(self, n: int) -> str:
        """The `{input.list}` file of attempt `n`."""
        return f"{self.root}/texts/{n}.list"

    @property
    def jobs(self) -> str:
        """What was sent to a scheduler: one folder for each submission."""
        return os.path.join(self.root, "jobs")

    def job(self, n: int, task: str) -> JobFolder:
        """The folder of the submission whose first attempt is `n`, of the task with the id `task`.

        Its name is of letters, digits, `.`, `_` and `-` alone: schedulers give other characters a meaning
        in paths of output files.
        """
        words = re.sub(_NOT_PLAIN, "-", task)[:_WORDS].strip("-.")
        return JobFolder(f"{self.root}/jobs/{n}-{words}")
