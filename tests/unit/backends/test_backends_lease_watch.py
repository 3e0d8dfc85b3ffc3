"""Leases that others hold are watched until they are free, by one thread that is there while any is."""

from __future__ import annotations

import select
import threading
import time

import pytest

from treadle.backends.lease_watch import LeaseWatch, Watched
from treadle.engine.signals import Wake
from treadle.steps.book import Entry
from treadle.steps.local_store import LocalStore
from treadle.steps.order import order_of
from treadle.steps.owner import this_owner
from treadle.steps.perform import perform
from treadle.steps.spec import StepSpec


class Watch:
    def __init__(self, folder) -> None:
        self.folder = folder
        self.store = LocalStore()
        self.wake = Wake()
        self.watch = LeaseWatch(self.wake.ring)

    def path(self, name: str) -> str:
        return StepSpec(name).path_under(str(self.folder))

    def held(self, name: str):
        return self.store.claim(self.path(name), this_owner("other.1"))

    def add(self, name: str, **changes) -> None:
        fields = {"wanted": False, "replaces": None, **changes}
        self.watch.add(Watched(name, self.store, self.path(name), StepSpec(name).identity, **fields))

    def make(self, name: str, **entry):
        """Make the artifact by the lease of a holder that goes on living."""
        spec = StepSpec(name, fn=lambda out: time.time())
        order = order_of(
            Entry(spec=spec, path=self.path(name), **entry),
            attempt="other.1",
            number=1,
            owner=this_owner("other.1"),
        )
        return perform(order, self.store, cancelled=lambda: False).record

    def free(self, bound: float = 30.0) -> list[str]:
        assert select.select([self.wake.reader], [], [], bound)[0]
        self.wake.drain()
        return self.watch.take()

    def is_quiet(self) -> bool:
        return not select.select([self.wake.reader], [], [], 0.3)[0]


@pytest.fixture
def watch(tmp_path):
    made = Watch(tmp_path)
    yield made
    made.watch.close()


def test_what_is_released_is_free(watch):
    lease = watch.held("a")
    watch.add("a")
    assert watch.is_quiet()
    lease.release()
    assert watch.free() == ["a"]
    assert watch.watch.take() == []


def test_each_is_told_for_itself(watch):
    leases = {name: watch.held(name) for name in "abc"}
    for name in "abc":
        watch.add(name)
    for name in "bca":
        leases[name].release()
        assert watch.free() == [name]


def test_what_is_complete_is_free_though_the_lease_is_held(watch):
    watch.make("a")
    lease = watch.held("a")
    watch.add("a")
    assert watch.free() == ["a"]
    lease.release()


def test_the_artifact_that_is_to_be_replaced_does_not_count(watch):
    old = watch.make("a")
    lease = watch.held("a")
    watch.add("a", wanted=True, replaces=old)
    assert watch.is_quiet()
    lease.release()
    assert watch.free() == ["a"]


def test_what_is_dropped_is_told_no_more(watch):
    lease = watch.held("a")
    watch.add("a")
    assert watch.watch.drop("a")
    assert not watch.watch.drop("a")
    lease.release()
    assert watch.is_quiet()


def test_an_idle_watch_has_no_thread_and_begins_anew(watch):
    for _ in range(2):
        lease = watch.held("a")
        watch.add("a")
        lease.release()
        assert watch.free() == ["a"]
        deadline = time.monotonic() + 30
        while any(one.name == "treadle leases" for one in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
