"""A workflow of two rules for a scheduler on a bad day, and that all of it was made, once."""

from __future__ import annotations

from cluster_runs import Place

FLOW = """
[workflow]
name = "trouble"
strict_shell = true

[[rules]]
name = "one"
input = ["in/{sample}.txt"]
output = ["one/{sample}.txt"]
shell = "echo one.{sample} >> starts; sleep SECONDS; cat {input} > {output}"

[[rules]]
name = "two"
input = ["one/{sample}.txt"]
output = ["two/{sample}.txt"]
shell = "echo two.{sample} >> starts; cat {input} {input} > {output}"
"""
ONCE = {"one.a": 1, "one.b": 1, "two.a": 1, "two.b": 1}


def lay_out(place: Place, *, seconds: float = 0.2) -> Place:
    """The workflow with two samples; `seconds` is what a task of its first rule takes."""
    place.write("main.oxoflow", FLOW.replace("SECONDS", str(seconds)))
    for name in "ab":
        place.write(f"in/{name}.txt", f"{name}\n")
    return place


def whole(place: Place) -> None:
    """All was made, by tasks that ran once."""
    assert {name: place.read(f"two/{name}.txt") for name in "ab"} == {"a": "a\na\n", "b": "b\nb\n"}
    assert place.starts() == ONCE
