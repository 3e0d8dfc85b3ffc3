"""Where attempts on Ray leave their words, found from their names alone: in the folders of their runs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from treadle.backends.ray_ticket import Told, decode_told
from treadle.base.layout import RunFolder, StateFolder
from treadle.base.names import job_prefix


class RayPlaces:
    """The runs of one work folder. A job is named as its actor is: the attempt's name, `.2` behind it where
    the attempt was launched a second time."""

    def __init__(self, workdir: str) -> None:
        self._state = StateFolder(workdir)

    def told(self, jobs: Sequence[str]) -> dict[str, str]:
        """Where these attempts write down their ends; those of no run that is kept are left out."""
        if not jobs:
            return {}
        runs = {job_prefix(run): self._state.run(run) for run in self._state.run_ids()}
        found = {}
        for job in jobs:
            prefix, dash, number = attempt_of(job).rpartition("-")
            if prefix + dash in runs:
                found[job] = runs[prefix + dash].result(int(number, 36))
        return found

    def log(self, job: str) -> str:
        """The log of an attempt (empty: it is of no run that is kept)."""
        told = self.told([job]).get(job)
        if told is None:
            return ""
        number = attempt_of(job).rpartition("-")[2]
        return RunFolder(os.path.dirname(os.path.dirname(told))).attempt_log(int(number, 36))

    def written(self, job: str) -> Told | None:
        """What an attempt wrote down before its actor was gone."""
        path = self.told([job]).get(job, "")
        try:
            with open(path, "rb") as file:
                return decode_told(file.read()) if os.fstat(file.fileno()).st_uid == os.geteuid() else None
        except (OSError, msgspec.MsgspecError):
            return None


def attempt_of(job: str) -> str:
    """The name of the attempt whose actor has this name."""
    return job.partition(".")[0]


def launch_of(job: str) -> int:
    """Which launch of its attempt an actor is: from 1 on."""
    number = job.partition(".")[2]
    return int(number) if number.isdigit() else 1
