"""Commands run in fake clusters, and what real ones said (`tests/fixtures/schedulers/`)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from msgspec import Struct

from treadle.testing.schedulers import FakeCluster

FIXTURES = Path(__file__).parents[2] / "fixtures" / "schedulers"
SLURM, PBS, SGE = "slurm-22.05.8", "openpbs-23.06.06", "sge-8.1.9"
_BLOCK = re.compile(r"^\$ (.*)\n((?:(?!\$ |\[exit |```).*\n)*)\[exit ([0-9]+)", re.MULTILINE)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_CTIME = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}|\d\d/\d\d/\d{4} \d\d:\d\d:\d\d")


class Said(Struct, frozen=True):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def say(cluster: FakeCluster, command: str, cwd: Path, stdin: str = "") -> Said:
    """Run a shell command with the cluster's commands first on PATH."""
    done = subprocess.run(
        command, shell=True, env=cluster.env, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60
    )
    return Said(done.returncode, done.stdout, done.stderr)


def recorded(version: str, command: str, nth: int = 0) -> Said:
    """What a real one answered to exactly this command."""
    blocks = list(_BLOCK.finditer((FIXTURES / f"{version}.md").read_text()))
    code, lines = next(
        (int(found[3]), found[2].splitlines(keepends=True))
        for found in [found for found in blocks if found[1] == command][nth:]
    )
    err = [line.removeprefix("[stderr] ") for line in lines if line.startswith("[stderr] ")]
    return Said(code, "".join(line for line in lines if not line.startswith("[stderr] ")), "".join(err))


def shape(text: str) -> str:
    """A text without what differs from run to run: times, numbers, names of nodes and people."""
    text = _CTIME.sub("TIME", _TIME.sub("TIME", text))
    text = re.sub(r"\b(x[12]|node[0-9]+|localhost)\b", "NODE", text)
    return re.sub(r"[0-9]+", "0", text)


def alike(mine: Said, real: Said) -> None:
    assert mine.code == real.code, mine
    assert shape(mine.out) == shape(real.out)
    assert shape(mine.err) == shape(real.err)
