"""Ten thousand tasks on a scheduler: few commands, and little work for the driver."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import Place, fake_site
from treadle.testing.schedulers import FakeCluster

pytestmark = pytest.mark.big
TASKS = 10_000
# Runs the command, and tells what CPU time it took itself: what it waited for (sbatch ...) does not count.
MEASURED = """
import resource, sys
from treadle.cli.main import main
code = main(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_SELF)
with open(sys.argv[1], "w") as file:
    file.write(str(used.ru_utime + used.ru_stime))
sys.exit(code)
"""


def test_ten_thousand_tasks_take_few_commands_and_little_of_the_driver(
    fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    here = str(Path(__file__).parent)
    cluster = fake_cluster(
        "slurm", slots=5000, nodes=2, speed=60.0, simulator="story_simulated:ended", path=[here]
    )
    cluster.script("simulate", seconds=300)
    place = Place(tmp_path, fake_site(cluster), max_submitted=TASKS, poll_interval=1)
    place.write(
        "main.oxoflow",
        '[workflow]\nname = "many"\n[[tables]]\nname = "rows"\nfile = "rows.json"\n'
        '[[rules]]\nname = "one"\noutput = ["out/{n}"]\nshell = ": > {output}"\n',
    )
    place.write("rows.json", json.dumps([{"n": str(number)} for number in range(TASKS)]))
    argv = [sys.executable, "-c", MEASURED, str(tmp_path / "cpu"), "run", "--json", "--profile", "there"]
    began = time.monotonic()
    done = subprocess.run(argv, cwd=tmp_path, env=place.env(), capture_output=True, text=True, timeout=120)
    wall = time.monotonic() - began
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["counts"]["succeeded"] == TASKS

    calls = cluster.calls()
    assert calls["sbatch"] <= 30, calls
    assert calls["squeue"] <= wall + 2, "a poll is one command, and they are a second apart"
    assert calls["sacct"] <= wall + 2, calls
    cpu = float((tmp_path / "cpu").read_text())
    assert cpu < 0.001 * TASKS, f"{cpu} s of CPU time of the driver"
