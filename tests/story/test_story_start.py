"""Starting out: init, graph, completion."""

from __future__ import annotations

import json
import subprocess

import pytest

from treadle.cli.init_command import TEMPLATES

FLOW = """
[[values]]
name = "part"
values = ["a", "b"]

[[rules]]
name = "make"
output = ["{part}.txt"]
shell = "echo {part} > {output}"

[[rules]]
name = "join"
input = ["{part}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name != "pipeline"])
def test_each_template_checks_plans_and_runs(folder, template):
    said = folder.treadle("init", "new", "--template", template)
    assert "new/main.oxoflow" in said.stdout.splitlines()
    new = folder.below("new")
    assert json.loads(new.treadle("check", "--inputs", "--json").stdout) == {
        "schema": 1,
        "errors": [],
        "warnings": [],
    }
    assert new.treadle("fmt", "--check").stderr == "nothing to change\n"
    assert new.run_as_previewed()
    assert new.run_as_previewed() == set()


def test_the_template_of_a_pipeline_runs(folder):
    said = folder.treadle("init", "new", "--template", "pipeline")
    assert said.stderr == "now: cd new && treadle plan pipeline.py, then treadle run pipeline.py\n"
    new = folder.below("new")
    new.treadle("run", "pipeline.py")
    made = new.treadle("path", "pipeline.py:report").stdout.strip()
    assert new.read(made) == "8 words; the first is ['the']\n"
    assert new.treadle("run", "pipeline.py").stderr == "nothing to do: 2 steps cached\n"


def test_the_template_of_a_cluster_says_what_it_would_send(folder):
    folder.treadle("init", "--template", "cluster")
    shown = folder.treadle("plan", "--profile", "cluster", "--show", "submit").stdout
    assert "#SBATCH" in shown
    assert "1024M" in shown


def test_the_template_of_pairs_makes_each_pair_of_its_own_samples(folder):
    folder.treadle("init", "--template", "pairs")
    folder.treadle("run", "-q")
    assert folder.read("calls/P1.tsv") == "C\t2\n"
    assert folder.read("calls/P2.tsv") == "G\t1\n"


def test_init_overwrites_nothing(folder):
    folder.flow(FLOW)
    before = folder.read("main.oxoflow")
    done = folder.treadle("init", exits=2)
    assert "already there" in done.stderr
    assert folder.read("main.oxoflow") == before


def test_init_names_the_nearest_template(folder):
    done = folder.treadle("init", "--template", "sample", exits=2)
    assert "did you mean 'samples'?" in done.stderr
    assert list(folder.path.iterdir()) == []


def test_a_graph_by_rule_is_small_and_by_task_is_whole(folder):
    folder.flow(FLOW)
    assert folder.treadle("graph").stdout == "join\n└─ make (2)\n"
    assert folder.treadle("graph", "--tasks").stdout == "join\n├─ make/part=a\n└─ make/part=b\n"


def test_a_graph_for_graphviz(folder):
    folder.flow(FLOW)
    lines = folder.treadle("graph", "--tasks", "--format", "dot").stdout.splitlines()
    assert lines[0] == 'digraph "story" {'
    assert '  "make/part=a" -> "join";' in lines
    assert lines[-1] == "}"


def test_a_graph_for_a_markdown_page(folder):
    folder.flow(FLOW)
    lines = folder.treadle("graph", "--format", "mermaid").stdout.splitlines()
    assert lines[0] == "flowchart TD"
    assert '  n0["make (2)"]' in lines
    assert "  n0 --> n1" in lines


def test_a_graph_of_a_target_has_what_it_needs_and_no_more(folder):
    folder.flow(FLOW)
    assert folder.treadle("graph", "a.txt", "--tasks").stdout == "make/part=a\n"


def test_an_unknown_format_is_an_error_that_lists_those_that_exist(folder):
    folder.flow(FLOW)
    done = folder.treadle("graph", "--format", "svg", exits=2)
    for known in ("dot", "mermaid", "tree"):
        assert known in done.stderr


def test_the_completion_script_is_bash_and_knows_all_commands(folder):
    script = folder.treadle("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    for word in ("status", "--keep-going", "--dry-run", "--runs"):
        assert word in script


def test_completion_of_bash_offers_commands(folder):
    script = folder.write("treadle.bash", folder.treadle("completion", "bash").stdout)
    ask = f"""
    source {script}
    COMP_WORDS=(treadle st); COMP_CWORD=1
    $(complete -p treadle | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    found = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=folder.path)
    assert found.stdout.split() == ["status"], found.stderr
