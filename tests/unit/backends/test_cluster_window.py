"""How much stands in the queue at once, and who goes together."""

from __future__ import annotations

from treadle.backends.cluster.arrays import Batch, Waiting
from treadle.backends.cluster.held import Held
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.window import Window
from treadle.engine.backend import Submission
from treadle.plan.task import Policy, Resources, ScheduledTask

SETTINGS = ClusterSettings(backend="slurm")


def held(n: int, rule: str = "t", **changes) -> Held:
    task = ScheduledTask(id=f"{rule}/n={n}", rule=rule, policy=changes.pop("policy", Policy()))
    fields = {"resources": Resources(), "cwd": "/w", **changes}
    submission = Submission(
        task=task, attempt=1, n=n, name=f"t-{n}", argv=("true",), env={}, log="l", **fields
    )
    return Held(submission, SETTINGS)


def waiting(*some: Held, at: float = 0.0) -> Waiting:
    queue = Waiting(10.0)
    for one in some:
        queue.add([one], at)
    return queue


def numbers(batch: Batch) -> list[int]:
    return [one.n for job in batch for one in job]


def test_no_more_than_the_bound_is_submitted():
    window = Window(100)
    assert window.room(0) == 100
    window.sent(60)
    assert window.room(0) == 40
    window.sent(40)
    assert window.room(0) == 0


def test_a_refill_waits_until_a_quarter_is_free():
    window = Window(100)
    window.sent(100)
    window.ended(24)
    assert window.room(0) == 0
    window.ended()
    assert window.room(0) == 25


def test_what_never_was_full_is_filled_at_once():
    window = Window(100)
    window.sent(90)
    window.ended(1)
    assert window.room(0) == 11


def test_a_small_window_is_refilled_one_by_one():
    window = Window(2)
    window.sent(2)
    window.ended()
    assert window.room(0) == 1


def test_half_of_what_was_too_many_is_tried_at_once():
    window = Window(1000)
    window.limited(5.0, 100)
    assert window.room(5.0) == 50


def test_a_limit_waits_for_an_end_or_for_a_while():
    window = Window(1000)
    window.sent(7)
    window.limited(10.0, 1)
    assert window.room(10.0) == 0
    assert window.wait_until(10.0) is not None
    window.ended(2)
    assert window.room(10.1) == 2
    other = Window(1000)
    other.limited(10.0, 1)  # others of the account use it up
    assert other.room(10.0) == 0
    assert other.room(16.0) == 1


def test_a_limit_is_forgotten_after_a_while():
    window = Window(1000)
    window.limited(10.0, 100)
    window.sent(50)
    assert window.room(20.0) == 0
    assert window.room(400.0) == 950


def test_siblings_with_equal_resources_go_together():
    small, large = Resources(threads=1), Resources(threads=8)
    queue = waiting(
        held(1, resources=small), held(2, resources=large), held(3, resources=small), held(4, "u"), held(5)
    )
    batches = []
    while batch := queue.take(100, 0.0, alone=True):
        batches.append(numbers(batch))
    assert batches == [[1, 3, 5], [2], [4]]
    assert len(queue) == 0


def test_one_that_avoids_a_node_goes_apart():
    queue = waiting(held(1), held(2, exclude=("bad",)))
    assert numbers(queue.take(100, 0.0, alone=True)) == [1]


def test_a_ready_one_waits_for_company_while_something_is_in_flight():
    queue = waiting(held(1))
    assert queue.take(100, 0.0, alone=False) == []
    queue.add([held(2)], 1.0)
    assert queue.due() == 3.0  # two seconds after the last newcomer
    assert numbers(queue.take(100, 3.0, alone=False)) == [1, 2]


def test_nobody_waits_longer_than_one_interval():
    queue = waiting(held(0))
    for n in range(1, 11):
        queue.add([held(n)], float(n))
    assert queue.due() == 10.0
    assert len(queue.take(100, 10.0, alone=False)) == 11


def test_a_full_chunk_does_not_wait():
    queue = waiting(*(held(n) for n in range(1, 8)))
    assert numbers(queue.take(3, 0.0, alone=False)) == [1, 2, 3]
    assert numbers(queue.take(3, 0.0, alone=False)) == [4, 5, 6]
    assert queue.take(3, 0.0, alone=False) == []


def test_what_is_put_back_goes_first_and_as_it_was():
    queue = waiting(held(1), held(2))
    batch = queue.take(100, 0.0, alone=True)
    queue.add([held(3)], 0.0)
    queue.put_back(batch, whole=True, now=0.0)
    assert numbers(queue.take(100, 0.0, alone=False)) == [1, 2]
    assert len(queue) == 1


def test_what_is_put_back_for_a_limit_may_be_split():
    queue = waiting(*(held(n) for n in range(1, 5)))
    queue.put_back(queue.take(100, 0.0, alone=True), whole=False, now=0.0)
    assert numbers(queue.take(2, 0.0, alone=False)) == [1, 2]
    assert numbers(queue.take(2, 0.0, alone=False)) == [3, 4]


def test_what_is_dropped_is_not_submitted():
    first, second = held(1), held(2)
    queue = waiting(first, second)
    queue.drop(first)
    assert len(queue) == 1
    assert numbers(queue.take(100, 0.0, alone=True)) == [2]
    assert len(queue) == 0
