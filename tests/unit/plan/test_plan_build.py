"""Drafts to a plan: who needs whom, in which order, at which level."""

from __future__ import annotations

import pytest

from treadle.plan.build import build
from treadle.plan.task import Policy, ScheduledPlan
from treadle.testing.drafts import draft


def plan(*drafts, **options) -> ScheduledPlan:
    return build("flow", drafts, **options)


def needs(made: ScheduledPlan) -> dict[str, tuple[str, ...]]:
    return {task: made.tasks[task].needs for task in made.order}


def test_a_task_needs_the_maker_of_each_of_its_inputs():
    made = plan(
        draft("call", "S1.bam S2.bam refs/hg38.fa", "all.vcf"),
        draft("align/sample=S1", "S1.fq refs/hg38.fa", "S1.bam"),
        draft("align/sample=S2", "S2.fq refs/hg38.fa", "S2.bam"),
    )
    assert made.tasks["call"].needs == ("align/sample=S1", "align/sample=S2")
    assert made.order == ("align/sample=S1", "align/sample=S2", "call")
    assert made.groups == (("align/sample=S1", "align/sample=S2"), ("call",))
    assert made.sources == {"S1.fq", "S2.fq", "refs/hg38.fa"}
    assert made.producer == {
        "S1.bam": "align/sample=S1",
        "S2.bam": "align/sample=S2",
        "all.vcf": "call",
    }


def test_inputs_keep_the_order_of_their_author():
    made = plan(draft("a", "z.txt b.txt a.txt", "o"))
    assert made.tasks["a"].inputs == ("z.txt", "b.txt", "a.txt")


def test_a_plan_without_drafts_is_empty():
    made = plan()
    assert (made.order, made.groups, made.tasks, made.sources) == ((), (), {}, frozenset())


def test_a_task_needs_a_maker_once_however_many_of_its_files_it_reads():
    made = plan(draft("split", "", "x/1 x/2 x/3"), draft("join", "x/3 x/1 x/2", "joined"))
    assert made.tasks["join"].needs == ("split",)


def test_an_input_that_is_a_folder_needs_all_that_is_made_in_it():
    made = plan(
        draft("report", "qc", "report.html"),
        draft("fastqc/sample=S1", "S1.fq", "qc/S1/fastqc.html"),
        draft("fastqc/sample=S2", "S2.fq", "qc/S2/fastqc.html"),
        draft("other", "", "qc2/x qc.txt qc-x/y"),
    )
    assert made.tasks["report"].needs == ("fastqc/sample=S1", "fastqc/sample=S2")
    assert "qc" not in made.sources


def test_what_a_task_makes_in_a_folder_that_it_reads_does_not_count():
    made = plan(draft("index", "data", "data/index.txt"), draft("fetch", "", "data/raw.txt"))
    assert made.tasks["index"].needs == ("fetch",)


def test_a_folder_that_only_the_reader_writes_to_is_no_ones_work():
    made = plan(draft("index", "data", "data/index.txt"))
    assert made.tasks["index"].needs == ()


def test_the_work_folder_as_input_needs_all_that_is_made_in_it():
    made = plan(draft("pack", ".", "../pack.tar"), draft("a", "", "x"), draft("b", "", "y/z"))
    assert made.tasks["pack"].needs == ("a", "b")


def test_a_file_in_a_folder_that_a_task_makes_needs_that_task():
    made = plan(
        draft("index", "hg38.fa", "refs/star"),
        draft("align", "refs/star/SA reads.fq", "out.bam"),
        draft("deep", "refs/star/a/b/c", "deep.txt"),
    )
    assert made.tasks["align"].needs == made.tasks["deep"].needs == ("index",)
    assert made.sources == {"hg38.fa", "reads.fq"}


def test_depends_on_a_rule_means_all_its_tasks():
    made = plan(
        draft("report", "", "r", depends_on=("align",)),
        draft("align/sample=S1", "", "S1.bam"),
        draft("align/sample=S2", "", "S2.bam"),
    )
    assert made.tasks["report"].needs == ("align/sample=S1", "align/sample=S2")
    assert made.tasks["report"].ordered == {"align/sample=S1", "align/sample=S2"}


def test_a_need_that_is_read_as_well_is_not_only_ordered():
    made = plan(
        draft("report", "S1.bam", "r", depends_on=("align",)),
        draft("align/sample=S1", "", "S1.bam"),
        draft("align/sample=S2", "", "S2.bam"),
    )
    assert made.tasks["report"].needs == ("align/sample=S1", "align/sample=S2")
    assert made.tasks["report"].ordered == {"align/sample=S2"}


def test_depends_on_ones_own_rule_leaves_the_task_itself_out():
    assert plan(draft("a", "", "x", depends_on=("a",))).tasks["a"].needs == ()


def test_depends_on_a_rule_that_has_no_task_is_met():
    made = plan(draft("a", "", "x", depends_on=("pairs_only",)), rules=("a", "pairs_only"))
    assert made.tasks["a"].needs == ()


def test_a_higher_priority_comes_first_then_the_id():
    urgent = Policy(priority=5)
    made = plan(draft("c", policy=urgent), draft("b"), draft("a"), draft("d", policy=urgent))
    assert made.order == ("c", "d", "a", "b")


def test_priority_does_not_overtake_a_need():
    made = plan(draft("last", "x", "y", policy=Policy(priority=9)), draft("first", "", "x"), draft("a"))
    assert made.order == ("a", "first", "last")


def test_groups_are_levels_by_the_longest_path():
    made = plan(
        draft("a", "", "1"),
        draft("b", "1", "2"),
        draft("c", "1 2", "3"),
        draft("d", "", "4"),
        draft("e", "4 3"),
    )
    assert made.groups == (("a", "d"), ("b",), ("c",), ("e",))


def test_one_file_under_two_spellings_is_one_file():
    made = plan(
        draft("a", "", "out//x/../y.txt"),
        draft("b", "./out/y.txt data/", "z", ancient=frozenset({"data/"}), log="./log//b.log"),
    )
    assert made.tasks["a"].outputs == ("out/y.txt",)
    assert made.tasks["b"].needs == ("a",)
    assert made.tasks["b"].inputs == ("out/y.txt", "data")
    assert made.tasks["b"].ancient == {"data"}
    assert made.tasks["b"].log == "log/b.log"


def test_absolute_paths_stay_as_their_author_wrote_them():
    made = plan(draft("a", "/data/x.fq", "/scratch/x.bam"), draft("b", "/scratch/x.bam", "y"))
    assert made.tasks["b"].needs == ("a",)
    assert made.sources == {"/data/x.fq"}


def test_tasks_are_held_in_plan_order():
    made = plan(draft("b", "x", "y"), draft("a", "y", "z"), draft("c", "", "x"))
    assert tuple(made.tasks) == made.order == ("c", "b", "a")


def test_many_needs_that_tasks_share_are_held_once():
    makers = [draft(f"make/i={i}", "", f"d/{i}") for i in range(20)]
    made = plan(*makers, *(draft(f"read/i={i}", "d", f"r/{i}") for i in range(3)))
    assert made.tasks["read/i=0"].needs is made.tasks["read/i=2"].needs
    assert len(made.tasks["read/i=0"].needs) == 20


@pytest.mark.parametrize("folder", ["qc", "qc/"])
def test_names_that_only_begin_alike_are_not_in_the_folder(folder):
    made = plan(draft("a", "", "qc.txt qc-1/x qc0/x"), draft("b", folder, "y"))
    assert made.tasks["b"].needs == ()
    assert made.sources == {"qc"}
