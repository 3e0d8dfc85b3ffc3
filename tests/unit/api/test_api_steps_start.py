"""What the first run of steps in a process loads: time that every script pays."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

RUN = """
import json, sys
from treadle import StepRunner, StepSpec
StepRunner().run([StepSpec("one", fn=lambda out: None)])
print(json.dumps(sorted(sys.modules)))
"""
VALUES = ("schema", "expand.expansion", "expand.join", "pattern.pattern", "pattern.constraint")


def test_a_run_of_steps_alone_loads_nothing_that_reads_workflow_files(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    rules = {name for name in loaded if name.startswith("treadle.rules.") and name.count(".") > 1}
    allowed = {f"treadle.rules.{name}" for name in (*VALUES, "expand", "pattern")}
    assert rules - allowed == set()
    assert not loaded & {
        "asyncio",
        "subprocess",
        "tomllib",
        "tomli",
        "cloudpickle",
        "obstore",
        "ray",
        "jinja2",
    }
