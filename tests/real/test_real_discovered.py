"""What checkpoints find, on a real SLURM and a real Grid Engine, is what they find on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_runs import Place, real_site
from discovered_runs import lives
from schedulers.start import Scheduler

pytestmark = pytest.mark.real


def test_slurm_checkpoints_find_work_and_withdraw_it(slurm: Scheduler, tmp_path: Path) -> None:
    lives(Place(tmp_path, real_site(slurm)))


def test_sge_checkpoints_find_work_and_withdraw_it(sge: Scheduler, tmp_path: Path) -> None:
    lives(Place(tmp_path, real_site(sge)))
