"""Failures: tried again with more, kept apart, or the end of the run, as the workflow and the person say."""

from __future__ import annotations

import json
import time

THREE = """
    [[rules]]
    name = "bad"
    output = ["bad.txt"]
    priority = 2
    {more}
    shell = "exit 3"

    [[rules]]
    name = "below"
    input = ["bad.txt"]
    output = ["below.txt"]
    shell = "cat {input} > {output}"

    [[rules]]
    name = "aside"
    output = ["aside.txt"]
    shell = "echo > {output}"
"""
COUNTED = """
    [[rules]]
    name = "r"
    output = ["out.txt"]
    {more}
    shell = '''
    echo x >> tries
    test "$(wc -l < tries)" -ge {enough} && echo done > {output}
    '''
"""


def attempts(folder, task: str) -> list[dict]:
    """How the attempts of a task ended, in order."""
    told = [one for one in folder.events() if one.get("task") == task and "outcome" in one]
    return [one["outcome"] for one in told]


def times(folder, event: str, task: str) -> list[float]:
    return [one["time"] for one in folder.events() if one["event"] == event and one["task"] == task]


def test_a_task_is_tried_again_as_often_as_its_rule_says(folder):
    folder.flow(COUNTED.replace("{more}", "retries = 2").replace("{enough}", "3"))
    done = folder.treadle("run")
    assert folder.read("tries") == "x\nx\nx\n"
    assert [one.get("reason", "ok") for one in attempts(folder, "r")] == ["app", "app", "ok"]
    assert done.stderr.count("r failed with exit code 1; again") == 2
    assert "1 done" in done.stderr


def test_after_the_last_attempt_the_failure_counts(folder):
    folder.flow(COUNTED.replace("{more}", "retries = 1").replace("{enough}", "9"))
    done = folder.treadle("run", exits=1)
    assert folder.read("tries") == "x\nx\n"
    assert done.stderr.count("failed r: failed with exit code 1") == 1


def test_the_pause_between_attempts_doubles(folder):
    folder.flow(COUNTED.replace("{more}", 'retries = 2\nretry_delay = "0.2s"').replace("{enough}", "3"))
    folder.treadle("run")
    started = times(folder, "attempt_submitted", "r")
    ended = times(folder, "attempt_ended", "r")
    assert started[1] - ended[0] >= 0.2
    assert started[2] - ended[1] >= 0.4
    assert [one["retry_in"] for one in folder.events() if one["event"] == "attempt_ended"] == [0.2, 0.4]


def test_a_task_that_ran_out_of_time_gets_more_of_it(folder):
    folder.flow(
        """
        [[rules]]
        name = "r"
        output = ["out.txt"]
        retries = 1
        retry_time = "x4"
        resources = { time_limit = "1s" }
        shell = "sleep 1.3; echo > {output}"
        """
    )
    folder.treadle("run")
    assert [one.get("reason", "ok") for one in attempts(folder, "r")] == ["time", "ok"]


def test_more_time_does_not_help_what_fails_by_itself(folder):
    folder.flow(
        """
        [[rules]]
        name = "r"
        output = ["out.txt"]
        retries = 2
        retry_time = "x2"
        resources = { time_limit = "20s" }
        shell = "sleep 0.1; exit 1"
        """
    )
    folder.treadle("run", exits=1)
    assert [one["reason"] for one in attempts(folder, "r")] == ["app"] * 3


def test_after_a_failure_nothing_new_starts(folder):
    folder.flow(THREE.replace("{more}", ""))
    done = folder.treadle("run", "-j", "1", exits=1)
    assert folder.attempted() == {"bad"}
    assert "blocked 1 task: below" in done.stderr
    assert not (folder / "aside.txt").exists()


def test_with_keep_going_what_does_not_hang_on_it_goes_on(folder):
    folder.flow(THREE.replace("{more}", ""))
    folder.treadle("run", "-j", "1", "--keep-going", exits=1)
    assert folder.attempted() == {"bad", "aside"}
    assert (folder / "aside.txt").exists()


def test_a_failure_that_is_not_required_blocks_what_reads_it_and_is_no_failure_of_the_run(folder):
    folder.flow(THREE.replace("{more}", "required = false"))
    done = folder.treadle("run", "-j", "1")
    assert folder.attempted() == {"bad", "aside"}
    assert "1 done, 1 failed, 1 blocked" in done.stderr
    assert folder.will_run() == {"bad", "below"}


def test_fail_fast_ends_what_runs_and_max_failures_waits_for_so_many(folder):
    folder.flow(
        """
        [[values]]
        name = "n"
        values = ["1", "2", "3", "4"]
        [[rules]]
        name = "bad"
        output = ["{n}.txt"]
        priority = 2
        shell = "exit {n}"
        [[rules]]
        name = "slow"
        output = ["slow.txt"]
        priority = 3
        shell = "sleep 60"
        """
    )
    began = time.monotonic()
    folder.treadle("run", "-j", "2", "--fail-fast", exits=1)
    assert time.monotonic() - began < 30
    assert folder.attempted() == {"bad/n=1", "slow"}
    assert attempts(folder, "slow")[0]["reason"] == "cancelled"
    folder.treadle("run", "bad", "-j", "1", "--max-failures", "3", exits=1)
    assert len(folder.attempted()) == 3
    found = json.loads(folder.treadle("status", "--json").stdout)
    assert len(found["failed"]) == 3


def test_an_optional_rule_is_skipped_while_its_source_is_missing(folder):
    folder.flow(
        """
        [[rules]]
        name = "maybe"
        input = ["extra.txt"]
        output = ["maybe.txt"]
        optional = true
        shell = "cat {input} > {output}"
        [[rules]]
        name = "reads"
        input = ["maybe.txt"]
        output = ["reads.txt"]
        shell = "cat {input} > {output}"
        [[rules]]
        name = "other"
        output = ["other.txt"]
        shell = "echo > {output}"
        """
    )
    folder.treadle("run")
    assert folder.attempted() == {"other"}
    assert "its optional input extra.txt is not there" in folder.treadle("why", "maybe").stdout
    assert "what would make maybe.txt is skipped" in folder.treadle("why", "reads").stdout
    folder.write("extra.txt", "x\n")
    assert folder.run_as_previewed() == {"maybe", "reads"}


MAYBE = """
    [[values]]
    name = "s"
    values = ["a", "b"]
    [[rules]]
    name = "maybe"
    input = ["in/{s}.txt"]
    output = ["maybe/{s}.txt"]
    optional = true
    shell = "cat {input} > {output}"
    [[rules]]
    name = "gather"
    input = ["maybe/{s}.txt"]
    output = ["all.txt"]
    shell = "cat {input} > {output}"
"""


def test_a_gather_waits_for_an_optional_source_and_does_without_what_when_takes_out(folder):
    folder.flow(MAYBE)
    folder.write("in/a.txt", "a\n")
    assert folder.run_as_previewed() == {"maybe/s=a"}
    assert not (folder / "all.txt").exists()
    folder.flow(MAYBE.replace("optional = true", "when = \"file_exists('in/{s}.txt')\""))
    assert folder.run_as_previewed() == {"gather"}
    assert folder.read("all.txt") == "a\n"
    folder.write("in/b.txt", "b\n")
    assert folder.run_as_previewed() == {"maybe/s=b", "gather"}
    assert folder.read("all.txt") == "a\nb\n"


def test_a_resumable_task_finds_what_its_last_attempt_left(folder):
    folder.flow(
        """
        [[rules]]
        name = "r"
        output = ["out.txt"]
        resumable = true
        retries = 1
        shell = "echo x >> {output}; test $(wc -l < {output}) -eq 3"
        """
    )
    folder.treadle("run", exits=1)
    assert folder.read("out.txt") == "x\nx\n"
    assert list(folder.path.glob("*.failed*")) == []
    folder.treadle("run")
    assert folder.read("out.txt") == "x\nx\nx\n"


def test_what_is_not_resumable_begins_anew_each_time(folder):
    folder.flow(
        """
        [[rules]]
        name = "r"
        output = ["out.txt"]
        retries = 1
        shell = "echo x >> {output}; exit 1"
        """
    )
    folder.treadle("run", exits=1)
    assert sorted(one.name for one in folder.path.glob("out.txt*")) == ["out.txt.failed", "out.txt.failed.2"]
    assert folder.read("out.txt.failed.2") == "x\n"
