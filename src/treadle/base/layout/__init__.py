"""The only spelling of every path that Treadle writes for itself: under `.treadle/`, and beside artifacts.

    state       the work folder's records          read by records, api, cli
    run         one run, and its attempts          read by engine, backends
    job         one submission to a scheduler      read by backends/cluster
    artifact    artifacts of steps                 read by steps
    outside     profiles, pins, environments       read by rules, and engine/compose

All names that others use are here.
"""

from treadle.base.layout.artifact import ArtifactPlaces, StagingFolder, is_artifact_record, places_of
from treadle.base.layout.job import EXIT_FILE, JobFolder
from treadle.base.layout.outside import (
    PinFolder,
    environment_lock,
    environment_ready,
    environments,
    pins_folder,
    profile_folders,
    site_folders,
)
from treadle.base.layout.run import RunFolder, beside_target, private_log, scratch_run, scratch_stem
from treadle.base.layout.state import CHUNKS, GROWING, STATE, StateFolder

__all__ = [
    "CHUNKS",
    "EXIT_FILE",
    "GROWING",
    "STATE",
    "ArtifactPlaces",
    "JobFolder",
    "PinFolder",
    "RunFolder",
    "StagingFolder",
    "StateFolder",
    "beside_target",
    "environment_lock",
    "environment_ready",
    "environments",
    "is_artifact_record",
    "pins_folder",
    "places_of",
    "private_log",
    "profile_folders",
    "scratch_run",
    "scratch_stem",
    "site_folders",
]
