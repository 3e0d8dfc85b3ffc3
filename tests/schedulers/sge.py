"""Grid Engine on one machine (recorded with Debian's 8.1.9): a master, one execution host, one queue.

Queue `all.q`, parallel environment `smp`, `h_vmem` as a consumable. Its daemons listen on every address and
cannot be told otherwise: hence a network of its own, and clients that step into it.
"""

from __future__ import annotations

import re
import shlex
import socket
from pathlib import Path
from string import Template
from typing import Any

from schedulers.daemons import Daemons

PROGRAMS = Path("/usr/lib/gridengine")
_SHARE = Path("/usr/share/gridengine")
_CONF = Path(__file__).with_name("conf")
_CELL = "cell"
_SCHEDULER = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "job_load_adjustments": "NONE",
    "load_adjustment_decay_time": "0:0:0",
    "schedd_job_info": "true",
}


def settings(folder: Path) -> dict[str, str]:
    """The environment variables that lead to the cell below `folder`."""
    ports = {"SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445"}
    return {"SGE_ROOT": str(folder / "root"), "SGE_CELL": _CELL, **ports}


def start(folder: Path, *, slots: int = 8, memory: int = 16_000) -> tuple[Daemons, dict[str, Any]]:
    """Start all of it below `folder`; `memory` (MB) is what all jobs at once may ask for."""
    values = {"folder": folder, "programs": PROGRAMS, "slots": slots, "memory": memory}
    for path in _CONF.glob("sge.*"):
        (folder / path.name).write_text(Template(path.read_text()).substitute(values))
    _lay_out(folder)
    daemons = Daemons(folder, {**settings(folder), "SGE_ND": "1"})  # in the foreground
    _fill_spool(folder, daemons)
    daemons.add("sge_qmaster", [str(PROGRAMS / "sge_qmaster")], lambda: bool(_asked(daemons, "-sh")))
    _configure(folder, daemons)
    daemons.add("sge_execd", [str(PROGRAMS / "sge_execd")], lambda: _is_up(daemons))
    return daemons, {"env": settings(folder), "nodes": ["localhost"], "accounting": True}


def _lay_out(folder: Path) -> None:
    root, common = folder / "root", folder / "root" / _CELL / "common"
    for made in (common, root / "bin", folder / "spool", folder / "execd", folder / "qmaster/job_scripts"):
        made.mkdir(parents=True)
    (root / "util").symlink_to(_SHARE / "util")
    (root / "bin" / "lx-amd64").symlink_to(PROGRAMS)
    (common / "act_qmaster").write_text("localhost\n")
    # A client whose name and address do not agree is rejected: each name of this machine stands for one.
    names = dict.fromkeys(("localhost", socket.gethostname(), socket.gethostname().partition(".")[0]))
    (common / "host_aliases").write_text(" ".join(names) + "\n")
    (folder / "sge.bootstrap").rename(common / "bootstrap")


def _fill_spool(folder: Path, daemons: Daemons) -> None:
    resources = _SHARE / "util" / "resources"
    daemons.does(f"{PROGRAMS}/spoolinit", "berkeleydb", "libspoolb", f"{folder}/spool", "init")
    for argv in (
        ("configuration", f"{folder}/sge.global"),
        ("complexes", f"{resources}/centry"),
        ("usersets", f"{resources}/usersets"),
        ("managers", "root"),
    ):
        daemons.does(f"{PROGRAMS}/spooldefaults", *argv)


def _configure(folder: Path, daemons: Daemons) -> None:
    complexes = re.sub(r"(?m)^(h_vmem .*<= +YES +)NO +0 ", r"\1YES 512M ", _asked(daemons, "-sc"))
    (folder / "complexes").write_text(complexes)
    scheduler = _asked(daemons, "-ssconf")
    for name, value in _SCHEDULER.items():
        scheduler = re.sub(rf"(?m)^({name}\s+).*", rf"\g<1>{value}", scheduler)
    (folder / "scheduler").write_text(scheduler)
    for option, value in (
        ("-as", "localhost"),
        ("-Mc", "complexes"),
        ("-Ae", "sge.host"),
        ("-Ahgrp", "sge.hosts"),
        ("-Ap", "sge.pe"),
        ("-Aq", "sge.queue"),
        ("-Msconf", "scheduler"),
    ):
        daemons.does(f"{PROGRAMS}/qconf", option, value if option == "-as" else f"{folder}/{value}")


def _asked(daemons: Daemons, question: str) -> str:
    return daemons.says(f"{PROGRAMS}/qconf", question)


def _is_up(daemons: Daemons) -> bool:
    """The queue has had a load report, and shows no state such as `u`."""
    for line in daemons.says(f"{PROGRAMS}/qstat", "-f", "-q", "all.q").splitlines():
        columns = line.split()
        if columns[:1] and columns[0].startswith("all.q@"):
            return len(columns) == 5 and columns[3] != "-NA-"
    return False


def write_clients(folder: Path, process: int) -> None:
    """Programs in `bin` that step into the network of `process` (from a job, they are in there already)."""
    network = f"/proc/{process}/ns/net"
    (folder / "bin").mkdir(exist_ok=True)
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings(folder).items())
    for program in PROGRAMS.glob("q*"):
        client = folder / "bin" / program.name
        client.write_text(
            f"#!/bin/sh\nexport {exports}\n"
            f'[ "$(readlink /proc/self/ns/net)" = {shlex.quote(str(Path(network).readlink()))} ] ||\n'
            f'    exec nsenter --net={network} -- {program} "$@"\nexec {program} "$@"\n'
        )
        client.chmod(0o755)
