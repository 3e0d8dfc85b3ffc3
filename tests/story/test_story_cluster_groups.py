"""Groups: tasks that build on each other in one job, each with an end, a log and evidence of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_runs import Place, fake_site
from treadle.testing.schedulers import FakeCluster
from waiting import until

Cluster = Callable[..., FakeCluster]
KINDS = ("slurm", "pbs", "torque", "sge", "lsf")
FLOW = """
[workflow]
name = "groups"
strict_shell = true

[[rules]]
name = "trim"
input = ["in/{sample}.txt"]
output = ["trim/{sample}.txt"]
group = "reads"
shell = "echo trim-{sample} >> starts; test ! -e bad/{sample}; cat {input} > {output}"
resources = { threads = 1, memory = "2G", time_limit = "10m" }

[[rules]]
name = "align"
input = ["trim/{sample}.txt"]
output = ["align/{sample}.txt"]
group = "reads"
retries = 1
retry_delay = "0s"
shell = "echo align-{sample} >> starts; test ! -e worse/{sample}; cat {input} {input} > {output}"
resources = { threads = 4, memory = "1G", time_limit = "20m" }

[[rules]]
name = "all"
input = ["align/{sample}.txt"]
output = ["all.txt"]
shell = "echo all >> starts; cat {input} > {output}"
"""
TASKS = [f"{rule}-{sample}" for sample in "abc" for rule in ("trim", "align")]
ONCE = {**dict.fromkeys(TASKS, 1), "all": 1}
DONE = "".join(f"{name}\n{name}\n" for name in "abc")


def lay_out(path: Path, fake: FakeCluster, **settings: object) -> Place:
    place = Place(path, fake_site(fake, **settings))
    place.write("main.oxoflow", FLOW)
    for name in "abc":
        place.write(f"in/{name}.txt", f"{name}\n")
    return place


def submitted(fake: FakeCluster) -> int:
    names = ("sbatch", "qsub", "bsub")
    return sum(fake.calls().get(name, 0) for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_chains_of_a_group_are_one_job_each_and_elements_of_one_array(
    kind: str, tmp_path: Path, fake_cluster: Cluster
) -> None:
    fake = fake_cluster(kind, slots=12)
    place = lay_out(tmp_path, fake)
    place.treadle("run")
    assert place.read("all.txt") == DONE
    assert place.starts() == ONCE
    assert submitted(fake) == 2
    assert len(fake.jobs()) == 4
    assert {(job.task, job.state) for job in place.jobs()} == {
        *((f"{rule}/sample={name}", "succeeded") for rule in ("trim", "align") for name in "abc"),
        ("all", "succeeded"),
    }
    assert place.will_run() == (set(), set())
    assert "nothing to do" in place.treadle("run")


def test_a_group_asks_for_the_most_of_each_and_the_time_of_all(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm", slots=12))
    shown = place.treadle("plan", "--show", "submit")
    for script in (shown, ""):
        text = script or (place.job_folders()[0] / "job.sh").read_text()
        assert "#SBATCH --time=0-00:30:00" in text
        assert "#SBATCH --cpus-per-task=4" in text
        assert "#SBATCH --mem=2048M" in text
        assert "#SBATCH --array=1-3" in text
        if script:
            place.treadle("run")


def test_one_that_fails_stops_those_behind_it_alone(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm", slots=12))
    place.write("bad/b", "")
    place.treadle("run", "--keep-going", exits=1)
    assert place.starts() == {name: 1 for name in TASKS if name != "align-b"}
    ends = {event["task"]: event["state"] for event in place.events() if event["event"] == "task_settled"}
    assert ends["trim/sample=b"] == "failed"
    assert ends["align/sample=b"] == "blocked"
    assert ends["align/sample=c"] == "succeeded"
    (place / "bad/b").unlink()
    place.treadle("run")
    assert place.read("all.txt") == DONE
    assert place.starts() == {**ONCE, "trim-b": 2}


def test_one_behind_another_is_tried_again_without_it(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm", slots=12))
    place.write("worse/c", "")
    place.treadle("run", "--keep-going", exits=1)
    assert place.starts() == {**dict.fromkeys(TASKS, 1), "align-c": 2}
    (place / "worse/c").unlink()
    place.treadle("run")
    assert place.read("all.txt") == DONE
    assert place.starts() == {**ONCE, "align-c": 3}


def test_a_driver_that_is_killed_repeats_nothing_of_a_group(tmp_path: Path, fake_cluster: Cluster) -> None:
    fake = fake_cluster("slurm", slots=12)
    place = lay_out(tmp_path, fake)
    waiting = FLOW.replace("test ! -e worse/{sample}", "until test -e go; do sleep 0.05; done")
    place.write("main.oxoflow", waiting)
    run = place.start("run")
    until(lambda: len(place.starts()) == 6 or run.poll() is not None, "all three chains")
    run.kill()
    run.communicate()
    place.write("go", "")
    place.treadle("run")
    assert place.read("all.txt") == DONE
    assert place.starts() == ONCE


@pytest.mark.parametrize("events", range(3, 16, 2))
def test_a_driver_killed_at_any_event_repeats_nothing_of_a_group(
    events: int, tmp_path: Path, fake_cluster: Cluster
) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm", slots=12))
    run = place.start("run")
    until(lambda: run.poll() is not None or (place.runs() and len(place.events()) >= events), "its events")
    run.kill()
    run.communicate()
    place.treadle("run")
    assert place.read("all.txt") == DONE
    assert place.starts() == ONCE


def test_ctrl_c_ends_all_of_a_group(tmp_path: Path, fake_cluster: Cluster) -> None:
    fake = fake_cluster("slurm", slots=12, kill_wait=0.5)
    place = lay_out(tmp_path, fake)
    place.write(
        "main.oxoflow", FLOW.replace("test ! -e bad/{sample}", "until test -e go; do sleep 0.05; done")
    )
    run = place.start("run")
    until(lambda: len(place.starts()) == 3 or run.poll() is not None, "all three chains")
    run.terminate()
    _, said = run.communicate(timeout=60)
    assert run.returncode == 143, said
    assert {job.state for job in place.jobs()} == {"cancelled"}
    place.write("go", "")
    place.treadle("run")
    assert place.read("all.txt") == DONE


def test_what_may_be_cut_off_is_judged_by_itself(tmp_path: Path, fake_cluster: Cluster) -> None:
    place = lay_out(tmp_path, fake_cluster("slurm", slots=12))
    place.write(
        "main.oxoflow",
        FLOW.replace('cat {input} > {output}"\nresources', 'sort {input} > {output}"\nresources'),
    )
    for name in "abc":
        place.write(f"in/{name}.txt", "x\ny\n")
    place.treadle("run")
    place.write("in/b.txt", "y\nx\n")
    assert place.will_run() == (
        {"trim/sample=b", "align/sample=b", "all"},
        {"align/sample=b", "all"},
    )
    place.treadle("run")
    assert place.starts() == {**ONCE, "trim-b": 2}


def test_a_group_that_no_partition_has_time_for_is_divided_and_that_is_said(
    tmp_path: Path, fake_cluster: Cluster
) -> None:
    fake = fake_cluster("slurm", slots=12)
    place = lay_out(tmp_path, fake)
    profile = place.read(".config/treadle/there.toml")
    limits = '\n[partitions.main]\nthreads = 8\nmemory = "8G"\ntime_limit = "25m"\n'
    place.write(".config/treadle/there.toml", profile + limits)
    said = place.treadle("run")
    assert (
        "connected tasks of group 'reads' become several jobs: one job cannot be had for all of them" in said
    )
    assert place.starts() == ONCE
    assert len(fake.jobs()) == 7


def test_a_path_that_leaves_a_group_and_comes_back_divides_it(tmp_path: Path, fake_cluster: Cluster) -> None:
    fake = fake_cluster("slurm", slots=12)
    place = Place(tmp_path, fake_site(fake))
    rule = (
        '[[rules]]\nname = "{0}"\ninput = [{1}]\noutput = ["{0}.txt"]\n{2}\n'
        'shell = "echo {0} >> starts; touch {{output}}"\n'
    )
    group = 'group = "g"'
    place.write(
        "main.oxoflow",
        '[workflow]\nname = "path"\nstrict_shell = true\n'
        + rule.format("one", "", group)
        + rule.format("out", '"one.txt"', "")
        + rule.format("two", '"one.txt", "out.txt"', group)
        + rule.format("three", '"two.txt"', group),
    )
    said = place.treadle("run")
    assert "connected tasks of group 'g' become several jobs: a path leaves the group and comes back" in said
    assert place.starts() == dict.fromkeys(("one", "out", "two", "three"), 1)
    assert submitted(fake) == 3


def test_a_group_has_no_effect_on_this_machine(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("main.oxoflow", FLOW)
    for name in "abc":
        place.write(f"in/{name}.txt", f"{name}\n")
    place.treadle("run")
    assert place.starts() == ONCE


FOUND = """
[workflow]
name = "found"
strict_shell = true

[[rules]]
name = "find"
input = ["names.toml"]
output = ["found.toml"]
group = "g"
checkpoint = true
checkpoint_manifest = "found.toml"
checkpoint_extends = ["values.part"]
shell = "echo find >> starts; cp {input} {output}"

[[rules]]
name = "make"
output = ["made/{part}"]
group = "g"
shell = "echo make-{part} >> starts; echo {part} > {output}"

[[rules]]
name = "mend"
input = ["made/{part}"]
output = ["mended/{part}"]
group = "g"
shell = "echo mend-{part} >> starts; cp {input} {output}"

[[rules]]
name = "all"
input = ["mended/{part}"]
output = ["all.txt"]
shell = "echo all >> starts; cat {input} > {output}"
"""


def test_chains_that_a_checkpoint_finds_are_groups_as_well(tmp_path: Path, fake_cluster: Cluster) -> None:
    fake = fake_cluster("slurm", slots=12)
    place = Place(tmp_path, fake_site(fake))
    place.write("main.oxoflow", FOUND)
    place.write("names.toml", '[reentry.values]\npart = ["x", "y"]\n')
    place.treadle("run")
    assert place.read("all.txt") == "x\ny\n"
    assert place.starts() == dict.fromkeys(("find", "make-x", "make-y", "mend-x", "mend-y", "all"), 1)
    assert len(fake.jobs()) == 4
    place.write("names.toml", '[reentry.values]\npart = ["x", "y", "z"]\n')
    place.treadle("run")
    assert place.read("all.txt") == "x\ny\nz\n"
    assert place.starts()["make-x"] == 1
    assert place.starts()["mend-z"] == 1


def test_rules_in_a_group_and_packs_and_others_share_a_run(tmp_path: Path, fake_cluster: Cluster) -> None:
    fake = fake_cluster("slurm", slots=12)
    place = lay_out(tmp_path, fake)
    packed = '\n[[rules]]\nname = "count"\ninput = ["align/{sample}.txt"]\noutput = ["count/{sample}.txt"]\n'
    packed += 'pack = 3\nshell = "echo count-{sample} >> starts; wc -l < {input} > {output}"\n'
    place.write("main.oxoflow", FLOW + packed)
    place.treadle("run")
    assert place.starts() == {**ONCE, **{f"count-{name}": 1 for name in "abc"}}
    assert place.will_run() == (set(), set())
