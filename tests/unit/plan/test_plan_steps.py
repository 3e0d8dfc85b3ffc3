"""Steps in a plan: ids, edges, refusals, what is shown of them, and how they are named."""

from __future__ import annotations

import msgspec
import pytest

from treadle.base.errors import CycleError, OptionError, PlanError
from treadle.plan.build import build
from treadle.plan.select import select
from treadle.plan.show import digest, plan_object
from treadle.plan.task import Call, Draft, ScheduledPlan, Skip, Where
from treadle.testing.drafts import draft, step, task_of

TOKENS = step("tokenize", attrs='{"vocab":"v1"}')
VOCAB = step("build_vocab", [TOKENS])
TRAIN = step("train", [TOKENS, VOCAB], path="models/train", version="2", where=Where.PROCESS)
IDS = [task_of(one) for one in (TOKENS, VOCAB, TRAIN)]


def plan(*drafts: Draft, **more: object) -> ScheduledPlan:
    return build("steps", drafts, **more)  # type: ignore[arg-type]


def refusals(*drafts: Draft, **more: object) -> list[str]:
    with pytest.raises(PlanError) as caught:
        plan(*drafts, **more)
    return [one.code for one in caught.value.diagnostics]


def shown(found: ScheduledPlan) -> list[dict[str, object]]:
    return msgspec.json.decode(msgspec.json.encode(plan_object(found)))["tasks"]


# Ids and edges


def test_the_id_is_the_name_and_the_short_identity_encoded() -> None:
    one = step("data/clean up")
    assert task_of(one) == f"@data%2Fclean%20up_{one.call.identity[:12]}"  # type: ignore[union-attr]
    assert list(plan(one).tasks) == [task_of(one)]


def test_a_step_needs_what_it_builds_on() -> None:
    found = plan(TRAIN, VOCAB, TOKENS)
    assert list(found.order) == IDS
    assert found.tasks[IDS[2]].needs == tuple(sorted(IDS[:2]))
    assert found.tasks[IDS[2]].outputs == ()
    assert found.tasks[IDS[2]].call == TRAIN.call
    assert [len(level) for level in found.groups] == [1, 1, 1]


def test_a_rule_that_reads_an_artifact_or_below_it_needs_the_step() -> None:
    found = plan(TOKENS, VOCAB, TRAIN, draft("eval", "models/train"), draft("look", "models/train/log.txt"))
    assert found.tasks["eval"].needs == found.tasks["look"].needs == (IDS[2],)
    assert found.producer["models/train"] == IDS[2]
    assert not found.sources


def test_a_step_needs_the_rule_that_makes_its_input() -> None:
    found = plan(draft("fetch", "", "raw.txt"), step("clean", inputs=("raw.txt",)))
    assert found.tasks[found.order[1]].needs == ("fetch",)


def test_a_rule_may_be_ordered_after_a_step() -> None:
    found = plan(TOKENS, draft("late", depends_on=("@tokenize",)))
    assert found.tasks["late"].ordered == {IDS[0]}


def test_steps_of_earlier_batches_are_needs_but_no_tasks() -> None:
    found = plan(TRAIN, VOCAB, known={IDS[0]})
    assert found.tasks[IDS[1]].needs == (IDS[0],)
    assert found.tasks[IDS[2]].needs == tuple(sorted(IDS[:2]))
    assert list(found.order) == IDS[1:]
    assert select(found, ["train"]) == set(IDS[1:])


def test_a_step_that_is_nowhere_is_refused() -> None:
    assert refusals(VOCAB) == ["unknown-step"]


def test_a_chain_of_a_hundred_thousand_is_a_plan() -> None:
    chain = [step("s0")]
    for at in range(1, 100_000):
        chain.append(step(f"s{at}", [chain[-1]]))
    found = plan(*chain)
    assert len(found.groups) == 100_000
    assert found.order[0] == task_of(chain[0])


# Refusals


def test_two_steps_with_one_path_are_refused() -> None:
    one, two = step("a", path="out/x"), step("b", path="./out//x")
    with pytest.raises(PlanError, match=r"@b_\w+ both make out/x"):
        plan(one, two)


def test_two_steps_with_one_url_are_refused() -> None:
    assert refusals(step("a", path="s3://b/x"), step("b", path="s3://b/x")) == ["two-producers"]
    assert plan(step("a", path="s3://b/x"), step("b", path="s3://b/y"))


def test_a_step_and_a_rule_with_one_path_are_refused() -> None:
    with pytest.raises(PlanError, match="give the step another output path"):
        plan(step("a", path="out/x"), draft("r", "", "out/x"))


def test_an_artifact_in_a_folder_output_or_around_an_output_is_refused() -> None:
    assert refusals(step("a", path="out/x"), draft("r", "", "out")) == ["output-in-output"]
    assert refusals(step("a", path="out"), draft("r", "", "out/x")) == ["output-in-output"]
    assert refusals(step("a", path="out"), step("b", path="out/x")) == ["output-in-output"]


def test_a_step_that_reads_its_own_artifact_is_refused() -> None:
    assert refusals(step("a", path="out", inputs=("out/x",))) == ["reads-own-output"]


def test_only_steps_may_fill_the_folder_of_artifacts() -> None:
    assert plan(step("a"))
    assert refusals(draft("r", "", ".treadle/artifacts/x")) == ["output-in-state-folder"]
    assert refusals(step("a", path=".treadle/runs")) == ["output-in-state-folder"]
    assert refusals(step("a", path=".treadle/artifacts")) == ["output-in-state-folder"]
    assert refusals(step("a", path=".")) == ["output-holds-work-folder"]
    assert refusals(step("a", path="flow.oxoflow"), protected=["flow.oxoflow"]) == ["output-holds-workflow"]


def test_an_artifact_whose_name_no_file_system_takes_is_refused() -> None:
    assert refusals(step("a", path="x" * 256)) == ["path-too-long"]
    assert plan(step("a", path="x" * 255))
    assert plan(step("a", path=f"s3://bucket/{'x' * 400}"))


def test_a_circle_through_rules_is_told_with_what_builds_on_what() -> None:
    low = step("low", inputs=("from_rule",))
    high = step("high", [low], path="high_art")
    with pytest.raises(CycleError, match=r"@high_\w+ builds on @low_"):
        plan(low, high, draft("rule", "high_art", "from_rule"))


# Skips


def test_what_builds_on_a_step_that_cannot_be_made_is_skipped() -> None:
    low = step("low", inputs=("raw",))
    high = step("high", [low], path="art")
    found = plan(draft("fetch", "", "raw", skip=Skip("when", "no")), low, high, draft("use", "art", "u"))
    assert found.tasks[task_of(low)].skip == Skip("upstream", "raw")
    assert found.tasks[task_of(high)].skip == Skip("upstream", task_of(low))
    assert found.tasks["use"].skip == Skip("upstream", "art")


# Showing


def test_a_step_shows_its_call_and_no_command() -> None:
    tokens, _, train = shown(plan(TOKENS, VOCAB, TRAIN))
    assert "command" not in train
    assert TRAIN.call is not None
    assert train["call"] == {
        "step": "train",
        "identity": TRAIN.call.identity,
        "path": "models/train",
        "version": "2",
        "attrs": {},
        "where": "process",
    }
    assert tokens["call"]["attrs"] == {"vocab": "v1"}  # type: ignore[index]
    assert tokens["outputs"] == []


def test_marks_of_a_step_are_shown_where_it_has_them() -> None:
    one = shown(plan(step("a", version="dev", mutable=True, grows=True)))[0]["call"]
    assert one["mutable"] is one["grows"] is True  # type: ignore[index]


def test_the_digest_knows_the_steps_and_not_their_code_nor_their_order() -> None:
    first = digest(plan(TOKENS, VOCAB, TRAIN))
    assert digest(plan(TRAIN, TOKENS, VOCAB)) == first
    coded = msgspec.structs.replace(TOKENS, call=msgspec.structs.replace(TOKENS.call, code="abc"))  # type: ignore[type-var]
    assert digest(plan(coded, VOCAB, TRAIN)) == first
    assert digest(plan(TOKENS, VOCAB)) != first
    moved = msgspec.structs.replace(TOKENS, call=msgspec.structs.replace(TOKENS.call, path="else"))  # type: ignore[type-var]
    assert digest(plan(moved, VOCAB, TRAIN)) != first


# Naming


@pytest.mark.parametrize(
    "target",
    [
        "train",
        "@train",
        IDS[2],
        IDS[2][1:],
        "models/train",
        "./models/train",
        "models/train/x",
        "tr*",
        "@tr*",
    ],
)
def test_a_step_is_named_by_its_name_its_id_or_its_artifact(target: str) -> None:
    found = plan(TOKENS, VOCAB, TRAIN)
    assert select(found, [target], upstream=False) == {IDS[2]}
    assert select(found, [target]) == set(IDS)


def test_a_name_with_a_slash_names_its_step() -> None:
    one = step("data/clean")
    assert select(plan(one), ["data/clean"]) == {task_of(one)}
    assert select(plan(one), [f"data/clean_{one.call.identity[:12]}"]) == {task_of(one)}  # type: ignore[union-attr]


def test_a_url_names_the_step_whose_artifact_stands_there() -> None:
    one = step("a", path="s3://bucket/x")
    assert select(plan(one, TOKENS), ["s3://bucket/x"]) == {task_of(one)}


def test_a_rule_comes_before_a_step_of_its_name() -> None:
    found = plan(step("train"), draft("train", "", "t"))
    assert select(found, ["train"]) == {"train"}


def test_a_mistyped_step_is_answered_with_the_nearest() -> None:
    with pytest.raises(OptionError, match="no rule, step, task or output") as caught:
        select(plan(TOKENS, VOCAB, TRAIN), ["tokenise"])
    assert caught.value.diagnostics[0].hint == "did you mean 'tokenize'?"


def test_a_call_alone_makes_the_id() -> None:
    one = Call(step="a", identity="0" * 32, path="p")
    assert list(plan(Draft(rule="@a", call=one)).tasks) == ["@a_000000000000"]
