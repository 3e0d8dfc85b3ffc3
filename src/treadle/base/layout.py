"""The only spelling of every path that Treadle writes for itself: under `.treadle/`, and beside artifacts."""

from __future__ import annotations

import os

from msgspec import Struct

from treadle.base.disk import disk_error

STATE = ".treadle"


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

    def input_list(self, n: int) -> str:
        """The `{input.list}` file of attempt `n`."""
        return f"{self.root}/texts/{n}.list"


class StateFolder(Struct, frozen=True):
    """`.treadle/` of one work folder (`workdir` absolute)."""

    workdir: str

    @property
    def root(self) -> str:
        return os.path.join(self.workdir, STATE)

    @property
    def version(self) -> str:
        return os.path.join(self.root, "VERSION")

    @property
    def ignore(self) -> str:
        """Keeps the state out of version control."""
        return os.path.join(self.root, ".gitignore")

    def kept_copy(self, version: int) -> str:
        """The records as they were before they left `version`."""
        return os.path.join(self.root, f"version-{version}")

    @property
    def lock(self) -> str:
        return os.path.join(self.root, "lock")

    def lock_made(self, uuid: str) -> str:
        """A lock that is not yet one: the private file of who wants it."""
        return os.path.join(self.root, f"lock.new.{uuid}")

    def lock_claim(self, uuid: str) -> str:
        """The right to put something in the place of the lock `uuid`."""
        return os.path.join(self.root, f"lock.over.{uuid}")

    def lock_leftovers(self) -> list[str]:
        """Private files and claims that stand there, of the living and of the dead."""
        names = sorted(os.listdir(self.root))
        return [os.path.join(self.root, name) for name in names if name.startswith("lock.")]

    @property
    def checkpoint(self) -> str:
        return os.path.join(self.root, "checkpoint.jsonl")

    @property
    def runs(self) -> str:
        return os.path.join(self.root, "runs")

    @property
    def latest(self) -> str:
        return os.path.join(self.root, "runs", "latest")

    def latest_made(self, run: str) -> str:
        """The next `latest`, before it takes the place of the last one."""
        return os.path.join(self.root, "runs", f".latest-{run}")

    @property
    def trash(self) -> str:
        return os.path.join(self.root, "trash")

    def run(self, run: str) -> RunFolder:
        return RunFolder(os.path.join(self.runs, run))

    def run_ids(self) -> list[str]:
        """Ids of the runs that are kept, oldest first. Raises `DiskError`."""
        try:
            names = os.listdir(self.runs)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise disk_error("look into", self.runs, error) from error
        return sorted(name for name in names if name != "latest" and not name.startswith("."))

    @property
    def artifacts(self) -> str:
        """Where artifacts of steps stand that name no other prefix."""
        return os.path.join(self.root, "artifacts")


class ArtifactPlaces(Struct, frozen=True):
    """All that stands beside an artifact, found from its output path (absolute, or a URL) alone."""

    path: str

    @property
    def parent(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The folder of all these, shared by the artifacts of one parent folder."""
        return f"{self.parent}/.treadle-artifacts"

    @property
    def record(self) -> str:
        """It is there: the artifact is made."""
        return f"{self.folder}/{self.name}.json"

    @property
    def pending(self) -> str:
        """The record while the artifact is being moved into its place."""
        return f"{self.folder}/{self.name}.pending"

    @property
    def status(self) -> str:
        return f"{self.folder}/{self.name}.status.json"

    def lease(self, number: int) -> str:
        """Lease `number` (the fencing number), made exclusively."""
        return f"{self.folder}/{self.name}.lease.{number}"

    @property
    def lease_stem(self) -> str:
        """What the names of all its leases begin with."""
        return f"{self.name}.lease."

    def work(self, attempt: str) -> str:
        """The path that attempt `attempt` is given to write to."""
        return f"{self.folder}/work/{self.name}.{attempt}"

    @property
    def resume(self) -> str:
        """The path that all attempts of a resumable step are given."""
        return f"{self.folder}/work/{self.name}.resume"

    @property
    def checkpoints(self) -> str:
        """A folder for the function's own checkpoints, kept over attempts until it succeeds."""
        return f"{self.folder}/checkpoints/{self.name}"

    def aside(self, attempt: str) -> str:
        """Where the output that attempt `attempt` replaces is moved."""
        return f"{self.folder}/old/{self.name}.{attempt}"
