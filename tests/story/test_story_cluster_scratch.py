"""Private folders on schedulers: one text in jobs and arrays, on a disk of the node where one is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import Place, fake_site
from treadle.testing.schedulers import FakeCluster

FLOW = """
[workflow]
name = "private"
strict_shell = true

[[rules]]
name = "one"
input = ["in/{sample}.txt"]
output = ["one/{sample}.txt"]
scratch = true
shell = "pwd; echo junk > junk.txt; cat {input} > {output}"

[[rules]]
name = "all"
input = ["one/a.txt", "one/b.txt", "one/c.txt"]
output = ["all.txt"]
scratch = true
localrule = true
shell = "pwd; cat {input} > {output}; FAIL"
"""


@pytest.mark.parametrize(("kind", "job"), [("slurm", "SLURM_ARRAY_JOB_ID"), ("sge", "JOB_ID")])
def test_jobs_and_elements_of_arrays_have_folders_of_their_own(
    kind: str, job: str, fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    place = Place(tmp_path / "work", fake_site(fake_cluster(kind)), scratch_dir=str(disk / f"${job}"))
    for name in "abc":
        place.write(f"in/{name}.txt", f"{name}\n")
    place.write("main.oxoflow", FLOW.replace("; FAIL", ""))
    place.treadle("run")
    (own,) = disk.iterdir()
    assert place.read("all.txt") == "a\nb\nc\n"
    assert not (place / "junk.txt").exists()
    places = {place.treadle("logs", f"one/sample={name}").strip() for name in "abc"}
    assert len(places) == 3
    assert all(one.startswith(f"{own}/treadle-") for one in places)
    assert place.treadle("logs", "all").startswith(f"{place.path}/.treadle/scratch/")
    assert [*own.iterdir(), *(place / ".treadle" / "scratch").iterdir()] == []
    assert "up to date" in place.treadle("plan")


def test_a_job_that_fails_tells_where_its_folder_is_and_the_next_attempt_removes_it(
    fake_cluster: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    place = Place(tmp_path / "work", fake_site(fake_cluster("slurm")), scratch_dir=str(disk))
    flow = FLOW.split('[[rules]]\nname = "all"')[0]
    place.write("in/a.txt", "a\n")
    place.write("main.oxoflow", flow.replace("cat {input}", "false; cat {input}"))
    place.treadle("run", exits=1)
    (kept,) = disk.iterdir()
    assert f"'{kept}/work' on " in place.treadle("logs", "one/sample=a")
    place.write("main.oxoflow", flow)
    place.treadle("run")
    assert list(disk.iterdir()) == []
