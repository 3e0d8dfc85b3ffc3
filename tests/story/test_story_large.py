"""Many tasks, long chains, wide gathers: through the command, within bounds of memory and of patience."""

from __future__ import annotations

import json
import resource
import subprocess

import pytest

pytestmark = pytest.mark.big
GIGABYTE = 1 << 30


def bounded() -> None:
    """For `preexec_fn`: one gigabyte of memory, two minutes of work."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))


def test_ten_thousand_tasks_run_and_then_nothing_is_left_to_do(folder):
    numbers = ", ".join(f'"{number}"' for number in range(10_000))
    folder.flow(
        f"""
        [[values]]
        name = "n"
        values = [{numbers}]

        [[rules]]
        name = "each"
        output = ["out/{{n}}"]
        shell = ": > {{output}}"
        """,
        head='[workflow]\nname = "many"\n',
    )
    done = json.loads(folder.treadle("run", "--json", "-j4", preexec_fn=bounded).stdout)
    assert done["counts"]["succeeded"] == 10_000
    assert len(list((folder / "out").iterdir())) == 10_000
    assert "nothing to do: 10000 tasks up to date" in folder.treadle("run", preexec_fn=bounded).stderr
    (folder / "out/77").unlink()
    assert folder.will_run() == {"each/n=77"}


def test_a_chain_of_a_hundred_thousand_tasks_is_planned(folder):
    rows = 50_000
    folder.write("rows.tsv", "i\tnext\n" + "".join(f"{row}\t{row + 1}\n" for row in range(rows)))
    folder.flow(
        """
        [[tables]]
        name = "rows"
        file = "rows.tsv"

        [[rules]]
        name = "there"
        input = ["a/{i}"]
        output = ["b/{i}"]
        shell = "cp {input} {output}"

        [[rules]]
        name = "back"
        input = ["b/{i}"]
        output = ["a/{next}"]
        shell = "cp {input} {output}"
        """
    )
    folder.write("a/0", "")
    plan = json.loads(folder.treadle("plan", "--json", preexec_fn=bounded).stdout)
    assert plan["summary"]["will_run"] == 2 * rows
    assert len(plan["groups"]) == 2 * rows
    assert plan["order"][0] == "there/i=0"
    assert plan["order"][-1] == f"back/next={rows}"
    said = folder.treadle("why", f"back/next={rows}", preexec_fn=bounded).stdout
    assert len(said) < 5000, "a cascade is told once, at its root"
    assert folder.will_run("there/i=2") == {
        *("there/i=0", "there/i=1", "there/i=2"),
        *("back/next=1", "back/next=2"),
    }


def test_a_task_of_a_hundred_thousand_inputs_is_planned_and_run(folder):
    number = 100_000
    (folder / "in").mkdir()
    make = f"seq -f in/%.0f.txt {number} | xargs touch"  # in a tenth of the time that Python takes
    subprocess.run(["sh", "-c", make], cwd=folder.path, check=True)
    folder.flow(
        """
        [[rules]]
        name = "all"
        input = ["in/*.txt"]
        output = ["all.txt"]
        shell = "wc -l < {input.list} > {output}"
        """
    )
    assert folder.will_run() == {"all"}
    folder.treadle("run", preexec_fn=bounded)
    assert folder.read("all.txt").strip() == str(number)
    assert "nothing to do" in folder.treadle("run", preexec_fn=bounded).stderr
    (folder / "in/5.txt").unlink()
    (found,) = folder.plan()["tasks"]
    assert found["reasons"] == [{"reason": "input_vanished", "path": "in/5.txt"}]


def test_twenty_thousand_missing_inputs_are_told_on_one_screen(folder):
    rows = 20_000
    folder.write("rows.tsv", "i\n" + "".join(f"{row}\n" for row in range(rows)))
    folder.flow(
        """
        [[tables]]
        name = "rows"
        file = "rows.tsv"

        [[rules]]
        name = "missing"
        input = ["in/{i}"]
        output = ["out/{i}"]
        shell = "cp {input} {output}"
        """
    )
    said = folder.treadle("run", exits=2, preexec_fn=bounded).stderr
    assert len(said) < 10_000
    assert "and 19995 more files that rule missing reads do not exist" in said
