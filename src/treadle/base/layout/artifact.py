"""Artifacts of steps: what stands beside each, and local copies of those in object stores."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from treadle.base.digest import ARTIFACT_STATE, blake2b

_STATUS = ".status"  # the record of `x.status` would stand where the status of `x` does
_LONGEST = 180  # bytes of a name to which endings and the name of an attempt fit (most file systems: 255)
_SURELY_SHORT = _LONGEST // 4  # characters: UTF-8 takes up to four bytes for one


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


# Several ask for the same in a row, each of which is only told a path.
places_of = lru_cache(maxsize=256)(ArtifactPlaces)


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


def _unmistakable(name: str) -> str:
    """A name cut to its bytes and told from others by a digest, where it is too long or ends as ours do."""
    data = name.encode("utf-8", "surrogateescape")
    if len(data) <= _LONGEST and not name.endswith(_STATUS):
        return name
    mark = blake2b(data, digest_size=8).hexdigest()
    return data[: _LONGEST - 17].decode(errors="ignore") + "~" + mark
