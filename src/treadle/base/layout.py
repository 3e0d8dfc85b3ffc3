"""The only spelling of every path that Treadle writes for itself: under `.treadle/`, and beside artifacts."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from treadle.base.digest import ARTIFACT_STATE, blake2b
from treadle.base.disk import disk_error

STATE = ".treadle"
GROWING = (
    f"{STATE}/growing"  # nothing ever stands there: below it are the names of steps that nobody knows yet
)
EXIT_FILE = "exit.json"
CHUNKS = ".chunks"  # in the work folder: the pieces of rules with `transform`

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_WORDS = 60  # characters of a task's id in the name of a folder


def profile_folders(flowdir: str) -> tuple[str, ...]:
    """Where profiles are looked for, the nearest first; the last ones are the site's (`site_folders`)."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return (os.path.join(flowdir, "profiles"), os.path.join(home, "treadle"), *site_folders())


def site_folders() -> tuple[str, ...]:
    """Where the site keeps profiles for all (XDG base directories: `XDG_CONFIG_DIRS`, else /etc/xdg)."""
    places = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    return tuple(os.path.join(place, "treadle") for place in places if os.path.isabs(place))


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


def environments(workdir: str) -> str:
    """Where software environments are made: `TREADLE_ENVIRONMENTS`, which several work folders and users may
    share, else the work folder's own."""
    given = os.environ.get("TREADLE_ENVIRONMENTS", "")
    return os.path.join(workdir, given) if given else os.path.join(workdir, STATE, "envs")


def environment_lock(place: str) -> str:
    """Held while what stands at `place` is made; that it is there says that it is ours to make."""
    return f"{place}.treadle-lock"


def environment_ready(place: str) -> str:
    """Written last: what stands at `place` is whole."""
    return f"{place}.treadle-ready"


def pins_folder() -> str:
    """Where the files of git pins are kept, for all workflows of a user: below the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
    return os.path.join(home, "treadle", "pins")


class PinFolder(Struct, frozen=True):
    """What is kept of one repository: a folder for each commit, and what its refs were when last asked."""

    root: str

    @classmethod
    def of(cls, repo: str) -> PinFolder:
        return cls(os.path.join(pins_folder(), blake2b(repo.encode(), digest_size=8).hexdigest()))

    @property
    def key(self) -> str:
        """What stands for the repository: 16 hex digits."""
        return os.path.basename(self.root)

    @property
    def lock(self) -> str:
        return os.path.join(self.root, "lock")

    def commit(self, commit: str) -> str:
        """The files of a commit: all of them, or it is not there."""
        return os.path.join(self.root, commit)

    def unfinished(self, pid: int) -> str:
        """Where a process makes them."""
        return os.path.join(self.root, f"{pid}.part")

    def ref(self, ref: str) -> str:
        """Which commit a tag or branch was."""
        return os.path.join(self.root, f"ref-{blake2b(ref.encode(), digest_size=8).hexdigest()}")


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
        words = _NOT_PLAIN.sub("-", task)[:_WORDS].strip("-.")
        return JobFolder(f"{self.root}/jobs/{n}-{words}")


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
        """A file, made by the driver: an attempt among others of one job is not to go on, or not to begin."""
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

    @property
    def artifacts(self) -> str:
        """Where artifacts of steps stand that name no other prefix."""
        return os.path.join(self.root, "artifacts")


def is_artifact_record(path: str) -> bool:
    """Whether it is the record of an artifact."""
    folder, _, name = path.rpartition("/")
    return name.endswith(".json") and not name.endswith(f"{_STATUS}.json") and folder.endswith(ARTIFACT_STATE)


class ArtifactPlaces:
    """All that stands beside an artifact, found from its output path (absolute, or a URL) alone.

    `stem` is what the names of all these begin with: the name, or what stands for one that does not do;
    `folder` has all these, shared by the artifacts of one parent folder.
    """

    __slots__ = ("_base", "folder", "name", "parent", "path", "stem")

    def __init__(self, path: str) -> None:
        self.path = path
        self.parent, _, name = path.rpartition("/")
        self.name = name
        short = len(name) <= _SURELY_SHORT and not name.endswith(_STATUS)
        self.stem = name if short else _unmistakable(name)
        self.folder = f"{self.parent}/{ARTIFACT_STATE}"
        self._base = f"{self.folder}/{self.stem}"

    @property
    def record(self) -> str:
        """It is there: the artifact is made."""
        return self._base + ".json"

    @property
    def pending(self) -> str:
        """The record while the artifact is being moved into its place."""
        return self._base + ".pending"

    @property
    def status(self) -> str:
        return self._base + ".status.json"

    def lease(self, number: int) -> str:
        """Lease `number` (the fencing number), made exclusively."""
        return f"{self._base}.lease.{number}"

    @property
    def lease_object(self) -> str:
        """Its one lease on an object store, the number in it: conditional writes need one key."""
        return self._base + ".lease"

    @property
    def work_folder(self) -> str:
        """The folder of all work paths."""
        return self.folder + "/work"

    def work(self, attempt: str) -> str:
        """The path that attempt `attempt` is given to write to."""
        return f"{self.folder}/work/{self.stem}.{attempt}"

    def work_named(self, name: str) -> str:
        """The work path whose last part is `name`."""
        return f"{self.folder}/work/{name}"

    @property
    def resume(self) -> str:
        """The path that all attempts of a resumable step are given."""
        return f"{self.folder}/work/{self.stem}.resume"

    @property
    def checkpoints(self) -> str:
        """A folder for the function's own checkpoints, kept over attempts until it succeeds."""
        return f"{self.folder}/checkpoints/{self.stem}"

    def aside(self, attempt: str) -> str:
        """Where the output that attempt `attempt` replaces is moved."""
        return f"{self.folder}/old/{self.stem}.{attempt}"


class StagingFolder(Struct, frozen=True):
    """Where one process keeps local copies of what stands in object stores.

    `base` is a folder of this user alone; `owner` names the process (`<host>.<pid>.<start time>`).
    """

    base: str
    owner: str

    @property
    def root(self) -> str:
        """All that goes when the process ends."""
        return f"{self.base}/{self.owner}"

    def work(self, place: str, attempt: str, name: str) -> str:
        """What attempt `attempt` writes to; `place` is a digest of the URL it is for."""
        return f"{self.root}/work/{place}.{attempt}/{name}"

    @property
    def kept(self) -> str:
        """What stays when the process ends."""
        return f"{self.base}/resume"

    def resume(self, place: str, name: str) -> str:
        """What all attempts of a resumable step write to, on this machine."""
        return f"{self.kept}/{place}/{name}"

    def fetched(self, place: str, name: str) -> str:
        """The local copy of an artifact; `place` is a digest of its URL."""
        return f"{self.root}/fetched/{place}/{name}"


_STATUS = ".status"  # the record of `x.status` would stand where the status of `x` does
_LONGEST = 180  # bytes of a name to which endings and the name of an attempt fit (most file systems: 255)
_SURELY_SHORT = _LONGEST // 4  # characters: UTF-8 takes up to four bytes for one


def _unmistakable(name: str) -> str:
    """A name cut to its bytes and told from others by a digest, where it is too long or ends as ours do."""
    data = name.encode("utf-8", "surrogateescape")
    if len(data) <= _LONGEST and not name.endswith(_STATUS):
        return name
    mark = blake2b(data, digest_size=8).hexdigest()
    return data[: _LONGEST - 17].decode(errors="ignore") + "~" + mark
