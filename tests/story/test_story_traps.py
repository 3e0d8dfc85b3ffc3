"""Traps that no small pinned workflow shows; the others stand in tests/corpus by name."""

from __future__ import annotations

import csv
import json

import pytest

COHORT = """
[[tables]]
name = "samples"
file = "samples.csv"

[[rules]]
name = "describe"
output = ["described/{sample}.txt"]
shell = "echo {site} > {output}"

[[rules]]
name = "all"
input = ["described/{sample}.txt"]
output = ["all.txt"]
shell = "cat $(cat {input.list}) | sort | uniq -c > {output}"
"""


def test_a_thousand_samples_of_a_sheet_with_quoted_commas(folder):
    rows = [(f"S{at:04}", f'lobe {at % 7}, "left"' if at % 2 else "none, at all") for at in range(1000)]
    with open(folder / "samples.csv", "w", newline="") as file:
        csv.writer(file).writerows([("sample", "site"), *reversed(rows)])
    folder.flow(COHORT)
    plan = folder.plan()
    assert plan["summary"]["tasks"] == 1001
    described = [task for task in plan["tasks"] if task["rule"] == "describe"]
    assert {task["wildcards"]["sample"]: task["command"] for task in described} == {
        sample: f"echo '{site}' > described/{sample}.txt" for sample, site in rows
    }
    (gather,) = (task for task in plan["tasks"] if task["rule"] == "all")
    assert len(gather["inputs"]) == 1000


def test_lines_of_the_sheet_in_another_order_make_the_same_tasks(folder):
    folder.flow(COHORT)
    lines = ['A,"x, y"', 'B,"said ""no"""', "C,z"]
    plans = []
    for order in (lines, lines[::-1]):
        folder.write("samples.csv", "\n".join(["sample,site", *order]))
        plans.append(
            {task["id"]: task["command"] for task in folder.plan()["tasks"] if task["rule"] != "all"}
        )
    assert plans[0] == plans[1]


def test_values_of_a_sheet_may_hold_commas_in_names_of_files(folder):
    folder.write("samples.csv", 'sample,site\n"a,b",x\nc,y\n')
    folder.flow(COHORT)
    folder.treadle("run")
    assert (folder / "described/a,b.txt").exists()
    assert folder.read("all.txt").split() == ["1", "x", "1", "y"]


def test_a_task_is_named_without_collisions_and_the_name_is_taken_back(folder):
    folder.flow("""
        [[tables]]
        name = "t"
        rows = [
          { a = "a_b", b = "c" }, { a = "a", b = "b_c" },
          { a = "x=1,b", b = "%2C" }, { a = "x", b = "1,b" },
        ]

        [[rules]]
        name = "join"
        output = ["{a}/{b}.txt"]
        shell = "echo {a} {b} > {output}"
        """)
    ids = [task["id"] for task in folder.plan()["tasks"]]
    assert len(set(ids)) == 4
    for task in folder.plan()["tasks"]:
        folder.treadle("run", task["id"])
        assert (folder / task["outputs"][0]).exists()
    assert folder.will_run() == set()


def test_two_samples_that_a_mac_takes_for_one_are_told_before_anything_runs(folder):
    folder.flow("""
        [[values]]
        name = "v"
        values = ["Zo\\u00eb", "Zoe\\u0308"]

        [[rules]]
        name = "make"
        output = ["{v}.txt"]
        shell = "echo > {output}"
        """)
    found = json.loads(folder.treadle("check", "--json").stdout)
    assert [one["code"] for one in found["warnings"]] == ["paths-alike"]
    folder.treadle("run", "--strict", exits=2)
    assert folder.runs() == []


@pytest.mark.parametrize("command", ["plan", "run", "graph", "touch", "why", "evict", "exec"])
def test_a_target_that_is_no_utf8_is_refused_by_name(folder, command):
    folder.flow(COHORT)
    folder.write("samples.csv", "sample,site\na,x\n")
    done = folder.treadle(command, "\udcff.txt", exits=2)
    assert "\\udcff.txt" in done.stderr
    words = ["--json", *(["--print"] if command == "exec" else [])]
    done = folder.treadle(command, "\udcff.txt", *words, exits=2)
    assert "\\udcff.txt" in json.loads(done.stdout)["errors"][0]["message"]
