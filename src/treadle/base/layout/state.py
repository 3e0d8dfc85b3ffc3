"""The state folder: what a work folder keeps, its runs apart."""

from __future__ import annotations

import os

from msgspec import Struct

from treadle.base.disk import disk_error
from treadle.base.layout.run import RunFolder

STATE = ".treadle"
GROWING = (
    f"{STATE}/growing"  # nothing ever stands there: below it are the names of steps that nobody knows yet
)
CHUNKS = ".chunks"  # in the work folder: the pieces of rules with `transform`


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
    def scratch(self) -> str:
        """Private folders of attempts, where no other place was named for them."""
        return os.path.join(self.root, "scratch")

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

    def client(self, name: str) -> RunFolder:
        """What a client was asked to run outside of any run: logs and payloads as a run has them."""
        return RunFolder(os.path.join(self.root, "jobs", name))

    def driver(self, name: str) -> RunFolder:
        """A job of a scheduler that is a driver itself: its script and its log, as a run has them."""
        return RunFolder(os.path.join(self.root, "drivers", name))

    def driver_names(self) -> list[str]:
        """Names of the drivers that were handed in as jobs, oldest first: they begin with its time, as ids of
        runs do. Raises `DiskError`."""
        folder = os.path.join(self.root, "drivers")
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise disk_error("look into", folder, error) from error

    @property
    def artifacts(self) -> str:
        """Where artifacts of steps stand that name no other prefix."""
        return os.path.join(self.root, "artifacts")
