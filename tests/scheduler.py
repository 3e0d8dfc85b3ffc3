"""Runs the command after `--`, or a shell, beside a real batch system that ends with it.

    .venv/bin/python tests/scheduler.py slurm -- sinfo
    .venv/bin/python tests/scheduler.py sge

Needs root and what `sh tests/debian-packages.sh` installs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from schedulers.start import Scheduler, missing


def main() -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("kind", choices=("slurm", "sge"))
    parser.add_argument("--no-accounting", action="store_true", help="SLURM without slurmdbd")
    parser.add_argument("--remembered", type=int, default=300, help="seconds that SLURM's queue keeps jobs")
    parser.add_argument("--nodes", type=int, default=2, help="nodes of SLURM")
    parser.add_argument("--folder", type=Path, help="below which to work (a short path)")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    chosen, command = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    options = {"accounting": not chosen.no_accounting, "remembered": chosen.remembered, "nodes": chosen.nodes}
    if why := missing(chosen.kind, accounting=options["accounting"]):
        print(why, file=sys.stderr)
        return 2
    scheduler = Scheduler(chosen.kind, chosen.folder, **(options if chosen.kind == "slurm" else {}))
    try:
        where = {name: value for name, value in scheduler.env.items() if name != "PATH"}
        print(f"{chosen.kind} is up, logs in {scheduler.folder}/log; {where}", file=sys.stderr)
        shell = [os.environ.get("SHELL", "/bin/sh")]
        return subprocess.run(command or shell, env={**os.environ, **scheduler.env}).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        scheduler.close()


if __name__ == "__main__":
    sys.exit(main())
