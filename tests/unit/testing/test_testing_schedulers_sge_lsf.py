"""The fake Grid Engine answers as the real one did; LSF as its manuals say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_world import SGE, alike, recorded, say, shape

from treadle.testing.schedulers import FakeCluster

GREP = (
    "jobname|jobnumber|taskid|qsub_time|start_time|end_time|slots|failed|exit_status|ru_wallclock|ru_maxrss|cpu|"
    "maxvmem|deleted_by|granted_pe"
)
RECORD = f"qacct -j {{}} | grep -E '^({GREP}) '"
SUBMISSIONS = [
    "qsub -cwd sok.sh",
    "qsub -terse -cwd sok.sh",
    "qsub -cwd -t 1-3 sok.sh",
    "qsub -terse -cwd -t 1-10:3 sok.sh",
    "qsub -cwd -b y sleep 1",
    "qsub -cwd -q nosuch.q sok.sh",
    "qsub -cwd -l nosuch=1 sok.sh",
    "qsub -cwd -l h_vmem=900G -N huge sok.sh",
    "qsub -cwd -pe nosuch 2 sok.sh",
    "qsub -cwd -pe smp 100 sok.sh",
    "qsub -cwd missing.sh",
    "qsub -cwd -l h_rt=xx sok.sh",
    "qsub -cwd -hold_jid 999999 -b y true",
    "qsub -N 1bad -cwd sok.sh",
]
UNKNOWN = ["qdel 999999", "qacct -j 999999", "qdel abc", "qacct -j 999999 -t 1", "qstat -xml -j 999999"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    (folder / "sok.sh").write_text("#!/bin/sh\n#$ -N ok -cwd -j y -o /dev/null\ntrue\n")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    folder = tmp_path_factory.mktemp("cluster") / "sge"
    with FakeCluster("sge", folder, slots=8, partitions=("all.q",), user="root") as cluster:
        yield cluster


def submit(cluster: FakeCluster, folder: Path, words: str) -> str:
    said = say(cluster, f"qsub -terse -cwd -j y -o /dev/null {words}", folder)
    assert said.code == 0, said
    return said.out.strip().partition(".")[0]


def ended(cluster: FakeCluster, job: str) -> None:
    cluster.wait_for(lambda jobs: all(one.ended for one in jobs if one.job == int(job)))


def record(out: str) -> list[dict[str, str]]:
    """Records of qacct, one for each `jobname`."""
    found: list[dict[str, str]] = []
    for line in out.splitlines():
        name, _, value = line.partition(" ")
        if name == "jobname":
            found.append({})
        if found:
            found[-1][name] = value.strip()
    return found


def same_records(mine: str, real: str) -> None:
    ours, theirs = (sorted(record(text), key=lambda one: one["taskid"]) for text in (mine, real))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert list(one) == list(other)
        for name in ("failed", "exit_status"):
            assert one[name] == other[name]
        for name in ("taskid", "start_time", "end_time"):
            assert shape(one[name]) == shape(other[name])


@pytest.mark.parametrize("command", SUBMISSIONS)
def test_submissions_are_answered_as_recorded(cluster: FakeCluster, folder: Path, command: str) -> None:
    alike(say(cluster, command, folder), recorded(SGE, command))


@pytest.mark.parametrize("command", UNKNOWN)
def test_unknown_jobs_are_answered_as_recorded(cluster: FakeCluster, folder: Path, command: str) -> None:
    alike(say(cluster, command, folder), recorded(SGE, command))


@pytest.mark.parametrize(
    ("real", "script"), [(26, "kill -9 $$"), (27, "nosuchcmd"), (32, "exit 7")], ids=["killed", "127", "7"]
)
def test_ends_are_recorded_as_by_a_real_one(
    cluster: FakeCluster, folder: Path, real: int, script: str
) -> None:
    (folder / "end.sh").write_text(f"{script}\n")
    job = submit(cluster, folder, "end.sh")
    ended(cluster, job)
    same_records(say(cluster, RECORD.format(job), folder).out, recorded(SGE, RECORD.format(real)).out)
    assert say(cluster, "qstat -xml -s prs", folder).out.count(f">{job}<") == 0


def test_a_record_has_the_fields_of_a_real_one_but_for_counters(cluster: FakeCluster, folder: Path) -> None:
    job = submit(cluster, folder, "sok.sh")
    ended(cluster, job)
    mine, real = say(cluster, f"qacct -j {job}", folder), recorded(SGE, "qacct -j 24")
    names = [line.split()[0] for line in mine.out.splitlines()]
    everything = [line.split()[0] for line in real.out.splitlines()]
    assert names == [name for name in everything if name in names]
    assert {name for name in everything if name not in names and not name.startswith("ru_")} == set()


def test_an_array_is_shown_as_recorded(cluster: FakeCluster, folder: Path) -> None:
    (folder / "arr.sh").write_text("sleep 0.3\n[ $SGE_TASK_ID != 2 ] || exit 3\n")
    job = submit(cluster, folder, "-N arr -t 1-4 -tc 2 arr.sh")
    cluster.wait_for(lambda jobs: sum(bool(one.pid) for one in jobs if one.job == int(job)) == 2)
    lists = re.findall(r"<job_list.*?</job_list>", say(cluster, "qstat -xml", folder).out, re.S)
    mine = re.findall(r"<(state|tasks)>(.*?)<", "".join(one for one in lists if f">{job}<" in one))
    assert mine == re.findall(r"<(state|tasks)>(.*?)<", recorded(SGE, "qstat -xml", 1).out)
    alike(say(cluster, f"qdel {job}.4", folder), recorded(SGE, "qdel 35.4"))
    alike(say(cluster, f"qdel {job} -t 9", folder), recorded(SGE, "qdel 35 -t 9"))
    ended(cluster, job)
    same_records(say(cluster, RECORD.format(job), folder).out, recorded(SGE, RECORD.format(35)).out)
    assert say(cluster, f"qacct -j {job} -t 9", folder).code == 1


def test_the_queue_is_written_in_the_tags_of_a_real_one(cluster: FakeCluster, folder: Path) -> None:
    job = submit(cluster, folder, "-N fill -pe smp 2 -b y sleep 100")
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs if one.name == "fill"))
    waits = submit(cluster, folder, "-N waits -h -b y sleep 100")
    tags = r"</?\w+"
    mine = set(re.findall(tags, say(cluster, "qstat -xml", folder).out))
    assert mine - {"<tasks", "</tasks"} == set(re.findall(tags, recorded(SGE, "qstat -xml").out))
    say(cluster, f"qdel {waits}", folder)
    alike(say(cluster, f"qdel {job}", folder), recorded(SGE, "qdel 20"))
    ended(cluster, job)
    said = say(cluster, RECORD.format(job), folder)
    assert re.findall(r"(?:failed|exit_status) +(\S+)", said.out) == ["100", "137"]


@pytest.mark.parametrize(("code", "real", "state"), [(100, 29, "Eqw"), (99, 30, "")])
def test_exit_codes_that_are_orders_are_obeyed(
    cluster: FakeCluster, folder: Path, code: int, real: int, state: str
) -> None:
    (folder / "order.sh").write_text(f"[ $RESTARTED = 1 ] || exit {code}\n")
    job = submit(cluster, folder, f"-N o{code} order.sh")
    cluster.wait_for(
        lambda jobs: (
            all(one.starts == (2 if code == 99 else 1) for one in jobs if one.job == int(job))
            and all(
                one.ended or (code == 100 and one.state == "pending") for one in jobs if one.job == int(job)
            )
        )
    )
    same_records(say(cluster, RECORD.format(job), folder).out, recorded(SGE, RECORD.format(real)).out)
    assert (f"<state>{state}<" in say(cluster, "qstat -xml", folder).out) is bool(state)
    say(cluster, f"qdel {job}", folder)


def test_a_missing_work_folder_is_an_error_state_that_lasts(cluster: FakeCluster, folder: Path) -> None:
    job = submit(cluster, folder, "-wd /nosuch/folder -b y true")
    cluster.wait_for(lambda jobs: any(one.starts for one in jobs if one.job == int(job)))
    assert "<state>Eqw<" in say(cluster, "qstat -xml", folder).out
    same_records(say(cluster, RECORD.format(job), folder).out, recorded(SGE, RECORD.format(28)).out)
    say(cluster, f"qdel {job}", folder)


def test_without_a_master_the_words_are_those_recorded_and_accounting_goes_on(
    cluster: FakeCluster, folder: Path
) -> None:
    job = submit(cluster, folder, "sok.sh")
    ended(cluster, job)
    cluster.down()
    try:
        for command in ("qsub sok.sh", "qdel 39"):
            alike(say(cluster, command, folder), recorded(SGE, command))
        assert say(cluster, f"qacct -j {job}", folder).code == 0
    finally:
        cluster.up()


def test_lsf_tells_states_codes_and_reasons(tmp_path: Path) -> None:
    with FakeCluster("lsf", tmp_path / "c", slots=8) as cluster:
        script = '#!/bin/sh\n#BSUB -J "arr[1-3]%2"\n#BSUB -o out.%J.%I\n'
        script += "echo $LSB_JOBID; exit $((LSB_JOBINDEX - 1))\n"
        said = say(cluster, "bsub", tmp_path, stdin=script)
        assert said.out == "Job <1> is submitted to default queue <normal>.\n"
        cluster.wait()
        said = say(
            cluster, "bjobs -a -noheader -o \"jobid jobindex stat exit_code delimiter='|'\" 1 99", tmp_path
        )
        assert said.out == "1|1|DONE|-\n1|2|EXIT|1\n1|3|EXIT|2\n"
        assert said.err == "Job <99> is not found\n"
        assert (tmp_path / "out.1.3").read_text() == "1\n"
        say(cluster, "bsub -J long sleep 100", tmp_path)
        cluster.wait_for(lambda jobs: any(one.pid for one in jobs))
        assert say(cluster, "bkill 2", tmp_path).out == "Job <2> is being terminated\n"
        cluster.wait()
        assert say(cluster, "bkill 2", tmp_path).err == "Job <2>: Job has already finished\n"
        assert say(cluster, "bkill 99", tmp_path).err == "Job <99>: No matching job found\n"
        (one, other) = json.loads(say(cluster, "bjobs -json -o 'jobid exit_reason' 2 77", tmp_path).out)[
            "RECORDS"
        ]
        assert one["EXIT_REASON"].startswith("TERM_OWNER")
        assert other == {"JOBID": "77", "ERROR": "Job <77> is not found"}
        assert "Completed <exit>; TERM_OWNER" in say(cluster, "bacct -l 2", tmp_path).out
        cluster.advance(3601)
        assert "Job <2> is not found" in say(cluster, "bjobs -a 2", tmp_path).err
        assert "Exited by signal 2" in say(cluster, "bhist -l 2", tmp_path).out
