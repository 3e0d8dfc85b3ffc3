"""Steps from an iterable: pulled as there is room, run as they come; and steps that grow."""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from story_steps import Calls, put, run_script

from treadle import StepError, StepRunError, StepRunner, StepSpec
from waiting import until


def test_a_stream_runs_all_its_steps_and_tells_counts(runner: StepRunner) -> None:
    calls = Calls()
    base = StepSpec("base", fn=calls.put("base"))
    steps = [StepSpec(f"s{i}", fn=calls.put(f"s{i}"), deps=[base]) for i in range(50)]
    report = runner.run(step for step in [*steps, base, *steps])
    assert report.streamed
    assert report.counts == {"succeeded": 51}
    assert sorted(calls.names) == sorted(["base", *(f"s{i}" for i in range(50))])
    assert runner.run(iter(steps)).counts["up_to_date"] >= 50
    assert len(calls.names) == 51


def test_no_more_is_pulled_than_there_is_room_for(runner: StepRunner) -> None:
    """At most twice `max_concurrent` ahead of what runs."""
    pulled, ended, most = 0, 0, 0
    gate = threading.Event()

    def work(out: str) -> None:
        nonlocal ended
        gate.wait(60)
        ended += 1

    def steps() -> Iterator[StepSpec]:
        nonlocal pulled, most
        for i in range(60):
            pulled += 1
            most = max(most, pulled - ended)
            yield StepSpec(f"s{i}", fn=work)

    opener = threading.Thread(target=lambda: (until(lambda: pulled >= 4), time.sleep(0.2), gate.set()))
    opener.start()
    assert runner.run(steps(), max_concurrent=2).counts == {"succeeded": 60}
    opener.join()
    assert most <= 2 + 2 * 2 + 1  # running, ahead, and the one that is being made


def test_what_was_pulled_runs_while_a_slow_generator_thinks(runner: StepRunner) -> None:
    ran = threading.Event()

    def steps() -> Iterator[StepSpec]:
        yield StepSpec("first", fn=lambda out: ran.set())
        until(ran.is_set)  # the first one runs before the second one is there
        yield StepSpec("second", fn=put("x"))

    assert runner.run(steps()).counts == {"succeeded": 2}


def test_a_step_may_build_on_one_of_an_earlier_batch_that_still_runs(runner: StepRunner) -> None:
    calls, gate = Calls(), threading.Event()

    def slow(out: str) -> None:
        gate.wait(60)
        calls.put("slow")(out)

    base = StepSpec("base", fn=slow)

    def steps() -> Iterator[StepSpec]:
        yield base
        yield StepSpec("other", fn=calls.put("other"))
        until(lambda: "other" in calls.names)
        yield StepSpec("above", fn=calls.put("above"), deps=[base])
        gate.set()

    assert runner.run(steps()).counts == {"succeeded": 3}
    assert calls.names == ["other", "slow", "above"]


def test_what_builds_on_a_failed_step_of_an_earlier_batch_is_blocked(runner: StepRunner) -> None:
    calls = Calls()
    bad = StepSpec("bad", fn=calls.boom("bad"))

    def steps() -> Iterator[StepSpec]:
        yield bad
        yield StepSpec("other", fn=calls.put("other"), deps=[StepSpec("below", fn=calls.put("below"))])
        until(lambda: "other" in calls.names)
        yield StepSpec("above", fn=calls.put("above"), deps=[bad])

    with pytest.raises(StepRunError) as caught:
        runner.run(steps())
    assert "bad" in calls.names
    assert "above" not in calls.names
    report = caught.value.report
    assert report.counts == {"blocked": 1, "failed": 1, "succeeded": 2}
    assert [line.step.rpartition("_")[0] for line in report] == ["bad", "above"]


def test_an_error_in_the_iterable_comes_with_the_rest(runner: StepRunner) -> None:
    calls = Calls()

    def steps() -> Iterator[StepSpec]:
        yield StepSpec("good", fn=calls.put("good"))
        yield StepSpec("bad", fn=calls.boom("bad"))
        raise RuntimeError("no more of these")

    with pytest.raises(StepRunError) as caught:
        runner.run(steps())
    assert sorted(map(str, caught.value.exceptions)) == ["bad went wrong", "no more of these"]
    assert sorted(calls.names) == ["bad", "good"]
    assert caught.value.report.counts == {"failed": 1, "succeeded": 1}


def test_a_step_that_does_not_fit_ends_the_stream_and_what_runs_is_finished(runner: StepRunner) -> None:
    calls = Calls()

    def steps() -> Iterator[StepSpec]:
        yield StepSpec("good", fn=calls.put("good"))
        until(lambda: calls.names)
        yield StepSpec("nowhere")  # it must exist, and does not
        while True:
            yield StepSpec("more", fn=calls.put("more"), hash_attrs={"n": len(calls.names)})

    with pytest.raises(StepRunError) as caught:
        runner.run(steps())
    (error,) = caught.value.exceptions
    assert isinstance(error, StepError)
    assert "nowhere" in str(error)


@pytest.mark.parametrize("thing", [None, "train", 3])
def test_what_is_no_step_ends_the_stream_with_an_error(runner: StepRunner, thing: object) -> None:
    def steps() -> Iterator[Any]:
        yield StepSpec("a", fn=put("a"))
        yield thing
        yield StepSpec("never", fn=put("never"))

    with pytest.raises(StepRunError) as caught:
        runner.run(steps())
    (error,) = caught.value.exceptions
    assert isinstance(error, StepError)
    assert str(error).startswith(f"the iterable of steps gave {thing!r}, not a StepSpec")
    assert caught.value.report.counts == {"succeeded": 1}


def test_an_endless_generator_runs_in_bounded_memory(tmp_path: pathlib.Path) -> None:
    """What ended leaves an id and a state: some hundred bytes, not its function, artifact and record."""
    text = """
        import resource
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sizes = []
        def steps():
            for i in range(4000):
                if i == 1000: sizes.append(peak())
                heavy = bytes(20_000)
                yield StepSpec("s", hash_attrs={"i": i}, fn=lambda out, heavy=heavy: open(out, "w").close())
        report = StepRunner().run(steps())
        sizes.append(peak())
        print(report.counts, (sizes[1] - sizes[0]) * 1024 // 3000)
    """
    counts, _, grown = run_script(tmp_path, text).rpartition(" ")
    assert counts == "{'succeeded': 4000}"
    assert int(grown) < 10_000  # bytes for each further step: half of what its function alone weighs


# Growth


def grower(calls: Calls, number: int = 3) -> StepSpec:
    """A step whose result says which further steps there are."""

    def found(out: str) -> list[str]:
        calls.names.append("list")
        return [f"part{i}" for i in range(number)]

    return StepSpec(
        "list", fn=found, grow=lambda names: [StepSpec(name, fn=calls.put(name)) for name in names]
    )


@pytest.mark.parametrize("streamed", [False, True])
def test_a_step_grows_further_steps_when_it_succeeds(runner: StepRunner, streamed: bool) -> None:
    calls = Calls()
    steps = [grower(calls)]
    report = runner.run(iter(steps) if streamed else steps)
    assert report.counts == {"succeeded": 4}
    assert sorted(calls.names) == ["list", "part0", "part1", "part2"]


def test_growth_is_alike_in_the_preview_and_after_a_restart(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    assert [line.state for line in runner.run([grower(calls)], dry_run=True)] == ["will_run"]
    report = runner.run([grower(calls)])
    pathlib.Path(report["part1"].path).unlink()  # as if the run had been killed before
    preview = runner.run([grower(calls)], dry_run=True)
    assert {line.step.rpartition("_")[0]: line.state for line in preview} == {
        "list": "up_to_date",
        "part0": "up_to_date",
        "part1": "will_run",
        "part2": "up_to_date",
    }
    runner.run([grower(calls)])
    assert calls.names.count("part1") == 2
    assert calls.names.count("list") == 1


def test_what_was_grown_may_grow_again(runner: StepRunner) -> None:
    calls = Calls()

    def level(depth: int) -> StepSpec:
        def made(out: str) -> int:
            calls.names.append(f"level{depth}")
            return depth

        return StepSpec(f"level{depth}", fn=made, grow=lambda n: [level(n + 1)] if n < 4 else None)

    assert runner.run([level(0)]).counts == {"succeeded": 5}
    assert runner.run([level(0)]).counts == {"up_to_date": 5}
    assert calls.names == [f"level{i}" for i in range(5)]


def test_an_error_in_grow_is_raised_and_what_runs_is_finished(runner: StepRunner) -> None:
    calls = Calls()

    def wrong(value: object) -> list[StepSpec]:
        raise ZeroDivisionError("no growth")

    steps = [StepSpec("one", fn=lambda out: 1, grow=wrong), StepSpec("two", fn=calls.put("two"))]
    with pytest.raises(StepRunError) as caught:
        runner.run(steps)
    assert "no growth" in str(caught.value.exceptions[0])
    assert calls.names == ["two"]
    assert caught.value.report.counts == {"succeeded": 2}


# Steps of a stream that read files


def reading(calls: Calls, tmp_path: pathlib.Path) -> list[StepSpec]:
    """Steps that read a file each, for its first line, and one more that builds on each."""

    def reader(number: int) -> StepSpec:
        def read(out: str) -> None:
            calls.names.append(f"read{number}")
            pathlib.Path(out).write_text((tmp_path / f"in{number}.txt").read_text().splitlines()[0])

        return StepSpec(f"read{number}", fn=read, inputs=[f"in{number}.txt"])

    first = [reader(i) for i in range(3)]
    return [
        *first,
        *(StepSpec(f"use{i}", fn=calls.put(f"use{i}"), deps=[one]) for i, one in enumerate(first)),
    ]


def test_a_stream_of_steps_that_read_files_is_decided_by_their_contents(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    calls = Calls()
    for i in range(3):
        (tmp_path / f"in{i}.txt").write_text(f"{i}\nnoise\n")
    steps = reading(calls, tmp_path)
    locks: list[bool] = []

    def slowly() -> Iterator[StepSpec]:
        yield StepSpec("free", fn=lambda out: locks.append((tmp_path / ".treadle" / "lock").exists()))
        until(lambda: locks)
        for step in steps:
            yield step
            time.sleep(0.02)  # so that they come in batches of their own
        locks.append((tmp_path / ".treadle" / "lock").exists())

    assert runner.run(slowly()).counts == {"succeeded": 7}
    assert locks == [False, True]
    assert not (tmp_path / ".treadle" / "lock").exists()
    for again in (iter(steps), steps, iter(steps)):
        assert set(runner.run(again).counts) == {"up_to_date"}
    assert len(calls.names) == 6
    (tmp_path / "in1.txt").write_text("1\nother noise\n")
    report = runner.run(slowly())
    assert calls.names[6:] == ["read1"]  # and what builds on it was cut off
    (tmp_path / "in2.txt").write_text("two\n")
    report = runner.run(slowly())
    assert calls.names[7:] == ["read2", "use2"]
    assert report.counts["succeeded"] == 2


def test_a_stream_that_needs_a_folder_which_is_held_fails_for_that_and_runs_the_rest(
    runner: StepRunner, tmp_path: pathlib.Path
) -> None:
    from treadle.base.errors import LockError

    (tmp_path / "in0.txt").write_text("x")
    began, gate, calls = threading.Event(), threading.Event(), Calls()

    def slow(out: str) -> None:
        began.set()
        gate.wait(60)

    locked = StepSpec("locked", fn=slow, inputs=["in0.txt"])
    holder = threading.Thread(target=lambda: runner.run([locked]))
    holder.start()
    began.wait(60)

    def steps() -> Iterator[StepSpec]:
        yield StepSpec("free", fn=calls.put("free"))
        until(lambda: calls.names)
        yield StepSpec("also", fn=calls.put("also"), inputs=["in0.txt"])

    with pytest.raises(StepRunError) as caught:
        runner.run(steps())
    gate.set()
    holder.join(60)
    assert [type(one) for one in caught.value.exceptions] == [LockError]
    assert calls.names == ["free"]
