"""The one wrapper around a step's function, over plain folders and over an object store."""

from __future__ import annotations

import builtins
import os
import threading
import time
from collections import Counter

import pytest

from treadle.base.errors import DiskError, StepError
from treadle.base.layout import ArtifactPlaces
from treadle.steps.book import Entry
from treadle.steps.local_store import LocalStore
from treadle.steps.order import Done, order_of
from treadle.steps.owner import this_owner
from treadle.steps.perform import own_frames_off, perform
from treadle.steps.record import ArtifactState, Dep, Kind, Owner, Standing
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for


class Bench:
    """Performs steps below one prefix, attempt after attempt."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.store = store_for(prefix, unsafe_locks=True)
        self.n = 0
        self.cancelled = False

    def path(self, spec: StepSpec) -> str:
        return spec.path_under(self.prefix)

    def order(self, spec: StepSpec, *, number: int = 1, tells: bool = False, **entry):
        self.n += 1
        attempt = f"run.{self.n}"
        deps = tuple(Dep(one.name, one.identity, self.path(one)) for one in spec.deps)
        return order_of(
            Entry(spec=spec, path=self.path(spec), deps=deps, **entry),
            attempt=attempt,
            number=number,
            owner=this_owner(attempt),
            tells=tells,
        )

    def perform(self, spec: StepSpec, **changes):
        return perform(self.order(spec, **changes), self.store, cancelled=lambda: self.cancelled)

    def fail(self, spec: StepSpec, kind=StepError, **changes) -> BaseException:
        with pytest.raises(kind) as caught:
            self.perform(spec, **changes)
        assert self.store.holder(self.path(spec)) is None, "the lease was not given back"
        return caught.value

    def seen(self, spec: StepSpec):
        return self.store.look(self.path(spec), spec.identity)

    def content(self, spec: StepSpec) -> str:
        with open(self.store.fetch(self.seen(spec).record)) as file:
            return file.read()


@pytest.fixture(params=["folder", "memory"])
def bench(request, tmp_path):
    made = Bench(
        str(tmp_path / "a") if request.param == "folder" else f"memory://{tmp_path.name}/{os.getpid()}"
    )
    yield made
    if request.param == "folder":
        works = f"{made.prefix}/.treadle-artifacts/work"
        left = sorted(os.listdir(works)) if os.path.isdir(works) else []
        assert [one for one in left if not one.endswith(".resume")] == []


@pytest.fixture
def folder(tmp_path):
    return Bench(str(tmp_path / "a"))


def writes(text: str):
    def fn(out):
        with open(out, "w") as file:
            file.write(text)

    return fn


def test_a_step_makes_its_artifact_once(bench):
    calls = []

    def fn(out):
        calls.append(out)
        assert not os.path.lexists(out)
        assert os.path.isdir(os.path.dirname(out))
        writes("tokens")(out)

    spec = StepSpec("tok", fn=fn, hash_attrs={"vocab": "v1"})
    done = bench.perform(spec)
    assert isinstance(done, Done)
    assert not done.taken
    assert bench.content(spec) == "tokens"
    again = bench.perform(spec)
    assert (again.taken, again.record, len(calls)) == (True, done.record, 1)
    assert bench.store.holder(bench.path(spec)) is None


def test_the_record_tells_what_was_made_of_what(bench):
    below = StepSpec("tok", fn=writes("t"))
    bench.perform(below)
    spec = StepSpec("train", fn=lambda out: {"loss": 0.5}, deps=[below], hash_attrs={"lr": 0.1}, version="2")
    record = bench.perform(spec, number=3).record
    assert (record.name, record.version, record.identity) == ("train", "2", spec.identity)
    assert record.hash_attrs == {"lr": 0.1}
    assert [(dep.name, dep.identity) for dep in record.deps] == [("tok", below.identity)]
    assert (record.kind, record.result.value) == (Kind.NOTHING, {"loss": 0.5})
    assert record.code == spec.code != ""
    assert record.provenance.attempt == "run.2"
    assert 0 < record.provenance.started <= record.provenance.ended <= time.time()
    assert record.wall >= 0
    assert record.cpu >= 0


def test_a_folder_is_an_artifact(bench):
    def fn(out):
        os.makedirs(f"{out}/deep")
        writes("x")(f"{out}/deep/file")

    spec = StepSpec("shards", fn=fn)
    assert bench.perform(spec).record.kind is Kind.FOLDER
    assert os.listdir(bench.store.fetch(bench.seen(spec).record)) == ["deep"]


def test_ctx_tells_of_the_step_and_reads_its_deps(bench):
    one = StepSpec("one", fn=lambda out: writes("1")(out) or {"n": 1})
    two = StepSpec("two", fn=lambda out: [2])
    bench.perform(one)
    bench.perform(two)

    def fn(out, *, ctx):
        with open(ctx.path(one)) as file:
            text = file.read()
        return [
            text,
            ctx.load("one"),
            ctx.load(two),
            ctx.load(two.name_with_hash, tuple[int, ...])[0],
            ctx.attempt,
        ]

    spec = StepSpec("three", fn=fn, deps=[one, two], hash_attrs={"a": [1]})
    assert bench.perform(spec, number=7).record.result.value == ["1", {"n": 1}, [2], 2, 7]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, OSError])
def test_what_the_function_raises_is_raised_and_recorded(bench, kind):
    def fn(out):
        writes("half")(out)
        raise kind("no such layer")

    spec = StepSpec("tok", fn=fn)
    error = bench.fail(spec, kind)
    assert error.args == ("no such layer",)
    seen = bench.seen(spec)
    assert seen.state is ArtifactState.ABSENT
    assert (seen.status.state, seen.status.attempt) == (Standing.FAILED, "run.1")
    assert seen.status.error == f"{kind.__name__}: no such layer"


def test_the_traceback_begins_at_the_function(bench):
    def fn(out):
        raise ValueError("x")

    error = own_frames_off(bench.fail(StepSpec("tok", fn=fn), ValueError))
    assert error.__traceback__.tb_frame.f_code is fn.__code__


def test_after_a_failure_it_can_be_tried_at_once(bench):
    tries = []

    def fn(out):
        tries.append(os.path.lexists(out))
        writes("half")(out)
        if len(tries) < 3:
            raise ValueError("not yet")

    spec = StepSpec("tok", fn=fn)
    bench.fail(spec, ValueError)
    bench.fail(spec, ValueError)
    assert not bench.perform(spec).taken
    assert tries == [False] * 3
    assert bench.seen(spec).state is ArtifactState.COMPLETE


def test_a_resumable_step_finds_what_it_left(bench):
    def fn(out):
        with open(out, "a") as file:
            file.write("more ")
        with open(out) as file:
            if file.read().count("more") < 3:
                raise ValueError("not yet")

    spec = StepSpec("train", fn=fn, resumable=True)
    bench.fail(spec, ValueError)
    bench.fail(spec, ValueError)
    bench.perform(spec)
    assert bench.content(spec) == "more more more "


def test_checkpoints_are_kept_until_it_succeeds(folder):
    def fn(out, ctx):
        writes("state")(f"{ctx.checkpoint_dir}/{len(os.listdir(ctx.checkpoint_dir))}")
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return sorted(os.listdir(ctx.checkpoint_dir))

    spec = StepSpec("train", fn=fn)
    folder.fail(spec, ValueError, number=1)
    folder.fail(spec, ValueError, number=2)
    assert folder.perform(spec, number=3).record.result.value == ["0", "1", "2"]
    assert not os.path.lexists(ArtifactPlaces(folder.path(spec)).checkpoints)


def test_who_holds_the_lease_is_told(bench):
    spec = StepSpec("tok", fn=writes("x"))
    other = this_owner("other.1")
    lease = bench.store.claim(bench.path(spec), other)
    assert bench.perform(spec) == other
    lease.release()
    assert isinstance(bench.perform(spec), Done)


def test_a_step_without_function_that_is_not_there_fails(bench):
    error = bench.fail(StepSpec("tok"))
    assert "no function" in str(error)


def test_a_step_without_function_that_is_there_is_taken(bench):
    bench.perform(StepSpec("tok", fn=writes("x")))
    assert bench.perform(StepSpec("tok")).taken


def test_a_dep_that_vanished_is_told_with_the_way_out(bench):
    below = StepSpec("tok", fn=writes("t"))
    bench.perform(below)
    bench.store.remove(bench.path(below))
    called = []
    error = bench.fail(StepSpec("train", fn=called.append, deps=[below]))
    assert "'train' reads 'tok'" in str(error)
    assert "run again" in str(error)
    assert called == []


def test_a_value_that_cannot_be_kept_fails_when_nothing_was_made(bench):
    error = bench.fail(StepSpec("tok", fn=lambda out: object()))
    assert "cannot be kept" in str(error)


def test_a_value_that_cannot_be_kept_is_lost_when_something_was_made(bench):
    record = bench.perform(StepSpec("tok", fn=lambda out: writes("x")(out) or object())).record
    assert "object" in record.result.lost


def test_a_step_that_writes_its_record_must_do_so(bench):
    assert "without a call of ctx.write_record" in str(
        bench.fail(StepSpec("tok", fn=lambda out, ctx: 5, writes_record=True))
    )
    spec = StepSpec("two", fn=lambda out, ctx: ctx.write_record({"n": 1}), writes_record=True)
    assert bench.perform(spec).record.result.value == {"n": 1}


def test_a_wanted_step_is_made_again_and_replaces_what_it_names(bench):
    texts = iter("abc")
    spec = StepSpec("tok", fn=lambda out: writes(next(texts))(out))
    first = bench.perform(spec).record
    second = bench.perform(spec, wanted=True, replaces=first)
    assert not second.taken
    assert bench.content(spec) == "b"
    third = bench.perform(spec, wanted=True, replaces=first)  # somebody else has made it again meanwhile
    assert third.taken
    assert third.record == second.record


def test_the_artifact_of_another_identity_is_not_overwritten(bench):
    old = StepSpec("tok", fn=writes("old"), hash_attrs={"n": 1}, override_output_path="fixed")
    new = StepSpec("tok", fn=writes("new"), hash_attrs={"n": 2}, override_output_path="fixed")
    record = bench.perform(old).record
    assert "another identity" in str(bench.fail(new))
    assert bench.content(old) == "old"
    assert not bench.perform(new, wanted=True, replaces=record).taken
    assert bench.content(new) == "new"


def test_a_dep_that_may_have_drifted_is_read_as_it_is(bench):
    old = StepSpec("tok", fn=writes("old"), hash_attrs={"n": 1}, override_output_path="fixed")
    bench.perform(old)
    strict = StepSpec("tok", hash_attrs={"n": 2}, override_output_path="fixed")
    assert "not at" in str(bench.fail(StepSpec("train", fn=lambda out: 1, deps=[strict])))
    lenient = StepSpec("tok", hash_attrs={"n": 2}, override_output_path="fixed", drift="warn")
    spec = StepSpec("train", fn=lambda out, ctx: os.path.getsize(ctx.path(lenient)), deps=[lenient])
    assert bench.perform(spec).record.result.value == len("old")


def test_what_was_interrupted_is_recorded_as_that(bench):
    def fn(out, ctx):
        bench.cancelled = True
        assert ctx.cancelled
        raise ValueError("stopping")

    spec = StepSpec("tok", fn=fn)
    bench.fail(spec, ValueError)
    assert bench.seen(spec).status.state is Standing.INTERRUPTED


def test_the_state_is_told_from_the_start_where_it_is_asked_for(bench):
    during = []
    spec = StepSpec("tok", fn=lambda out: during.append(status_of(bench, spec)))
    bench.perform(spec, tells=True)
    assert during == [Standing.RUNNING]
    assert status_of(bench, spec) is Standing.SUCCEEDED


def test_success_takes_back_what_an_earlier_failure_said(bench):
    spec = StepSpec("tok", fn=lambda out: 1 / 0)
    bench.fail(spec, ZeroDivisionError)
    bench.perform(StepSpec("tok", fn=writes("x")))
    assert status_of(bench, spec) is not Standing.FAILED


def status_of(bench, spec):
    """What stands in the status file, seen where no record speaks louder."""
    from treadle.steps.record_file import decode_status

    path = ArtifactPlaces(bench.path(spec)).status
    if "://" in path:
        from treadle.steps.object_bucket import Bucket
        from treadle.steps.object_url import spot

        return decode_status(Bucket(spot(path).root, unsafe=True).get(spot(path).key).data, path).state
    with open(path, "rb") as file:
        return decode_status(file.read(), path).state


def test_whoever_lost_the_lease_publishes_nothing(folder):
    spec = StepSpec("tok", fn=lambda out, ctx: writes("ours")(out) or usurp(folder.path(spec)))
    held = folder.perform(spec)
    assert isinstance(held, Owner)
    assert held.attempt == "usurper.1"
    assert folder.seen(spec).state is ArtifactState.ABSENT


def test_what_is_raised_after_the_lease_was_lost_is_no_failure(tmp_path):
    """The function was ended because somebody else has it: their work is waited for."""
    now = [0.0]
    store = LocalStore(monotonic=lambda: now[0])
    bench = Bench(str(tmp_path / "a"))
    bench.store = store

    def fn(out):
        usurp(bench.path(spec))
        now[0] += 60
        store.beat()
        raise SystemExit(143)

    spec = StepSpec("tok", fn=fn)
    held = bench.perform(spec)
    assert isinstance(held, Owner)
    assert held.attempt == "usurper.1"
    assert bench.seen(spec).status is None


def usurp(path: str) -> None:
    """Take the lease as another host does after 90 s of silence by its own clock."""
    now = [0.0]
    elsewhere = LocalStore(monotonic=lambda: now[0])
    usurper = Owner(host="elsewhere", pid=1, user="them", attempt="usurper.1")
    assert isinstance(elsewhere.claim(path, usurper), Owner)
    now[0] = 100.0
    assert not isinstance(elsewhere.claim(path, usurper), Owner)


def test_work_that_is_done_waits_for_its_storage(folder):
    aside = f"{folder.prefix}.aside"

    def fn(out):
        writes("kept")(out)
        os.rename(folder.prefix, aside)
        threading.Timer(0.3, os.rename, (aside, folder.prefix)).start()

    spec = StepSpec("tok", fn=fn)
    assert not folder.perform(spec).taken
    assert folder.content(spec) == "kept"


def test_storage_that_stays_out_is_told(folder):
    def fn(out):
        os.rename(folder.prefix, f"{folder.prefix}.aside")
        folder.cancelled = True

    with pytest.raises((DiskError, StepError)):
        folder.perform(StepSpec("tok", fn=fn))


FILE_CALLS = (
    *("access", "chmod", "close", "fdatasync", "fstat", "fsync", "link", "listdir", "lstat", "mkdir", "open"),
    *("pread", "pwrite", "read", "readlink", "rename", "replace", "rmdir", "scandir", "stat", "symlink"),
    *("truncate", "unlink", "write"),
)


@pytest.fixture
def calls(monkeypatch):
    """System calls as Python makes them; a builtin `open` that reads a whole file counts as four."""
    counts = Counter()

    def counting(name, cost, real):
        def counted(*args, **named):
            counts[name] += cost
            return real(*args, **named)

        return counted

    for name in FILE_CALLS:
        monkeypatch.setattr(os, name, counting(name, 1, getattr(os, name)))
    monkeypatch.setattr(builtins, "open", counting("open and read", 4, open))
    return counts


def test_a_step_that_does_nothing_costs_few_system_calls(folder, calls):
    folder.perform(StepSpec("first", fn=lambda out: None))  # makes the folders
    calls.clear()
    folder.perform(StepSpec("second", fn=lambda out: None))
    assert calls.total() <= 30, calls
    assert calls["fsync"] == 0
    calls.clear()
    folder.perform(StepSpec("second", fn=lambda out: None))  # complete by now
    assert calls.total() <= 14, calls
