"""What the wrapper or the scheduler said of an attempt, beside the log of its command; from records alone."""

from __future__ import annotations

import os

import msgspec

from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.held import Elements, read_elements
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import OptionError
from treadle.base.files import read_regular
from treadle.base.layout import JobFolder, RunFolder


def job_log(run: RunFolder, n: int) -> str:
    """Where the job of attempt `n` of a run writes by itself; empty: it is not known, or said nothing."""
    found = _submission(run, n)
    settings = settings_of_run(run)
    if found is None or settings is None:
        return ""
    folder, elements = found
    index = next(one.index for one in elements.elements if one.n == n)
    try:
        path = dialect_of(settings).log_of(folder.log, index if elements.array else 0)
        return path if os.stat(path).st_size else ""
    except (OSError, OptionError):
        return ""


def settings_of_run(run: RunFolder) -> ClusterSettings | None:
    """How the scheduler of a run was used; None: it had none, or that cannot be read."""
    try:
        return msgspec.json.decode(read_regular(run.backend), type=ClusterSettings)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _submission(run: RunFolder, n: int) -> tuple[JobFolder, Elements] | None:
    """The submission that an attempt went in."""
    try:
        names = os.listdir(run.jobs)
    except OSError:
        return None
    # The folder has the number of its first attempt: the nearest one below is looked at first.
    numbered = sorted((int(head), name) for name in names if (head := name.partition("-")[0]).isdigit())
    for first, name in reversed(numbered):
        if first > n:
            continue
        folder = JobFolder(os.path.join(run.jobs, name))
        elements = read_elements(folder)
        if elements is not None and any(one.n == n for one in elements.elements):
            return folder, elements
    return None
