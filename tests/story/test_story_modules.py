"""A workflow of several files, told with the command: run, a part of it, errors of all files, git pins."""

from __future__ import annotations

import json
import subprocess

import pytest

MODULE = """
[config]
word = "module"
[[rules]]
name = "say"
output = ["{config.where}/{sample}.txt"]
script = "scripts/say.sh {config.word} {output}"
[[rules]]
name = "sum"
input = ["{config.where}/{sample}.txt"]
output = ["{config.where}/sum.txt"]
depends_on = ["say"]
shell = "cat {input} > {output}"
"""

FLOW = """
[[sample_groups]]
name = "all"
samples = ["A", "B"]
[[include]]
path = "rules/say.oxoflow"
namespace = "one"
params = { where = "one" }
[[include]]
path = "rules/say.oxoflow"
namespace = "two"
name = "second"
params = { where = "two", word = "params" }
[[rules]]
name = "all"
input = ["one/sum.txt", "two/sum.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


@pytest.fixture
def modules(folder):
    folder.write("rules/say.oxoflow", MODULE)
    folder.write("scripts/say.sh", 'echo "$1" > "$2"\n')
    folder.flow(FLOW)
    return folder


def test_one_file_stands_in_a_workflow_twice(modules):
    modules.treadle("run")
    assert modules.read("all.txt").split() == ["module"] * 2 + ["params"] * 2
    assert modules.treadle("run").stderr.startswith("nothing to do")


def test_a_module_is_run_with_what_it_needs_alone(modules):
    modules.treadle("run", "--module", "second")
    assert modules.read("two/sum.txt").split() == ["params"] * 2
    assert not (modules / "one").exists()
    assert not (modules / "all.txt").exists()
    modules.treadle("run", "--module", "one")
    said = modules.treadle("run", "--module", "thrd", exits=2).stderr
    assert "there is no module 'thrd'" in said


def test_a_forced_module_runs_its_own_rules_again_and_no_others(modules):
    modules.treadle("run")
    planned = json.loads(modules.treadle("plan", "--json", "--module", "one", "--force").stdout)
    assert {task["rule"] for task in planned["tasks"] if task["will_run"]} == {"one::say", "one::sum"}


def test_where_a_module_is_written_runs_nothing_again_what_its_rules_say_does(modules):
    modules.treadle("run")
    modules.write("rules/moved.oxoflow", "# moved\n" + MODULE)
    modules.flow(FLOW.replace("rules/say", "rules/moved"))
    assert "nothing to do" in modules.treadle("plan").stderr
    modules.write("rules/moved.oxoflow", MODULE.replace('"module"', '"other"'))
    planned = modules.treadle("plan", "--tasks").stdout
    assert [line.split()[2] for line in planned.splitlines() if "command changed" in line] == [
        "one::say/sample=A:",
        "one::say/sample=B:",
    ]


def test_errors_of_all_files_are_told_at_once(modules):
    modules.write("rules/say.oxoflow", MODULE.replace("depends_on", "depend_on"))
    modules.flow(FLOW.replace('name = "all"\ninput', 'name = "all"\npriority = "x"\ninput'))
    said = modules.treadle("check", exits=2)
    told = said.stdout + said.stderr
    assert "main.oxoflow:19 [rules.all.priority]" in told
    assert "rules/say.oxoflow:12 [rules.sum.depend_on]" in told
    assert told.count("depend_on") == told.count("rules.sum.depend_on") + told.count("'depend_on'")


def test_a_pinned_module_is_run_from_its_commit_and_the_plan_names_it(modules):
    repo = modules / "repo"
    repo.mkdir()
    for name, text in (("rules/say.oxoflow", MODULE), ("scripts/say.sh", 'echo "$1" pinned > "$2"\n')):
        modules.write(f"repo/{name}", text)

    def git(*args: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        done = subprocess.run(["git", *who, *args], cwd=repo, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "one")
    pin = f'repo = "file://{repo}"\nref = "main"\n'
    modules.flow(FLOW.replace('path = "rules', f'{pin}path = "rules'))
    first = git("rev-parse", "HEAD")
    assert f"file://{repo}@main is commit {first}" in modules.treadle("plan").stderr
    modules.treadle("run")
    assert modules.read("one/A.txt") == "module pinned\n"
    modules.write("repo/README", "x")
    git("add", "--all")
    git("commit", "--quiet", "--message", "two")
    planned = json.loads(modules.treadle("plan", "--json").stdout)
    assert planned["pins"] == {f"file://{repo}@main": git("rev-parse", "HEAD")}
    assert not any(task["will_run"] for task in planned["tasks"])


def test_a_pinned_script_runs_on_a_scheduler(folder, fake_cluster):
    repo = folder / "repo"
    folder.write("repo/m.oxoflow", '[[rules]]\nname = "r"\noutput = ["o"]\nscript = "s.sh {output}"\n')
    folder.write("repo/s.sh", 'echo there > "$1"\n')
    for args in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *who, *args], cwd=repo, check=True)
    ref = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repo, check=True, capture_output=True, text=True)
    cluster = fake_cluster("slurm")
    profile = f'[cluster]\nbackend = "slurm"\nbin_dir = "{cluster.bin}"\npoll_interval = "0.2s"\n'
    folder.write("profiles/site.toml", profile)
    folder.flow(f'[[include]]\nrepo = "file://{repo}"\nref = "{ref.stdout.strip()}"\npath = "m.oxoflow"\n')
    folder.treadle("run", "--profile", "site")
    assert folder.read("o") == "there\n"
