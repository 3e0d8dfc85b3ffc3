"""kill -9 of the driver at every event and at every change it makes: the next run goes on from there."""

from __future__ import annotations

import json
import shutil

import pytest
from story_trouble import Host, none_left

# Each task writes half of its output, waits a little, writes it whole. When its driver was killed meanwhile
# it lingers, and would write in the end. It tells when an earlier attempt lives, which must never be.
STEP = """
name=$1 output=$2; shift 2
mkdir -p pids
for pid in $(cat pids/$name 2>/dev/null); do
  if grep -q '^State:[[:space:]]*[RSDTt]' /proc/$pid/status 2>/dev/null; then echo $name $pid >> overlap; fi
done
echo $$ >> pids/$name
printf 'half of ' > $output
sleep 0.03
if test -e killed; then sleep 20; echo $name >> late; fi
cat "$@" > $output.part && echo "$name" >> $output.part && mv $output.part $output
"""

FLOW = """
[[rules]]
name = "first"
input = ["in.txt"]
output = ["first.txt"]
temporary = true
shell = "sh step.sh first {output} {input}"

[[rules]]
name = "left"
input = ["first.txt"]
output = ["left.txt"]
shell = "sh step.sh left {output} {input}"

[[rules]]
name = "flaky"
input = ["first.txt"]
output = ["flaky.txt"]
retries = 1
retry_delay = "0s"
shell = "sh step.sh flaky {output} {input}; test -e tried || (touch tried; exit 7)"

[[rules]]
name = "both"
input = ["left.txt", "flaky.txt"]
output = ["both.txt"]
shell = "sh step.sh both {output} {input}"

[[rules]]
name = "last"
input = ["both.txt"]
output = ["last.txt"]
shell = "sh step.sh last {output} {input}"

[[rules]]
name = "broken"
input = ["in.txt"]
output = ["broken.txt"]
required = false
retries = 1
retry_delay = "0s"
shell = "sh step.sh broken {output} {input}; exit 9"
"""

WHOLE = {
    "left.txt": "in\nfirst\nleft\n",
    "flaky.txt": "in\nfirst\nflaky\n",
    "both.txt": "in\nfirst\nleft\nin\nfirst\nflaky\nboth\n",
    "last.txt": "in\nfirst\nleft\nin\nfirst\nflaky\nboth\nlast\n",
}


def fresh(folder, name: str):
    """A folder of its own for each kill."""
    inner = folder.below(name)
    inner.flow(FLOW)
    inner.write("step.sh", STEP)
    inner.write("in.txt", "in\n")
    return inner


def in_flight(folder) -> set[str]:
    """Tasks that the last run tried, and whose end it did not see."""
    found = set()
    if folder.runs() and (folder / ".treadle/runs" / folder.runs()[-1] / "events.jsonl").exists():
        for event in folder.events(folder.runs()[-1]):
            if event["event"] == "attempt_submitted":
                found.add(event["task"])
            elif event["event"] in ("task_settled", "attempt_ended"):
                found.discard(event["task"])
    return found


def goes_on(folder, hosted: Host) -> None:
    """After a kill: what was settled stays, the rest runs as previewed, and all comes out whole."""
    before, runs = folder.settled(), folder.runs()
    status = hosted.treadle(folder, "status")
    assert status.code == 0 or "no run is recorded" in status.err, status.err
    plan = json.loads(hosted.treadle(folder, "plan", "--json").out)
    previewed = {task["id"] for task in plan["tasks"] if task["will_run"]}
    unsure = {task["id"] for task in plan["tasks"] if task["may_cut_off"]}
    done = {task for task, end in before.items() if end == "succeeded"}
    assert not previewed & done, "what was settled would run again"
    half = [f"{task}.txt" for task in in_flight(folder) if (folder / f"{task}.txt").exists()]
    (folder / "killed").unlink()
    ended = hosted.treadle(folder, "run", "-j2")
    assert ended.code == 0, ended.err
    for name in half:
        assert (folder / f"{name}.failed").exists(), "it could have passed for whole"
    ran = set().union(*(folder.attempted(run) for run in folder.runs() if run not in runs))
    assert ran <= previewed
    assert previewed - ran <= unsure
    for name, text in WHOLE.items():
        assert folder.read(name) == text, name
    assert not (folder / "first.txt").exists(), "a temporary output that nobody needs any longer"
    assert not (folder / "broken.txt").exists(), "what a failed attempt made is set aside"
    assert not (folder / "overlap").exists(), folder.read("overlap")
    assert not (folder / "late").exists(), "an attempt of a killed run that was not ended"
    assert folder.events()[-1]["event"] == "run_ended"
    none_left(folder.path)
    again = json.loads(hosted.treadle(folder, "plan", "--json").out)
    assert {task["id"] for task in again["tasks"] if task["will_run"]} == {"broken"}


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_killed_after_any_event_the_next_run_goes_on(folder, hosted, first):
    """Also in the middle of a turn, of which then only a part is written."""
    for number in range(first, 100, 4):
        inner = fresh(folder, str(number))
        killed = hosted.treadle(inner, "run", "-j2", when="after", number=number)
        if killed.code == 0:
            break
        assert killed.code == -9
        goes_on(inner, hosted)
    assert number > 20, "a run of six tasks has more events than that"


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_killed_before_any_change_to_the_disk_the_next_run_goes_on(folder, hosted, first):
    """Before a write: what the last turn asked for was done. And inside of making a run's folder, setting
    aside, removing, writing the checkpoint file, giving the lock back."""
    for number in range(first, 300, 4):
        inner = fresh(folder, str(number))
        killed = hosted.treadle(inner, "run", "-j2", when="move", number=number)
        if killed.code == 0:
            break
        assert killed.code == -9
        goes_on(inner, hosted)
    assert number > 40, "a run of six tasks changes the disk more often than that"


def test_killed_twice_at_the_same_place_the_third_run_goes_on(folder, hosted):
    """Recovery itself is killed at each change it makes."""
    for number in range(1, 300):
        inner = fresh(folder, str(number))
        assert hosted.treadle(inner, "run", "-j2", when="after", number=12).code == -9
        killed = hosted.treadle(inner, "run", "-j2", when="move", number=number)
        assert killed.code in (0, -9)
        if killed.code == 0 or (inner / ".treadle/runs/latest").resolve().name != inner.runs()[0]:
            break  # it came past the recovery
        goes_on(inner, hosted)
    assert number > 5


@pytest.mark.parametrize(
    ("command", "step"),
    [("evict left flaky -y", 1), ("touch left both", 1), ("clean -y", 1), ("run --force both", 3)],
)
def test_other_commands_that_are_killed_leave_records_that_say_what_is_there(folder, hosted, command, step):
    done = fresh(folder, "done")
    assert hosted.treadle(done, "run", "-j2").code == 0
    for number in range(1, 100, step):
        inner = folder.below(str(number))
        shutil.copytree(done.path, inner.path, symlinks=True)
        killed = hosted.treadle(inner, *command.split(), when="move", number=number)
        if not hosted.met:
            break
        assert killed.code == -9
        plan = json.loads(hosted.treadle(inner, "plan", "--json").out)
        to_run = {task["id"] for task in plan["tasks"] if task["will_run"]}
        if command.startswith("evict"):
            assert to_run == {"broken"}, "whether it is there or was removed on purpose"
        if command.startswith("touch"):
            assert to_run <= {"broken"}
        (inner / "killed").unlink(missing_ok=True)
        ended = hosted.treadle(inner, "run")
        assert ended.code == 0, ended.err
        assert inner.read("last.txt") == WHOLE["last.txt"]
    assert number > 5
