"""What may stand outside of a work folder: profiles, files of git pins, software environments."""

from __future__ import annotations

import os

from msgspec import Struct

from treadle.base.digest import blake2b
from treadle.base.layout.state import STATE


def profile_folders(flowdir: str) -> tuple[str, ...]:
    """Where profiles are looked for, the nearest first; the last ones are the site's (`site_folders`)."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return (os.path.join(flowdir, "profiles"), os.path.join(home, "treadle"), *site_folders())


def site_folders() -> tuple[str, ...]:
    """Where the site keeps profiles for all (XDG base directories: `XDG_CONFIG_DIRS`, else /etc/xdg)."""
    places = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    return tuple(os.path.join(place, "treadle") for place in places if os.path.isabs(place))


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
