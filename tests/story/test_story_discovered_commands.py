"""Checkpoint rules: what commands say of work that is found or still to come, and what they do with it."""

from __future__ import annotations

import json

from story_discovered import FLOW, SAMPLES, found, made


def why(folder, task: str) -> str:
    return folder.treadle("why", task).stdout


def test_the_words_say_what_is_recorded_what_may_come_and_what_waits(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    before = folder.treadle("plan").stdout
    assert "make  no tasks yet: they come with what find finds" in before
    assert "last  1 will run: waits for a checkpoint" in before
    assert "all +?" in folder.treadle("graph").stdout
    assert "dashed" in folder.treadle("graph", "--format", "dot").stdout
    assert "stroke-dasharray" in folder.treadle("graph", "--format", "mermaid").stdout
    assert "it waits for what find finds" in why(folder, "last")
    folder.treadle("run")
    assert "found by find, as recorded: 2 values of part" in folder.treadle("plan").stderr
    assert "it came with what find found" in why(folder, "make/part=a")
    assert "2 rounds" in folder.treadle("status").stdout
    assert json.loads(folder.treadle("status", "--json").stdout)["rounds"] == 2
    rounds = [json.loads(line) for line in (folder / ".treadle/runs/latest/plan.json").open()]
    assert [one["round"] for one in rounds] == [1, 2]
    assert [len(one["tasks"]) for one in rounds] == [2, 4]
    assert [len(one["order"]) for one in rounds] == [2, 5]
    assert folder.treadle("graph", "--tasks").stdout.count("make/part=") == 2


def test_targets_that_a_checkpoint_brings_are_found_when_it_has_run(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run", "make/part=b")
    assert made(folder) == ["b"]
    assert folder.will_run("make/part=b") == set()
    assert "part=z" in folder.treadle("run", "make/part=z", exits=2).stderr
    folder.treadle("run", "make")
    assert made(folder) == ["a"]


def test_exec_touch_clean_and_evict_know_what_was_found(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    folder.treadle("exec", "make/part=a")
    assert made(folder) == ["a"]
    folder.treadle("touch")
    assert folder.will_run() == set()
    folder.treadle("evict", "make", "-y")
    assert not (folder / "parts/a").exists()
    assert folder.will_run() == set()
    found(folder, "a", "b", "c")
    refused = folder.treadle("evict", "all", "-y", exits=2).stderr
    assert "find" in refused
    cleaned = folder.treadle("clean", "-y").stdout
    assert "all.txt" in cleaned
    folder.treadle("run")
    assert folder.read("last.txt") == "a\nb\nc\n"


def test_a_manifest_that_was_mended_by_hand_and_touched_is_what_was_found(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    made(folder)
    folder.write("found.toml", '[reentry.values]\npart = ["a", "b"]\n')
    folder.treadle("touch", "find")
    assert folder.will_run() == {"make/part=b", "all", "last"}
    folder.treadle("run")
    assert made(folder) == ["all", "b", "last"]


def test_check_says_nothing_against_rules_that_wait_for_a_checkpoint(folder):
    folder.flow(FLOW)
    found(folder, "a")
    checked = folder.treadle("check", "--inputs")
    assert "warning" not in checked.stderr + checked.stdout


def test_a_mistyped_wildcard_is_told_from_one_that_is_still_to_be_found(folder):
    wrong = """
[[rules]]
name = "o"
input = ["align/{sampel}"]
output = ["o/{sampel}.{sampl}"]
shell = "true"
"""
    folder.flow(SAMPLES + wrong)
    folder.write("more.toml", "")
    assert "nothing gives values to {sampl} but what a checkpoint may find" in folder.treadle("plan").stderr
    folder.flow(SAMPLES.replace("shell =", 'checkpoint_extends = ["sample"]\nshell =', 2) + wrong)
    refused = folder.treadle("plan", exits=2).stderr
    assert "nothing gives values to {sampl}" in refused
    assert "did you mean 'sample'" in refused
