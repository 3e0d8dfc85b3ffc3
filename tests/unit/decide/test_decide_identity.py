"""What is part of a command's identity, and what is not."""

from __future__ import annotations

import pytest
from decide_world import record
from msgspec.structs import replace

from treadle.base.place import Place
from treadle.decide.evidence import take
from treadle.decide.identity import changed_parts, identity, surely_same
from treadle.plan.environment import Environment, Making
from treadle.plan.task import Command, Growth, Policy, Resources, ScheduledTask, Shell
from treadle.plan.tokens import THREADS

TASK = ScheduledTask(
    id="a",
    rule="a",
    command=Command(text=f"sort --parallel={THREADS} in > out"),
    inputs=("in",),
    outputs=("out",),
)


def with_command(**fields):
    return replace(TASK, command=replace(TASK.command, **fields))


def with_shell(**fields):
    return replace(TASK, policy=Policy(shell=Shell(**fields)))


SCRIPT = with_command(script=("python", "s.py"), script_file="s.py")


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("text", with_command(text="sort in > out")),
        ("text", with_command(script=("python", "x.py"))),
        ("text", replace(TASK, outputs=("out", "more"))),
        ("env", with_command(env=(("LANG", "C"),))),
        ("hooks", with_command(pre_exec="module load sort")),
        ("hooks", with_command(on_success="true")),
        ("hooks", with_command(on_failure="true")),
        ("shell", with_shell(executable="sh")),
        ("shell", with_shell(strict=True)),
        ("shell", with_shell(prelude="set -u")),
    ],
)
def test_a_change_of_the_command_changes_its_identity_and_tells_which_part(part, other):
    assert identity(other, None) != identity(TASK, None)
    assert changed_parts(identity(TASK, None), identity(other, None)) == [part]


@pytest.mark.parametrize(
    "other",
    [
        replace(TASK, resources=Resources(threads=8, memory=2**30, time_limit=60, partition="big")),
        replace(TASK, resources=Resources(gpus=1, groups=(("db", 1),), extra_args=("--x",))),
        replace(TASK, policy=Policy(retries=3, retry_delay=2.0, priority=9, retry_memory=Growth(2.0))),
        replace(TASK, policy=Policy(description="other", tags=("x",), digest_limit=None, required=False)),
        replace(TASK, log="logs/a.log"),
        replace(TASK, benchmark="a.tsv"),
        replace(TASK, temporary=("out",)),
        replace(TASK, place=Place("flow.oxoflow", 12)),
        replace(TASK, id="b", rule="b"),
        replace(TASK, inputs=("in", "more")),
        with_command(secrets=("token",)),
    ],
)
def test_resources_and_treatment_are_not_part_of_the_identity(other):
    assert identity(other, None) == identity(TASK, None)


def test_the_content_of_the_script_is_part_of_the_identity():
    first = identity(SCRIPT, record("s.py", digest="a" * 64))
    second = identity(SCRIPT, record("s.py", digest="b" * 64))
    assert changed_parts(first, second) == ["script"]
    assert changed_parts(first, identity(SCRIPT, None)) == ["script"]


def test_the_time_of_the_script_is_not_part_of_the_identity():
    first = identity(SCRIPT, record("s.py", mtime=1, inode=2))
    assert identity(SCRIPT, record("s.py", mtime=3, inode=4)) == first


def test_the_identity_is_the_same_in_every_process_and_release():
    assert identity(TASK, None) == "5abbfbf0b502a644ad7f194de8064155...."


def test_texts_that_join_alike_are_told_apart():
    one = with_command(script=("a", "bc"))
    two = with_command(script=("ab", "c"))
    assert identity(one, None) != identity(two, None)
    three = replace(with_command(script=("a",)), outputs=("b", "c"))
    four = replace(with_command(script=("a", "b")), outputs=("c",))
    assert identity(three, None) != identity(four, None)


def test_a_plain_command_is_known_to_be_the_same_by_its_text():
    evidence = take(TASK, {}, {"out": record("out")})
    assert surely_same(TASK, evidence)
    assert not surely_same(with_command(text="other"), evidence)
    assert not surely_same(with_command(env=(("A", "1"),)), evidence)
    assert not surely_same(with_command(pre_exec="true"), evidence)
    assert not surely_same(with_shell(strict=True), evidence)


def test_a_text_that_was_cut_for_showing_is_not_taken_for_the_whole():
    long = with_command(text="x" * 5000)
    evidence = take(long, {}, {})
    assert len(evidence.text) == 4096
    assert not surely_same(long, evidence)
    assert not surely_same(with_command(text="x" * 4096), evidence)


INSIDE = Environment(kind="conda", said=(("conda", "e.yml"),), content="1" * 64, entry="enter")


def inside(**changes):
    return identity(replace(TASK, policy=Policy(environment=replace(INSIDE, **changes))), None)


def test_an_environment_is_a_part_of_its_own_and_without_one_the_identity_is_as_it_always_was():
    plain = identity(TASK, None)
    assert inside().startswith(f"{plain}.")
    assert changed_parts(plain, inside()) == ["environment"]
    assert changed_parts(inside(), plain) == ["environment"]


def test_what_is_said_of_an_environment_and_the_content_of_its_file_are_of_the_identity():
    others = {
        inside(),
        inside(kind="mamba"),
        inside(said=(("conda", "f.yml"),)),
        inside(content="2" * 64),
    }
    assert len(others) == 4


def test_how_an_environment_is_entered_and_where_it_is_made_are_not_of_the_identity():
    making = Making(task="env::e", text="make", place="/x", probe="/x/bin", ready="/x.ready", digest="d")
    others = {
        "entry": "enter in another way",
        "container": "docker",
        "reads": ("/refs",),
        "bound": ("/refs",),
        "tools": ("conda",),
        "wanted": "/x",
        "making": making,
    }
    assert {inside(**{name: value}) for name, value in others.items()} == {inside()}
    assert others.keys() | {"kind", "said", "content"} == set(Environment.__struct_fields__)


def test_the_short_way_to_an_equal_identity_sees_the_environment():
    task = replace(TASK, policy=Policy(environment=INSIDE))
    evidence = take(task, {}, {})
    assert surely_same(task, evidence)
    assert not surely_same(TASK, evidence)
    assert not surely_same(task, take(TASK, {}, {}))
    other = replace(INSIDE, content="2" * 64)
    assert not surely_same(replace(TASK, policy=Policy(environment=other)), evidence)
    assert not surely_same(
        replace(TASK, policy=Policy(environment=INSIDE, shell=Shell(strict=True))), evidence
    )
