"""Checkpoint rules: work that is found while the run is on, in the first run, in previews and afterwards."""

from __future__ import annotations

import os

from story_discovered import FIND, FLOW, GATHER, PARTS, found, made


def test_what_a_checkpoint_finds_runs_in_the_same_run_and_is_gathered_once(folder):
    folder.flow(FLOW)
    found(folder, "a", "b", "c")
    assert folder.will_run() == {"find", "last"}
    ended = folder.treadle("run")
    assert made(folder) == ["a", "all", "b", "c", "last"]
    assert folder.read("last.txt") == "a\nb\nc\n"
    assert "6 done" in ended.stderr
    assert folder.will_run() == set()
    folder.treadle("run")
    assert made(folder) == []


def test_a_checkpoint_is_settled_and_its_plan_enters_in_one_write(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    events = folder.events()
    at = next(n for n, one in enumerate(events) if one["event"] == "task_settled" and one["task"] == "find")
    assert events[at]["evidence"]["discovered"] == {"values": {"part": ["a"]}}
    assert events[at + 1]["event"] == "plan_entered"
    assert events[at + 1]["round"] == 2


def test_one_more_and_one_fewer_run_exactly_what_is_needed(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    found(folder, "a", "b", "c")
    assert folder.will_run() == {"find", "last"}
    folder.treadle("run")
    assert made(folder) == ["all", "c", "last"]
    found(folder, "a", "c")
    folder.treadle("run")
    assert made(folder) == ["all", "last"]
    assert folder.read("last.txt") == "a\nc\n"
    tasks = {task["id"] for task in folder.plan()["tasks"]}
    assert tasks == {"find", "make/part=a", "make/part=c", "all", "last"}


def test_a_checkpoint_that_finds_the_same_again_changes_nothing(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    folder.write("names.toml", folder.read("names.toml") + "\n")
    folder.treadle("run")
    assert made(folder) == []


def test_what_was_found_is_known_from_the_record_and_not_from_the_file(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    journal = folder / ".treadle" / "checkpoint.jsonl"
    assert '"discovered"' in journal.read_text()
    stat = (folder / "found.toml").stat()
    text = folder.read("found.toml")
    (folder / "found.toml").write_text(text.replace('"a"', '"z"'))
    os.utime(folder / "found.toml", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    tasks = {task["id"] for task in folder.plan()["tasks"]}
    assert "make/part=z" not in tasks


def test_an_empty_manifest_finds_nothing_and_what_reads_the_gather_is_skipped(folder):
    folder.flow(FLOW)
    folder.write("names.toml", "")
    ended = folder.treadle("run")
    assert made(folder) == []
    assert "1 done" in ended.stderr
    plan = {task["id"]: task["verdict"] for task in folder.plan()["tasks"]}
    assert plan == {"find": "up_to_date", "last": "skipped"}


def test_what_lies_on_the_disk_from_before_is_not_taken_for_what_a_checkpoint_finds(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    folder.write("names.toml", "")
    folder.treadle("run")
    assert made(folder) == []
    assert folder.will_run() == set()


def temporary_and_open(folder) -> None:
    """A temporary output with one reader, and a checkpoint that finds another."""
    folder.flow(
        """
        [[rules]]
        name = "base"
        output = ["base.txt"]
        temporary = true
        shell = "echo base > {output}"

        [[rules]]
        name = "first"
        input = ["base.txt"]
        output = ["first.txt"]
        shell = "cp {input} {output}"
        """
        + FIND.replace('input = ["names.toml"]', 'input = ["names.toml", "first.txt"]').replace(
            "cp {input}", "cp {input[0]}"
        )
        + """
        [[rules]]
        name = "use"
        input = ["base.txt"]
        output = ["use/{part}"]
        shell = "cat {input} > {output}"
        """
    )
    found(folder, "a")


def test_a_temporary_output_stays_while_a_checkpoint_may_add_a_reader(folder):
    temporary_and_open(folder)
    folder.treadle("run")
    attempts = [one["task"] for one in folder.events() if one["event"] == "attempt_submitted"]
    assert attempts.count("base") == 1
    assert folder.read("use/a") == "base\n"
    assert not (folder / "base.txt").exists()
    assert folder.will_run() == set()


def test_so_it_does_while_that_checkpoint_was_not_asked_for(folder):
    temporary_and_open(folder)
    folder.treadle("run", "first")
    assert folder.read("base.txt") == "base\n"
    folder.treadle("run")
    assert "base" not in folder.attempted()
    assert folder.read("use/a") == "base\n"
    assert not (folder / "base.txt").exists()


def test_a_checkpoint_that_is_cut_off_brings_back_what_it_had_found(folder):
    pre = """
[[rules]]
name = "pre"
input = ["raw.toml"]
output = ["names.toml"]
shell = "echo pre >> made && grep -v '^#' {input} > {output}"
"""
    folder.flow(pre + FLOW.replace('"cp {input}', '"echo find >> made && cp {input}'))
    folder.write("raw.toml", '[reentry.values]\npart = ["a", "b"]\n')
    folder.treadle("run")
    assert made(folder) == ["a", "all", "b", "find", "last", "pre"]
    folder.write("raw.toml", '# a remark\n[reentry.values]\npart = ["a", "b"]\n')
    plan = {task["id"]: task for task in folder.plan()["tasks"]}
    assert plan["find"]["may_cut_off"]
    assert "make/part=a" not in plan
    ended = folder.treadle("run")
    assert made(folder) == ["pre"]
    assert "1 done" in ended.stderr
    assert [one["round"] for one in folder.events() if one["event"] == "plan_entered"] == [1, 2]
    assert folder.will_run() == set()
    (folder / "parts/b").unlink()
    folder.treadle("run")
    assert made(folder) == ["b"]


def test_forced_runs_make_again_what_was_found(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    made(folder)
    folder.treadle("run", "--force")
    assert made(folder) == ["a", "all", "last"]
    assert folder.will_run() == set()
    folder.treadle("run", "--force", "all")
    assert made(folder) == ["all"]


def test_without_cutoff_and_with_depends_on_a_run_reaches_what_is_found(folder):
    folder.flow(
        """
        [[rules]]
        name = "base"
        input = ["base.in"]
        output = ["base.txt"]
        shell = "echo base >> made && touch {output}"
        """
        + FIND
        + PARTS.replace('output = ["parts', 'depends_on = ["base"]\noutput = ["parts')
    )
    found(folder, "a")
    folder.write("base.in", "1")
    folder.treadle("run")
    assert made(folder) == ["a", "base"]
    folder.write("base.in", "2")
    found(folder, "a", "b")
    folder.treadle("run")
    assert made(folder) == ["a", "b", "base"]
    assert folder.will_run() == set()


def test_a_hundred_thousand_values_make_one_round(folder):
    folder.flow(FIND + PARTS.replace("[[rules]]", "[[rules]]\nwhen = \"part in ['p7', 'p99999']\"") + GATHER)
    found(folder, *(f"p{number}" for number in range(100_000)))
    folder.treadle("run")
    assert made(folder) == ["all", "last", "p7", "p99999"]
    assert folder.read("last.txt") == "p7\np99999\n"
    assert "found by find, as recorded: 100000 values of part" in folder.treadle("plan").stderr
    assert [one["tasks"] for one in folder.events() if one["event"] == "plan_entered"] == [2, 100_003]
