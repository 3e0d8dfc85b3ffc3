"""What this machine lets us use, read from cgroups laid out in a folder."""

from __future__ import annotations

import os

import pytest

from treadle.base import machine

G = 1024**3
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def put(root: str, name: str, text: str) -> None:
    os.makedirs(os.path.dirname(root + name), exist_ok=True)
    with open(root + name, "w") as file:
        file.write(text)


def test_without_limits_it_is_the_affinity_and_the_whole_memory(tmp_path):
    root = f"{tmp_path}/"
    assert machine.usable_cpus(root) == CPUS
    assert machine.usable_memory(root) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.oom_kills(root) == (-1, -1)


def test_the_lowest_limit_on_the_way_up_counts_in_cgroup_v2(tmp_path):
    root = f"{tmp_path}/"
    put(root, "proc/self/cgroup", "0::/user.slice/job\n")
    put(root, "sys/fs/cgroup/user.slice/job/memory.max", "max\n")
    put(root, "sys/fs/cgroup/user.slice/job/memory.high", "max\n")
    put(root, "sys/fs/cgroup/user.slice/memory.max", f"{G // 4}\n")
    put(root, "sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n")
    put(root, "sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n")
    put(root, "sys/fs/cgroup/user.slice/job/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    put(root, "proc/vmstat", "nr_free_pages 5\noom_kill 7\n")
    assert machine.usable_memory(root) == G // 4
    assert machine.usable_cpus(root) == 1
    assert machine.oom_kills(root) == (2, 7)


def test_a_quota_is_rounded_up(tmp_path):
    root = f"{tmp_path}/"
    put(root, "proc/self/cgroup", "0::/\n")
    put(root, "sys/fs/cgroup/cpu.max", "100001 100000\n")
    assert machine.usable_cpus(root) == min(2, CPUS)


def test_the_limits_of_cgroup_v1_count(tmp_path):
    root = f"{tmp_path}/"
    put(root, "proc/self/cgroup", "5:memory:/docker/a:b\n4:cpu,cpuacct:/docker/a:b\n1:name=systemd:/x\n")
    put(root, "sys/fs/cgroup/memory/docker/a:b/memory.limit_in_bytes", f"{G // 2}\n")
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    put(
        root,
        "sys/fs/cgroup/memory/docker/a:b/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
    )
    put(root, "sys/fs/cgroup/cpu,cpuacct/docker/a:b/cpu.cfs_quota_us", "-1\n")
    put(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "90000\n")
    put(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert machine.usable_memory(root) == G // 2
    assert machine.usable_cpus(root) == 1
    assert machine.oom_kills(root)[0] == 4


@pytest.mark.parametrize(
    ("variables", "ids"),
    [
        ({"TREADLE_GPUS": "2, 3"}, ["2", "3"]),
        ({"TREADLE_GPUS": "", "CUDA_VISIBLE_DEVICES": "0"}, []),
        ({"CUDA_VISIBLE_DEVICES": "0,GPU-8f"}, ["0", "GPU-8f"]),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, []),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
    ],
)
def test_gpus_are_those_that_the_environment_names(monkeypatch, variables, ids):
    for name in ("TREADLE_GPUS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert machine.gpus_here() == ids


def test_who_the_machine_is_can_be_told():
    assert machine.host() == os.uname().nodename
    assert machine.boot_id() == machine.boot_id()
    if os.path.exists("/proc/self/ns/pid"):
        assert machine.pid_namespace().startswith("pid:[")
