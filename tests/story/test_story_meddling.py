"""Files that change under a run, files of samples that are gone, and clocks that jump."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from story_trouble import none_left

DAY = 86400


def wait_for(mark: str) -> str:
    """Shell text that gives a sign and waits until it is let go."""
    return f"touch {mark}.begun; until test -e {mark}.go; do sleep 0.02; done"


def meddle(folder, mark: str, act) -> str:
    """Run, do something while the task waits, let it go on; what the run said."""
    run = folder.start("run")
    folder.until(f"{mark}.begun")
    act()
    folder.write(f"{mark}.go", "")
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    return err


def reasons(folder, task: str) -> list[dict[str, str]]:
    (found,) = [one["reasons"] for one in folder.plan()["tasks"] if one["id"] == task]
    return found


def test_an_input_that_is_edited_while_its_task_runs_is_said_and_run_again(folder):
    folder.flow(
        f"""
        [[rules]]
        name = "read"
        input = ["in.txt"]
        output = ["out.txt"]
        shell = "cat {{input}} > {{output}}; {wait_for("read")}"

        [[rules]]
        name = "below"
        input = ["out.txt"]
        output = ["below.txt"]
        shell = "cat {{input}} > {{output}}"
        """
    )
    folder.write("in.txt", "old\n")
    said = meddle(folder, "read", lambda: folder.write("in.txt", "new\n"))
    assert "in.txt" in said
    assert reasons(folder, "read") == [{"reason": "input_changed", "path": "in.txt", "how": "while_running"}]
    assert folder.run_as_previewed() == {"read", "below"}
    assert folder.read("below.txt") == "new\n"
    assert folder.run_as_previewed() == set()


def test_a_script_that_is_edited_while_it_runs_is_run_again(folder):
    folder.flow(
        """
        [[rules]]
        name = "scripted"
        output = ["out.txt"]
        script = "step.sh"
        """
    )
    text = f"{wait_for('step')}; echo %s > out.txt\n"
    folder.write("step.sh", text % "old")
    said = meddle(folder, "step", lambda: folder.write("step.new", text % "new").rename(folder / "step.sh"))
    assert "step.sh" in said
    assert folder.run_as_previewed() == {"scripted"}
    assert folder.read("out.txt") == "new\n"
    assert folder.run_as_previewed() == set()


def test_an_output_that_someone_edits_while_the_run_goes_on_is_made_again_by_the_next(folder):
    folder.flow(
        f"""
        [[rules]]
        name = "first"
        output = ["first.txt"]
        shell = "echo good > {{output}}"

        [[rules]]
        name = "second"
        input = ["first.txt"]
        output = ["second.txt"]
        shell = "{wait_for("second")}; cat {{input}} > {{output}}"
        """
    )
    meddle(folder, "second", lambda: folder.write("first.txt", "scribbled\n"))
    assert folder.will_run() == {"first", "second"}
    folder.treadle("run")
    assert folder.read("first.txt") == "good\n"
    assert folder.read("second.txt") == "good\n"
    assert folder.read("first.txt.failed") == "scribbled\n", "set aside, not lost"
    assert folder.run_as_previewed() == set()


SAMPLES = """
[[tables]]
name = "samples"
file = "samples.csv"

[[rules]]
name = "up"
input = ["in/{sample}.txt"]
output = ["up/{sample}.txt"]
shell = "tr a-z A-Z < {input} > {output}"

[[rules]]
name = "all"
input = ["up/*.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


def test_files_of_a_removed_sample_stay_and_are_left_out_and_named(folder):
    folder.flow(SAMPLES)
    folder.write("samples.csv", "sample\na\nb\nc\n")
    for sample in "abc":
        folder.write(f"in/{sample}.txt", f"{sample}\n")
    folder.treadle("run")
    assert folder.read("all.txt") == "A\nB\nC\n"
    folder.write("samples.csv", "sample\na\nc\n")
    said = folder.treadle("plan").stderr
    assert "up/b.txt" in said
    assert folder.run_as_previewed() == {"all"}
    assert folder.read("all.txt") == "A\nC\n"
    assert folder.read("up/b.txt") == "B\n"
    assert folder.run_as_previewed() == set()
    folder.write("samples.csv", "sample\na\nb\nc\n")
    assert folder.run_as_previewed() == {"all"}, "what was made of it before is still good"
    assert folder.read("all.txt") == "A\nB\nC\n"


CHAIN = """
[[rules]]
name = "first"
input = ["in.txt"]
output = ["first.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "second"
input = ["first.txt"]
output = ["second.txt"]
shell = "test ! -e wait || { touch begun; sleep 100; }; cat {input} > {output}"
"""


@pytest.fixture
def chain(folder):
    folder.flow(CHAIN)
    folder.write("in.txt", "in\n")
    return folder


@pytest.mark.parametrize("days", [-4000, 4000])
@pytest.mark.parametrize(
    "name", ["in.txt", "first.txt", "second.txt", ".treadle/checkpoint.jsonl", "main.oxoflow"]
)
def test_times_from_the_future_or_the_past_run_nothing(chain, name, days):
    chain.treadle("run")
    when = time.time() + days * DAY
    os.utime(chain / name, (when, when))
    assert chain.run_as_previewed() == set()
    chain.write("in.txt", "IN\n")
    os.utime(chain / "in.txt", (when + 1, when + 1))
    assert chain.run_as_previewed() == {"first", "second"}


# The command on a machine whose clock is off.
SHIFTED = """
import sys, time
shift = float(sys.argv.pop(1))
now, now_ns = time.time, time.time_ns
time.time = lambda: now() + shift
time.time_ns = lambda: now_ns() + int(shift * 1e9)
from treadle.cli.main import main
sys.exit(main())
"""


def shifted(folder, seconds: int, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SHIFTED, str(seconds), *args],
        cwd=folder.path,
        env=folder.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("seconds", [-400 * DAY, -600, 600, 400 * DAY])
def test_a_run_that_was_killed_while_the_clock_was_off_goes_on(chain, seconds):
    chain.write("wait", "")
    killed = shifted(chain, seconds, "run")
    chain.until("begun")
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    (chain / "wait").unlink()
    (chain / "begun").unlink()
    assert chain.will_run() == {"second"}
    chain.treadle("run")
    assert chain.attempted() == {"second"}
    none_left(chain.path)
    assert chain.will_run() == set()
    assert len(chain.runs()) == 2
    assert "done" in chain.treadle("status").stdout, "the last run is the last one that was started"
    chain.write("in.txt", "other\n")
    run = shifted(chain, -seconds, "run")
    run.communicate(timeout=60)
    assert run.returncode == 0
    assert chain.attempted() == {"first", "second"}
    assert chain.will_run() == set()


def test_events_whose_times_go_backwards_are_read_in_their_order(chain):
    """A clock that is set back while a run is at work."""
    chain.write("wait", "")
    killed = chain.start("run")
    chain.until("begun")
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    journal = chain / ".treadle" / "runs" / chain.runs()[0] / "events.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for at, line in enumerate(lines):
        line["time"] -= at * 1000
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (chain / "wait").unlink()
    assert "killed" in chain.treadle("status").stdout
    assert chain.run_as_previewed() == {"second"}
    assert chain.run_as_previewed() == set()
