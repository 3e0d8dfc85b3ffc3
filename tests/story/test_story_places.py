"""Where things stand: the workflow here, the work there, the person elsewhere, links in between."""

from __future__ import annotations

import os
import re
import shlex

import pytest

FLOW = """[workflow]
name = "story"
strict_shell = true
sample_groups_file = "sheets/groups.tsv"
[config]
ref = { type = "path", must_exist = true, default = "refs/ref.txt" }
[[rules]]
name = "join"
input = ["in/{sample}.txt"]
output = ["out/{sample}.txt"]
log = "logs/deep/{sample}.log"
benchmark = "times/deep/{sample}.tsv"
script = "scripts/join.sh {config.ref} {input} {output}"
[[rules]]
name = "outside"
input = ["out/A.txt"]
output = ["../beside/a.txt", "FAR/b.txt"]
shell = "cat {input} > {output[0]}; cat {input} > {output[1]}"
[[rules]]
name = "last"
input = ["../beside/a.txt", "FAR/b.txt", "out/B.txt"]
output = ["last.txt"]
shell = "cat {input} > {output}"
"""

FAILING = """[workflow]
name = "story"
[config]
word = "plain"
[[rules]]
name = "r"
output = ["r.txt"]
shell = "echo said \\"{config.word}\\"; exit 3"
"""
OWN = """[workflow]
name = "story"
[[rules]]
name = "r"
output = ["NAME"]
shell = "echo > {output}"
"""


@pytest.fixture
def places(folder):
    """flows/ has the workflow with its sheet and script, work/ the inputs; link/ leads to work/."""
    folder.write("flows/main.oxoflow", FLOW.replace("FAR", str(folder / "far")))
    folder.write("flows/sheets/groups.tsv", "name\tsamples\nall\tA,B\n")
    folder.write("flows/scripts/join.sh", 'echo joined; cat "$1" "$2" > "$3"\n')
    folder.write("work/in/A.txt", "a\n")
    folder.write("work/in/B.txt", "b\n")
    folder.write("work/refs/ref.txt", "ref\n")
    (folder / "typed").mkdir()
    (folder / "link").symlink_to("work")
    return folder


def elsewhere(places, *args, exits=0, flow="../flows/main.oxoflow", workdir="../work"):
    return places.treadle(args[0], flow, *args[1:], "--workdir", workdir, exits=exits, cwd=places / "typed")


def test_scripts_and_sheets_are_the_workflow_s_and_all_else_the_work_folder_s(places):
    elsewhere(places, "run")
    assert places.read("work/last.txt") == "ref\na\nref\na\nref\nb\n"
    assert places.read("beside/a.txt") == places.read("far/b.txt") == "ref\na\n"
    assert places.read("work/logs/deep/A.log") == "joined\n"
    assert places.read("work/times/deep/B.tsv").startswith("wall_seconds\t")
    assert os.listdir(places / "typed") == []
    assert sorted(os.listdir(places / "flows")) == ["main.oxoflow", "scripts", "sheets"]


def test_a_work_folder_is_the_same_by_a_link_and_by_another_path_to_the_workflow(places):
    elsewhere(places, "run", workdir="../link")
    for workdir in ("../work", "../link", "../flows/../work", str(places / "work")):
        for flow in ("../flows/main.oxoflow", str(places / "flows/main.oxoflow")):
            assert "nothing to do" in elsewhere(places, "plan", flow=flow, workdir=workdir).stderr


def test_targets_are_seen_from_the_work_folder_wherever_they_are_typed(places):
    for target in (
        "out/A.txt",
        "join/sample=A",
        str(places / "work/out/A.txt"),
        str(places / "link/out/A.txt"),
    ):
        for workdir in ("../work", "../link"):
            shown = elsewhere(places, "plan", target, "--tasks", workdir=workdir).stdout
            assert [line.split()[2] for line in shown.splitlines()] == ["join/sample=A:"]
    shown = elsewhere(places, "plan", str(places / "far/b.txt"), "--tasks").stdout
    assert len(shown.splitlines()) == 2


def test_a_workflow_that_moves_with_its_script_runs_nothing_again(places):
    elsewhere(places, "run")
    (places / "flows").rename(places / "moved")
    assert "nothing to do" in elsewhere(places, "plan", flow="../moved/main.oxoflow").stderr


def test_the_workflow_file_is_no_output_by_any_name_of_its_folder(places):
    names = (
        "own.oxoflow",
        str(places / "work/own.oxoflow"),
        str(places / "link/own.oxoflow"),
        "../work/own.oxoflow",
    )
    for name in names:
        text = OWN.replace("NAME", name)
        places.write("work/own.oxoflow", text)
        for workdir in ("../work", "../link"):
            for flow in ("../work/own.oxoflow", "../link/own.oxoflow"):
                done = elsewhere(places, "run", flow=flow, workdir=workdir, exits=2)
                assert "it would be removed before the task runs again" in done.stderr
        assert places.read("work/own.oxoflow") == text


@pytest.mark.parametrize(
    "how",
    [
        ("../flows/main.oxoflow", "--workdir", "../work"),
        ("../work/./main.oxoflow", "--config", "word=it's"),
        ("../work/./main.oxoflow", "--workdir", "../odd name"),
    ],
)
def test_the_commands_that_a_failure_names_work_from_where_the_person_stands(places, how):
    for name in ("flows/main.oxoflow", "work/main.oxoflow"):
        places.write(name, FAILING)
    (places / "odd name").mkdir()
    done = places.treadle("run", *how, exits=1, cwd=places / "typed")
    look, attempt = re.findall(r"look: (.*)    try: (.*)", done.stderr)[0]
    (more,) = re.findall(r"more: (.*)", done.stderr)
    word = how[-1].partition("=")[2] or "plain"
    for command, code in ((look, 0), (more, 0), (attempt, 3)):
        first, *words = shlex.split(command)
        assert first == "treadle"
        assert f"said {word}" in places.treadle(*words, exits=code, cwd=places / "typed").stdout
    status = ["status", "--workdir", how[-1]] if how[1] == "--workdir" else ["status", "--workdir", "../work"]
    (hint,) = re.findall(
        r"^    (treadle logs .*)", places.treadle(*status, cwd=places / "typed").stdout, re.M
    )
    assert f"said {word}" in places.treadle(*shlex.split(hint)[1:], cwd=places / "typed").stdout


def test_the_command_that_accepts_deleted_outputs_works_from_there_too(places):
    elsewhere(places, "run")
    os.unlink(places / "work/last.txt")
    os.unlink(places / "far/b.txt")
    elsewhere(places, "run")
    os.unlink(places / "far/b.txt")
    (hint,) = re.findall(r"to accept that: (.*)", elsewhere(places, "plan").stderr)
    places.treadle(*shlex.split(hint)[1:], "-y", cwd=places / "typed")
    assert "nothing to do" in elsewhere(places, "plan").stderr


def test_an_edge_between_two_spellings_is_refused_with_the_way_out(places):
    places.write(
        "flows/main.oxoflow",
        FLOW.replace("FAR", str(places / "far"))
        + f"""
[[rules]]
name = "again"
input = ["{places / "work/last.txt"}"]
output = ["again.txt"]
shell = "cat {{input}} > {{output}}"
""",
    )
    done = elsewhere(places, "plan", exits=2)
    assert f"again names {places / 'work/last.txt'}, and it is last.txt" in done.stderr
    assert "spell it alike" in done.stderr
