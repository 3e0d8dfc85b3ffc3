"""`touch`, `evict`, `clean`: what a person does to outputs on purpose."""

from __future__ import annotations

import json
import os

import pexpect
import pytest
from story_folder import TREADLE

FLOW = """
[config]
word = "hello"

[[values]]
name = "part"
values = ["a", "b"]

[[rules]]
name = "upper"
input = ["in/{part}.txt"]
output = ["up/deep/{part}.txt"]
log = "logs/upper.{part}.log"
benchmark = "bench/upper.{part}.tsv"
shell = "tr a-z A-Z < {input} > {output}"

[[rules]]
name = "tag"
input = ["up/deep/{part}.txt"]
output = ["tag/{part}.txt"]
shell = "{ echo {config.word}; cat {input}; } > {output}"

[[rules]]
name = "all"
input = ["tag/{part}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


@pytest.fixture
def flow(folder):
    folder.flow(FLOW)
    for part in "ab":
        folder.write(f"in/{part}.txt", f"text of {part}\n")
    return folder


@pytest.fixture
def done(flow):
    flow.treadle("run")
    return flow


def times(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.path.rglob("*.txt")}


# touch


def test_touch_takes_a_changed_command_as_done_and_changes_no_time(done):
    done.flow(FLOW.replace("echo {config.word}", "echo  {config.word}"))
    assert done.will_run() == {"tag/part=a", "tag/part=b", "all"}
    before = times(done)
    said = done.treadle("touch")
    assert "tag/part=a" in said.stdout.splitlines()
    assert "recorded as up to date" in said.stderr
    assert times(done) == before
    assert done.run_as_previewed() == set()


def test_touch_of_a_target_takes_it_alone(done):
    done.flow(FLOW.replace("tr a-z", "tr  a-z").replace("echo {config.word}", "echo  {config.word}"))
    assert done.treadle("touch", "tag").stdout.splitlines() == ["tag/part=a", "tag/part=b"]
    assert done.will_run() == {"upper/part=a", "upper/part=b", "tag/part=a", "tag/part=b", "all"}
    done.treadle("run")
    assert done.attempted() == {"upper/part=a", "upper/part=b"}, "the rest is cut off"


def test_touch_takes_outputs_that_another_made(flow):
    for part in "ab":
        flow.write(f"up/deep/{part}.txt", "made elsewhere\n")
    flow.treadle("touch", "upper")
    assert flow.run_as_previewed() == {"tag/part=a", "tag/part=b", "all"}
    assert flow.read("all.txt").count("made elsewhere") == 2


def test_touch_names_all_outputs_that_are_missing_and_records_nothing(done):
    done.flow(FLOW.replace("tr a-z", "tr  a-z"))
    for name in ("up/deep/a.txt", "all.txt"):
        (done / name).unlink()
    before = done.snapshot()
    said = done.treadle("touch", exits=2).stderr
    assert "up/deep/a.txt" in said
    assert "all.txt" in said
    assert done.snapshot() == before


# evict


def test_an_evicted_output_is_not_missed_and_made_again_when_it_is_needed(done):
    said = done.treadle("evict", "upper", "-y")
    assert said.stdout.splitlines() == ["up/deep/a.txt", "up/deep/b.txt"]
    assert not list((done / "up").rglob("*.txt"))
    assert done.run_as_previewed() == set()
    assert done.run_as_previewed("--no-cutoff", "word=moin") == {
        "upper/part=a",
        "upper/part=b",
        "tag/part=a",
        "tag/part=b",
        "all",
    }
    assert done.read("all.txt") == "moin\nTEXT OF A\nmoin\nTEXT OF B\n"


@pytest.mark.parametrize("target", ["upper/part=b", "up/deep/b.txt", "./up/deep/b.txt"])
def test_one_task_or_path_is_evicted_alone(done, target):
    assert done.treadle("evict", target, "-y").stdout == "up/deep/b.txt\n"
    assert (done / "up/deep/a.txt").exists()
    assert done.will_run() == set()


def test_a_folder_stands_for_the_outputs_below_it(done):
    assert done.treadle("evict", "up", "-y").stdout.splitlines() == ["up/deep/a.txt", "up/deep/b.txt"]


def test_an_output_that_is_still_to_be_read_stays(done):
    done.write("tag/a.txt", "scribbled\n")
    said = done.treadle("evict", "upper", "-y")
    assert said.stdout == "up/deep/b.txt\n"
    assert "kept up/deep/a.txt: tag/part=a still has to run and reads it" in said.stderr
    assert (done / "up/deep/a.txt").exists()


def test_when_nothing_may_go_that_is_an_error_with_the_reason(done):
    done.flow(FLOW.replace("echo {config.word}", "echo  {config.word}"))
    said = done.treadle("evict", "upper", "-y", exits=2).stderr
    assert "up/deep/a.txt cannot be evicted: tag/part=a still has to run and reads it" in said
    assert "treadle run" in said
    assert (done / "up/deep/a.txt").exists()


def test_a_reader_outside_the_targets_counts(flow):
    flow.treadle("run", "tag/part=a")
    said = flow.treadle("evict", "tag", "-y", exits=2).stderr
    assert "all still has to run" in said


def test_an_output_that_its_task_would_make_anew_stays(done):
    done.write("in/a.txt", "other\n")
    said = done.treadle("evict", "upper/part=a", "-y", exits=2).stderr
    assert "upper/part=a is not up to date: input in/a.txt changed" in said


def test_an_edited_output_is_not_evicted(done):
    done.write("up/deep/a.txt", "hours of work\n")
    done.treadle("evict", "upper/part=a", "-y", exits=2)
    assert done.read("up/deep/a.txt") == "hours of work\n"


def test_outputs_deleted_by_hand_are_accepted(done):
    for part in "ab":
        (done / f"up/deep/{part}.txt").unlink()
    assert "upper/part=a" in done.will_run()
    said = done.treadle("evict", "upper")
    assert "2 outputs that were gone are taken as deleted on purpose" in said.stderr
    assert done.run_as_previewed() == set()
    assert done.read("all.txt").startswith("hello\nTEXT OF A")


def test_the_plan_names_evict_where_outputs_were_deleted_that_nothing_needs(done):
    (done / "up/deep/a.txt").unlink()
    said = done.treadle("plan").stderr
    assert "1 task runs only because outputs were deleted" in said
    assert "to accept that: treadle evict up/deep/a.txt\n" in said
    assert "evict" not in done.treadle("plan", "word=moin").stderr, "now tag needs it"
    (done / "all.txt").unlink()
    done.treadle("evict", "up/deep/a.txt")
    assert "evict" not in done.treadle("plan").stderr, "a result that is gone is wanted back"


def test_a_result_that_nobody_reads_can_be_evicted(done):
    done.treadle("evict", "all", "-y")
    assert not (done / "all.txt").exists()
    assert done.run_as_previewed() == set()
    assert done.run_as_previewed("--force", "all") == {"all"}


def test_evicting_twice_finds_nothing(done):
    done.treadle("evict", "upper", "-y")
    before = done.snapshot()
    assert "nothing to evict" in done.treadle("evict", "upper", "-y").stderr
    assert done.snapshot() == before


def test_what_never_was_made_is_nothing_to_evict(flow):
    assert "nothing to evict" in flow.treadle("evict", "upper", "-y").stderr


def test_a_source_is_never_evicted(done):
    said = done.treadle("evict", "in/a.txt", "-y", exits=2).stderr
    assert "no task makes in/a.txt" in said
    assert (done / "in/a.txt").exists()


def test_evict_needs_a_target_and_the_whole_plan(done):
    assert "a rule, a task or a path" in done.treadle("evict", "-y", exits=2).stderr
    assert "whole plan" in done.treadle("evict", "upper", "--samples", "a", "-y", exits=2).stderr


def test_a_folder_output_goes_as_a_whole_and_no_part_of_it(folder):
    folder.flow("""
        [[rules]]
        name = "tree"
        output = ["tree"]
        shell = "mkdir -p tree/x && touch tree/x/y"
        """)
    folder.treadle("run")
    assert "tree/x is only a part of the output tree" in folder.treadle("evict", "tree/x", exits=2).stderr
    folder.treadle("evict", "./tree", "-y")
    assert not (folder / "tree").exists()
    assert folder.run_as_previewed() == set()


def test_evict_touched_and_copied_files_by_content(done):
    os.utime(done / "up/deep/a.txt")
    done.treadle("evict", "upper/part=a", "-y")
    assert done.run_as_previewed() == set()


# asking


@pytest.mark.parametrize("args", [("evict", "upper"), ("clean",)])
def test_without_a_terminal_and_without_a_yes_nothing_is_deleted(done, args):
    before = times(done)
    said = done.treadle(*args, exits=2).stderr
    assert "  up/deep/a.txt" in said
    assert "-y" in said
    assert times(done) == before


@pytest.mark.parametrize("args", ["evict upper", "clean upper"])
@pytest.mark.parametrize(("answer", "gone"), [("y", True), ("", False), ("no", False)])
def test_at_a_terminal_the_answer_counts(done, args, answer, gone):
    child = pexpect.spawn(f"{TREADLE} {args}", cwd=done.path, env=done.env(), timeout=120)
    child.expect_exact("up/deep/b.txt")
    child.expect_exact("[y/N]")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert (done / "up/deep/b.txt").exists() is not gone


@pytest.mark.parametrize("args", [("evict", "upper"), ("clean", "upper")])
def test_a_dry_run_lists_and_deletes_nothing(done, args):
    before, records = times(done), done.snapshot()
    assert "up/deep/a.txt" in done.treadle(*args, "--dry-run").stdout.splitlines()
    found = json.loads(done.treadle(*args, "-n", "--json").stdout)
    assert found["done"] is False
    assert times(done) == before
    assert done.snapshot() == records


# clean


def test_clean_deletes_all_that_was_made_and_no_source(done):
    done.write("tag/mine.txt", "mine\n")
    said = done.treadle("clean", "-y")
    assert set(said.stdout.splitlines()) >= {"up/deep/a.txt", "tag/b.txt", "all.txt", "logs/upper.a.log"}
    left = {str(path.relative_to(done.path)) for path in done.path.rglob("*") if ".treadle" not in str(path)}
    assert left == {"main.oxoflow", "in", "in/a.txt", "in/b.txt", "tag", "tag/mine.txt"}
    assert "empty folder" in said.stderr
    assert len(done.run_as_previewed()) == 5


def test_clean_of_a_target_deletes_its_outputs_alone(done):
    assert set(done.treadle("clean", "tag", "-y").stdout.splitlines()) == {"tag/a.txt", "tag/b.txt"}
    assert (done / "up/deep/a.txt").exists()
    assert not (done / "tag").exists()
    assert (done / "all.txt").exists()


def test_clean_of_a_path_leaves_the_log_of_its_task(done):
    assert done.treadle("clean", "up/deep/a.txt", "-y").stdout == "up/deep/a.txt\n"
    assert (done / "logs/upper.a.log").exists()


def test_clean_keeps_what_nobody_recorded_unless_all_is_asked_for(flow):
    flow.write("up/deep/a.txt", "from elsewhere\n")
    said = flow.treadle("clean", "-y")
    assert said.stdout == ""
    assert "kept up/deep/a.txt: not recorded as made here" in said.stderr
    assert flow.read("up/deep/a.txt") == "from elsewhere\n"
    assert flow.treadle("clean", "-y", "--all").stdout == "up/deep/a.txt\n"
    assert not (flow / "up").exists()


def test_clean_keeps_what_was_edited_unless_all_is_asked_for(done):
    done.write("all.txt", "hours of work\n")
    said = done.treadle("clean", "-y")
    assert "kept all.txt: changed since" in said.stderr
    assert done.read("all.txt") == "hours of work\n"
    done.treadle("clean", "-y", "--all")
    assert not (done / "all.txt").exists()


def test_clean_takes_a_touched_file_as_unchanged(done):
    os.utime(done / "all.txt")
    assert done.treadle("clean", "all", "-y").stdout == "all.txt\n"


def test_clean_failed_deletes_what_was_set_aside_and_nothing_else(done):
    done.flow(FLOW.replace("cat {input} > {output}", "cat {input} > {output}; false"))
    done.treadle("run", exits=1)
    done.treadle("run", exits=1)
    done.write("all.txt.failed.notes", "mine\n")
    aside = sorted(path.name for path in done.path.glob("all.txt.failed*"))
    assert aside == ["all.txt.failed", "all.txt.failed.2", "all.txt.failed.notes"]
    before = times(done)
    said = done.treadle("clean", "--failed", "-y").stdout
    assert said.splitlines() == ["all.txt.failed", "all.txt.failed.2"]
    assert times(done) == before
    assert done.read("all.txt.failed.notes") == "mine\n"


def test_clean_never_deletes_the_input_of_a_task_that_no_task_makes(folder):
    folder.flow("""
        [[rules]]
        name = "r"
        input = ["in.txt"]
        output = ["out.txt"]
        log = "in.txt"
        shell = "cat in.txt > out.txt; : {log}"
        """)
    folder.write("in.txt", "precious\n")
    folder.treadle("run", exits=None)
    folder.treadle("clean", "--all", "-y", exits=None)
    assert folder.read("in.txt") == "precious\n"


def test_clean_removes_a_link_and_not_what_it_points_to(folder):
    folder.flow("""
        [[rules]]
        name = "link"
        input = ["big.dat"]
        output = ["link.dat"]
        shell = "ln -s big.dat link.dat"
        """)
    folder.write("big.dat", "big\n")
    folder.treadle("run")
    assert folder.treadle("clean", "-y").stdout == "link.dat\n"
    assert folder.read("big.dat") == "big\n"
    assert not (folder / "link.dat").is_symlink()


def test_a_cleaned_folder_is_clean(done):
    done.treadle("clean", "-y")
    assert "nothing to clean" in done.treadle("clean", "-y").stderr
