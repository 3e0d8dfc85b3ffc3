"""How many threads serve: one while calls do nothing, all once one waits or works."""

from __future__ import annotations

import threading

from treadle.backends.step_pace import Pace


def crowd() -> Pace:
    pace = Pace()
    for _ in range(4):
        pace.added()
    return pace


def test_tiny_calls_that_only_take_turns_are_left_to_one() -> None:
    pace = crowd()
    pace.judge(16, wall=16 * 0.0004, cpu=16 * 0.0001)
    assert pace.width == 1
    assert pace.is_crowded


def test_a_few_calls_prove_nothing() -> None:
    pace = crowd()
    pace.judge(3, wall=0.0003, cpu=0.0003)
    assert pace.width is None


def test_calls_that_wait_or_work_are_served_by_all() -> None:
    for wall, cpu in ((0.01, 0.0001), (0.002, 0.002)):
        pace = crowd()
        pace.judge(16, wall=16 * wall, cpu=16 * cpu)
        assert not pace.is_crowded


def test_one_call_that_waits_or_works_is_enough_for_all_to_serve_again() -> None:
    for wall, cpu in ((0.002, 0.0001), (0.002, 0.002)):
        pace = crowd()
        pace.judge(16, wall=0.002, cpu=0.002)
        assert pace.width == 1
        pace.judge(1, wall=wall, cpu=cpu)
        assert pace.width is None


def test_after_a_mistake_it_takes_more_to_leave_all_to_one_again() -> None:
    pace = crowd()
    pace.judge(16, wall=0.002, cpu=0.002)
    pace.judge(1, wall=1.0, cpu=0.0001)
    for _ in range(3):
        pace.judge(16, wall=0.002, cpu=0.002)
        assert pace.width is None
    pace.judge(16, wall=0.002, cpu=0.002)
    assert pace.width == 1


def test_who_is_parked_serves_again_once_all_are_to() -> None:
    pace = crowd()
    pace.judge(16, wall=0.002, cpu=0.002)
    parked = [threading.Thread(target=pace.park, daemon=True) for _ in range(4)]
    for one in parked:
        one.start()
    while pace.is_crowded:
        pass
    pace.widen()
    for one in parked:
        one.join(30)
    assert not any(one.is_alive() for one in parked)
