"""`ctx`: which functions get one, and how a dep is named in it."""

from __future__ import annotations

import functools

import pytest

from treadle.base.errors import StepError
from treadle.steps.context import Found, StepContext, wants_context
from treadle.steps.record import ArtifactRecord, Dep, Result
from treadle.steps.remote import remote
from treadle.steps.spec import StepSpec


def plain(out):
    pass


def by_name(out, ctx):
    pass


def by_keyword(out, *, ctx=None):
    pass


def anything(out, **named):
    pass


def passing_on(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


def swallowing(fn):
    @functools.wraps(fn)
    def wrapper(out):
        return fn(out)

    return wrapper


class Maker:
    def __call__(self, out, ctx):
        pass

    def make(self, out, ctx):
        pass

    def plain(self, out):
        pass


@pytest.mark.parametrize(
    "fn",
    [
        by_name,
        by_keyword,
        Maker(),
        Maker().make,
        passing_on(by_name),
        functools.partial(by_keyword),
        functools.partial(lambda layers, out, ctx: None, 3),
        remote(by_name),
        remote(functools.partial(by_keyword)),
        lambda out, ctx: None,
    ],
)
def test_a_function_with_a_parameter_named_ctx_gets_one(fn):
    assert wants_context(fn)


@pytest.mark.parametrize(
    "fn",
    [
        plain,
        anything,
        Maker().plain,
        swallowing(by_name),
        passing_on(plain),
        functools.partial(by_keyword, ctx=1),
        remote(plain),
        print,
        dict,
        lambda out, context: None,
        lambda out, *ctx: None,
        lambda out, **ctx: None,
    ],
)
def test_any_other_function_gets_none(fn):
    assert not wants_context(fn)


def test_a_local_variable_named_ctx_is_no_parameter():
    def make(out):
        ctx = [out]
        ctx.append(out)
        return ctx

    assert not wants_context(make)


@pytest.mark.parametrize("fn", [lambda ctx: None, lambda ctx, more: None, remote(lambda ctx: None)])
def test_ctx_in_the_place_of_the_path_is_told(fn):
    with pytest.raises(StepError, match="it gets the path"):
        wants_context(fn)


def context(found=(), **changes) -> StepContext:
    fields = {
        "name": "train",
        "path": "/nowhere/train",
        "attrs": {"layers": 12},
        "attempt": 2,
        "resources": None,
        "out_url": "/nowhere/work",
        "writes_record": False,
        "found": found,
        "cancelled": lambda: False,
    }
    return StepContext(**{**fields, **changes})


def test_what_is_no_dep_is_told_with_what_there_is():
    with pytest.raises(StepError, match="'train' reads 'vocab', which is not among its deps") as caught:
        context().path("vocab")
    assert "it has no deps" in caught.value.diagnostics[0].hint


def test_a_step_that_is_no_dep_is_named_with_its_hash():
    other = StepSpec("vocab")
    with pytest.raises(StepError, match=other.name_with_hash):
        context().load(other)


def test_however_many_deps_are_read_they_are_gone_through_once():
    class Counted(list):
        walks = 0

        def __iter__(self):
            self.walks += 1
            return super().__iter__()

    parts = [StepSpec(f"part{n}") for n in range(3)]
    records = [
        ArtifactRecord(identity=one.identity, name=one.name, path="/nowhere", result=Result(n))
        for n, one in enumerate(parts)
    ]
    found = Counted(
        Found(Dep(one.name, one.identity, "/nowhere"), record, None) for one, record in zip(parts, records)
    )
    ctx = context(found=found)
    assert [ctx.load(one) for one in parts] == [0, 1, 2]
    assert found.walks == 1


def test_a_dep_is_not_named_by_a_number():
    with pytest.raises(StepError, match="of type int"):
        context().url(3)


def test_write_record_must_have_been_announced():
    with pytest.raises(StepError, match="writes_record=True"):
        context().write_record(1)


def test_the_last_record_that_was_written_counts():
    ctx = context(writes_record=True)
    ctx.write_record({"loss": 2})
    ctx.write_record({"loss": 1})
    assert ctx.written.value == {"loss": 1}


def test_what_is_not_json_cannot_be_written():
    with pytest.raises(StepError, match="cannot be kept"):
        context(writes_record=True).write_record(object())


def test_the_checkpoint_folder_is_made_when_it_is_asked_for(tmp_path):
    ctx = context(path=f"{tmp_path}/train")
    assert not list(tmp_path.iterdir())
    with open(f"{ctx.checkpoint_dir}/1", "w") as file:
        file.write("state")
    assert ctx.checkpoint_dir == f"{tmp_path}/.treadle-artifacts/checkpoints/train"


def test_below_a_url_checkpoints_have_a_url():
    place = context(path="s3://bucket/models/train").checkpoint_dir
    assert place == "s3://bucket/models/.treadle-artifacts/checkpoints/train"
