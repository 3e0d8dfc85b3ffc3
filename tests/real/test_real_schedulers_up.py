"""Real schedulers for tests: apart from each other and from this machine, and ended with who started them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dialect_world import Asked, lines_of

from schedulers.start import Scheduler, missing

pytestmark = pytest.mark.real
TESTS = Path(__file__).parent.parent


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Sockets need one, and munged one that is open to all."""
    made = Path(tempfile.mkdtemp(prefix="treadle-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def listening() -> set[tuple[str, int]]:
    """Addresses (as the kernel writes them) and ports on which somebody listens here."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in lines_of(table)[1:]:
            _, local, _, state, *_ = line.split()
            if state == "0A":
                address, _, port = local.rpartition(":")
                found.add((address, int(port, 16)))
    return found


def processes_of(folder: Path) -> list[str]:
    """Ids of processes whose command line names the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words:
            found.append(path.parent.name)
    return found


def test_slurm_listens_on_loopback_only(slurm: Scheduler) -> None:
    first = int((slurm.folder / "ports").read_text())
    mine = {(address, port) for address, port in listening() if first <= port < first + 4}
    assert {port for _, port in mine} == set(range(first, first + 4))
    assert {address for address, _ in mine} == {"0100007F"}


def test_sge_is_not_on_the_network_of_this_machine(grid: Asked) -> None:
    question = ("readlink", "/proc/self/ns/net")
    grid.final(grid.submit(" ".join(question)))
    (inside,) = lines_of(grid.log())
    assert inside.startswith("net:[")
    assert inside != grid.scheduler.run(*question).stdout.strip()


@pytest.mark.xdist_group("slurm_without_accounting")
def test_two_at_once_do_not_see_each_other(slurm_without_accounting: Scheduler, short_path: Path) -> None:
    second = Scheduler("slurm", short_path, accounting=False)
    try:
        job = second.run("sbatch", "--parsable", "--wrap", "exec sleep 600").stdout.strip()
        mine = slurm_without_accounting.run("squeue", "-h", "-t", "all", "-o", "%i %N").stdout
        assert not any(node in mine for node in second.nodes)
        assert not set(second.nodes) & set(slurm_without_accounting.nodes)
        assert second.run("scancel", job).returncode == 0
    finally:
        second.close()
    assert slurm_without_accounting.run("scontrol", "ping").returncode == 0
    assert list(short_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_all_of_it_ends_with_whoever_started_it_even_when_that_is_killed(kind: str, short_path: Path) -> None:
    if why := missing(kind, accounting=False):
        pytest.skip(why)
    submit = {"slurm": "sbatch -o /dev/null --wrap='sleep 600'", "sge": "qsub -b y sleep 600"}[kind]
    script = f"cd {short_path} && {submit} && echo it is up && exec sleep 600"
    argv = [sys.executable, str(TESTS / "scheduler.py"), kind, "--no-accounting", "--folder", str(short_path)]
    with subprocess.Popen([*argv, "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        assert any("it is up" in line for line in starter.stdout)
        (folder,) = short_path.iterdir()
        children = Path(f"/proc/{starter.pid}/task/{starter.pid}/children").read_text().split()
        assert len(processes_of(folder)) > 2
        starter.kill()
        for pid in children:
            comm = Path(f"/proc/{pid}/comm")
            if comm.exists() and comm.read_text().strip() == "sleep":
                os.kill(int(pid), signal.SIGKILL)
    wait_until(lambda: not processes_of(folder))

    def is_cleared_by_the_next() -> bool:
        Scheduler("slurm", short_path, accounting=False).close()
        return not folder.exists()

    wait_until(is_cleared_by_the_next)


def wait_until(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come to pass"
        time.sleep(0.05)
