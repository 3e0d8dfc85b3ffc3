"""Absolute paths and those with `..` that lead back into the work folder: one file has one spelling."""

from __future__ import annotations

import pytest

from treadle.base.errors import PlanError
from treadle.base.place import Diagnostic
from treadle.plan.build import build
from treadle.testing.drafts import draft

ROOTS = ("/home/me/work", "/data/disk7/work")  # as it was named, and without symbolic links


def plan(*drafts, **options):
    return build("flow", drafts, roots=ROOTS, **options)


def refused(*drafts, **options) -> Diagnostic:
    with pytest.raises(PlanError) as caught:
        plan(*drafts, **options)
    (found,) = caught.value.diagnostics
    return found


@pytest.mark.parametrize(
    "spelling", ["/home/me/work/x.txt", "/data/disk7/work/x.txt", "../work/x.txt", "../../me/work/x.txt"]
)
def test_two_makers_under_two_spellings_are_refused(spelling):
    found = refused(draft("a", "", "x.txt"), draft("b", "", spelling))
    assert found.code == "two-spellings"
    assert found.message == f"b names {spelling}, and it is x.txt, which is spelled in another way"
    assert found.hint


@pytest.mark.parametrize("spelling", ["/home/me/work/x.txt", "/data/disk7/work/x.txt", "../work/x.txt"])
def test_an_input_that_is_made_under_another_spelling_is_refused(spelling):
    assert refused(draft("a", "", "x.txt"), draft("b", spelling, "y.txt")).code == "two-spellings"
    assert refused(draft("a", "", spelling), draft("b", "x.txt", "y.txt")).code == "two-spellings"


def test_two_spellings_from_outside_are_seen_too():
    found = refused(draft("a", "", "/home/me/other/x"), draft("b", "../other/x", "y"))
    assert (found.code, "b names ../other/x, and it is /home/me/other/x" in found.message) == (
        "two-spellings",
        True,
    )


def test_what_lies_in_a_folder_under_another_spelling_is_refused():
    assert "it lies in out" in refused(draft("a", "", "out"), draft("b", "/home/me/work/out/x", "y")).message
    assert "it holds out/x" in refused(draft("a", "", "out/x"), draft("b", "", "../work/out")).message


def test_sources_may_be_spelled_in_several_ways():
    found = plan(draft("a", "data/x", "y"), draft("b", "/home/me/work/data/x", "z"))
    assert found.sources == {"data/x", "/home/me/work/data/x"}


def test_paths_outside_and_one_spelling_everywhere_are_fine():
    found = plan(
        draft("a", "/refs/hg38.fa", "/scratch/x"),
        draft("b", "/scratch/x", "../beside/y"),
        draft("c", "../beside/y", "/home/me/work/z"),
        draft("d", "/home/me/work/z", "last"),
    )
    assert found.order == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../work", "output-holds-work-folder"),
        ("/home/me", "output-holds-work-folder"),
        ("/data/disk7/work", "output-holds-work-folder"),
        ("../work/.treadle/runs", "output-in-state-folder"),
        ("/home/me/work/.treadle", "output-in-state-folder"),
        ("..", "output-holds-work-folder"),
        ("/", "output-holds-work-folder"),
    ],
)
def test_no_spelling_of_the_work_folder_or_the_records_is_an_output(path, code):
    assert refused(draft("a", "", path)).code == code


@pytest.mark.parametrize(
    "path",
    ["flow.oxoflow", "/home/me/work/flow.oxoflow", "/data/disk7/work/flow.oxoflow", "../work/flow.oxoflow"],
)
@pytest.mark.parametrize("root", ROOTS)
def test_no_spelling_of_the_workflow_file_is_an_output(path, root):
    assert refused(draft("a", "", path), protected=[f"{root}/flow.oxoflow"]).code == "output-holds-workflow"


def test_a_workflow_file_elsewhere_is_no_output_either():
    assert refused(draft("a", "", "../flows"), protected=["/home/me/flows/x.oxoflow"]).code == (
        "output-holds-workflow"
    )
