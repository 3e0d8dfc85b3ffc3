"""Where profiles are: beside the workflow, the user's, the site's."""

from __future__ import annotations

import os

from treadle.base.errors import OptionError
from treadle.base.layout import profile_folders, site_folders
from treadle.base.names import did_you_mean
from treadle.rules.toml.section import clip

SITE = "site"  # the name of the site's file that takes part in every run on a backend
_END = ".toml"


def profile_file(name: str, flowdir: str) -> str:
    """The file of the profile `name`: the nearest one. Raises OptionError that lists those that exist."""
    if "/" not in name and "\0" not in name and name not in ("", ".", ".."):
        for folder in profile_folders(flowdir):
            path = os.path.join(folder, name + _END)
            if os.path.isfile(path):
                return path
    known = known_profiles(flowdir)
    folders = ", ".join(profile_folders(flowdir))
    there = f"there are: {', '.join(known)}" if known else f"there is none; they are looked for in {folders}"
    guess = did_you_mean(name, known)
    raise OptionError(
        f"there is no profile '{clip(name)}'", hint=f"{guess} {there}".strip(), code="unknown-profile"
    )


def known_profiles(flowdir: str) -> list[str]:
    """Names of all profiles that can be had here, sorted."""
    found: set[str] = set()
    for folder in profile_folders(flowdir):
        try:
            names = os.listdir(folder)
        except OSError:  # it is not there, or nothing for us
            continue
        found.update(name.removesuffix(_END) for name in names if name.endswith(_END))
    return sorted(found - {SITE})


def site_files() -> list[str]:
    """The files of the site that take part whatever the profile, those that count least first."""
    paths = [os.path.join(folder, SITE + _END) for folder in reversed(site_folders())]
    return [path for path in paths if os.path.isfile(path)]


def is_sites(path: str) -> bool:
    """Whether a profile is the site's own."""
    return os.path.dirname(path) in site_folders()
