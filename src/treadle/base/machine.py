"""This machine as a process may use it: CPUs, memory and GPUs within its limits, and who it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache

_UNLIMITED = 1 << 60  # cgroup v1 says "no limit" with a number near 2^63


@cache
def host() -> str:
    """The name of this machine."""
    return os.uname().nodename


def boot_id() -> str:
    """A text that is another after each start of the machine; empty where there is none."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def pid_namespace() -> str:
    """The namespace in which our process ids count, such as `pid:[4026531836]`; empty where unknown."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def login_name() -> str:
    """The login name of this process's user; empty where it has none, as in many containers."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def usable_cpus(root: str = "/") -> int:
    """CPUs that this process may use, at least 1: its affinity, and its cgroups' quotas rounded up.

    `root` is where proc/ and sys/ are looked for.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    count = affinity or os.cpu_count() or 1
    quotas = [-(-quota // period) for quota, period in _cpu_quotas(root) if quota > 0 and period > 0]
    return max(1, min([count, *quotas]))


def open_more_files() -> bool:
    """Raise this process's limit of open files as far as it may be raised; whether it was lower before."""
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit

    soft, hard = getrlimit(RLIMIT_NOFILE)
    if soft == hard:
        return False
    try:
        setrlimit(RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS: the hard limit may lie above what its kernel allows
        return False
    return True


def usable_memory(root: str = "/") -> int:
    """Bytes of memory that this process may use: the machine's, or the lowest limit of its cgroups."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [limit for limit in _memory_limits(root) if 0 < limit < _UNLIMITED]
    return min([total, *limits])


def gpus_here() -> list[str]:
    """Ids of the GPUs that may be handed out: TREADLE_GPUS, else CUDA_VISIBLE_DEVICES, else the devices."""
    for name in ("TREADLE_GPUS", "CUDA_VISIBLE_DEVICES"):
        text = os.environ.get(name)
        if text is not None:
            ids = [one.strip() for one in text.split(",")]
            return [one for one in ids if one and not one.startswith("-")]  # CUDA reads -1 as none
    numbers = [int(name[6:]) for name in os.listdir("/dev") if re.fullmatch(r"nvidia[0-9]+", name)]
    return [str(number) for number in range(len(numbers))]


def oom_kills(root: str = "/") -> tuple[int, int]:
    """How often the kernel killed for lack of memory: in our own cgroup, and on the whole machine.

    -1 where it is not told. Sources: cgroup-v2 `memory.events`, cgroup-v1 `memory.oom_control`, /proc/vmstat.
    """
    ours = -1
    for folder in _folders(root, "memory"):
        text = _read(f"{folder}/memory.events") or _read(f"{folder}/memory.oom_control")
        if text:
            ours = _field(text, "oom_kill")
            break
    return ours, _field(_read(f"{root}proc/vmstat"), "oom_kill")


def _field(text: str, name: str) -> int:
    found = re.search(rf"^{name} ([0-9]+)$", text, re.MULTILINE)
    return int(found[1]) if found else -1


def _cpu_quotas(root: str) -> Iterator[tuple[int, int]]:
    for folder in _folders(root, "cpu"):
        words = _read(f"{folder}/cpu.max").split()
        if len(words) == 2 and words[0] != "max":
            yield int(words[0]), int(words[1])
        quota = _read(f"{folder}/cpu.cfs_quota_us").strip()
        if quota:
            yield int(quota), int(_read(f"{folder}/cpu.cfs_period_us").strip() or 0)


def _memory_limits(root: str) -> Iterator[int]:
    for folder in _folders(root, "memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            text = _read(f"{folder}/{name}").strip()
            if text.isdigit():
                yield int(text)


def _folders(root: str, controller: str) -> Iterator[str]:
    """The folders of our cgroup and of those above it, innermost first (cgroups(7))."""
    for line in _read(f"{root}proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        top = f"{root}sys/fs/cgroup"
        if controller in controllers.split(","):
            top = f"{top}/{controllers}" if os.path.isdir(f"{top}/{controllers}") else f"{top}/{controller}"
        elif controllers:
            continue
        while path.strip("/"):
            yield top + path.rstrip("/")
            path = os.path.dirname(path.rstrip("/"))
        yield top


def _read(path: str) -> str:
    """A small file of the kernel's, or an empty text."""
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""
