"""Long chains and wide plans of steps: nothing recursive, nothing that grows faster than they do."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys

from treadle.steps.expand import expand_steps
from treadle.steps.record import ArtifactState, Seen
from treadle.steps.spec import StepSpec

MANY = 100_000
ABSENT = Seen(ArtifactState.ABSENT)


def work(out):
    """What all these steps do."""


def chain(length):
    last = StepSpec("s", fn=work)
    for number in range(length - 1):
        last = StepSpec("s", fn=work, deps=[last], version=str(number))
    return last


def expand(*steps, **options):
    return expand_steps(steps, look=lambda spec, path: ABSENT, prefix="/p", workdir="/w", **options)


def test_a_chain_of_100_000_steps_is_made_compared_expanded_and_thrown_away():
    last = chain(MANY)
    assert last != last.deps[0]
    assert len({last, last.deps[0], last}) == 2
    assert last.hash_id in repr(last)
    assert pickle.loads(pickle.dumps(last)) == last
    found = expand(last)
    assert len(found.drafts) == MANY
    assert found.drafts[-1].call.identity == last.identity
    assert found.drafts[0].steps == ()
    del found, last
    gc.collect()


def test_a_plan_100_000_steps_wide_is_expanded():
    steps = [StepSpec(f"s{number}", fn=work) for number in range(MANY)]
    found = expand(StepSpec("all", fn=work, deps=steps))
    assert len(found.drafts) == MANY + 1
    assert len(found.drafts[-1].steps) == MANY


def test_a_forced_step_and_a_pin_are_found_at_the_end_of_a_long_chain():
    first = StepSpec("s", fn=work, expected_identity=StepSpec("s").identity)
    last = first
    for number in range(20_000):
        last = StepSpec("s", fn=work, deps=[last], version=str(number))
    found = expand(last, forced={first.task_id})
    assert found.drafts[0].call.identity == first.identity


def test_a_long_chain_dies_with_a_small_stack():
    """In a thread with 256 KiB of stack, of which a recursive release of 20,000 objects would need more."""
    text = """
import threading
from treadle.steps.spec import StepSpec
done = []
def go():
    last = None
    for number in range(20_000):
        last = StepSpec("s", deps=[last] if last else [], version=str(number))
    del last
    done.append(True)
threading.stack_size(256 * 1024)
thread = threading.Thread(target=go)
thread.start()
thread.join()
print(done)
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "[True]"), ran.stderr
