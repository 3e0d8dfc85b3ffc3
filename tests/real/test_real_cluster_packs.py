"""Packs and groups on a real SLURM: several tasks in one job, each with an end of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_runs import Place, real_site
from schedulers.start import Scheduler

pytestmark = pytest.mark.real
FLOW = """
[workflow]
name = "packs"
strict_shell = true

[[rules]]
name = "short"
input = ["in/{sample}.txt"]
output = ["out/{sample}.txt"]
pack = 4
required = false
shell = "echo {sample} >> starts; test {sample} != c; cat {input} > {output}"
resources = { time_limit = "2m" }
"""


def test_slurm_a_pack_is_one_job_whose_tasks_end_each_in_its_own_way(
    slurm: Scheduler, tmp_path: Path
) -> None:
    place = Place(tmp_path, real_site(slurm))
    place.write("main.oxoflow", FLOW)
    for name in "abcdef":
        place.write(f"in/{name}.txt", f"{name}\n")
    place.treadle("run")
    assert place.starts() == dict.fromkeys("abcdef", 1)
    assert [(job.task[-1], job.state, job.exit_code) for job in place.jobs()] == [
        (name, "failed" if name == "c" else "succeeded", int(name == "c")) for name in "abcdef"
    ]
    ids = {event["job"] for event in place.events() if event["event"] == "job_seen" and event.get("job")}
    assert len(ids) == 2
    assert place.will_run() == ({"short/sample=c"}, set())


CHAINS = """
[workflow]
name = "chains"
strict_shell = true

[[rules]]
name = "one"
input = ["in/{sample}.txt"]
output = ["one/{sample}.txt"]
group = "g"
shell = "echo one-{sample} >> starts; test {sample} != b; cat {input} > {output}"

[[rules]]
name = "two"
input = ["one/{sample}.txt"]
output = ["two/{sample}.txt"]
group = "g"
shell = "echo two-{sample} >> starts; cat {input} {input} > {output}"
"""


def test_slurm_a_group_is_one_job_and_a_failure_stops_those_behind_it(
    slurm: Scheduler, tmp_path: Path
) -> None:
    place = Place(tmp_path, real_site(slurm))
    place.write("main.oxoflow", CHAINS)
    for name in "abc":
        place.write(f"in/{name}.txt", f"{name}\n")
    place.treadle("run", "--keep-going", exits=1)
    assert place.starts() == dict.fromkeys(("one-a", "one-b", "one-c", "two-a", "two-c"), 1)
    assert place.read("two/c.txt") == "c\nc\n"
    ids = {event["job"] for event in place.events() if event["event"] == "job_seen" and event.get("job")}
    assert len(ids) == 3
    assert place.will_run()[0] == {"one/sample=b", "two/sample=b"}
