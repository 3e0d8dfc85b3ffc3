"""Results that lack something: what is decided of them, and what is said."""

from __future__ import annotations

from pathlib import Path

from treadle.decide.evidence import examine, take, weigh
from treadle.decide.look import look_at
from treadle.decide.reason import InputAppeared, InputChanged
from treadle.plan.task import ScheduledTask
from treadle.records.event import Evidence
from treadle.testing import plans


def lay_out(folder: Path) -> tuple[ScheduledTask, Evidence]:
    """A gather that was made of `a` alone, without `b`."""
    gather = plans.task("all", inputs=["a", "b"], outputs=["all"])
    for name in ("a", "all"):
        (folder / name).write_text(f"{name}\n")
    seen = {path: record for path in ("a", "all") if (record := look_at(path, None, None, str(folder)))}
    return gather, take(gather, seen, seen, partial=("b",))


def test_evidence_is_that_of_the_whole_task_and_names_what_was_lost(tmp_path: Path) -> None:
    _, evidence = lay_out(tmp_path)
    assert evidence.partial == ("b",)
    assert [(record.path, record.size >= 0) for record in evidence.inputs] == [("a", True), ("b", False)]


def test_it_stands_as_long_as_what_it_lacks_is_not_there(tmp_path: Path) -> None:
    gather, evidence = lay_out(tmp_path)
    assert weigh(gather, evidence, lambda path: look_at(path, None, None, str(tmp_path))) == ((), evidence)
    (tmp_path / "b").write_text("b\n")
    reasons, _ = weigh(gather, evidence, lambda path: look_at(path, None, None, str(tmp_path)))
    assert reasons == (InputAppeared(path="b"),)


def test_what_is_lost_again_counts_as_not_there_whatever_stands_on_the_disk(tmp_path: Path) -> None:
    gather, evidence = lay_out(tmp_path)
    (tmp_path / "b").write_text("of an earlier success\n")
    assert examine(gather, evidence, str(tmp_path), without=("b",))[0] == ()
    (tmp_path / "a").write_text("other\n")
    (reason,) = examine(gather, evidence, str(tmp_path), without=("b",))[0]
    assert isinstance(reason, InputChanged)


def test_what_was_looked_at_anew_is_partial_still(tmp_path: Path) -> None:
    gather, evidence = lay_out(tmp_path)
    (tmp_path / "a").write_text("a\n")
    reasons, now = examine(gather, evidence, str(tmp_path))
    assert reasons == ()
    assert now.partial == ("b",)
