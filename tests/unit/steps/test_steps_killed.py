"""What is seen of an attempt that was killed before it could say so."""

from __future__ import annotations

import pytest

from treadle.steps.killed import with_killed
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactStatus, Owner, Standing
from treadle.steps.spec import StepSpec
from treadle.steps.stores import store_for

STEP = StepSpec("s", fn=print)
GONE = Owner(
    **{**{name: getattr(this_owner(), name) for name in ("host", "boot", "pid_namespace")}, "pid": 2**22}
)


@pytest.fixture(params=["file", "memory"])
def path(request, tmp_path):
    root = str(tmp_path) if request.param == "file" else f"memory://{tmp_path.name}"
    return f"{root}/{STEP.name_with_hash}"


def seen_at(path, step=STEP):
    store = store_for(path)
    return with_killed(store.look(path, step.identity), store, step, path)


def running(path, owner):
    status = ArtifactStatus(identity=STEP.identity, state=Standing.RUNNING, owner=owner, attempt="run.1")
    store_for(path).tell(path, status)


def test_a_status_that_says_running_of_nobody_was_interrupted(path):
    running(path, GONE)
    found = seen_at(path).status
    assert (found.state, found.attempt) == (Standing.INTERRUPTED, "run.1")


def test_a_status_of_one_who_holds_the_lease_is_left_as_it_is(path):
    lease = store_for(path).claim(path, this_owner("run.1"))
    running(path, this_owner("run.1"))
    assert seen_at(path).status.state is Standing.RUNNING
    lease.release()


def test_a_failure_is_a_failure(path):
    store_for(path).tell(path, ArtifactStatus(identity=STEP.identity, state=Standing.FAILED))
    assert seen_at(path).status.state is Standing.FAILED


def test_where_nothing_stands_nothing_was_interrupted(path):
    assert seen_at(path).status is None


def test_a_lease_of_nobody_was_left_by_one_who_was_killed(tmp_path):
    path = f"{tmp_path}/{STEP.name_with_hash}"
    store_for(path).claim(path, GONE)
    assert seen_at(path).status.state is Standing.INTERRUPTED


def test_a_lease_of_one_who_lives_says_nothing(tmp_path):
    path = f"{tmp_path}/{STEP.name_with_hash}"
    lease = store_for(path).claim(path, this_owner("run.1"))
    assert seen_at(path).status is None
    lease.release()


def test_a_lease_at_a_path_that_a_person_chose_may_be_of_another_step(tmp_path):
    step, path = StepSpec("s", override_output_path=tmp_path / "here"), f"{tmp_path}/here"
    store_for(path).claim(path, GONE)
    assert seen_at(path, step).status is None
