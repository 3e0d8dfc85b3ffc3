"""`treadle status --json` has every attempt of the run, as a record."""

from __future__ import annotations

import json

FLOW = """
[workflow]
name = "flow"
version = "1"

[[rules]]
name = "good"
output = ["good.txt"]
shell = "echo made > good.txt"

[[rules]]
name = "bad"
input = ["good.txt"]
output = ["bad.txt"]
shell = "exit 4"
retries = 1
"""


def test_every_attempt_is_told_with_how_it_ended(folder):
    folder.write("main.oxoflow", FLOW)
    folder.treadle("run", exits=1)
    jobs = json.loads(folder.treadle("status", "--json").stdout)["jobs"]
    told = [(one["task"], one["attempt"], one["state"], one.get("exit_code")) for one in jobs]
    assert told == [("good", 1, "succeeded", 0), ("bad", 1, "failed", 4), ("bad", 2, "failed", 4)]
    assert all(one["log"] and one["ended"] >= one["started"] >= one["submitted"] for one in jobs)
