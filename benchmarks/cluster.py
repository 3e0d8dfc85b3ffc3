#!/usr/bin/env python3
"""Schedulers: what the driver costs, and how long short tasks take on a real SLURM.

  cluster.py fake [N ...]   N simulated tasks (default 10000 and 100000) on a fake SLURM: calls of each command,
                            CPU time of the driver in all and for a task
  cluster.py slurm [N]      N short tasks (default 200) on a real SLURM of this machine, Treadle beside
                            Snakemake's SLURM executor plugin (as it comes, and with arrays and quick checks), in
                            turns; needs root, what tests/debian-packages.sh installs, and
                            `run.py setup snakemake-slurm`
Options: --reps K (default 3), --engines treadle,snakemake,snakemake-arrays, --timeout S (1200)
Results are printed, and appended to cluster.jsonl; `cluster.py page` makes SCHEDULERS.md of the last of each.
Scratch: $BENCH_ROOT (default /tmp/bench).
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests"), str(HERE.parent / "tests" / "story")]
from engine import ROOT  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
RESULTS = HERE / "cluster.jsonl"
BAR = 3.0  # times faster than the plugin as it comes

FLOW = """[workflow]
name = "many"

[[tables]]
name = "rows"
file = "rows.json"

[[rules]]
name = "one"
output = ["out/{n}"]
shell = ": > {output}"
memory = "1G"
resources = { time_limit = "5m" }
"""
SNAKEFILE = """rule all:
    input: expand("out/{{n}}", n=range({n}))

rule one:
    output: "out/{{n}}"
    resources: mem_mb=1000, runtime=5
    shell: ": > {{output}}"
"""
MEASURED = """
import resource, sys
from treadle.cli.main import main
code = main(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_SELF)
with open(sys.argv[1], "w") as file:
    file.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss}")
sys.exit(code)
"""


def lay_out(folder: pathlib.Path, n: int, settings: dict) -> None:
    """A fresh folder with the work for both engines."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "profiles").mkdir(parents=True)
    (folder / "main.oxoflow").write_text(FLOW)
    (folder / "rows.json").write_text(json.dumps([{"n": str(number)} for number in range(n)]))
    (folder / "Snakefile").write_text(SNAKEFILE.format(n=n))
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (folder / "profiles" / "there.toml").write_text("\n".join(["[cluster]", *lines, ""]))


def write(result: dict) -> None:
    result = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **result}
    print(json.dumps(result), flush=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(result) + "\n")


# ---------------------------------------------------------------- the driver, on a fake
def fake(n: int) -> None:
    from treadle.testing.schedulers import FakeCluster

    work, place = ROOT / "cluster" / "fake", ROOT / "cluster" / "fake-slurm"
    shutil.rmtree(place, ignore_errors=True)
    size = {"slots": 5000, "nodes": max(2, n // 5000), "speed": 60.0}
    simulator = {"simulator": "story_simulated:ended", "path": [str(HERE.parent / "tests" / "story")]}
    with FakeCluster("slurm", place, **size, **simulator) as cluster:
        cluster.script("simulate", seconds=300)
        asked = {"backend": "slurm", "bin_dir": cluster.bin, "max_submitted": n, "poll_interval": 1}
        lay_out(work, n, asked)
        argv = [sys.executable, "-c", MEASURED, str(work / "cpu"), "run", "-q", "--profile", "there"]
        began = time.monotonic()
        subprocess.run(argv, cwd=work, check=True)
        wall = time.monotonic() - began
        cpu, peak = map(float, (work / "cpu").read_text().split())
        each = {"cpu_ms_each": round(cpu / n * 1000, 3), "peak_mb": round(peak / 1024)}
        write({"what": "fake", "n": n, "wall_s": round(wall, 2), **each, "calls": cluster.calls()})


# ---------------------------------------------------------------- a real one, beside a peer
def commands(n: int) -> dict[str, list[str]]:
    snakemake = [str(ROOT / "venvs" / "snakemake-slurm" / "bin" / "snakemake"), "--executor", "slurm"]
    snakemake += ["--jobs", str(n), "--latency-wait", "30", "--quiet", "rules"]
    snakemake += ["--default-resources", "slurm_partition=main", "slurm_account=root"]
    quick = ["--slurm-array-jobs=all", "--slurm-init-seconds-before-status-checks", "1"]
    return {
        "treadle": [str(BIN / "treadle"), "run", "-q", "--profile", "there"],
        "snakemake": snakemake,
        "snakemake-arrays": [*snakemake, *quick, "--seconds-between-status-checks", "1"],
    }


def version_of(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[-1]


def slurm(n: int, engines: list[str], reps: int, timeout: float) -> int:
    from schedulers.start import Scheduler, missing

    if why := missing("slurm"):
        sys.exit(why)
    walls: dict[str, list[float]] = {name: [] for name in engines}
    scheduler = Scheduler("slurm")
    usual = pathlib.Path("/etc/slurm/slurm.conf")
    try:
        if usual.is_symlink() and not usual.exists():
            usual.unlink()  # of a killed one
        if not usual.exists():  # the plugin's jobs forget SLURM_CONF
            usual.parent.mkdir(exist_ok=True)
            usual.symlink_to(scheduler.env["SLURM_CONF"])
        for _ in range(reps):
            for name in engines:
                work = ROOT / "cluster" / name
                lay_out(work, n, {"backend": "slurm", "partition": "main"})
                env = {**os.environ, **scheduler.env, "HOME": str(work)}
                log = (work / "log").open("w")
                began = time.monotonic()
                done = subprocess.run(
                    commands(n)[name], cwd=work, env=env, stdout=log, stderr=log, timeout=timeout
                )
                wall = time.monotonic() - began
                made = len(list((work / "out").iterdir())) if (work / "out").exists() else 0
                if done.returncode or made != n:
                    sys.exit(f"{name}: exit {done.returncode}, {made} of {n} made; see {work / 'log'}")
                walls[name].append(wall)
                version = version_of(commands(n)[name][0])
                write({"what": "slurm", "engine": name, "version": version, "n": n, "wall_s": round(wall, 2)})
    finally:
        if usual.is_symlink() and os.readlink(usual) == scheduler.env["SLURM_CONF"]:
            usual.unlink()
        scheduler.close()
    middle = {name: statistics.median(found) for name, found in walls.items()}
    for name, wall in middle.items():
        print(f"{name:18} {wall:8.1f} s  {wall / n * 1000:8.0f} ms a task")
    if {"treadle", "snakemake"} <= set(middle):
        ratio = middle["snakemake"] / middle["treadle"]
        print(
            f"Treadle is {ratio:.1f} times faster than the plugin as it comes; at least {BAR:g} are asked for"
        )
        return 0 if ratio >= BAR else 1
    return 0


# ---------------------------------------------------------------- the page
TITLES = {
    "treadle": "Treadle (one array)",
    "snakemake": "Snakemake with its SLURM plugin, as it comes",
    "snakemake-arrays": "the same with arrays, looked at every second",
}


def page() -> int:
    """SCHEDULERS.md of what cluster.jsonl holds: of each measurement those of its last day."""
    found: dict[tuple, list[dict]] = {}
    for line in RESULTS.read_text().splitlines():
        row = json.loads(line)
        key = (row["what"], row.get("engine", ""), row["n"])
        kept = found.get(key, [])
        same_day = kept and kept[0]["time"][:10] == row["time"][:10]
        found[key] = [*kept, row] if same_day else [row]
    lines = [
        "# Schedulers",
        "",
        "Made by `benchmarks/cluster.py page` of what `cluster.py slurm` and `cluster.py fake` measured; medians over",
        f"the runs of a day, ranges in brackets. {os.cpu_count()} cores, the scheduler and all its nodes among them.",
        "",
        "Short tasks (`: > {output}`) on a real SLURM that knows two nodes of 16 CPUs on this machine:",
        "",
        "| engine | tasks | wall time | beside Treadle | runs | day |",
        "|---|---|---|---|---|---|",
    ]
    ours = {n: middle(rows) for (what, engine, n), rows in found.items() if engine == "treadle"}
    for (what, engine, n), rows in sorted(found.items(), key=lambda one: one[0][2]):
        if what == "slurm":
            ratio = f"{middle(rows) / ours[n]:.1f} times as long" if engine != "treadle" and n in ours else ""
            title = f"{TITLES[engine]} {rows[-1].get('version', '')}".strip()
            lines.append(
                f"| {title} | {n:,} | {spread(rows)} | {ratio} | {len(rows)} | {rows[-1]['time'][:10]} |"
            )
    lines += [
        "",
        "Simulated tasks of 300 s on a fake SLURM (clock 60 times as fast, 5,000 slots): what the driver costs.",
        "",
        "| tasks | `sbatch` | `squeue` | `sacct` | CPU time a task | peak memory | day |",
        "|---|---|---|---|---|---|---|",
    ]
    for (what, _, n), rows in sorted(found.items(), key=lambda one: one[0][2]):
        if what == "fake":
            row = rows[-1]
            calls = " | ".join(str(row["calls"].get(name, 0)) for name in ("sbatch", "squeue", "sacct"))
            cost = f"{row['cpu_ms_each']} ms | {row['peak_mb']} MB"
            lines.append(f"| {n:,} | {calls} | {cost} | {row['time'][:10]} |")
    (HERE / "SCHEDULERS.md").write_text("\n".join([*lines, ""]))
    return 0


def middle(rows: list[dict]) -> float:
    return statistics.median(row["wall_s"] for row in rows)


def spread(rows: list[dict]) -> str:
    walls = [row["wall_s"] for row in rows]
    told = f"{middle(rows):.1f} s"
    return told if len(walls) == 1 else f"{told} ({min(walls):.1f} to {max(walls):.1f})"


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("what", choices=("fake", "slurm", "page"))
    parser.add_argument("n", nargs="*", type=int)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--engines", default="treadle,snakemake,snakemake-arrays")
    parser.add_argument("--timeout", type=float, default=1200)
    args = parser.parse_args()
    if args.what == "page":
        return page()
    if args.what == "slurm":
        return slurm(args.n[0] if args.n else 200, args.engines.split(","), args.reps, args.timeout)
    for n in args.n or [10_000, 100_000]:
        fake(n)
    return 0


if __name__ == "__main__":
    sys.exit(main())
