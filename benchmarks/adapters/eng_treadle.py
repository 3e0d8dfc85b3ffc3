"""Treadle: one rule over a table whose columns name each task and what it needs."""

import os
import pathlib
import subprocess

import workloads
from engine import BENCH_DIR, Engine

BIN = pathlib.Path(os.environ.get("TREADLE_VENV", BENCH_DIR.parent / ".venv")) / "bin" / "treadle"

HEAD = """[workflow]
name = "bench"
shell_executable = "sh"
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
        (d / "t.tsv").write_text(table)
        (d / "main.oxoflow").write_text(text)

    def argv(self, step, shape, n, d):
        return [str(BIN), "plan" if step == "C" else "run", "--quiet"] + ([] if step == "C" else ["-j", "2"])


ENGINES = [Treadle()]
