"""Resources: counted resources are never given out twice, GPUs have their numbers, the first goes first."""

from __future__ import annotations

import json
import resource

# Fails when another of its kind is at work.
ALONE = "mkdir {lock} && sleep 0.1 && rmdir {lock} && echo > {output}"


def test_a_counted_resource_is_never_given_out_twice(folder):
    folder.flow(
        """
        [resource_groups]
        licence = 1
        [[values]]
        name = "n"
        values = ["1", "2", "3", "4"]
        [[rules]]
        name = "one"
        output = ["one/{n}.txt"]
        resources = { groups = { licence = 1 } }
        shell = "ALONE"
        [[rules]]
        name = "two"
        output = ["two/{n}.txt"]
        resources = { groups = { licence = 1 } }
        shell = "ALONE"
        """.replace("ALONE", ALONE.replace("{lock}", "taken"))
    )
    folder.treadle("run", "-j", "4")


def test_threads_together_never_pass_the_limit(folder):
    folder.flow(
        """
        [[values]]
        name = "n"
        values = ["1", "2", "3"]
        [[rules]]
        name = "wide"
        output = ["{n}.txt"]
        resources = { threads = 2 }
        shell = "ALONE"
        """.replace("ALONE", ALONE.replace("{lock}", "taken"))
    )
    folder.treadle("run", "-j", "3")


def test_a_task_sees_its_own_gpus_and_one_that_asks_for_none_sees_none(folder):
    folder.flow(
        """
        [[values]]
        name = "n"
        values = ["1", "2", "3", "4"]
        [[rules]]
        name = "gpu"
        output = ["{n}.txt"]
        resources = { gpu = 1 }
        shell = '''
        mkdir gpu$CUDA_VISIBLE_DEVICES && sleep 0.1 && rmdir gpu$CUDA_VISIBLE_DEVICES
        echo $CUDA_VISIBLE_DEVICES > {output}
        '''
        [[rules]]
        name = "both"
        output = ["both.txt"]
        resources = { gpu = 2 }
        shell = "echo $CUDA_VISIBLE_DEVICES > {output}"
        [[rules]]
        name = "none"
        output = ["none.txt"]
        shell = "echo \\"[$CUDA_VISIBLE_DEVICES]\\" > {output}"
        """
    )
    folder.treadle("run", "-j", "4", env=folder.env(TREADLE_GPUS="3,7"))
    assert {folder.read(f"{n}.txt") for n in "1234"} == {"3\n", "7\n"}
    assert folder.read("both.txt") == "3,7\n"
    assert folder.read("none.txt") == "[]\n"


def test_gpus_that_are_not_there_are_refused_before_anything_starts(folder):
    folder.flow('[[rules]]\nname = "r"\noutput = ["o"]\nresources = { gpu = 3 }\nshell = "echo > {output}"\n')
    env = folder.env(TREADLE_GPUS="0,1")
    assert "asks for 3 GPU(s), and there are 2 here" in folder.treadle("run", exits=2, env=env).stderr
    assert folder.runs() == []
    assert folder.treadle("plan", env=env).stderr.startswith("warning: ")


def test_ready_tasks_go_by_priority_then_by_the_longest_way_that_hangs_on_them(folder):
    folder.flow(
        """
        [[rules]]
        name = "a_plain"
        output = ["a.txt"]
        shell = "echo > {output}"
        [[rules]]
        name = "b_long"
        output = ["b.txt"]
        shell = "echo > {output}"
        [[rules]]
        name = "b_end"
        input = ["b.txt"]
        output = ["b_end.txt"]
        shell = "echo > {output}"
        [[rules]]
        name = "c_first"
        output = ["c.txt"]
        priority = 5
        shell = "echo > {output}"
        """
    )
    folder.treadle("run", "-j", "1")
    order = [one["task"] for one in folder.events() if one["event"] == "attempt_submitted"]
    assert order == ["c_first", "b_long", "a_plain", "b_end"]


def test_more_tasks_at_once_than_a_process_may_have_files_open_all_run(folder):
    folder.flow(
        """
        [[tables]]
        name = "many"
        file = "many.json"
        [[rules]]
        name = "one"
        output = ["out/{n}"]
        shell = "until [ $(ls began | wc -l) = 30 ]; do echo > began/{n}; done; echo > {output}"
        """
    )
    (folder / "began").mkdir()
    folder.write("many.json", json.dumps([{"n": str(number)} for number in range(30)]))
    folder.treadle("run", "-j", "30", preexec_fn=_few_open_files)
    assert len(list((folder / "out").iterdir())) == 30


def _few_open_files() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
