"""Steps are decided by what stands at their paths; those with inputs as rules are, on top of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.base.errors import StepError
from treadle.decide.decide import decide
from treadle.decide.drift import field_changes
from treadle.decide.evidence import take
from treadle.decide.facts import gather
from treadle.decide.look import looker
from treadle.decide.options import Options
from treadle.decide.reason import (
    Answer,
    ArtifactMissing,
    ArtifactTorn,
    BlockedBy,
    Decision,
    FailedBefore,
    Forced,
    InputChanged,
    InputsUnknown,
    LastFailed,
    Mutable,
    NeverRan,
    Upstream,
    Verdict,
)
from treadle.plan.build import build
from treadle.plan.task import Draft, ScheduledPlan
from treadle.records.event import End, EndReason, FileRecord, TaskSettled, key_of_task
from treadle.records.line import line_of
from treadle.records.past import Past
from treadle.steps.record import ArtifactRecord, ArtifactState, ArtifactStatus, Seen, Standing
from treadle.testing.drafts import step, task_of

ABSENT = Seen(ArtifactState.ABSENT)


def complete(draft: Draft, *, code: str = "") -> Seen:
    """The look at an artifact that the step itself made."""
    call = draft.call
    assert call is not None
    record = ArtifactRecord(identity=call.identity, name=call.step, path=call.path, code=code)
    return Seen(ArtifactState.COMPLETE, record)


def failed(draft: Draft, standing: Standing = Standing.FAILED, error: str = "ValueError: no") -> Seen:
    assert draft.call is not None
    status = ArtifactStatus(identity=draft.call.identity, state=standing, error=error)
    return Seen(ArtifactState.ABSENT, status=status)


class Steps:
    """A plan of steps, and what stands at their paths."""

    def __init__(self, root: Path, *drafts: Draft, **seen: Seen) -> None:
        self.root = root
        self.plan: ScheduledPlan = build("steps", drafts)
        self.by_name = {draft.call.step: draft for draft in drafts if draft.call is not None}
        self.seen = {task_of(self.by_name[name]): look for name, look in seen.items()}
        self.past = Past()

    def decide(self, **options: object) -> Decision:
        chosen = Options(workdir=str(self.root), **options)  # type: ignore[arg-type]
        facts = gather(self.plan, self.past, chosen, artifacts=self.seen)
        return decide(self.plan, facts, self.past, chosen)

    def id(self, name: str) -> str:
        return task_of(self.by_name[name])

    def answer(self, name: str, **options: object) -> Answer:
        return self.decide(**options).answers[self.id(name)]

    def succeeded(self, name: str) -> None:
        """Let the step have succeeded with its inputs as they stand."""
        task = self.plan.tasks[self.id(name)]
        at = looker(task, lambda path: None, str(self.root))
        before: dict[str, FileRecord] = {path: found for path in task.inputs if (found := at(path))}
        event = TaskSettled(
            time=0.0,
            task=task.id,
            key=key_of_task(self.plan.name, task),
            state=End.SUCCEEDED,
            attempt=1,
            n=1,
            evidence=take(task, before, {}),
        )
        line = line_of(event, "r")
        assert line is not None
        self.past.add([line])


def test_a_complete_artifact_is_up_to_date_and_an_absent_one_never_ran(tmp_path: Path) -> None:
    one, other = step("one"), step("other")
    steps = Steps(tmp_path, one, other, one=complete(one), other=ABSENT)
    assert steps.answer("one") == Answer(Verdict.UP_TO_DATE)
    assert steps.answer("other") == Answer(Verdict.WILL_RUN, (NeverRan(),))


def test_what_runs_upstream_does_not_touch_a_complete_step(tmp_path: Path) -> None:
    below = step("below")
    above = step("above", [below])
    steps = Steps(tmp_path, below, above, below=ABSENT, above=complete(above))
    assert steps.answer("below").verdict is Verdict.WILL_RUN
    assert steps.answer("above").verdict is Verdict.UP_TO_DATE


def test_a_torn_artifact_runs_and_says_what_is_torn(tmp_path: Path) -> None:
    one = step("one")
    seen = Seen(ArtifactState.TORN, complete(one).record, problem="it has 3 bytes, not 5")
    steps = Steps(tmp_path, one, one=seen)
    assert steps.answer("one").reasons == (ArtifactTorn(problem="it has 3 bytes, not 5"),)


@pytest.mark.parametrize(
    ("standing", "how"), [(Standing.FAILED, EndReason.APP), (Standing.INTERRUPTED, EndReason.INTERRUPTED)]
)
def test_a_step_that_failed_runs_again_and_tells_its_error(
    tmp_path: Path, standing: Standing, how: EndReason
) -> None:
    one = step("one")
    steps = Steps(tmp_path, one, one=failed(one, standing))
    assert steps.answer("one").reasons == (LastFailed(how=how, error="ValueError: no"),)


def test_a_status_of_another_outcome_is_no_failure(tmp_path: Path) -> None:
    one = step("one")
    steps = Steps(tmp_path, one, one=failed(one, Standing.RUNNING))
    assert steps.answer("one").reasons == (NeverRan(),)


def test_a_development_version_is_always_made_again(tmp_path: Path) -> None:
    one = step("one", version="dev", mutable=True)
    steps = Steps(tmp_path, one, one=complete(one))
    assert steps.answer("one").reasons == (Mutable(),)


def test_a_forced_step_runs_though_it_is_complete(tmp_path: Path) -> None:
    one = step("one")
    steps = Steps(tmp_path, one, one=complete(one))
    assert steps.answer("one", forced=frozenset({task_of(one)})).reasons == (Forced(),)
    assert steps.answer("one", force_all=True).reasons == (Forced(),)


# Another identity at the path


def drifted(tmp_path: Path, drift: str) -> Steps:
    one = step("one", attrs='{"lr":0.0001,"layers":{"deep":2}}')
    assert one.call is not None
    from msgspec.structs import replace

    one = replace(one, call=replace(one.call, drift=drift))
    old = ArtifactRecord(
        identity="f" * 32,
        name="one",
        version="v0",
        hash_attrs={"lr": 0.0003, "layers": {"deep": 1}, "gone": True},
        path=".treadle/artifacts/x",
    )
    return Steps(tmp_path, one, one=Seen(ArtifactState.OTHER, old))


def test_another_identity_at_the_path_refuses_the_run_with_the_fields_that_differ(tmp_path: Path) -> None:
    with pytest.raises(StepError) as caught:
        drifted(tmp_path, "error").decide()
    (found,) = caught.value.diagnostics
    assert found.code == "artifact-drift"
    for change in ("gone: true -> (none)", "layers.deep: 1 -> 2", "lr: 0.0003 -> 0.0001", "version: v0"):
        assert change in found.message
    assert "drift='warn'" in found.hint


def test_a_drifted_step_can_be_served_as_it_is_and_that_is_said(tmp_path: Path) -> None:
    decision = drifted(tmp_path, "warn").decide()
    (answer,) = decision.answers.values()
    assert answer == Answer(Verdict.UP_TO_DATE, note="drifted")
    assert [note.code for note in decision.notes] == ["artifact-drift"]


def test_steps_that_differ_in_nothing_but_their_deps_are_told_so(tmp_path: Path) -> None:
    one = step("one")
    assert one.call is not None
    record = ArtifactRecord(identity="f" * 32, name="one", path="p")
    assert field_changes(record, one.call) == ()


# Other code


def recoded(tmp_path: Path, policy: str, *names: str) -> Steps:
    from msgspec.structs import replace

    drafts = []
    for name in names:
        one = step(name)
        assert one.call is not None
        drafts.append(replace(one, call=replace(one.call, code="new", code_policy=policy)))
    return Steps(tmp_path, *drafts, **{name: complete(one, code="old") for name, one in zip(names, drafts)})


def test_a_hit_on_other_code_is_served_and_told_with_the_way_to_rebuild(tmp_path: Path) -> None:
    decision = recoded(tmp_path, "warn", "a", "b", "c", "d", "e", "f", "g").decide()
    assert {answer.note for answer in decision.answers.values()} == {"code_changed"}
    (note,) = decision.notes
    assert note.code == "code-changed"
    assert "and 2 more" in note.message
    assert "--force" in note.hint


def test_a_hit_on_other_code_can_be_an_error_or_ignored(tmp_path: Path) -> None:
    with pytest.raises(StepError) as caught:
        recoded(tmp_path, "error", "a", "b").decide()
    assert [one.code for one in caught.value.diagnostics] == ["code-changed"] * 2
    decision = recoded(tmp_path, "ignore", "a").decide()
    assert not decision.notes
    assert [answer.note for answer in decision.answers.values()] == [""]


def test_code_that_is_unknown_on_either_side_is_never_reported(tmp_path: Path) -> None:
    one = step("one")
    steps = Steps(tmp_path, one, one=complete(one, code="old"))  # the call says nothing of its code
    assert steps.answer("one") == Answer(Verdict.UP_TO_DATE)
    assert not steps.decide().notes


def test_forcing_makes_other_code_no_error(tmp_path: Path) -> None:
    steps = recoded(tmp_path, "error", "a")
    assert steps.answer("a", force_all=True).reasons == (Forced(),)


# What failed before is not tried again


def test_without_rerunning_a_failed_step_is_left_out_and_all_above_it(tmp_path: Path) -> None:
    bad = step("bad")
    above = step("above", [bad])
    top = step("top", [above])
    free = step("free")
    steps = Steps(tmp_path, bad, above, top, free, bad=failed(bad), above=ABSENT, top=ABSENT, free=ABSENT)
    answers = steps.decide(rerun_failed=False).answers
    (why,) = answers[steps.id("bad")].reasons
    assert isinstance(why, FailedBefore)
    assert why.record.endswith(".status.json")
    assert why.error == "ValueError: no"
    assert answers[steps.id("above")].reasons == (BlockedBy(task=steps.id("bad"), root=steps.id("bad")),)
    assert answers[steps.id("top")].reasons == (BlockedBy(task=steps.id("above"), root=steps.id("bad")),)
    assert answers[steps.id("free")].verdict is Verdict.WILL_RUN
    assert steps.decide().to_run() == list(steps.plan.order)


def test_what_was_interrupted_runs_again_all_the_same(tmp_path: Path) -> None:
    one = step("one")
    steps = Steps(tmp_path, one, one=failed(one, Standing.INTERRUPTED))
    assert steps.answer("one", rerun_failed=False).verdict is Verdict.WILL_RUN


def test_steps_that_were_left_out_of_earlier_batches_count_too(tmp_path: Path) -> None:
    bad = step("bad")
    above = step("above", [bad])
    plan = build("steps", [above], known={task_of(bad)})
    options = Options(workdir=str(tmp_path), fallen=frozenset({task_of(bad)}))
    facts = gather(plan, Past(), options, artifacts={task_of(above): ABSENT})
    answer = decide(plan, facts, Past(), options).answers[task_of(above)]
    assert answer == Answer(Verdict.SKIPPED, (BlockedBy(task=task_of(bad), root=task_of(bad)),))


# Steps with inputs


@pytest.fixture
def reading(tmp_path: Path) -> Steps:
    """`read` reads a file; `use` builds on it; `pure` builds on neither, and `mixed` on `pure` and `read`."""
    (tmp_path / "in.txt").write_text("one")
    (tmp_path / "made").mkdir()
    for name in ("read", "use", "pure", "mixed"):
        (tmp_path / "made" / name).write_text(name)
    pure = step("pure", path="made/pure")
    read = step("read", path="made/read", inputs=("in.txt",))
    use = step("use", [read], path="made/use", inputs=("made/read",))
    mixed = step("mixed", [read, pure], path="made/mixed", inputs=("made/read",))
    drafts = {"read": read, "use": use, "pure": pure, "mixed": mixed}
    steps = Steps(tmp_path, *drafts.values(), **{name: complete(one) for name, one in drafts.items()})
    for name in ("read", "use", "mixed"):
        steps.succeeded(name)
    return steps


def test_with_its_inputs_as_they_were_a_complete_step_is_up_to_date(reading: Steps) -> None:
    assert reading.decide().to_run() == []


def test_a_changed_input_runs_its_step_and_may_cut_off_what_builds_on_it(reading: Steps) -> None:
    (reading.root / "in.txt").write_text("other")
    answers = reading.decide().answers
    (why,) = answers[reading.id("read")].reasons
    assert isinstance(why, InputChanged)
    assert answers[reading.id("use")] == Answer(
        Verdict.WILL_RUN, (Upstream(task=reading.id("read"), root=reading.id("read")),), may_cut_off=True
    )
    assert answers[reading.id("pure")].verdict is Verdict.UP_TO_DATE


def test_a_pure_dep_that_runs_does_not_touch_a_step_with_inputs(reading: Steps) -> None:
    reading.seen[reading.id("pure")] = ABSENT
    answers = reading.decide().answers
    assert answers[reading.id("pure")].verdict is Verdict.WILL_RUN
    assert answers[reading.id("mixed")].verdict is Verdict.UP_TO_DATE


def test_without_cut_off_what_builds_on_it_must_run(reading: Steps) -> None:
    (reading.root / "in.txt").write_text("other")
    assert reading.answer("use", cutoff=False).may_cut_off is False


def test_a_complete_step_of_whose_inputs_nothing_is_known_runs(reading: Steps) -> None:
    reading.past = Past()
    assert reading.answer("read").reasons == (InputsUnknown(),)


def test_an_artifact_that_went_away_with_its_record_is_missing(reading: Steps) -> None:
    reading.seen[reading.id("read")] = ABSENT
    assert reading.answer("read").reasons == (ArtifactMissing(),)
