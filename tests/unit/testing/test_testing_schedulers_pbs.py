"""The fake PBS answers as the real one did; Torque as its manuals say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_world import PBS, alike, recorded, say, shape

from treadle.testing.schedulers import FakeCluster

ATTRIBUTES = (
    "job_state|substate|Exit_status|comment|run_count|exec_host|resources_used.[a-z]+|stime|obittime|Hold_Types|"
    "array|array_state_count|array_indices_remaining"
)
SHOW = f"qstat -x -f '{{}}' | grep -E '^ +({ATTRIBUTES}) ='"
SUBMISSIONS = [
    "qsub pok.sh",
    "qsub -J 1-4 pok.sh",
    "qsub -J 0-6:2 pok.sh",
    "qsub -q nosuch pok.sh",
    "qsub -l select=1:ncpus=100 pok.sh",
    "qsub -l select=1:nosuch=1 pok.sh",
    "qsub -l walltime=xx pok.sh",
    "qsub missing.sh",
    "echo 'echo hi' | qsub -N fromstdin",
    "qsub -- /bin/sleep 1",
    "qsub -h pok.sh",
]
UNKNOWN = ["qstat 999999", "qstat -x 999999", "qdel 999999", "qstat abc", "qdel abc", "qstat '999999[]'"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    (folder / "pok.sh").write_text("#!/bin/sh\n#PBS -N ok -j oe\n#PBS -l walltime=00:05:00\ntrue\n")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    folder = tmp_path_factory.mktemp("cluster") / "pbs"
    with FakeCluster("pbs", folder, slots=8, partitions=("workq",)) as cluster:
        yield cluster


def submit(cluster: FakeCluster, folder: Path, words: str) -> str:
    said = say(cluster, f"qsub -j oe -o /dev/null {words}", folder)
    assert said.code == 0, said
    return said.out.strip()


def shown(out: str) -> dict[str, str]:
    found = re.findall(r"^ +([\w.]+) = (.*)$", out, re.M)
    return {name: value for name, value in found if not name.startswith("resources_used")}


def same_job(cluster: FakeCluster, folder: Path, job: str, real: str, nth: int = 0) -> None:
    """States and exit codes are equal; the words are of one kind (real texts are cut by its terminal)."""
    mine, other = (
        shown(say(cluster, SHOW.format(job), folder).out),
        shown(recorded(PBS, SHOW.format(real), nth).out),
    )
    assert {name: mine.get(name) for name in ("job_state", "substate", "Exit_status")} == {
        name: other.get(name) for name in ("job_state", "substate", "Exit_status")
    }
    assert set(other) - {"exec_host", "Hold_Types", "comment", "stime"} <= set(mine)
    cut = shape(other.get("comment", "")).partition(" at ")[0]
    assert shape(mine.get("comment", "")).startswith(cut)


def ended(cluster: FakeCluster, job: str) -> None:
    number = int(re.split(r"\D", job)[0])
    cluster.wait_for(lambda jobs: all(one.ended for one in jobs if one.job == number))


@pytest.mark.parametrize("command", SUBMISSIONS)
def test_submissions_are_answered_as_recorded(cluster: FakeCluster, folder: Path, command: str) -> None:
    alike(say(cluster, command, folder), recorded(PBS, command))


@pytest.mark.parametrize("command", UNKNOWN)
def test_unknown_jobs_are_answered_as_recorded(cluster: FakeCluster, folder: Path, command: str) -> None:
    alike(say(cluster, command, folder), recorded(PBS, command))


def test_json_of_an_unknown_job_is_a_document_without_jobs(cluster: FakeCluster, folder: Path) -> None:
    alike(say(cluster, "qstat -f -F json 999999", folder), recorded(PBS, "qstat -f -F json 999999"))


@pytest.mark.parametrize(
    ("real", "script"),
    [("17.localhost", "exit 3"), ("18.localhost", "kill -9 $$"), ("19.localhost", "nosuchcommand")],
)
def test_ends_are_shown_as_recorded(cluster: FakeCluster, folder: Path, real: str, script: str) -> None:
    (folder / "end.sh").write_text(f"{script}\n")
    job = submit(cluster, folder, "end.sh")
    ended(cluster, job)
    if "kill" in script:  # recorded under a shell of its own, which says 137
        assert shown(say(cluster, SHOW.format(job), folder).out)["Exit_status"] == "137"
    same_job(cluster, folder, job, real)
    said = say(cluster, f"qstat {job}", folder)
    alike(said, recorded(PBS, "qstat 16.localhost"))


def test_a_finished_job_in_json_has_the_keys_of_a_real_one(cluster: FakeCluster, folder: Path) -> None:
    job = submit(cluster, folder, "pok.sh")
    ended(cluster, job)
    mine = json.loads(say(cluster, f"qstat -x -f -F json {job}", folder).out)["Jobs"][job]
    real = json.loads(recorded(PBS, "qstat -x -f -F json 16.localhost").out)["Jobs"]["16.localhost"]
    assert set(mine) <= set(real)
    assert {name for name in real if name in mine and type(mine[name]) is not type(real[name])} == set()
    assert {"Job_Name", "Exit_status", "job_state", "substate", "stime", "obittime", "exec_host"} <= set(mine)


def test_deleted_jobs_are_shown_as_recorded(cluster: FakeCluster, folder: Path) -> None:
    waits = submit(cluster, folder, "-h pok.sh")
    same_job(cluster, folder, waits, "12.localhost")
    assert say(cluster, f"qdel {waits}", folder).code == 0
    mine = shown(say(cluster, SHOW.format(waits), folder).out)
    assert (mine["job_state"], mine["substate"], mine.get("Exit_status")) == ("F", "91", None)
    alike(say(cluster, f"qdel {waits}", folder), recorded(PBS, "qdel 14.localhost", 1))
    runs = submit(cluster, folder, "-N runs -- /bin/sleep 100")
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs if one.name == "runs"))
    say(cluster, f"qdel {runs}", folder)
    ended(cluster, runs)
    mine = shown(say(cluster, SHOW.format(runs), folder).out)
    assert (mine["substate"], mine["Exit_status"]) == ("91", "271")


def test_arrays_are_shown_as_recorded(cluster: FakeCluster, folder: Path) -> None:
    (folder / "parr.sh").write_text("sleep 0.2\n[ $PBS_ARRAY_INDEX != 2 ] || exit 3\n")
    job = submit(cluster, folder, "-J 1-4 -l select=1:ncpus=4 parr.sh")
    number = job.partition("[")[0]
    mine = say(cluster, f"qstat -t -f -F json '{job}'", folder)
    jobs = json.loads(mine.out)["Jobs"]
    assert list(jobs) == [job, *(f"{number}[{index}].localhost" for index in range(1, 5))]
    assert jobs[job]["array"] == "True"
    assert say(cluster, f"qdel '{number}[4]'", folder).code == 0
    alike(say(cluster, f"qdel '{number}[9]'", folder), recorded(PBS, "qdel '24[9]'"))
    ended(cluster, job)
    same_job(cluster, folder, job, "24[].localhost")
    same_job(cluster, folder, f"{number}[2]", "24[2]")
    same_job(cluster, folder, f"{number}[4]", "24[4]")


@pytest.mark.parametrize(("verb", "status"), [("timeout", "-29"), ("oom", "-27"), ("node_fail", "-20")])
def test_ends_by_the_server_have_its_codes(
    cluster: FakeCluster, folder: Path, verb: str, status: str
) -> None:
    out = folder / f"{verb}.out"
    said = say(cluster, f"qsub -N {verb} -r n -j oe -o {out} -l walltime=3 -- /bin/sleep 100", folder)
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs if one.name == verb))
    cluster.each(verb, verb)
    ended(cluster, said.out)
    assert shown(say(cluster, SHOW.format(said.out.strip()), folder).out)["Exit_status"] == status
    if verb == "timeout":
        assert shape(out.read_text()) == shape("=>> PBS: job killed: walltime 5 exceeded limit 3\n")


def test_outputs_come_at_the_end_of_a_job(cluster: FakeCluster, folder: Path) -> None:
    out = folder / "late.out"
    say(cluster, f"echo 'echo here; sleep 0.3' | qsub -N late -j oe -o {out}", folder)
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs if one.name == "late"))
    assert not out.exists()
    cluster.wait_for(lambda jobs: all(one.ended for one in jobs if one.name == "late"))
    assert out.read_text() == "here\n"


def test_without_a_server_the_words_are_those_recorded(cluster: FakeCluster, folder: Path) -> None:
    cluster.down()
    try:
        for command, nth in (("qstat", -1), ("qsub pok.sh", -1), ("qdel 1", 0)):
            mine, real = say(cluster, command, folder), recorded(PBS, command, nth)
            assert (mine.code, mine.err) == (real.code, real.err)
    finally:
        cluster.up()


def test_torque_knows_jobs_that_ended_for_a_while(tmp_path: Path) -> None:
    with FakeCluster("torque", tmp_path / "c", keep=60) as cluster:
        job = say(cluster, "echo 'exit $PBS_ARRAYID' | qsub -N arr -t 1-2%1", tmp_path).out.strip()
        cluster.wait()
        text = say(cluster, f"qstat -f -t '{job}'", tmp_path).out
        assert re.findall(r"Job Id: (\S+)", text) == ["1[1].localhost", "1[2].localhost"]
        assert re.findall(r"(?:job_state|exit_status) = (\S+)", text) == ["C", "1", "C", "2"]
        assert (tmp_path / "arr.o1-2").exists()
        cluster.advance(61)
        assert say(cluster, f"qstat -f '{job}'", tmp_path).code == 153
        assert "ersion: 6" in say(cluster, "qstat --version", tmp_path).err
