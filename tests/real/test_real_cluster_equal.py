"""The same workflow on real SLURM, with and without accounting, on real Grid Engine, and on this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cluster_runs import STEPS, Place, Told, live, real_site, same
from schedulers.start import Scheduler

pytestmark = pytest.mark.real
Here = Callable[[tuple[str, ...]], list[Told]]
# Real ones take seconds for what fakes do at once: what stays equal there is not tried a second time here.
SOME = ("fresh", "changed command", "failed", "then fixed")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """The life of the workflow on this machine, in these steps."""
    return cache(lambda steps: live(Place(tmp_path_factory.mktemp("here")), steps))


def test_slurm_a_workflow_lives_there_as_on_this_machine(
    slurm: Scheduler, here: Here, tmp_path: Path
) -> None:
    same(live(Place(tmp_path, real_site(slurm))), here(tuple(STEPS)))


def test_slurm_without_accounting_it_is_the_same(
    slurm_without_accounting: Scheduler, here: Here, tmp_path: Path
) -> None:
    same(live(Place(tmp_path, real_site(slurm_without_accounting)), SOME), here(SOME))


def test_sge_a_workflow_lives_there_as_on_this_machine(sge: Scheduler, here: Here, tmp_path: Path) -> None:
    same(live(Place(tmp_path, real_site(sge)), SOME), here(SOME))
