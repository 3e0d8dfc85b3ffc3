"""Every dialect of ours is understood by the fake of its scheduler, and understands it."""

from __future__ import annotations

import getpass
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.backends.cluster import dialect as words
from treadle.backends.cluster.dialect import Account, Dialect, Phase, Request, Row, Silence, Sort
from treadle.backends.cluster.dialects import dialect_of
from treadle.backends.cluster.settings import ClusterSettings
from treadle.plan.task import Resources
from treadle.records.event import EndReason
from treadle.testing.pytest_plugin import fake_cluster
from treadle.testing.schedulers import FakeCluster

__all__ = ["fake_cluster"]
Start = Callable[..., FakeCluster]
KINDS = ("slurm", "pbs", "torque", "sge", "lsf")


def spoken(kind: str) -> Dialect:
    if kind in ("pbs", "torque"):
        return dialect_of(ClusterSettings(backend="pbs", dialect="torque" if kind == "torque" else "pbspro"))
    return dialect_of(ClusterSettings(backend=kind))


def ask(cluster: FakeCluster, argv: list[str], stdin: str = "") -> words.Said:
    with open(stdin or "/dev/null") as file:
        done = subprocess.run(
            argv,
            env={**cluster.env, **spoken_environment(cluster)},
            stdin=file,
            capture_output=True,
            text=True,
        )
    return words.Said(done.returncode, done.stdout, done.stderr)


def spoken_environment(cluster: FakeCluster) -> dict[str, str]:
    return dict(spoken(cluster.site.kind).environment)


def submit(cluster: FakeCluster, dialect: Dialect, folder: Path, name: str, text: str, size: int = 0) -> str:
    script = folder / f"{name}.sh"
    request = Request(
        name=name,
        script=str(script),
        log=str(folder / f"{name}.log"),
        workdir=str(folder),
        resources=Resources(threads=2, memory=100 << 20, time_limit=600),
        size=size,
        running=2 if size else 0,
        comment="run 1, task align/sample=A, attempt 1",
    )
    script.write_text("\n".join(["#!/bin/bash", *dialect.directives(request), text, ""]))
    answer = dialect.submitted(ask(cluster, *dialect.submit(request)))
    assert (answer.sort, answer.message) == (Sort.DONE, "")
    return answer.job


def rows(cluster: FakeCluster, dialect: Dialect, *jobs: str) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for argv in dialect.poll(jobs, getpass.getuser()):
        answer = dialect.polled(ask(cluster, argv))
        assert not isinstance(answer, Silence), answer
        found |= {row.job: row for row in answer}
    return found


def accounts(cluster: FakeCluster, dialect: Dialect, *jobs: str) -> dict[str, Account]:
    """What the commands tell, the first that knows a job: the later ones know less."""
    found: dict[str, Account] = {}
    for argv in dialect.accounting(jobs, time.time() - 60):
        answer = dialect.accounted(ask(cluster, argv))
        assert not isinstance(answer, Silence), answer
        found = {account.job: account for account in answer} | found
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_submitted_polled_and_accounted_for(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster, dialect = fake_cluster(kind), spoken(kind)
    job = submit(cluster, dialect, tmp_path, "tname-1", "echo hello; sleep 0.5; exit 3")
    cluster.wait_for(lambda jobs: jobs[0].pid > 0)
    row = rows(cluster, dialect, job)[job]
    assert (row.phase, row.name, row.host) == (Phase.RUNNING, "tname-1", "node1")
    (done,) = cluster.wait()
    assert (done.name, done.cpus, done.memory, done.limit) == ("tname-1", 2, 100 << 20, 600)
    after = rows(cluster, dialect, job).get(job)
    assert after is None or (after.phase, after.ended) == (Phase.ENDED, EndReason.APP)
    account = accounts(cluster, dialect, job)[job]
    assert (account.settled, account.exit_code, account.ended) == (True, 3, EndReason.APP)
    assert Path(dialect.log_of(str(tmp_path / "tname-1.log"), 0)).read_text().startswith("hello\n")


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_is_submitted_polled_and_accounted_for(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster, dialect = fake_cluster(kind, slots=4), spoken(kind)
    text = f"echo hi ${dialect.index_variable}; sleep 0.5; [ ${dialect.index_variable} != 2 ]"
    array = submit(cluster, dialect, tmp_path, "tarr-1", text, size=3)
    elements = [dialect.element(array, index) for index in (1, 2, 3)]
    cluster.wait_for(lambda jobs: jobs[0].pid > 0)
    shown = rows(cluster, dialect, *elements)
    assert [shown[one].phase for one in elements] == [Phase.RUNNING, Phase.RUNNING, Phase.PENDING]
    cluster.wait()
    told = accounts(cluster, dialect, *elements)
    assert [told[one].exit_code for one in elements] == [0, 1, 0]
    for index in (1, 2, 3):
        log = Path(dialect.log_of(str(tmp_path / "tarr-1.log"), index))
        assert log.read_text().startswith(f"hi {index}\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_job_is_no_success(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster, dialect = fake_cluster(kind), spoken(kind)
    job = submit(cluster, dialect, tmp_path, "tlong-1", "sleep 100")
    cluster.wait_for(lambda jobs: jobs[0].pid > 0)
    for argv in dialect.cancel([job]):
        assert ask(cluster, argv).code == 0
    assert [one.state for one in cluster.wait()] == ["cancelled"]
    account = accounts(cluster, dialect, job)[job]
    assert account.ended is not None
    assert account.exit_code != 0 or account.ended is EndReason.CANCELLED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("do", "ended"), [("timeout", EndReason.TIME), ("oom", EndReason.OOM)])
def test_ends_by_the_scheduler_have_their_reasons(
    fake_cluster: Start, tmp_path: Path, kind: str, do: str, ended: EndReason
) -> None:
    cluster, dialect = fake_cluster(kind), spoken(kind)
    cluster.script(do)
    job = submit(cluster, dialect, tmp_path, "tend-1", "sleep 100")
    cluster.wait()
    if kind == "sge":  # one code for both, told apart by figures that a short job has not
        assert accounts(cluster, dialect, job)[job].ended in (EndReason.TIME, EndReason.OOM)
    else:
        assert accounts(cluster, dialect, job)[job].ended is ended


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_found_by_its_name_in_the_queue_or_in_accounting(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster, dialect = fake_cluster(kind), spoken(kind)
    job = submit(cluster, dialect, tmp_path, "tfind-1", "true")
    submit(cluster, dialect, tmp_path, "tother-1", "true")
    cluster.wait()
    found: dict[str, str] = {}
    for argv in dialect.find(["tfind-1"], getpass.getuser(), time.time() - 60):
        answer = dialect.found(argv, ask(cluster, argv))
        assert not isinstance(answer, Silence), answer
        found |= answer
    assert found["tfind-1"] == job


@pytest.mark.parametrize("kind", KINDS)
def test_an_outage_is_silence_and_a_submission_then_transient(
    fake_cluster: Start, tmp_path: Path, kind: str
) -> None:
    cluster, dialect = fake_cluster(kind), spoken(kind)
    job = submit(cluster, dialect, tmp_path, "tjob-1", "true")
    cluster.down()
    (argv,) = dialect.poll([job], getpass.getuser())
    silence = dialect.polled(ask(cluster, argv))
    assert isinstance(silence, Silence)
    assert silence.down
    program = {"slurm": "sbatch", "lsf": "bsub"}.get(kind, "qsub")
    assert dialect.submitted(ask(cluster, [program], str(tmp_path / "tjob-1.sh"))).sort is Sort.TRANSIENT


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("do", "sort"),
    [("limit", Sort.LIMIT), ("lose_answer", Sort.UNCLEAR), ("refuse", Sort.REFUSED)],
)
def test_answers_to_submissions_are_sorted(
    fake_cluster: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, do: str, sort: Sort
) -> None:
    monkeypatch.chdir(tmp_path)  # where a job without directives writes to
    cluster, dialect = fake_cluster(kind), spoken(kind)
    cluster.script(do)
    (tmp_path / "job.sh").write_text("#!/bin/sh\ntrue\n")
    request = Request(
        name="tjob-1",
        script=str(tmp_path / "job.sh"),
        log=str(tmp_path / "log"),
        workdir=str(tmp_path),
        resources=Resources(),
    )
    assert dialect.submitted(ask(cluster, *dialect.submit(request))).sort is sort


@pytest.mark.parametrize("kind", KINDS)
def test_the_site_s_limits_are_read(fake_cluster: Start, kind: str) -> None:
    cluster, dialect = fake_cluster(kind, max_array_size=501), spoken(kind)
    limits = dialect.limits_of(ask(cluster, dialect.limits()))
    assert limits.array_size == (500 if kind == "slurm" else 501)


@pytest.mark.parametrize("kind", ["pbs"])
def test_broken_json_spoils_nothing(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster, dialect = fake_cluster(kind, broken_json=True), spoken(kind)
    job = submit(cluster, dialect, tmp_path, "tjob-1", "sleep 100")
    cluster.wait_for(lambda jobs: jobs[0].pid > 0)
    assert rows(cluster, dialect, job)[job].phase is Phase.RUNNING


@pytest.mark.parametrize("kind", KINDS)
def test_other_people_s_odd_jobs_disturb_nothing(fake_cluster: Start, tmp_path: Path, kind: str) -> None:
    cluster, dialect = fake_cluster(kind, others=8), spoken(kind)
    job = submit(cluster, dialect, tmp_path, "tjob-1", "sleep 100")
    cluster.wait_for(lambda jobs: any(one.pid for one in jobs))
    assert rows(cluster, dialect, job)[job].name == "tjob-1"
