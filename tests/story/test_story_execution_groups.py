"""Execution groups and the budget, told with the command: on this machine and on a scheduler alike."""

from __future__ import annotations

FLOW = """
[[values]]
name = "n"
values = ["1", "2", "3"]
[[execution_group]]
name = "line"
rules = ["second", "first"]
mode = "sequential"
[[rules]]
name = "first"
output = ["first/{n}.txt"]
shell = "ls second > {output}"
[[rules]]
name = "second"
output = ["second/{n}.txt"]
shell = "test ! -e first/1.txt && echo {n} > {output}"
"""


ALL_THREE = [["1.txt", "2.txt", "3.txt"]] * 3


def test_all_tasks_of_a_rule_come_before_those_of_the_next(folder):
    folder.flow(FLOW)
    folder.treadle("run", "-j", "6")
    assert [folder.read(f"first/{n}.txt").split() for n in "123"] == ALL_THREE


def test_so_they_do_on_a_scheduler(folder, fake_cluster):
    cluster = fake_cluster("slurm", slots=8)
    profile = f'[cluster]\nbackend = "slurm"\nbin_dir = "{cluster.bin}"\npoll_interval = "0.2s"\n'
    folder.write("profiles/site.toml", profile)
    folder.flow(FLOW)
    folder.treadle("run", "--profile", "site")
    assert [folder.read(f"first/{n}.txt").split() for n in "123"] == ALL_THREE


def test_a_module_with_a_group_may_be_included_twice_in_namespaces_of_its_own(folder):
    folder.write(
        "part.oxoflow",
        """
        [config]
        to = "x"
        [[execution_group]]
        name = "line"
        rules = ["second", "first"]
        mode = "sequential"
        [[rules]]
        name = "first"
        output = ["{config.to}/first.txt"]
        shell = "ls {config.to} > {output}"
        [[rules]]
        name = "second"
        output = ["{config.to}/second.txt"]
        shell = "touch {output}"
        """,
    )
    folder.flow(
        "".join(
            f'[[include]]\npath = "part.oxoflow"\nnamespace = "{name}"\nparams = {{ to = "{name}" }}\n'
            for name in ("one", "two")
        )
    )
    folder.treadle("run")
    assert ["second.txt" in folder.read(f"{name}/first.txt") for name in ("one", "two")] == [True, True]


def test_an_order_makes_nobody_run_and_nothing_run_again(folder):
    folder.flow(FLOW.replace("ls second", "echo"))
    folder.treadle("run", "first")
    assert not (folder / "second").exists()
    folder.treadle("run", "--force", "second", exits=1)
    folder.flow(FLOW.replace("ls second", "echo").replace("test ! -e first/1.txt && ", ""))
    assert "3 tasks of 6 will run" in folder.treadle("plan").stderr
    folder.treadle("run")
    assert folder.treadle("plan").stderr == "nothing to do: 6 tasks up to date\n"


def test_no_more_jobs_are_under_way_than_the_budget_says(folder):
    folder.flow(
        """
        [resource_budget]
        jobs = 1
        [[values]]
        name = "n"
        values = ["1", "2", "3"]
        [[rules]]
        name = "alone"
        output = ["{n}.txt"]
        shell = "mkdir taken && sleep 0.05 && rmdir taken && echo > {output}"
        """
    )
    folder.treadle("run", "-j", "3")


def test_a_rule_beyond_the_budget_is_refused(folder):
    folder.flow(
        """
        [resource_budget]
        memory = "1G"
        [[rules]]
        name = "big"
        output = ["x"]
        resources = { memory = "2G" }
        shell = "touch {output}"
        """
    )
    said = folder.treadle("run", exits=2).stderr
    assert "main.oxoflow:10 [rules.big.resources.memory]: rule big asks for 2G of memory" in said


def test_tasks_that_a_checkpoint_finds_come_before_those_of_the_next_rule(folder):
    folder.flow(
        """
        [[execution_group]]
        name = "line"
        rules = ["use", "last"]
        mode = "sequential"
        [[rules]]
        name = "last"
        output = ["last.txt"]
        shell = "ls used > {output}"
        [[rules]]
        name = "find"
        output = ["found.toml"]
        checkpoint = true
        checkpoint_manifest = "found.toml"
        shell = "echo '[reentry]' > {output}; echo 'sample = [\\"A\\", \\"B\\"]' >> {output}"
        [[rules]]
        name = "use"
        output = ["used/{sample}"]
        shell = "echo > {output}"
        """
    )
    folder.treadle("run", "-j", "4")
    assert folder.read("last.txt").split() == ["A", "B"]
