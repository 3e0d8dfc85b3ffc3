"""RESULTS.md: Treadle beside its peers, each pair measured in turns in this one run.

A ratio is the median of the ratios of neighbours in time; the load of the machine goes into the report, for
figures from a busy machine say little.
"""

import datetime
import json
import os
import pathlib
import platform
import statistics

import workloads

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "report.json"
FIRST = "nothing to do, just after the run"
BEYOND = "at most 0.15 ms a step beyond it"

# (what, peer, step, tasks, rounds, bar as text)
COMPARISONS = [
    ("fresh run", "make", "A", 1000, 7, "at most 1.5"),
    ("fresh run", "make", "A", 10000, 5, "at most 1.5"),
    ("fresh run, bash", "make-bash", "A", 1000, 5, "at most 1.5"),
    ("fresh run, bash", "make-bash", "A", 10000, 3, "at most 1.5"),
    ("fresh run", "ninja", "A", 10000, 3, ""),
    ("fresh run", "doit", "A", 1000, 2, ""),
    ("fresh run", "snakemake", "A", 1000, 2, "at most 0.067 (15 times faster)"),
    ("nothing to do", "snakemake-recorded", "B", 10000, 5, "at most 0.1 (10 times faster)"),
    (FIRST, "snakemake-recorded", "B", 10000, 3, ""),
    ("nothing to do", "make", "B", 10000, 3, ""),
    ("preview", "snakemake", "C", 1000, 2, ""),
    ("chain", "make", "D", 10000, 2, ""),
    ("10 layers", "make", "E", 10000, 2, ""),
    ("one input of many changed", "make", "G", 10000, 2, ""),
]

# Python functions that do nothing.
FUNCTIONS = [
    ("py-tpe-files", 10000, 5, BEYOND),
    ("parsl-checkpoint", 10000, 3, "faster"),
    ("parsl-htex", 10000, 1, "faster"),
    ("parsl-thread", 10000, 2, "(it records nothing)"),
    ("dask-inproc", 10000, 2, "faster"),
    ("dask-procs", 10000, 2, "faster"),
    ("ray", 10000, 2, "faster"),
    ("redun", 1000, 1, "faster"),
    ("pytask", 1000, 1, "faster"),
]


def machine():
    """The machine in a few words."""
    model = "unknown processor"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as info:
        memory = int(info.readline().split()[1]) / 2**20
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {model}, {memory:.0f} GiB, Linux {platform.release()}, Python {platform.python_version()}"


def main(es, opt, res, compare):
    """Measure the parts that are asked for (both by default), and write the page of all that is known."""
    parts = {"commands": commands, "steps": functions}
    for name in opt.args or parts:
        part = Part(name)
        parts[name](es, opt, res, compare, part)


class Part:
    """One table of the page. It is kept beside the page, so that each can be measured when it is quiet."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.versions = {}
        self.began = (
            f"Measured on {datetime.date.today()}: {machine()}; load when it began {os.getloadavg()[0]:.1f}. "
            f"Scratch files {'in memory (tmpfs)' if on_memory() else 'on disk'}."
        )

    def add(self, line):
        """One more row, on the page at once: a report that is cut short has its rows."""
        print(line, flush=True)
        self.lines.append(line)
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        kept[self.name] = {"began": self.began, "versions": self.versions, "lines": self.lines}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        write(kept)


def commands(es, opt, res, compare, part):
    """Commands under a shell, as whole processes."""
    for what, peer, step, n, rounds, bar in COMPARISONS:
        if not es[peer].available():
            print(f"{peer} is not there: run.py setup {peer}")
            continue
        opt.reps = rounds
        ours_is = "treadle-" + peer.split("-")[1] if "-" in peer and what != FIRST else "treadle"
        for found, ours, theirs, walls, cpus in compare(es, ours_is, peer, step, n, opt, res):
            if found != step:
                continue
            part.versions["treadle"], part.versions[peer] = es[ours_is]._version, es[peer]._version
            m = statistics.median
            tasks = workloads.ntasks(workloads.STEPS[step][0], n)
            part.add(
                f"| {what} | {tasks:,} | {m(r['wall'] for r in ours):.2f} s | {peer.split('-')[0]} "
                f"{m(r['wall'] for r in theirs):.2f} s | {told(walls)} | {m(cpus):.2f} | {len(walls)} | {bar} |"
            )


def functions(es, opt, res, compare, part):
    """Python steps beside their peers: whole processes, and from the first submission to the last result."""
    m = statistics.median
    for peer, n, rounds, bar in FUNCTIONS:
        if not es[peer].available():
            print(f"{peer} is not there: run.py setup {peer}")
            continue
        opt.reps = rounds
        for found, ours, theirs, walls, cpus in compare(es, "treadle-steps", peer, "F", n, opt, res):
            if found != "F":
                continue
            part.versions["treadle"], part.versions[peer] = es["treadle-steps"]._version, es[peer]._version
            mine, other = [inner(r) for r in ours], [inner(r) for r in theirs]
            inners = [a / b for a, b in zip(mine, other, strict=False)]
            if bar == BEYOND:
                beyond = m((a - b) / n * 1e3 for a, b in zip(mine, other, strict=False))
                bar = f"{bar}: {beyond:.3f} ms"
            part.add(
                f"| {n:,} | {m(r['wall'] for r in ours):.2f} s | {peer} {m(r['wall'] for r in theirs):.2f} s | "
                f"{told(walls)} | {m(mine):.2f} s and {m(other):.2f} s | {told(inners)} | {m(cpus):.2f} | "
                f"{len(walls)} | {bar} |"
            )
    opt.reps = 3
    for found, ours, _, _, _ in compare(es, "treadle-steps-cached", "treadle-steps", "F", 10000, opt, res):
        if found == "F":
            each = m(inner(r) for r in ours) / 10000 * 1e6
            part.add(f"| 10,000, cached | | | | {each:.0f} us each | | | {len(ours)} | at most 50 us each |")


def told(ratios):
    """The median of ratios and their range."""
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def inner(row):
    """Seconds of the work alone where the engine's script tells them, else of the whole process."""
    return row.get("inner") or row["wall"]


PAGE = """# Results

`benchmarks/run.py report` makes this page anew, `report commands` and `report steps` a part of it;
`benchmarks/README.md` says what the rows are. Each row was measured in turns; a ratio is Treadle's time over the
peer's, the median over the rounds (and its range).

## Commands

{commands_began}
{commands_versions}.

Whole processes, two jobs at a time, tiny commands under the same `sh`, or under bash on both sides where that is
said (Treadle's default). Where Snakemake has nothing to do, it has its own records of all outputs, which its
quicker scheduler made beforehand; Treadle has its own, too, and reads files again once that were made within the last
two seconds of its run.

| what | tasks | Treadle | peer | ratio of wall times | ratio of CPU times | rounds | bar |
|---|---|---|---|---|---|---|---|
{commands_lines}

## Python steps

{steps_began}
{steps_versions}.

Functions that do nothing, two at a time in threads, each with its lease and its record on the disk. Whole
processes, and what lies between the first submission and the last result (start-up and shut-down of the engine
are not in it). `py-tpe-files` is no engine but a bare `ThreadPoolExecutor` with the file operations that a lease
and a record take; Parsl has two threads and a checkpoint at each task's end; dask.distributed one process with
two threads, or two processes; Ray two CPUs.

| tasks | Treadle | peer | ratio of wall times | first to last | ratio | ratio of CPU times | rounds | bar |
|---|---|---|---|---|---|---|---|---|
{steps_lines}
"""


def write(kept):
    """The page as far as it is known."""
    values = {}
    for name in ("commands", "steps"):
        part = kept.get(name, {"began": "Not measured.", "versions": {}, "lines": []})
        shown = sorted({(one.split("-")[0], version) for one, version in part["versions"].items() if version})
        values[f"{name}_began"] = part["began"]
        values[f"{name}_versions"] = ", ".join(" ".join(pair) for pair in shown) or "No engine"
        values[f"{name}_lines"] = "\n".join(part["lines"])
    (HERE / "RESULTS.md").write_text(PAGE.format(**values))


def on_memory():
    """Whether the scratch folder lies on a tmpfs."""
    from engine import ROOT

    where = str(ROOT.resolve())
    with open("/proc/mounts") as mounts:
        kinds = {parts[1]: parts[2] for parts in map(str.split, mounts)}
    while where not in kinds:
        where = os.path.dirname(where)
    return kinds[where] == "tmpfs"
