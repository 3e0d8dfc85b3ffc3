"""A workflow whose checkpoints find work, and its life: the same on this machine and on schedulers."""

from __future__ import annotations

import json

from cluster_runs import Place

FLOW = """
[workflow]
name = "discovered"
strict_shell = true

[[sample_groups]]
name = "first"
samples = ["A", "B"]

[[rules]]
name = "align"
output = ["align/{sample}"]
shell = "echo align.{sample} >> starts && echo {sample} > {output}"

[[rules]]
name = "look"
input = ["more.toml", "align/{sample}"]
output = ["look.toml"]
checkpoint = true
checkpoint_manifest = "look.toml"
checkpoint_extends = ["sample"]
shell = "echo look >> starts && cp {input[0]} {output}"

[[rules]]
name = "cut"
input = ["align/{sample}", "cuts/{sample}.toml"]
output = ["cut/{sample}.toml"]
checkpoint = true
checkpoint_manifest = "cut/{sample}.toml"
checkpoint_extends = ["values.chunk"]
shell = "echo cut.{sample} >> starts && cp {input[1]} {output}"

[[rules]]
name = "work"
input = ["align/{sample}"]
output = ["work/{sample}.{chunk}"]
shell = "echo work.{sample}.{chunk} >> starts && cp {input} {output} && echo {chunk} >> {output}"

[[rules]]
name = "all"
input = ["align/{sample}", "work/{sample}.{chunk}"]
output = ["all.txt"]
shell = "echo all >> starts && cat {input} > {output}"
"""
ALL = {
    *("align.A", "align.B", "align.C", "look", "cut.A", "cut.B", "cut.C"),
    *("work.A.1", "work.A.2", "work.B.2", "work.C.1", "all"),
}
WHOLE = "A\nB\nC\nA\n1\nA\n2\nB\n2\nC\n1\n"


def lay_out(place: Place) -> Place:
    place.write("main.oxoflow", FLOW)
    find(place, "C")
    for sample, chunks in {"A": ("1", "2"), "B": ("2",), "C": ("1",)}.items():
        cut(place, sample, *chunks)
    return place


def find(place: Place, *samples: str) -> None:
    place.write("more.toml", f"[reentry]\nsample = {json.dumps(samples)}\n")


def cut(place: Place, sample: str, *chunks: str) -> None:
    place.write(f"cuts/{sample}.toml", f"[reentry.values]\nchunk = {json.dumps(chunks)}\n")


def started(place: Place) -> dict[str, int]:
    """What was begun since this was asked last."""
    found = place.starts()
    place.write("starts", "")
    return found


def lives(place: Place) -> None:
    """The first run, one sample fewer, one chunk more, and previews in between."""
    lay_out(place)
    align, cuts = {"align/sample=A", "align/sample=B"}, {"cut/sample=A", "cut/sample=B"}
    assert place.will_run()[0] == {*align, *cuts, "look"}
    place.treadle("run")
    assert started(place) == dict.fromkeys(ALL, 1)
    assert place.read("all.txt") == WHOLE
    assert place.will_run()[0] == set()
    cut(place, "B", "2", "3")
    place.treadle("run")
    assert started(place) == {"cut.B": 1, "work.B.3": 1, "all": 1}
    find(place)
    place.treadle("run")
    assert started(place) == {"look": 1, "all": 1}
    assert place.read("all.txt") == "A\nB\nA\n1\nA\n2\nB\n2\nB\n3\n"
    assert place.will_run()[0] == set()
