"""What the preview shows is what runs: after every kind of change a person makes."""

from __future__ import annotations

import os
import time

import pytest

FLOW = """
[config]
word = "hello"
gate = true

[[values]]
name = "part"
values = ["a", "b", "c"]

[[rules]]
name = "upper"
input = ["in/{part}.txt"]
output = ["up/{part}.txt"]
shell = "tr a-z A-Z < {input} > {output}"

[[rules]]
name = "tag"
input = ["up/{part}.txt"]
output = ["tag/{part}.txt"]
resources = { threads = 1 }
shell = "{ echo {config.word}; cat {input}; } > {output}"

[[rules]]
name = "all"
input = ["tag/{part}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "extra"
input = ["all.txt"]
output = ["extra.txt"]
when = "config.gate"
shell = "wc -l < {input} > {output}"
"""

EVERYTHING = {
    *(f"upper/part={part}" for part in "abc"),
    *(f"tag/part={part}" for part in "abc"),
    "all",
    "extra",
}
BELOW_A = {"upper/part=a", "tag/part=a", "all", "extra"}


@pytest.fixture
def done(folder):
    """The workflow, run once."""
    folder.flow(FLOW)
    for part in "abc":
        folder.write(f"in/{part}.txt", f"text of {part}\n")
    assert folder.run_as_previewed() == EVERYTHING
    return folder


def later(folder, name: str) -> None:
    """Set a file's time two minutes ahead of what it was: no waiting for the clock."""
    stat = (folder / name).stat()
    os.utime(folder / name, ns=(stat.st_atime_ns, stat.st_mtime_ns + 120 * 10**9))


def test_a_second_run_does_nothing(done):
    assert done.run_as_previewed() == set()
    assert len(done.runs()) == 1


def test_a_changed_input_of_the_same_size_runs_all_that_is_below_it(done):
    done.write("in/a.txt", "TEXT of A\n".lower().replace("a\n", "z\n"))
    assert done.run_as_previewed() == BELOW_A
    assert "TEXT OF Z" in done.read("all.txt")


def test_a_touched_input_runs_nothing(done):
    later(done, "in/a.txt")
    assert done.run_as_previewed() == set()


def test_a_changed_command_runs_its_rule_and_what_is_below(done):
    done.flow(FLOW.replace("wc -l <", "wc -c <"))
    assert done.run_as_previewed() == {"extra"}


def test_a_changed_config_value_runs_the_rules_that_name_it(done):
    assert done.run_as_previewed("word=bye") == {*(f"tag/part={part}" for part in "abc"), "all", "extra"}
    assert done.read("all.txt").startswith("bye\n")


def test_changed_threads_run_nothing(done):
    done.flow(FLOW.replace("threads = 1", "threads = 2"))
    assert done.run_as_previewed() == set()


def test_changed_treatment_runs_nothing(done):
    more = 'threads = 1, memory = "1G", time_limit = "5m" }\nretries = 3\nretry_delay = "1s"\npriority = 7'
    done.flow(FLOW.replace("threads = 1 }", more))
    assert done.run_as_previewed() == set()


def test_a_renamed_rule_runs_nothing_and_takes_nothing_from_another(done):
    done.flow(FLOW.replace('"tag"', '"label"'))
    assert done.run_as_previewed() == set()
    done.flow(FLOW.replace('"tag"', '"swap"').replace('"upper"', '"tag"').replace('"swap"', '"upper"'))
    assert done.run_as_previewed() == set()


def test_a_deleted_output_is_made_again_and_what_is_below_is_cut_off(done):
    (done / "up" / "a.txt").unlink()
    previewed = done.will_run()
    assert previewed == BELOW_A
    done.treadle("run")
    assert done.attempted() == {"upper/part=a"}, "the rest came out the same and was cut off"
    assert done.read("up/a.txt") == "TEXT OF A\n"


def test_without_cut_off_all_that_is_below_runs(done):
    (done / "up" / "a.txt").unlink()
    assert done.run_as_previewed("--no-cutoff") == BELOW_A


def test_an_edited_output_is_made_again(done):
    done.write("tag/b.txt", "scribbled\n")
    assert "tag/part=b" in done.will_run()
    done.treadle("run")
    assert done.attempted() == {"tag/part=b"}
    assert done.read("tag/b.txt") == "hello\nTEXT OF B\n"


def test_an_edited_output_is_set_aside_not_lost(done):
    done.write("tag/b.txt", "hours of work\n")
    done.treadle("run")
    assert done.read("tag/b.txt.failed") == "hours of work\n"


def test_forced_targets_run_whatever_the_records_say(done):
    previewed = done.will_run("--force", "tag/part=c")
    assert previewed == {"tag/part=c"}
    assert done.run_as_previewed("--force", "tag/part=c") == {"tag/part=c"}


def test_forced_everything_runs_everything(done):
    assert done.run_as_previewed("--force") == EVERYTHING


def test_a_subset_runs_what_it_needs_and_no_more(folder):
    folder.flow(FLOW)
    for part in "abc":
        folder.write(f"in/{part}.txt", f"text of {part}\n")
    assert folder.run_as_previewed("tag/b.txt") == {"upper/part=b", "tag/part=b"}
    assert folder.run_as_previewed("tag/part=b") == set()
    assert folder.run_as_previewed() == EVERYTHING - {"upper/part=b", "tag/part=b"}


def test_a_failed_task_runs_again_when_it_is_mended(folder):
    folder.flow(FLOW.replace("cat {input} > {output}", "cat {input} nowhere.txt > {output}"))
    for part in "abc":
        folder.write(f"in/{part}.txt", f"text of {part}\n")
    folder.treadle("run", exits=1)
    assert not (folder / "all.txt").exists(), "what a failed attempt made is set aside"
    assert folder.will_run() == {"all", "extra"}
    folder.flow(FLOW)
    assert folder.run_as_previewed() == {"all", "extra"}


def test_a_when_that_flips_runs_or_skips_its_task(done):
    assert done.run_as_previewed("gate=false") == set()
    skipped = [task for task in done.plan("gate=false")["tasks"] if task["verdict"] == "skipped"]
    assert [task["id"] for task in skipped] == ["extra"]
    (done / "extra.txt").unlink()
    assert done.run_as_previewed("gate=false") == set()
    assert done.run_as_previewed("gate=true") == {"extra"}


def test_temporary_outputs_are_removed_and_not_missed(folder):
    folder.flow(FLOW.replace('output = ["up/{part}.txt"]', 'output = ["up/{part}.txt"]\ntemporary = true'))
    for part in "abc":
        folder.write(f"in/{part}.txt", f"text of {part}\n")
    assert folder.run_as_previewed() == EVERYTHING
    assert not list((folder / "up").glob("*"))
    assert folder.run_as_previewed() == set()
    folder.write("in/c.txt", "other\n")
    assert folder.run_as_previewed() == {"upper/part=c", "tag/part=c", "all", "extra"}
    assert "OTHER" in folder.read("all.txt")


def test_a_clock_set_back_changes_no_decision(done):
    past = time.time_ns() - 10 * 365 * 86400 * 10**9
    for name in ("in/a.txt", "up/a.txt", "all.txt"):
        os.utime(done / name, ns=(past, past))
    assert done.run_as_previewed() == set()


def test_a_copied_folder_runs_nothing(done, tmp_path_factory):
    import shutil

    copy = tmp_path_factory.mktemp("copy") / "there"
    shutil.copytree(done.path, copy, symlinks=True)
    again = type(done)(copy)
    assert again.run_as_previewed() == set()
