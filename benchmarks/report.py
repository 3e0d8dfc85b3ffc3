"""RESULTS.md: Treadle beside its peers, each pair measured in turns in this one run.

A ratio is the median of the ratios of neighbours in time; the load of the machine goes into the report, for
figures from a busy machine say little.
"""

import datetime
import os
import pathlib
import platform
import statistics

import workloads

HERE = pathlib.Path(__file__).resolve().parent

# (what, peer, step, tasks, rounds, bar as text)
COMPARISONS = [
    ("fresh run", "make", "A", 1000, 7, "at most 1.5"),
    ("fresh run", "make", "A", 10000, 3, "at most 1.5"),
    ("fresh run, bash", "make-bash", "A", 1000, 5, "at most 1.5"),
    ("fresh run, bash", "make-bash", "A", 10000, 3, "at most 1.5"),
    ("fresh run", "ninja", "A", 10000, 2, ""),
    ("fresh run", "doit", "A", 1000, 2, ""),
    ("fresh run", "snakemake", "A", 1000, 2, "at most 0.067 (15 times faster)"),
    ("nothing to do", "snakemake-premade", "B", 10000, 3, "at most 0.1 (10 times faster)"),
    ("nothing to do, with its records", "snakemake", "B", 1000, 2, ""),
    ("nothing to do", "make", "B", 10000, 3, ""),
    ("preview", "snakemake", "C", 1000, 2, ""),
    ("chain", "make", "D", 10000, 2, ""),
    ("10 layers", "make", "E", 10000, 2, ""),
    ("one input of many changed", "make", "G", 10000, 2, ""),
]

# The same for Python functions that do nothing; times from the first submission to the last result.
FUNCTIONS = [
    ("Python steps", "py-tpe-files", 10000, 3, "0.15 ms a step more"),
    ("Python steps", "parsl-checkpoint", 10000, 1, "faster"),
    ("Python steps", "parsl-htex", 10000, 1, "faster"),
    ("Python steps", "parsl-thread", 10000, 1, "(it records nothing)"),
    ("Python steps", "dask-inproc", 10000, 2, "faster"),
    ("Python steps", "dask-procs", 10000, 2, "faster"),
    ("Python steps", "ray", 10000, 2, "faster"),
    ("Python steps", "redun", 1000, 1, "faster"),
    ("Python steps", "pytask", 1000, 1, "faster"),
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
    load = os.getloadavg()[0]
    lines = []
    versions = {}
    for what, peer, step, n, rounds, bar in COMPARISONS:
        if not es[peer].available():
            print(f"{peer} is not there: run.py setup {peer}")
            continue
        opt.reps = rounds
        ours_is = "treadle-bash" if peer.endswith("-bash") else "treadle"
        for found, ours, theirs, walls, cpus in compare(es, ours_is, peer, step, n, opt, res):
            if found != step:
                continue
            es["treadle"]._version = es[ours_is]._version
            versions["treadle"], versions[peer] = es["treadle"]._version, es[peer]._version
            m = statistics.median
            tasks = workloads.ntasks(workloads.STEPS[step][0], n)
            lines.append(
                f"| {what} | {tasks:,} | {m(r['wall'] for r in ours):.2f} s | {peer.split('-')[0]} "
                f"{m(r['wall'] for r in theirs):.2f} s | {m(walls):.2f} ({min(walls):.2f} to {max(walls):.2f}) | "
                f"{m(cpus):.2f} | {len(walls)} | {bar} |"
            )
            print(lines[-1], flush=True)
            write(lines, versions, load)

    functions(es, opt, res, compare, lines, versions, load)


def functions(es, opt, res, compare, lines, versions, load):
    """Python steps beside their peers, by the time between the first submission and the last result."""
    m = statistics.median
    for what, peer, n, rounds, bar in FUNCTIONS:
        if not es[peer].available():
            print(f"{peer} is not there: run.py setup {peer}")
            continue
        opt.reps = rounds
        for found, ours, theirs, _, cpus in compare(es, "treadle-steps", peer, "F", n, opt, res):
            if found != "F":
                continue
            versions[peer] = es[peer]._version
            mine, other = [inner(r) for r in ours], [inner(r) for r in theirs]
            ratios = [a / b for a, b in zip(mine, other, strict=False)]
            lines.append(
                f"| {what} | {n:,} | {m(mine):.2f} s | {peer} {m(other):.2f} s | "
                f"{m(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {m(cpus):.2f} | {len(ratios)} | {bar} |"
            )
            print(lines[-1], flush=True)
            write(lines, versions, load)
    opt.reps = 3
    for found, ours, _, _, _ in compare(es, "treadle-steps-cached", "treadle-steps", "F", 10000, opt, res):
        if found == "F":
            each = m(inner(r) for r in ours) / 10000 * 1e6
            lines.append(
                f"| Python steps, cached | 10,000 | {each:.0f} us each | | | | 3 | at most 50 us each |"
            )
            write(lines, versions, load)


def inner(row):
    """Seconds of the work alone where the engine's script tells them, else of the whole process."""
    return row.get("inner") or row["wall"]


def write(lines, versions, load):
    """The page as far as it goes: a report that is cut short has its rows."""
    text = [
        "# Results",
        "",
        f"Measured on {datetime.date.today()}: {machine()}; load when it began {load:.1f}.",
        f"Scratch files on {'memory (tmpfs)' if on_memory() else 'disk'}. "
        + ", ".join(
            f"{name.split('-')[0]} {version}" for name, version in sorted(versions.items()) if version
        )
        + ".",
        "",
        "Whole processes, two jobs at a time, tiny commands under the same `sh`, or under bash on both sides where",
        "that is said (Treadle's default). Python steps: functions that do nothing, two at a time in threads, from",
        "the first submission to the last result. Each row was measured in turns;",
        "the ratio is Treadle's time over the peer's, the median over the rounds (and its range). Where Snakemake has",
        "nothing to do, its 10,000 outputs were made beforehand: it kept no records of them that it had to read.",
        "`benchmarks/run.py report` makes this page anew; `benchmarks/README.md` says what the rows are.",
        "",
        "| what | tasks | Treadle | peer | ratio of wall times | ratio of CPU times | rounds | bar |",
        "|---|---|---|---|---|---|---|---|",
        *lines,
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(text))


def on_memory():
    """Whether the scratch folder lies on a tmpfs."""
    from engine import ROOT

    where = str(ROOT.resolve())
    with open("/proc/mounts") as mounts:
        kinds = {parts[1]: parts[2] for parts in map(str.split, mounts)}
    while where not in kinds:
        where = os.path.dirname(where)
    return kinds[where] == "tmpfs"
