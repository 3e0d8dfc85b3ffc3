"""Treadle: one rule over a table whose columns name each task and what it needs."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.environ.get("BENCH_DIR", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import workloads
from engine import BENCH_DIR, Engine

BIN = pathlib.Path(os.environ.get("TREADLE_VENV", BENCH_DIR.parent / ".venv")) / "bin" / "treadle"

HEAD = """[workflow]
name = "bench"
shell_executable = "SHELL"
[[tables]]
name = "t"
file = "t.tsv"
[[rules]]
name = "w"
"""
WIDE = 'output = ["out/{i}"]\nshell = ": > {output}"\n'
INCR = 'input = ["in/{i}"]\noutput = ["out/{i}"]\nshell = "read x < {input}; echo $x > {output}"\n'
SEED = 'output = ["out/{seed}"]\nshell = ": > {output}"\n[[rules]]\nname = "x"\n'


class Treadle(Engine):
    name, steps = "treadle", "ABCDEG"
    note = "treadle run -j 2 --quiet (sh)"
    shell = "sh"

    def available(self):
        return BIN.exists()

    def version(self):
        return subprocess.run([BIN, "--version"], capture_output=True, text=True).stdout.split()[-1]

    def generate(self, shape, n, d):
        tasks = range(workloads.ntasks(shape, n))
        if shape in ("wide", "incr"):
            table = "i\n" + "".join(f"{t}\n" for t in tasks)
            text = HEAD + (WIDE if shape == "wide" else INCR)
        else:
            width = max(len(workloads.deps(shape, n, t)) for t in tasks) or 1
            seeds = [t for t in tasks if not workloads.deps(shape, n, t)]
            (d / "seeds.tsv").write_text("seed\n" + "".join(f"{t}\n" for t in seeds))
            names = [f"need{k}" for k in range(width)]
            rows = [[t, *workloads.deps(shape, n, t)] for t in tasks if workloads.deps(shape, n, t)]
            rows = [row + row[-1:] * (width + 1 - len(row)) for row in rows]
            table = "\t".join(["i", *names]) + "\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows)
            inputs = ", ".join(f'"out/{{{name}}}"' for name in names)
            head = HEAD.replace("[[rules]]", '[[tables]]\nname = "s"\nfile = "seeds.tsv"\n[[rules]]')
            text = head + SEED + f'input = [{inputs}]\noutput = ["out/{{i}}"]\nshell = ": > {{output}}"\n'
        text = text.replace("SHELL", self.shell)
        (d / "t.tsv").write_text(table)
        (d / "main.oxoflow").write_text(text)

    def argv(self, step, shape, n, d):
        return [str(BIN), "plan" if step == "C" else "run", "--quiet"] + ([] if step == "C" else ["-j", "2"])


class Recorded(Treadle):
    """Nothing to do, in a folder where that was so before: files just made are looked at more closely once."""

    name, steps, prepares = "treadle-recorded", "B", True
    note = "nothing to do, not for the first time"

    def prepare_argv(self, shape, n, d):
        run = " ".join(self.argv("A", shape, n, d))
        return ["sh", "-c", f"{run} && {run}"]


class Steps(Engine):
    """Python steps: N functions that do nothing, in threads of the driver, each with its artifact record."""

    name, steps = "treadle-steps", "F"
    note = "StepRunner().run(steps, max_concurrent=2), fresh"
    mode = "fresh"

    def available(self):
        return BIN.exists()

    def version(self):
        return Treadle().version()

    def argv(self, step, shape, n, d):
        return [str(BIN.parent / "python"), os.path.abspath(__file__), self.mode, str(n)]


def run_steps(mode, n):
    import json
    import time

    import treadle

    runner = treadle.StepRunner()
    taken = 0.0
    for _ in range(1 if mode == "fresh" else 2):
        begun = time.perf_counter()
        steps = [treadle.StepSpec(name=f"step_{i}", fn=lambda out: None) for i in range(n)]
        runner.run(steps, max_concurrent=2)
        taken = time.perf_counter() - begun
    with open(os.environ["BENCH_INNER"], "w") as file:
        json.dump({"inner": taken}, file)


ENGINES = [
    Treadle(),
    Recorded(),
    Treadle(name="treadle-bash", shell="bash", note="treadle run -j 2 --quiet (bash, the default)"),
    Steps(),
    Steps(name="treadle-steps-cached", mode="cached", note="the second run of the same steps"),
]

if __name__ == "__main__":
    run_steps(sys.argv[1], int(sys.argv[2]))
