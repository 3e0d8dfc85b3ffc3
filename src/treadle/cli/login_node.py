"""A large run on a machine that is there to submit jobs: others work on it, too."""

from __future__ import annotations

import os
from contextlib import suppress

from treadle.api.pipe import View
from treadle.base.program import find_program

_SUBMITS = {"sbatch": "slurm", "bsub": "lsf", "qsub": "pbs or sge"}
_INSIDE = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "TREADLE_DRIVER")
_MANY = 50  # tasks
_LARGE = 3600.0  # seconds of work, by the past


def scheduler_here() -> str:
    """The scheduler whose commands are on PATH, where we are in none of its jobs; empty: there is none."""
    if any(os.environ.get(name) for name in _INSIDE):
        return ""
    path = os.environ.get("PATH", os.defpath)
    for command, name in _SUBMITS.items():
        with suppress(OSError):
            find_program(command, path, os.getcwd())
            return name
    return ""


def is_large(view: View, seconds: float) -> bool:
    """Whether a run is more than others on a shared machine should have to bear; `seconds` of past work."""
    running = view.decision.to_run()
    return len(running) >= _MANY or seconds >= _LARGE


def words_of_login_node(scheduler: str, tasks: int) -> str:
    """What is said of such a run."""
    return (
        f"this machine submits to a scheduler ({scheduler}), and {tasks} tasks would run here: --profile or "
        "--backend sends them there"
    )
