"""What happens on a real Ray, told from within its world: `python ray_scenarios.py NAME`, in a new folder.

Each scenario asserts for itself. Those that need a driver to be killed start one: `python ray_scenarios.py
drive_...`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from ray_world import ADDRESS

from treadle import ResourceConfig, StepError, StepRunError, StepRunner, StepSpec, remote

HERE = os.path.abspath(__file__)
ONE = ResourceConfig(cpu=1, memory_gb=0.1)


def count(name: str) -> None:
    """Leave one more mark that something happened."""
    with open(name, "a") as file:
        file.write(f"{os.getpid()}\n")


def counted(name: str) -> list[int]:
    return [int(line) for line in Path(name).read_text().split()] if os.path.exists(name) else []


def until(done: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def actors() -> list[str]:
    import ray

    if not ray.is_initialized():
        ray.init(address=ADDRESS, log_to_driver=False, configure_logging=False)
    return [one["name"] for one in ray.util.list_named_actors(all_namespaces=True)]


def a_graph_of_steps() -> None:
    """Threads here, jobs there, one after the other; nothing a second time."""
    folder = os.getcwd()

    def tokens(out: str) -> None:
        Path(out).write_text("tokens")
        count(f"{folder}/thread")

    def model(out: str, ctx: Any) -> dict[str, Any]:
        import ray

        Path(out).write_text(Path(ctx.path("tokens")).read_text() + " model")
        count(f"{folder}/job")
        return {
            "in_ray": ray.is_initialized(),
            "client": os.environ["TREADLE_CLIENT"],
            "word": os.environ["WORD"],
        }

    first = StepSpec("tokens", fn=tokens)
    train = StepSpec("train", fn=remote(model, env_vars={"WORD": "x"}), deps=[first], resources=ONE)
    last = StepSpec("report", fn=lambda out, ctx: ctx.load("train"), deps=[train])
    for _ in range(2):
        report = StepRunner().run([last])
        assert report.ok, report
    assert Path(train.output_path).read_text() == "tokens model"
    assert last.load() == {"in_ray": True, "client": ADDRESS, "word": "x"}
    assert counted("thread") == [os.getpid()]
    assert len(counted("job")) == 1
    assert counted("job") != [os.getpid()]
    until(lambda: actors() == [], "actors end with their attempts")


def steps_grow() -> None:
    """Of the results of jobs, more jobs; after a restart none of it again."""
    folder = os.getcwd()

    def part(n: int) -> StepSpec:
        def made(out: str) -> int:
            count(f"{folder}/parts")
            return n * n

        return StepSpec("part", fn=made, hash_attrs={"n": n}, resources=ONE)

    def more(numbers: list[int]) -> list[StepSpec]:
        parts = [part(n) for n in numbers]
        total = lambda out, ctx: sum(ctx.load(one) for one in parts)  # noqa: E731
        return [*parts, StepSpec("total", fn=total, deps=parts, resources=ONE)]

    look = StepSpec("look", fn=lambda out: [1, 2, 3], grow=more, resources=ONE)
    assert StepRunner().run([look], dry_run=True).counts == {"will_run": 1}
    assert StepRunner().run([look]).counts == {"succeeded": 5}
    assert more([1, 2, 3])[-1].load() == 14
    assert StepRunner().run([look], dry_run=True).counts == {"up_to_date": 5}
    assert len(counted("parts")) == 3


def checkpoints_find_work() -> None:
    """A workflow file whose checkpoints find work lives on Ray as on this machine."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from cluster_runs import Place, Site
    from discovered_runs import lives

    lives(Place(Path.cwd(), Site("ray", env={"TREADLE_CLIENT": ADDRESS})))


def a_failure_comes_back() -> None:
    """The exception itself, its traceback, the log; others are not hurt."""

    def fail(out: str) -> None:
        print("on the way")
        raise KeyError("no such layer")

    bad = StepSpec("bad", fn=fail, resources=ONE)
    good = StepSpec("good", fn=lambda out: Path(out).write_text("x"), resources=ONE)
    with pytest.raises(StepRunError) as found:
        StepRunner().run([bad, good])
    (root,) = found.value.exceptions
    assert isinstance(root, KeyError), repr(root)
    assert "in fail" in str(root.__cause__), root.__cause__
    assert Path(good.output_path).read_text() == "x"


def a_killed_worker_is_that_steps_failure() -> None:
    """SIGKILL to the process in mid-step: the retry makes it; without a retry it fails with a reason."""
    folder = os.getcwd()

    def die(out: str, ctx: Any) -> None:
        count(f"{folder}/{ctx.attrs['name']}")
        if ctx.attrs["always"] or ctx.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        Path(out).write_text("made")

    again = StepSpec("again", fn=die, hash_attrs={"name": "again", "always": False}, retries=2, resources=ONE)
    never = StepSpec("never", fn=die, hash_attrs={"name": "never", "always": True}, resources=ONE)
    with pytest.raises(StepRunError) as found:
        StepRunner().run([again, never])
    (root,) = found.value.exceptions
    assert "its process died" in str(root), root
    assert Path(again.output_path).read_text() == "made"
    assert len(counted("again")) == 2
    assert len(counted("never")) == 1


def resources_are_respected() -> None:
    """Two CPUs of three: never two at once. A counted resource that Ray knows: one at a time."""
    folder = os.getcwd()

    def alone(out: str, ctx: Any) -> None:
        mark = f"{folder}/{ctx.attrs['what']}.running"
        os.mkdir(mark)  # fails where another one is
        time.sleep(0.2)
        os.rmdir(mark)
        Path(out).touch()

    def steps(what: str, resources: ResourceConfig) -> list[StepSpec]:
        return [
            StepSpec(f"{what}{n}", fn=alone, hash_attrs={"what": what}, resources=resources) for n in range(3)
        ]

    report = StepRunner().run(
        steps("cpu", ResourceConfig(cpu=2)) + steps("licence", ResourceConfig(cpu=0.5, groups={"licence": 1}))
    )
    assert report.ok, report


def what_ray_cannot_do_is_refused_before_anything_runs() -> None:
    folder = os.getcwd()
    steps = [
        StepSpec("plain", fn=lambda out: count(f"{folder}/ran"), resources=ONE),
        StepSpec("queued", fn=print, resources=ResourceConfig(partition="long", nodes=2)),
    ]
    with pytest.raises(StepError, match=r"nodes \(2\), partition \(long\)"):
        StepRunner().run(steps)
    assert counted("ran") == []


def ctrl_c_ends_the_job() -> None:
    """The function hears of it, the actor is gone, and nothing is published."""
    driver = start("drive_a_long_step")
    until(lambda: counted("began"), "the step began")
    driver.send_signal(signal.SIGINT)
    assert driver.wait(60) != 0
    assert counted("heard")
    assert not list(Path(".treadle/artifacts").glob("long_*"))
    until(lambda: actors() == [], "its actor ends")


def drive_a_long_step() -> None:
    folder = os.getcwd()

    def wait(out: str, ctx: Any) -> None:
        count(f"{folder}/began")
        while not ctx.cancelled:
            time.sleep(0.01)
        count(f"{folder}/heard")
        raise RuntimeError("cancelled")

    StepRunner().run([StepSpec("long", fn=wait, resources=ONE)])


def a_killed_drivers_job_is_adopted() -> None:
    """kill -9 in mid-step: the job goes on, the next run takes what it makes, and it ran once."""
    driver = start("drive_a_patient_step")
    until(lambda: counted("began"), "the step began")
    driver.kill()
    driver.wait()
    time.sleep(1.0)
    assert os.path.exists(f"/proc/{counted('began')[0]}"), "the job outlives its driver"
    again = start("drive_a_patient_step")
    time.sleep(2.0)
    Path("go").touch()
    assert again.wait(60) == 0
    assert len(counted("began")) == 1
    assert counted("done") == counted("began")


def drive_a_patient_step() -> None:
    folder = os.getcwd()

    def wait(out: str) -> None:
        count(f"{folder}/began")
        while not os.path.exists(f"{folder}/go"):
            time.sleep(0.01)
        count(f"{folder}/done")
        Path(out).touch()

    StepRunner().run([StepSpec("patient", fn=wait, resources=ONE)])


def a_job_ends_while_no_driver_lives() -> None:
    """It publishes by itself, and lets go of what it holds: the next run has nothing to do."""
    driver = start("drive_a_patient_step")
    until(lambda: counted("began"), "the step began")
    driver.kill()
    driver.wait()
    Path("go").touch()
    until(lambda: list(Path(".treadle/artifacts/.treadle-artifacts").glob("patient_*.json")), "its record")
    until(lambda: actors() == [], "what it held is free again")
    assert start("drive_a_patient_step").wait(60) == 0
    assert len(counted("began")) == 1


def a_command_is_adopted_by_its_name() -> None:
    """Commands have no lease: they are found by name, alive or by what they wrote down."""
    driver = start("drive_two_commands")
    until(lambda: Path("up1").exists() and Path("up2").exists(), "both began")
    driver.kill()
    driver.wait()
    Path("go1").touch()
    until(lambda: Path("out1").exists(), "the first goes on")

    bench = commands()
    names = [one.name for one in bench]
    from treadle.backends.ray_backend import RayBackend
    from treadle.backends.ray_cluster import RayCluster

    backend = RayBackend(RayCluster(ADDRESS), workdir=os.getcwd())
    until(lambda: Path(".treadle/runs/r/payloads/1.result").exists(), "its end is written down")
    found = backend.find([*names, "taaaaaaaa-9"])
    assert sorted(found) == sorted(names), found
    Path("go2").touch()
    ended: dict[str, Any] = {}

    def turn() -> bool:
        ended.update({one.job: one.outcome for one in backend.poll(list(found.values())) if one.outcome})
        return len(ended) == 2

    until(turn, "both ends are told")
    assert {outcome.exit_code for outcome in ended.values()} == {3}
    assert len(counted("runs1")) == len(counted("runs2")) == 1
    assert backend.logs(names[0]) == [bench[0].log]
    until(lambda: actors() == [], "their actors end")


def commands() -> list[Any]:
    from treadle.base.layout import StateFolder
    from treadle.base.names import job_name
    from treadle.engine.backend import Submission
    from treadle.plan.task import Resources, ScheduledTask

    run = StateFolder(os.getcwd()).run("r")
    text = "echo $$ >> runs{n}; touch up{n}; until test -e go{n}; do sleep 0.02; done; touch out{n}; exit 3"
    return [
        Submission(
            task=ScheduledTask(id=f"c{n}", rule="c"),
            attempt=1,
            n=n,
            name=job_name("r", n),
            argv=("bash", "-c", text.format(n=n)),
            env={"TREADLE_ATTEMPT": f"r.{n}"},
            cwd=os.getcwd(),
            log=run.attempt_log(n),
            resources=Resources(),
        )
        for n in (1, 2)
    ]


def drive_two_commands() -> None:
    from treadle.backends.ray_backend import RayBackend
    from treadle.backends.ray_cluster import RayCluster

    os.makedirs(".treadle/runs/r/logs")
    RayBackend(RayCluster(ADDRESS), workdir=os.getcwd()).submit(commands())
    time.sleep(600)


def a_command_ends_with_its_killed_actor() -> None:
    """SIGKILL to the actor: what it had started does not go on beside the retry."""
    from treadle.backends.ray_backend import RayBackend
    from treadle.backends.ray_cluster import RayCluster
    from treadle.base.proc import live_members
    from treadle.records.event import EndReason

    os.makedirs(".treadle/runs/r/logs")
    backend = RayBackend(RayCluster(ADDRESS), workdir=os.getcwd())
    (one, _) = commands()
    (answer,) = backend.submit([one])
    until(lambda: counted("runs1"), "it began")
    (shell,) = counted("runs1")
    actor = int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(actor, signal.SIGKILL)
    outcomes: list[Any] = []

    def turn() -> bool:
        outcomes.extend(report.outcome for report in backend.poll([answer.job]) if report.outcome)
        return bool(outcomes)

    until(turn, "its end is told")
    assert outcomes[0].reason is EndReason.APP, outcomes
    assert "its process died" in outcomes[0].message, outcomes
    until(lambda: live_members(shell) == [], "the command ends, too")


def another_version_is_refused_with_both_named() -> None:
    from treadle import __version__
    from treadle.backends import payload, ray_ticket

    payload.__version__ = ray_ticket.__version__ = "9.9"
    with pytest.raises(StepRunError) as found:
        StepRunner().run([StepSpec("old", fn=print, resources=ONE)])
    (root,) = found.value.exceptions
    assert "Treadle 9.9" in str(root), root
    assert f"Treadle {__version__}" in str(root), root


def what_waits_for_a_larger_cluster_says_so() -> None:
    """More than any node has: it waits, with the reason, and can be cancelled before it began."""
    from msgspec.structs import replace

    from treadle.backends.ray_backend import RayBackend
    from treadle.backends.ray_cluster import RayCluster
    from treadle.engine.backend import JobStatus
    from treadle.plan.task import Resources
    from treadle.records.event import EndReason

    backend = RayBackend(RayCluster(ADDRESS), workdir=os.getcwd())
    (one, _) = commands()
    (answer,) = backend.submit([replace(one, resources=Resources(threads=1000))])
    (report,) = backend.poll([answer.job])
    assert report.status is JobStatus.PENDING
    assert "1000 CPU" in report.reason
    assert backend.find([one.name]) == {one.name: answer.job}
    backend.cancel([answer.job])
    outcomes: list[Any] = []

    def turn() -> bool:
        outcomes.extend(report.outcome for report in backend.poll([answer.job]) if report.outcome)
        return bool(outcomes)

    until(turn, "its end is told")
    assert outcomes[0].reason is EndReason.CANCELLED
    assert not counted("runs1")


def the_protocol_of_ray_clients_will_do() -> None:
    """`ray://`: the driver itself need not be a node of the cluster."""
    from treadle import RayClient

    client = RayClient("ray://127.0.0.1:10001")
    good = StepSpec("good", fn=lambda out: "made", resources=ONE)
    bad = StepSpec("bad", fn=lambda out: os._exit(3), resources=ONE)
    with pytest.raises(StepRunError, match="1 step failed"):
        StepRunner(client=client).run([good, bad])
    assert good.load() == "made"
    client.close()


def large_functions_travel_in_files() -> None:
    """What Ray would put into its object store, where it ends with the driver, goes by a private file."""
    ballast = os.urandom(300_000)
    step = StepSpec("large", fn=lambda out: len(ballast), resources=ONE)
    assert StepRunner().run([step]).ok
    assert step.load() == 300_000
    assert [path.name for path in Path(".treadle").rglob("*.call")] == []


def jobs_of_the_client() -> None:
    """A value, an exception, a log, the end of a job that hangs."""
    from treadle import RayClient
    from treadle.backends.client_jobs import JobRequest

    client = RayClient(ADDRESS)

    def fail() -> None:
        print("on the way")
        raise ValueError("no such layer")

    def hang() -> None:
        Path("up").touch()
        time.sleep(600)

    good = client.submit(JobRequest(fn=lambda x: x + 1, args=(41,), resources=ONE, name="add"))
    bad = client.submit(JobRequest(fn=fail))
    assert good.result(60) == 42
    with pytest.raises(ValueError, match="no such layer") as found:
        bad.result(60)
    assert "in fail" in str(found.value.__cause__)
    assert bad.logs().startswith("on the way\n")
    hung = client.submit(JobRequest(fn=hang))
    until(lambda: Path("up").exists(), "it began")
    hung.terminate()
    with pytest.raises(StepError, match="cancelled"):
        hung.result(60)
    client.close()


def a_cluster_of_our_own_starts_and_ends() -> None:
    """Without an address one is started; requests are cut to what the machine has; it ends with us."""
    code = (
        "step = treadle.StepSpec('own', fn=lambda out: os.environ['TREADLE_CLIENT'],"
        " resources=treadle.ResourceConfig(cpu=4, memory_gb=1000))\n"
        "assert treadle.StepRunner(client=client).run([step]).ok\n"
        "print(step.load())\n"
    )
    said = with_own_cluster(code)
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip().rpartition(":")[2].isdigit(), said.stdout


def lack_of_memory_is_told_as_such() -> None:
    """A node whose monitor finds any use of memory too much kills the worker: the reason is oom."""
    code = (
        "import time\n"
        "step = treadle.StepSpec('greedy', fn=lambda out: time.sleep(60),"
        " resources=treadle.ResourceConfig())\n"
        "try: treadle.StepRunner(client=client).run([step])\n"
        "except treadle.StepRunError as error: print(error.exceptions[0])\n"
    )
    said = with_own_cluster(code, RAY_memory_usage_threshold="0.0001")
    assert "(oom): Ray ended it for lack of memory" in said.stdout, said.stdout + said.stderr


def with_own_cluster(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python that has a `client` which starts a Ray of its own."""
    env = {name: value for name, value in os.environ.items() if name not in ("TREADLE_CLIENT", "RAY_ADDRESS")}
    with tempfile.TemporaryDirectory(
        prefix="r", dir="/tmp", ignore_cleanup_errors=True
    ) as folder:  # a short one
        options = {"num_cpus": 1, "object_store_memory": 80 << 20, "_temp_dir": folder}
        code = f"import os, treadle\nclient = treadle.RayClient(options={options})\n{code}"
        argv = [sys.executable, "-c", code]
        return subprocess.run(argv, env={**env, **more}, capture_output=True, text=True, timeout=90)


def start(name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, HERE, name], stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
