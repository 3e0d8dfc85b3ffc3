"""The Ray backend on a real Ray: one node, started once, in namespaces of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray_world

HERE = Path(__file__).parent
WHY_NOT = ray_world.missing()

pytestmark = [
    pytest.mark.real,
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can"),
]

SCENARIOS = [
    "a_graph_of_steps",
    "steps_grow",
    "checkpoints_find_work",
    "a_failure_comes_back",
    "a_killed_worker_is_that_steps_failure",
    "resources_are_respected",
    "what_ray_cannot_do_is_refused_before_anything_runs",
    "ctrl_c_ends_the_job",
    "a_killed_drivers_job_is_adopted",
    "a_job_ends_while_no_driver_lives",
    "a_command_is_adopted_by_its_name",
    "a_command_ends_with_its_killed_actor",
    "another_version_is_refused_with_both_named",
    "what_waits_for_a_larger_cluster_says_so",
    "the_protocol_of_ray_clients_will_do",
    "large_functions_travel_in_files",
    "jobs_of_the_client",
    "a_cluster_of_our_own_starts_and_ends",
    "lack_of_memory_is_told_as_such",
]


@pytest.fixture(scope="module")
def world() -> Iterator[ray_world.RayWorld]:
    made = ray_world.RayWorld()
    yield made
    made.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(world: ray_world.RayWorld, name: str, tmp_path: Path) -> None:
    script = f"cd '{tmp_path}' && exec '{sys.executable}' '{HERE / 'ray_scenarios.py'}' {name}"
    done = world.run("sh", "-c", script, TREADLE_CLIENT=ray_world.ADDRESS)
    assert done.returncode == 0, done.stdout[-6000:]


def test_the_contract_of_backends_holds_on_ray(world: ray_world.RayWorld) -> None:
    suite = str(HERE.parent / "contract" / "test_contract_backends.py")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", suite]
    done = world.run(*argv, TREADLE_CONTRACT_RAY=ray_world.ADDRESS, timeout=240)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "skipped" not in done.stdout
