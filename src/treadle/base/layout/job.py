"""One submission to a scheduler: what the driver, the job, and whoever adopts it tell each other."""

from __future__ import annotations

from msgspec import Struct

EXIT_FILE = "exit.json"


class JobFolder(Struct, frozen=True):
    """One submission to a scheduler, `.treadle/runs/<run>/jobs/<n>-<task>/`: a job or a whole array.

    Attempts in it are told apart by their number `n`, starts of an attempt by theirs, from 1.
    """

    root: str

    @property
    def script(self) -> str:
        return f"{self.root}/job.sh"

    @property
    def id(self) -> str:
        """What the scheduler calls it."""
        return f"{self.root}/job.id"

    @property
    def elements(self) -> str:
        """Which attempts are in it, written before it is submitted: who comes later adopts them by this."""
        return f"{self.root}/elements.json"

    @property
    def status(self) -> str:
        return f"{self.root}/status.json"

    @property
    def log(self) -> str:
        """What the wrapper and the scheduler say; what a command writes is in the log of its attempt."""
        return f"{self.root}/log"

    def part(self, n: int) -> str:
        """What element of an array whose first attempt is `n` does, where it is too long for the script."""
        return f"{self.root}/{n}.part.sh"

    def secrets(self, n: int) -> str:
        """The environment of an attempt that holds secrets: 0600."""
        return f"{self.root}/{n}.secrets.sh"

    def unwanted(self, n: int) -> str:
        """A file, made by the driver: an attempt is not to begin, nor, among others of one job, to go on."""
        return f"{self.root}/{n}.unwanted"

    def start_stem(self, n: int) -> str:
        """What the path of each start of an attempt begins with; its number follows."""
        return f"{self.root}/{n}."

    def start(self, n: int, number: int) -> str:
        """A folder, made by the job: start `number` of an attempt is taken."""
        return f"{self.start_stem(n)}{number}"

    def exit(self, n: int, number: int) -> str:
        """The end of a start of an attempt."""
        return f"{self.start(n, number)}/{EXIT_FILE}"

    def refused(self, n: int) -> str:
        """A folder, made by the job: an attempt was started once more, and must not be."""
        return f"{self.root}/{n}.refused"
