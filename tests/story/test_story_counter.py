"""The lines of a run count what will run, each once."""

from __future__ import annotations

import re

FLOW = """
[[values]]
name = "part"
values = ["a", "b", "c"]

[[rules]]
name = "copy"
input = ["in/{part}.txt"]
output = ["out/{part}.txt"]
shell = "cp {input} {output}"
"""


def counters(said: str) -> list[tuple[int, int]]:
    return [(int(done), int(every)) for done, every in re.findall(r"^\[(\d+)/(\d+)\]", said, re.M)]


def test_each_line_of_a_run_counts_one_task_more(folder):
    for part in "abc":
        folder.write(f"in/{part}.txt", part)
    folder.flow(FLOW)
    said = folder.treadle("run", "-j", "3").stderr
    assert counters(said) == [(1, 3), (2, 3), (3, 3)]


def test_what_is_up_to_date_counts_once_and_not_as_done(folder):
    for part in "abc":
        folder.write(f"in/{part}.txt", part)
    folder.flow(FLOW)
    folder.treadle("run")
    folder.write("in/b.txt", "other")
    said = folder.treadle("run").stderr
    assert counters(said) == [(1, 1)]
    assert re.search(r"^1 done, 2 up to date in ", said, re.M)
    assert "3 tasks: 1 done, 2 up to date" in folder.treadle("status").stdout
