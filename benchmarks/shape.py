"""One engine at one shape of work: its steps in order, each looked at afterwards, and written down."""

import json
import os
import pathlib
import shutil
import time

import workloads
from command import clean_env, run_cmd
from engine import ROOT


def stamps(d):
    return {x.name: x.stat().st_mtime_ns for x in os.scandir(d / "out")}


def check(step, shape, n, d, before):
    """'' when the step did what it should, else what is wrong."""
    k = workloads.ntasks(shape, n)
    if step == "F":
        return ""
    now = stamps(d)
    if step == "C":
        return "" if not now else f"preview made {len(now)} files"
    if len(now) != k:
        return f"{len(now)} of {k} outputs"
    changed = sum(1 for x in now if before.get(x) != now[x])
    if step == "B" and changed:
        return f"no-op reran {changed}"
    if step == "G":
        t = n // 2
        if (d / "out" / str(t)).read_text().strip() != f"v2-{t}":
            return "changed input not picked up"
        if changed != 1:
            return f"reran {changed}, not 1"
    return ""


class Results:
    def __init__(self, path):
        self.path = pathlib.Path(path)

    def add(self, **r):
        with open(self.path, "a") as f:
            f.write(json.dumps(r) + "\n")

    def read(self):
        if not self.path.exists():
            return []
        return [json.loads(x) for x in self.path.read_text().splitlines() if x.strip()]


SHAPE_STEPS = {
    "wide": ["C", "A", "B"],
    "chain": ["D"],
    "layered": ["E"],
    "pyfunc": ["F"],
    "incr": ["G0", "G"],
}


def has(e, step):
    return step[0] in e.steps


def make_folder(e, shape, n, d):
    """A fresh folder with all that the steps begin with."""
    shutil.rmtree(d, ignore_errors=True)
    (d / "out").mkdir(parents=True)
    (d / "in").mkdir()
    if shape == "incr":
        for i in range(n):
            (d / "in" / str(i)).write_text(f"v1-{i}\n")
    e.generate(shape, n, d)
    if e.premade:
        for t in range(workloads.ntasks(shape, n)):
            (d / "out" / str(t)).touch()


def prepare(e, shape, n, d, env):
    """Let the engine make outputs and records, unless it has; whether they are there."""
    if (d / ".prepared").exists():
        return True
    print(f"{e.name}: making {n} outputs with their records, which takes a while", flush=True)
    r = run_cmd(e.prepare_argv(shape, n, d), d, env, 7200)
    if r["rc"] != 0 or check("A", shape, n, d, {}):
        print(f"{e.name}: could not be prepared, see {d / '.log'}")
        return False
    (d / ".prepared").touch()
    return True


def run_shape(e, shape, n, only, opt, res):
    steps = [s for s in SHAPE_STEPS[shape] if has(e, s)]
    if only:
        if only not in steps:
            print(f"{e.name}: no step {only}")
            return
        need = [only] if e.premade or e.prepares else {"B": ["A", "B"], "G": ["G0", "G"]}.get(only, [only])
        steps = [s for s in steps if s in need]
    steps = [s for s in steps if n <= e.max_n.get(s, 10**9)]
    if not steps:
        return
    env = clean_env(e)
    done = {}
    rep = 0
    while True:
        d = ROOT / "run" / f"{e.name}-{shape}-{n}"
        if not (e.prepares and (d / ".prepared").exists()):
            make_folder(e, shape, n, d)
        if e.prepares and not prepare(e, shape, n, d, env):
            return
        total = 0
        bad = False
        for step in steps:
            if step == "G":
                time.sleep(0.02)
                (d / "in" / str(n // 2)).write_text(f"v2-{n // 2}\n")
            before = stamps(d)
            r = run_cmd(e.argv(step, shape, n, d), d, env, opt.timeout)
            err = ""
            if r["dnf"]:
                err = f"DNF > {opt.timeout} s ({len(stamps(d))} outputs)"
            elif r["rc"] != 0:
                err = f"rc {r['rc']}"
            else:
                err = check(step, shape, n, d, before)
            if err and not r["dnf"]:
                tail = (d / ".log").read_bytes()[-600:].decode("utf8", "replace")
                r["log"] = tail
            total += r["wall"]
            done.setdefault(step, []).append(r["wall"])
            if opt.record:
                res.add(
                    engine=e.name,
                    step=step,
                    shape=shape,
                    n=n,
                    tasks=workloads.ntasks(shape, n),
                    rep=rep,
                    t=round(time.time()),
                    ok=not err,
                    err=err,
                    version=e._version,
                    **r,
                )
            print(
                f"{e.name:16} {step:2} n={n:<6} rep{rep} wall {r['wall']:9.3f}s"
                + (f" inner {r['inner']:.3f}s" if "inner" in r else "")
                + f" cpu {r['user'] + r['sys']:.2f}s rss {r['maxrss_mb']:.0f}/{r['tree_pss_mb']:.0f}MB"
                + f" other {r['other_cpu']:.2f}"
                + (f"  !! {err}" if err else ""),
                flush=True,
            )
            if err:
                if "log" in r:
                    print("   | " + r["log"].strip().replace("\n", "\n   | ")[-500:], flush=True)
                if step in ("A", "G0") or r["dnf"]:
                    bad = True
                    break
        if not (opt.keep or e.prepares):
            shutil.rmtree(d, ignore_errors=True)
        rep += 1
        want = opt.reps if opt.reps else (3 if total < 10 else 2 if total < 30 else 1)
        if bad or rep >= want:
            return
