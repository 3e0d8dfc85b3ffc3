"""A virtual environment on real SLURM: made as a job, entered by jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_runs import Place, real_site
from schedulers.start import Scheduler

pytestmark = pytest.mark.real

FLOW = """
[workflow]
name = "inside"
strict_shell = true

[[values]]
name = "n"
values = [1, 2, 3]

[[rules]]
name = "where"
output = ["{n}.txt"]
environment = { venv = "the env", venv_requirements = "envs/r.txt" }
shell = "python -c 'import sys; print(sys.prefix)' > {output}"

[[rules]]
name = "loaded"
output = ["loaded.txt"]
environment = { modules = "tool/1" }
envvars = { MODULEPATH = "modulefiles" }
shell = "echo $TOOL > {output}"
"""


def test_slurm_an_environment_is_made_as_a_job_and_entered_by_jobs(slurm: Scheduler, tmp_path: Path) -> None:
    place = Place(tmp_path / "work", real_site(slurm), env_setup="job")
    flow = FLOW if Path("/usr/share/modules/init/bash").exists() else FLOW[: FLOW.rindex("[[rules]]")]
    place.write("main.oxoflow", flow)
    place.write("envs/r.txt", "# nothing beside Python\n")
    place.write("modulefiles/tool/1", "#%Module\nsetenv TOOL of-a-module\n")
    place.treadle("run", seconds=180)
    assert {place.read(f"{n}.txt") for n in (1, 2, 3)} == {f"{place / 'the env'}\n"}
    assert {job.backend for job in place.jobs()} == {"slurm"}
    if flow is FLOW:
        assert place.read("loaded.txt") == "of-a-module\n"
    assert place.will_run() == (set(), set())
