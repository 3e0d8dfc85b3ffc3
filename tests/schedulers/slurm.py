"""SLURM on one machine: munge, MariaDB and slurmdbd where accounting is wanted, controller, nodes.

Recorded with 22.05.8. Every virtual node is a slurmd with a name and a port of its own (Debian builds with
multiple-slurmd), so names must differ between clusters of one machine: they stand in the paths of cgroups.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from schedulers.daemons import Daemons

_CONF = Path(__file__).with_name("conf")
_MEMORY_CGROUP = Path("/sys/fs/cgroup/memory")
_UP = ("idle", "mixed", "allocated")

Facts = dict[str, Any]


def start(
    folder: Path,
    *,
    ports: int,
    accounting: bool = True,
    remembered: int = 300,
    nodes: int = 2,
    cpus: int = 16,
    memory: int = 16_000,
) -> tuple[Daemons, Facts]:
    """Start all of it below `folder`, on the free ports from `ports` on (two, and one for each node).

    `cpus` and `memory` (MB) are what each node claims to have; the queue forgets jobs `remembered` seconds
    after their end (or some seconds later).
    """
    prefix = f"t{ports}n"
    names = [f"{prefix}{number}" for number in range(1, nodes + 1)]
    limits = _memory_limits()
    settings = {"SLURM_CONF": str(folder / "slurm.conf"), "MYSQL_UNIX_PORT": str(folder / "sql.socket")}
    daemons = Daemons(folder, settings)
    values = {
        "folder": folder,
        "host": socket.gethostname().partition(".")[0],
        "cluster": f"t{ports}",
        "controller_port": ports,
        "accounting_port": ports + 1,
        "node_port": ports + 2,
        "node_ports": f"[{ports + 2}-{ports + 1 + nodes}]",
        "nodes": f"{prefix}[1-{nodes}]",
        "cpus": cpus,
        "memory": memory,
        "memory_each": memory // cpus // 2,
        "remembered": remembered,
        "task_plugin": "task/cgroup" if limits == "cgroup" else "task/none",
        "gather_parameters": "OverMemoryKill" if limits == "polling" else "NoOverMemoryKill",
        "constrain": "yes" if limits == "cgroup" else "no",
        "accounting": _accounting(folder, ports + 1 if accounting else 0),
    }
    for name in ("slurm.conf", "cgroup.conf", "slurmdbd.conf"):
        _write(folder / name, Template((_CONF / name).read_text()).substitute(values))
    _start_munge(folder, daemons)
    if accounting:
        _start_accounting(folder, daemons)
    _start_cluster(folder, daemons, names)
    env = {"SLURM_CONF": settings["SLURM_CONF"]}
    return daemons, {"env": env, "nodes": names, "memory_limits": limits, "accounting": accounting}


def _memory_limits() -> str:
    """`cgroup` (state OUT_OF_MEMORY) where a memory controller of version 1 can be used, else `polling`.

    With version 2 this SLURM asks systemd for its cgroups.
    """
    probe = _MEMORY_CGROUP / f"treadle-probe.{os.getpid()}"
    if not (_MEMORY_CGROUP / "memory.limit_in_bytes").exists():
        return "polling"
    try:
        probe.mkdir()
    except OSError:
        return "polling"
    probe.rmdir()
    return "cgroup"


def _accounting(folder: Path, port: int) -> str:
    if not port:
        return "AccountingStorageType=accounting_storage/none"
    return "\n".join(
        (
            "AccountingStorageType=accounting_storage/slurmdbd",
            "AccountingStorageHost=127.0.0.1",
            f"AccountingStoragePort={port}",
            f"AccountingStoragePass={folder}/munge.socket",  # slurm.conf(5): for a munge of its own
            "AccountingStoreFlags=job_comment",
        )
    )


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)  # slurmdbd insists on it for its own
    path.write_text(text)


def _start_munge(folder: Path, daemons: Daemons) -> None:
    key, socket_ = folder / "munge.key", folder / "munge.socket"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(1024))
    argv = [
        "munged",
        "--foreground",
        f"--key-file={key}",
        f"--socket={socket_}",
        f"--log-file={folder}/log/munged.log",
        f"--pid-file={folder}/munged.pid",
        f"--seed-file={folder}/munged.seed",
    ]
    daemons.add("munged", argv, lambda: bool(daemons.says("munge", f"--socket={socket_}", "--no-input")))


def _start_accounting(folder: Path, daemons: Daemons) -> None:
    data, socket_ = f"{folder}/sql", f"{folder}/sql.socket"
    daemons.does(
        "mariadb-install-db",
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    )
    argv = [
        "mariadbd",
        "--no-defaults",
        "--user=root",
        f"--datadir={data}",
        f"--socket={socket_}",
        f"--pid-file={folder}/mariadbd.pid",
        "--skip-networking",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=64M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
        "--performance-schema=OFF",
    ]
    ask = ("mariadb", "--no-defaults", f"--socket={socket_}", "-uroot", "-e", "select 1")
    daemons.add("mariadbd", argv, lambda: bool(daemons.says(*ask)))
    listed = ("sacctmgr", "list", "cluster")  # its heading, at least
    daemons.add("slurmdbd", ["slurmdbd", "-D"], lambda: bool(daemons.says(*listed)))


def _start_cluster(folder: Path, daemons: Daemons, names: list[str]) -> None:
    (folder / "state").mkdir()
    conf = f"{folder}/slurm.conf"
    ping = ("scontrol", "ping")
    daemons.add("slurmctld", ["slurmctld", "-D", "-f", conf], lambda: " is UP" in daemons.says(*ping))
    for name in names:
        (folder / f"spool.{name}").mkdir()
        daemons.add(name, ["slurmd", "-D", "-N", name, "-f", conf], partial(_is_up, daemons, name))


def _is_up(daemons: Daemons, node: str) -> bool:
    return daemons.says("sinfo", "-h", "-p", "main", "-n", node, "-o", "%T").strip() in _UP


def remove_cgroups(prefix: str) -> None:
    """Remove what the nodes of an ended cluster left of cgroups; `prefix` begins the names of its nodes."""
    if not prefix:
        return
    for top in Path("/sys/fs/cgroup").glob(f"*/slurm_{prefix}*"):
        for folder, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):  # a process is just ending: the next start removes it
                os.rmdir(folder)
