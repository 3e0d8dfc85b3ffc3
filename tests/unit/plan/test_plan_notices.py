"""What a plan may hold, but its author should know."""

from __future__ import annotations

from treadle.base.place import Diagnostic, Severity
from treadle.plan.build import build
from treadle.plan.task import Skip
from treadle.testing.drafts import draft


def notes(*drafts) -> list[Diagnostic]:
    found = build("flow", drafts).notes
    assert all(one.severity is Severity.WARNING for one in found)
    return list(found)


def codes(*drafts) -> list[str]:
    return [one.code for one in notes(*drafts)]


def test_an_ordinary_plan_has_no_notes():
    assert (
        codes(draft("a", "in", "x", log="a.log", benchmark="a.tsv"), draft("b", "x", "y", log="b.log")) == []
    )


def test_two_tasks_with_one_log_are_a_warning():
    (found,) = notes(draft("a/s=1", log="logs/a.log"), draft("a/s=2", log="./logs/a.log"))
    assert found.code == "shared-log"
    assert "a/s=1 and a/s=2 both write logs/a.log" in found.message


def test_two_tasks_with_one_benchmark_file_are_a_warning():
    assert codes(draft("a", benchmark="b.tsv"), draft("b", benchmark="b.tsv")) == ["shared-benchmark"]


def test_a_log_that_is_an_output_of_another_task_is_a_warning():
    assert codes(draft("a", "", "x"), draft("b", "", "y", log="x")) == ["log-in-output"]


def test_a_log_in_an_output_folder_of_another_task_is_a_warning():
    assert codes(draft("a", "", "d"), draft("b", "", "y", log="d/b.log")) == ["log-in-output"]


def test_a_log_in_ones_own_output_folder_is_fine():
    assert codes(draft("a", "", "d", log="d/a.log")) == []


def test_reading_a_file_that_is_only_a_log_is_a_warning():
    (found,) = notes(draft("a", "", "x", log="a.log"), draft("b", "a.log", "y"))
    assert found.code == "log-is-input"


def test_the_log_of_a_skipped_task_is_nobodys_business():
    assert codes(draft("a", log="l", skip=Skip("when", "x")), draft("b", log="l")) == []


def test_paths_that_differ_only_in_case_are_a_warning():
    (found,) = notes(draft("a", "", "out/S1.txt"), draft("b", "", "out/s1.txt"))
    assert (found.code, found.message) == ("paths-alike", "out/S1.txt and out/s1.txt differ only in case")


def test_an_input_that_differs_from_an_output_only_in_case_is_a_warning():
    assert codes(draft("a", "", "Out/x"), draft("b", "out/x", "y")) == ["paths-alike"]


def test_paths_that_differ_only_in_their_unicode_form_are_a_warning():
    (found,) = notes(draft("a", "", "caf\u00e9.txt"), draft("b", "", "cafe\u0301.txt"))
    assert found.code == "paths-alike"
    assert r"'caf\xe9.txt'" in found.message


def test_source_files_that_differ_only_in_case_are_their_owners_business():
    assert codes(draft("a", "X.fq x.fq", "y")) == []


def test_notes_are_no_part_of_the_digest():
    from treadle.plan.show import digest

    one = build("flow", [draft("a", log="l"), draft("b", log="l")])
    assert one.notes
    import msgspec

    assert digest(one) == digest(msgspec.structs.replace(one, notes=()))
