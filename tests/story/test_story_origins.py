"""The plan says where values come from, and how much a gather takes in."""

from __future__ import annotations

FLOW = """
[[tables]]
name = "sheet"
rows = [{ sample = "a", site = "x" }, { sample = "b", site = "y" }]

[[rules]]
name = "mark"
output = ["mark/{sample}.txt"]
shell = "echo {site} > {output}"

[[rules]]
name = "found"
input = ["in/{name}.txt"]
output = ["found/{name}.txt"]
shell = "cp {input} {output}"

[[rules]]
name = "marks"
input = ["mark/{sample}.txt"]
output = ["marks.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "all"
input = ["found/{name}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


def test_the_plan_says_where_values_come_from_and_how_much_a_gather_takes_in(folder):
    folder.flow(FLOW)
    for name in ("one", "two", "three"):
        folder.write(f"in/{name}.txt", name)
    said = dict(line.split(None, 1) for line in folder.treadle("plan").stdout.splitlines())
    assert said["mark"].endswith("[from tables.sheet]")
    assert said["found"].endswith("[from in/{name}.txt]")
    assert said["marks"].endswith("[gathers 2 inputs]"), "the sheet was named at the first rule"
    assert said["all"].endswith("[gathers 3 inputs]"), "what the plan makes comes from nowhere else"
