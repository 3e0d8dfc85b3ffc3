"""Steps that grow, over random graphs and random losses: what runs is what is missing, each once."""

from __future__ import annotations

import pathlib
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import StepRunner, StepSpec

SIZE = 7
NUMBERS = st.integers(0, SIZE - 1)


class World:
    """Steps `s0` ... by number, each with deps of smaller numbers and what it grows."""

    def __init__(self, deps: list[set[int]], grows: list[list[int]]) -> None:
        self.deps = [{dep for dep in those if dep < number} for number, those in enumerate(deps)]
        self.grows = grows
        self.ran: list[int] = []
        self._made: dict[int, StepSpec] = {}

    def step(self, number: int) -> StepSpec:
        if number not in self._made:

            def work(out: str) -> list[int]:
                self.ran.append(number)
                pathlib.Path(out).write_text(str(number))
                return self.grows[number]

            deps = [self.step(dep) for dep in sorted(self.deps[number])]
            grow = (lambda found: [self.step(one) for one in found]) if self.grows[number] else None
            self._made[number] = StepSpec(f"s{number}", fn=work, deps=deps, grow=grow)
        return self._made[number]

    def below(self, number: int) -> set[int]:
        found, stack = set(), [number]
        while stack:
            for dep in self.deps[stack.pop()]:
                if dep not in found:
                    found.add(dep)
                    stack.append(dep)
        return found

    def expected(self, asked: set[int], complete: set[int]) -> set[int]:
        """What a run must make: what is asked for or grown and not there, with all that it needs."""
        runs: set[int] = set()
        met: set[int] = set()
        stack = sorted(asked)
        while stack:
            number = stack.pop()
            if number in met:
                continue
            met.add(number)
            stack += self.grows[number]
            if number not in complete:
                runs.add(number)
                stack += self.deps[number]
            else:
                stack += [one for one in self.below(number) & complete if self.grows[one]]
        return runs


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sets(NUMBERS, max_size=2), min_size=SIZE, max_size=SIZE),
    st.lists(st.lists(NUMBERS, max_size=2), min_size=SIZE, max_size=SIZE),
    st.sets(NUMBERS, min_size=1, max_size=3),
    st.lists(st.sets(NUMBERS), max_size=2),
)
def test_whatever_is_lost_the_next_run_makes_what_is_missing_once_and_the_preview_knew(
    deps: list[set[int]], grows: list[list[int]], asked: set[int], losses: list[set[int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        complete: set[int] = set()
        for lost in [set(), *losses, set()]:
            world = World(deps, grows)  # as another process would have it
            for number in lost & complete:
                pathlib.Path(world.step(number).path_under(f"{folder}/artifacts")).unlink()
                complete.discard(number)
            runner = StepRunner(workdir=folder, prefix="artifacts")
            steps = [world.step(number) for number in sorted(asked)]
            preview = {int(one.step[1]) for one in runner.run(steps, dry_run=True) if one.state == "will_run"}
            assert world.ran == []
            expected = world.expected(asked, complete)
            assert runner.run(steps).ok
            assert sorted(world.ran) == sorted(expected)
            # What steps that run will grow is not known before.
            growing = any(world.grows[number] for number in expected)
            assert preview <= expected if growing else preview == expected
            complete |= expected
            assert not runner.run(steps, dry_run=True).of("will_run")
