"""Protected outputs: read-only once they are made, and never overwritten unless that is asked for."""

from __future__ import annotations

import pytest

FLOW = """
    [[rules]]
    name = "call"
    input = ["in.txt"]
    output = { calls = "calls.txt", log = "calls.log" }
    protected_output = ["calls"]
    shell = "cat {input} > {output.calls}; echo x > {output.log}"
"""


@pytest.fixture
def made(folder):
    folder.flow(FLOW)
    folder.write("in.txt", "one\n")
    folder.treadle("run")
    return folder


def writable(path):
    return bool(path.stat().st_mode & 0o222)


def test_a_protected_output_is_read_only_once_it_is_made_and_up_to_date(made):
    assert not writable(made / "calls.txt")
    assert writable(made / "calls.log")
    assert made.will_run() == set()
    made.treadle("run")


def test_a_run_that_would_overwrite_it_is_refused_and_a_preview_says_so(made):
    made.write("in.txt", "two\n")
    planned = made.treadle("plan")
    assert "call would run and overwrite calls.txt, which is protected" in planned.stderr
    assert "call  1 will run: inputs changed" in planned.stdout
    refused = made.treadle("run", exits=2)
    assert "--force call" in refused.stderr
    assert made.read("calls.txt") == "one\n"
    assert "in.txt" in made.treadle("why", "call").stdout


def test_a_task_that_lacks_another_output_is_refused_too(made):
    (made / "calls.log").unlink()
    made.treadle("run", exits=2)
    (made / "calls.txt").unlink()
    made.treadle("run")
    assert not writable(made / "calls.txt")


@pytest.mark.parametrize("known", [True, False])
def test_forced_it_is_made_again_and_protected_again(made, known):
    if not known:
        (made / ".treadle").rename(made / "away")
        assert "--adopt takes it over" in made.treadle("run", exits=2).stderr
    made.write("in.txt", "two\n")
    made.treadle("run", "--force", "call")
    assert made.read("calls.txt") == "two\n"
    assert not writable(made / "calls.txt")


def test_a_task_upstream_of_the_forced_one_stays_protected(folder):
    folder.flow(
        FLOW
        + """
        [[rules]]
        name = "use"
        input = ["calls.txt"]
        output = ["used.txt"]
        shell = "cat {input} > {output}"
        """
    )
    folder.write("in.txt", "one\n")
    folder.treadle("run")
    folder.write("in.txt", "two\n")
    folder.treadle("run", "--force", "use", exits=2)
    folder.treadle("run", "--force", "use", "call")
    assert folder.read("used.txt") == "two\n"


def test_it_can_be_removed_on_purpose(made):
    made.treadle("evict", "call", "--yes")
    assert not (made / "calls.txt").exists()
    made.write("in.txt", "two\n")
    made.treadle("run")
    assert made.read("calls.txt") == "two\n"
    made.treadle("clean", "--yes")
    assert not (made / "calls.txt").exists()


def test_a_folder_is_protected_with_all_in_it_and_can_be_made_again(folder):
    folder.flow(
        """
        [[rules]]
        name = "index"
        input = ["in.txt"]
        output = ["index"]
        protected_output = ["index"]
        shell = "mkdir -p {output}/a && cat {input} > {output}/a/b && ln -s ../../in.txt {output}/a/link"
        """
    )
    folder.write("in.txt", "one\n")
    folder.treadle("run")
    assert not any(writable(folder / name) for name in ("index", "index/a", "index/a/b"))
    assert writable(folder / "in.txt"), "links are not followed"
    assert folder.will_run() == set()
    folder.write("in.txt", "two\n")
    folder.treadle("run", exits=2)
    folder.treadle("run", "--force", "index")
    assert folder.read("index/a/b") == "two\n"
    assert not any(writable(folder / name) for name in ("index", "index/a", "index/a/b"))


def test_what_is_kept_between_attempts_can_be_written_by_a_forced_one(folder):
    folder.flow(
        """
        [[rules]]
        name = "grow"
        output = ["log.txt"]
        resumable = true
        protected_output = ["log.txt"]
        shell = "if [ -e {output} ]; then stat -c %A {output} > modes; fi; echo x >> {output}"
        """
    )
    folder.treadle("run")
    folder.treadle("run", "--force", "grow")
    assert folder.read("log.txt") == "x\nx\n"
    assert folder.read("modes").startswith("-rw")
    assert not writable(folder / "log.txt")


def test_protected_and_temporary_cannot_go_together(folder):
    folder.flow(
        FLOW.replace('protected_output = ["calls"]', 'protected_output = ["calls"]\ntemporary = true')
    )
    refused = folder.treadle("plan", exits=2)
    assert "[rules.call.protected_output]: an output cannot be both protected and temporary" in refused.stderr


def test_a_partial_result_is_not_protected_until_it_is_whole(folder):
    flow = """
        [[values]]
        name = "n"
        values = ["1", "2"]
        [[rules]]
        name = "part"
        output = ["part/{n}"]
        shell = "test {n} != 2{mended}; echo {n} > {output}"
        [[rules]]
        name = "whole"
        input = ["part/{n}"]
        output = ["whole.txt"]
        allow_missing = 1
        protected_output = ["whole.txt"]
        shell = "cat {input} > {output}"
        """
    folder.flow(flow.replace("{mended}", ""))
    folder.treadle("run", exits=1)
    assert (folder.read("whole.txt"), (folder / "whole.txt").stat().st_mode & 0o222 != 0) == ("1\n", True)
    folder.flow(flow.replace("{mended}", "x"))
    folder.treadle("run")
    assert (folder.read("whole.txt"), (folder / "whole.txt").stat().st_mode & 0o222) == ("1\n2\n", 0)


@pytest.mark.parametrize("changed", ["command", "some"])
def test_of_many_protected_outputs_the_first_few_are_told_and_one_way_out_for_all(folder, changed):
    flow = """
        [[values]]
        name = "n"
        values = [1, 2, 3, 4, 5, 6]
        [[rules]]
        name = "keep"
        input = ["in/{n}"]
        output = ["out/{n}"]
        protected_output = ["out/{n}"]
        shell = "cat {input} > {output}"
        """
    folder.flow(flow)
    for n in range(1, 7):
        folder.write(f"in/{n}", "one\n")
    folder.treadle("run")
    if changed == "command":
        folder.flow(flow.replace("cat {input}", "cat -n {input}"))
        told = "and 3 more tasks of keep would overwrite what is protected\n"
        told += "  to make all of them again: --force keep"
    else:
        for n in range(1, 6):
            folder.write(f"in/{n}", "two\n")
        told = "and 2 more tasks of keep would overwrite what is protected\n  treadle plan --tasks lists them"
    for command, exits in (("plan", 0), ("run", 2)):
        stderr = folder.treadle(command, exits=exits).stderr
        assert stderr.count("which is protected") == 3, stderr
        assert told in stderr
    folder.treadle("run", "--force", "keep")
    assert folder.will_run() == set()


def test_a_protected_folder_whose_forced_task_was_killed_is_made_again_without_force(folder):
    folder.flow(
        """
        [[rules]]
        name = "index"
        input = ["in.txt"]
        output = ["index"]
        protected_output = ["index"]
        shell = "mkdir -p {output}/a; cat {input} > {output}/a/b; if test -e kill; then kill -KILL $PPID; fi"
        """
    )
    folder.write("in.txt", "one\n")
    folder.treadle("run")
    folder.write("kill", "")
    folder.treadle("run", "--force", "index", exits=-9)
    (folder / "kill").unlink()
    folder.treadle("run")
    assert folder.read("index/a/b") == "one\n"
    assert folder.read("index.failed/a/b") == "one\n"
    assert folder.will_run() == set()
