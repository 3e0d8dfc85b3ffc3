"""`--samples` in all its forms; a gather over some samples leaves alone what was made over all."""

from __future__ import annotations

import textwrap

import pytest

FLOW = """
[[sample_groups]]
name = "case"
samples = ["S1", "S2"]

[[sample_groups]]
name = "control"
samples = ["S3", "S4"]

[[rules]]
name = "align"
input = ["raw/{sample}.fq"]
output = ["bam/{sample}.bam"]
shell = "cat {input} > {output}"

[[rules]]
name = "by_group"
input = ["bam/{sample}.bam"]
output = ["group/{group}.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "cohort"
input = ["bam/{sample}.bam"]
output = ["cohort.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "report"
input = ["cohort.txt"]
output = ["report.txt"]
shell = "wc {input} > {output}"
"""
ALL = ("S1", "S2", "S3", "S4")


@pytest.fixture
def cohort(folder):
    """The workflow with all its source files; nothing has run."""
    folder.flow(FLOW)
    for sample in ALL:
        folder.write(f"raw/{sample}.fq", f"{sample}\n")
    return folder


def aligned(folder, *args: str) -> list[str]:
    """The samples of `align` in a plan."""
    return [task["wildcards"]["sample"] for task in folder.plan(*args)["tasks"] if task["rule"] == "align"]


@pytest.mark.parametrize(
    ("selection", "samples"),
    [
        (["S3"], ["S3"]),
        (["S3,S1"], ["S1", "S3"]),
        (["S3", "S1"], ["S1", "S3"]),
        (["!S3"], ["S1", "S2", "S4"]),
        (["!S3,!S1"], ["S2", "S4"]),
        (["S1,S2", "!S2"], ["S1"]),
        (["first:3"], ["S1", "S2", "S3"]),
        (["!S1,first:1"], ["S2"]),
        (["first:99"], list(ALL)),
        (["ready"], list(ALL)),
    ],
)
def test_what_is_selected(cohort, selection, samples):
    options = [word for text in selection for word in ("--samples", text)]
    assert aligned(cohort, *options) == samples


def test_ready_samples_have_all_their_files(cohort):
    (cohort / "raw" / "S2.fq").unlink()
    cohort.treadle("plan", exits=2)
    assert aligned(cohort, "--samples", "ready") == ["S1", "S3", "S4"]
    assert aligned(cohort, "--samples", "ready,first:2") == ["S1", "S3"]
    assert "align/sample=S2" not in cohort.run_as_previewed("--samples", "ready")
    assert cohort.read("cohort.txt") == "S1\nS3\nS4\n"


def test_a_sheet_replaces_the_samples_or_adds_to_them(cohort):
    cohort.write("more.tsv", "name\tsamples\nnew\tS1, S5\n")
    cohort.write("raw/S5.fq", "S5\n")
    assert aligned(cohort, "--samples", "@more.tsv") == ["S1", "S5"]
    assert aligned(cohort, "--samples", "+@more.tsv") == [*ALL, "S5"]
    assert aligned(cohort, "--samples", "+@more.tsv", "--samples", "!S1") == ["S2", "S3", "S4", "S5"]
    ran = cohort.run_as_previewed("--samples", "+@more.tsv")
    assert {"align/sample=S5", "by_group/group=new", "cohort"} <= ran
    assert cohort.read("cohort.txt").endswith("S5\n")


def test_a_gather_over_some_samples_leaves_the_cohort_alone(cohort):
    cohort.run_as_previewed()
    cohort.write("raw/S1.fq", "changed\n")
    done = cohort.treadle("plan", "--samples", "S1")
    assert "cohort    1 skipped: cohort output kept" in done.stdout
    assert "report    1 skipped: upstream skipped" in done.stdout
    assert "2 gathers keep what they made over more samples: --overwrite-cohort" in done.stderr
    assert cohort.run_as_previewed("--samples", "S1") == {"align/sample=S1"}
    assert cohort.read("cohort.txt") == "S1\nS2\nS3\nS4\n"
    assert "S2" in cohort.read("group/case.txt")
    why = cohort.treadle("why", "cohort", "--samples", "S1").stdout
    assert "cohort.txt was made over more samples than are selected" in why


def test_a_gather_whose_samples_are_all_selected_is_made_again(cohort):
    cohort.run_as_previewed()
    cohort.write("raw/S1.fq", "changed\n")
    ran = cohort.run_as_previewed("--samples", "S1,S2")
    assert ran == {"align/sample=S1", "by_group/group=case"}
    assert cohort.run_as_previewed() == {"cohort", "report"}
    assert cohort.read("cohort.txt").startswith("changed\n")


def test_the_first_gather_over_some_samples_is_made_and_then_made_over_all(cohort):
    assert "cohort" in cohort.run_as_previewed("--samples", "S1,S3")
    assert cohort.read("cohort.txt") == "S1\nS3\n"
    assert "cohort" in cohort.run_as_previewed()
    assert cohort.read("cohort.txt") == "S1\nS2\nS3\nS4\n"
    assert cohort.run_as_previewed() == set()


def test_asked_for_the_cohort_is_overwritten_and_the_next_whole_run_mends_it(cohort):
    cohort.run_as_previewed()
    ran = cohort.run_as_previewed("--samples", "S4", "--overwrite-cohort")
    assert ran == {"by_group/group=control", "cohort", "report"}
    assert cohort.read("cohort.txt") == "S4\n"
    assert "inputs changed" in cohort.treadle("plan").stdout
    assert cohort.run_as_previewed() == {"by_group/group=control", "cohort", "report"}
    assert cohort.read("cohort.txt") == "S1\nS2\nS3\nS4\n"


def test_a_target_and_a_selection_go_together(cohort):
    assert cohort.will_run("align", "--samples", "S2") == {"align/sample=S2"}
    assert cohort.will_run("bam/S2.bam", "--samples", "S2,S1") == {"align/sample=S2"}
    assert (
        "is no rule, task or output"
        in cohort.treadle("plan", "bam/S1.bam", "--samples", "S2", exits=2).stderr
    )


def test_pairs_are_selected_with_both_of_their_sides(folder):
    folder.flow(
        """
        [[pairs]]
        pair_id = "P1"
        experiment = "T1"
        control = "N"

        [[pairs]]
        pair_id = "P2"
        experiment = "T2"
        control = "N"

        [[rules]]
        name = "align"
        output = ["bam/{sample}.bam"]
        shell = "echo {sample} > {output}"

        [[rules]]
        name = "call"
        input = ["bam/{experiment}.bam", "bam/{control}.bam"]
        output = ["vcf/{pair_id}.vcf"]
        shell = "cat {input} > {output}"
        """
    )
    assert folder.will_run("--samples", "T1,N") == {"align/sample=N", "align/sample=T1", "call/pair_id=P1"}
    assert folder.will_run("--samples", "!T1") == {"align/sample=N", "align/sample=T2", "call/pair_id=P2"}
    assert folder.treadle("plan", "--samples", "T1").stdout.splitlines()[1:] == ["call   no tasks"]


def test_a_gather_grows_with_the_selection_and_does_not_shrink(cohort):
    assert "cohort" in cohort.run_as_previewed("--samples", "S1")
    assert "cohort" in cohort.run_as_previewed("--samples", "S1,S2")
    assert cohort.read("cohort.txt") == "S1\nS2\n"
    assert cohort.run_as_previewed("--samples", "S2") == set()
    assert cohort.read("cohort.txt") == "S1\nS2\n"


def test_a_sheet_in_the_place_of_the_samples_leaves_the_cohort_alone(cohort):
    cohort.run_as_previewed()
    cohort.write("other.tsv", "name\tsamples\nnew\tS1, S5\n")
    cohort.write("raw/S5.fq", "S5\n")
    done = cohort.treadle("plan", "--samples", "@other.tsv")
    assert "--overwrite-cohort" in done.stderr
    assert cohort.run_as_previewed("--samples", "@other.tsv") == {"align/sample=S5", "by_group/group=new"}
    assert cohort.read("cohort.txt") == "S1\nS2\nS3\nS4\n"
    assert "cohort" in cohort.run_as_previewed("--samples", "@other.tsv", "--overwrite-cohort")
    assert cohort.read("cohort.txt") == "S1\nS5\n"


def test_pieces_of_a_gather_over_all_samples_are_left_alone_too(cohort):
    pieces = """
        [[rules]]
        name = "parted"
        input = ["bam/{sample}.bam"]
        output = ["parted.txt"]
        [rules.transform]
        map = "sed 's/^/{part} /' {input} > {output}"
        split = { by = "part", values = ["a", "b"] }
        combine = { aggregate = true }
    """
    cohort.flow(FLOW + textwrap.dedent(pieces))
    cohort.run_as_previewed()
    cohort.write("raw/S1.fq", "changed\n")
    assert cohort.run_as_previewed("--samples", "S1") == {"align/sample=S1"}
    assert "changed" not in cohort.read("parted.txt")
    assert "a S4" in cohort.read(".chunks/parted.map/part=a/parted.txt")
    ran = cohort.run_as_previewed()
    assert {"parted.map/part=a", "parted.map/part=b", "parted"} <= ran


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ("S9", "there is no sample 'S9'"),
        ("!S9", "there is no sample 'S9'"),
        ("S1,!S1", "no sample is left"),
        ("", "nothing is selected"),
        ("first:0", "is no number of samples"),
        ("@gone.tsv", "gone.tsv"),
        ("+@gone.tsv", "gone.tsv"),
    ],
)
def test_a_selection_that_cannot_be_is_refused(cohort, selection, told):
    done = cohort.treadle("run", "--samples", selection, exits=2)
    assert told in done.stderr
    assert not cohort.runs()
