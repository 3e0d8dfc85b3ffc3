"""Records that are cut off at any byte, as a crash leaves them, or damaged: nobody trips over them."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest
from story_trouble import Host

from treadle.api.pipe import Request, look
from treadle.base.layout import StateFolder
from treadle.records.event import evidence_key
from treadle.records.journal import read_journal
from treadle.records.line import read_checkpoint
from treadle.records.past import load_past

FLOW = """
[[rules]]
name = "first"
input = ["in.txt"]
output = ["first.txt"]
temporary = true
shell = "cat {input} > {output}"

[[rules]]
name = "second"
input = ["first.txt"]
output = ["second.txt"]
shell = "cat {input} > {output}; echo second >> {output}"

[[rules]]
name = "third"
input = ["second.txt"]
output = ["third.txt", "other.txt"]
shell = "cat {input} > {output[0]}; touch {output[1]}"
"""
OUTPUTS = {"first": ("first.txt",), "second": ("second.txt",), "third": ("third.txt", "other.txt")}


@pytest.fixture
def done(folder):
    """A folder whose run has ended; its copies are cut."""
    whole = folder.below("whole")
    whole.flow(FLOW)
    whole.write("in.txt", "in\n")
    whole.treadle("run")
    return whole


def journal_of(folder) -> pathlib.Path:
    return folder / ".treadle" / "runs" / folder.runs()[0] / "events.jsonl"


def copy(done, name: str):
    """The folder once more, before anything was done about its records; the same inodes say the same."""
    there = done.path.parent / name
    shutil.copytree(done.path, there, symlinks=True)
    return type(done)(there)


def goes_on(folder, hosted: Host) -> None:
    """Looking at it says something, running makes all whole, and then nothing is left to do."""
    status = hosted.treadle(folder, "status")
    assert status.code == 0, status.err
    plan = hosted.treadle(folder, "plan", "--tasks")
    assert plan.code == 0, plan.err
    run = hosted.treadle(folder, "run")
    assert run.code == 0, run.err
    assert folder.read("third.txt") == "in\nsecond\n"
    assert not (folder / "first.txt").exists()
    again = hosted.treadle(folder, "run")
    assert "nothing to do" in again.err


def test_a_journal_that_is_cut_at_any_byte_is_read(done):
    """Without the checkpoint file the journal alone is the past; plans are made around the ends of lines."""
    os.unlink(done / ".treadle/checkpoint.jsonl")
    journal = journal_of(done)
    whole = journal.read_bytes()
    ends = {0, 1, *(at + side for at, byte in enumerate(whole) if byte == 10 for side in (0, 1, 2))}
    keys = [evidence_key("story", task, outputs) for task, outputs in OUTPUTS.items()]
    known, events = 0, 0
    for length in range(len(whole) + 1):
        journal.write_bytes(whole[:length])
        read = len(read_journal(str(journal)).events)
        assert events <= read <= events + 1
        events = read
        if length in ends:
            past = load_past(StateFolder(str(done.path)))
            now = sum(past.evidence(key) is not None for key in keys)
            assert now >= known, "what stands in a shorter journal stands in a longer one"
            known = now
            view = look(Request(file=str(done / "main.oxoflow")))
            assert set(view.decision.answers) == set(OUTPUTS)
    assert known == 3


def test_a_checkpoint_file_that_is_cut_at_any_byte_is_read(done):
    checkpoint = done / ".treadle/checkpoint.jsonl"
    whole = checkpoint.read_bytes()
    lines = 0
    for length in range(len(whole) + 1):
        checkpoint.write_bytes(whole[:length])
        read = len(read_checkpoint(str(checkpoint)) or ())
        assert lines <= read <= lines + 1
        lines = read
    assert lines == whole.count(b"\n") - 1


@pytest.mark.parametrize("kept", [True, False], ids=["with a checkpoint file", "without"])
def test_a_run_goes_on_from_a_journal_that_was_cut(done, hosted, kept):
    whole = journal_of(done).read_bytes()
    for length in {*range(0, len(whole), len(whole) // 10), 1, whole.index(b"\n"), whole.index(b"\n") + 1}:
        inner = copy(done, f"cut{length}")
        os.truncate(journal_of(inner), length)
        if not kept:
            os.unlink(inner / ".treadle/checkpoint.jsonl")
        goes_on(inner, hosted)


def test_a_run_goes_on_from_a_checkpoint_file_that_was_cut(done, hosted):
    """Of a torn copy the whole lines count; what the last one said runs again."""
    whole = (done / ".treadle/checkpoint.jsonl").read_bytes()
    for length in (0, 1, whole.index(b"\n") + 1, len(whole) // 2, len(whole) - 1):
        inner = copy(done, f"cut{length}")
        os.truncate(inner / ".treadle/checkpoint.jsonl", length)
        goes_on(inner, hosted)


@pytest.mark.parametrize("name", ["checkpoint.jsonl", "runs/latest/events.jsonl"])
def test_zeros_after_the_last_line_are_a_torn_end(done, hosted, name):
    """File systems leave them after a crash of the machine: the length was written, the content was not."""
    inner = copy(done, "zeros")
    if name != "checkpoint.jsonl":  # of a run that ended nothing is read any more
        journal = journal_of(inner)
        os.truncate(journal, journal.read_bytes().rindex(b"\n", 0, -1) + 1)
    with open(inner / ".treadle" / name, "ab") as file:
        file.write(bytes(5000))
    goes_on(inner, hosted)


@pytest.mark.parametrize("name", ["checkpoint.jsonl", "runs/latest/events.jsonl"])
def test_damage_in_the_middle_is_told_with_its_line_and_nothing_is_changed(done, name):
    path = done / ".treadle" / name
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\xff\0{" + lines[2][23:]
    if name != "checkpoint.jsonl":
        lines.pop()
    path.write_bytes(b"".join(lines))
    before = done.snapshot()
    for command in ("plan", "run"):
        said = done.treadle(command, exits=3).stderr
        assert f"{path.name}:3" in said
    assert done.snapshot() == before


def test_files_of_a_run_that_are_missing_or_strange_do_no_harm(done, hosted):
    for at, act in enumerate(
        [
            lambda run: (run / "owner").write_text("banana"),
            lambda run: (run / "owner").unlink(),
            lambda run: (run / "plan.json").unlink(),
            lambda run: shutil.rmtree(run / "logs"),
            lambda run: (run / "events.jsonl").unlink(),
            lambda run: shutil.rmtree(run),
            lambda run: (run.parent / "latest").unlink(),
            lambda run: (run.parent / "a stranger").mkdir(),
            lambda run: (run.parent / "stranger.txt").write_text("?"),
            lambda run: (run.parent.parent / "lock").write_text(""),
            lambda run: (run.parent.parent / "lock.new.1").write_text(""),
        ]
    ):
        inner = copy(done, str(at))
        act(journal_of(inner).parent)
        for command in ("status", "logs second", "plan"):
            ended = hosted.treadle(inner, *command.split())
            assert ended.code in (0, 2, 3), ended.err
        if at != 9:  # of a lock that says nothing nobody knows who holds it
            assert hosted.treadle(inner, "run").code == 0
