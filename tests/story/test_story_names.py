"""Names that shells, formats and file systems read in their own way come through as they are."""

from __future__ import annotations

import json
import os
import sys

import pytest

NAMES = [
    "plain",
    "with blank",
    "it's",
    'say "x"',
    "$HOME",
    "`id`",
    "$(id)",
    "-rf",
    "--help",
    "ünïcödé",
    "日本語",
    "a;b&c|d",
    "a*b?c",
    "[a]",
    "{b}",
    "{{c}}",
    "a\\b",
    "~root",
    "#x",
    "!x",
    "a=b",
    "%s",
    ".hidden",
    "..x",
    "a,b:c",
    "<a>",
    "^a",
    "x" * 236,  # with its suffix the longest name that what a task makes may have
    "é" * 118,
]
FLOW = """
[[tables]]
name = "samples"
file = "samples.json"

[[rules]]
name = "copy"
input = ["in/{sample}.txt"]
output = ["out/{sample}.c"]
log = "{sample}.l"
shell = '''
cat {input} > {output}; cat "{input}" >> '{output}'
echo {sample} >> {output}; echo "{sample}" >> {output}; echo '{sample}' >> {output}
'''

[[rules]]
name = "flat"
input = ["in/{sample}.txt"]
output = ["{sample}.f"]
shell = "cat {input} > {output}; ls {output}"

[[rules]]
name = "script"
input = ["in/{sample}.txt"]
output = ["{sample}.s"]
script = "copy.sh {input} {output} {sample}"

[[rules]]
name = "all"
input = ["out/{sample}.c", "{sample}.f", "{sample}.s"]
output = ["all.txt", "list.txt"]
shell = '''
cat {input} > {output[0]}
while IFS= read -r name; do cat < "$name"; done < {input.list} > {output[1]}
'''
"""
COPY = 'cat < "$1" > "$2"; printf "%s\\n" "$3" >> "$2"\n'


def fill(folder, names: list[str]) -> None:
    folder.flow(FLOW)
    folder.write("samples.json", json.dumps([{"sample": name} for name in names]))
    folder.write("copy.sh", COPY)
    for name in names:
        folder.write(f"in/{name}.txt", f"{name}\n")


def test_odd_names_come_through_paths_texts_scripts_and_lists(folder):
    fill(folder, NAMES)
    ran = folder.run_as_previewed()
    assert len(ran) == 3 * len(NAMES) + 1
    for name in NAMES:
        assert folder.read(f"out/{name}.c") == 5 * f"{name}\n"
        assert folder.read(f"{name}.f") == f"{name}\n"
        assert folder.read(f"{name}.s") == 2 * f"{name}\n"
        assert (folder / f"{name}.l").exists()
    assert folder.read("all.txt") == folder.read("list.txt")
    assert len(folder.read("all.txt").splitlines()) == 8 * len(NAMES)
    assert folder.run_as_previewed() == set()
    for task in ("copy/sample=-rf", "copy/sample=--help", "copy/sample=%24HOME", "out/it's.c", "-rf.f"):
        assert len(folder.will_run("--force", "--", task)) == 1
    folder.treadle("logs", "copy/sample=%24HOME")
    folder.treadle("clean", "-y")
    assert not (folder / "all.txt").exists()
    assert (folder / "in/-rf.txt").exists()


FOLDERS = ["a b'c\"d$HOME`e`", "-z", "new\nline", "esc\x1b[31m", "*?[x]{y}", "ü日", "a;b&c", "%41", "d" * 255]


@pytest.mark.parametrize("name", FOLDERS, ids=range(len(FOLDERS)))
def test_a_work_folder_of_any_name(folder, name):
    inner = folder.below(name)
    fill(inner, ["one", "two words"])
    assert len(inner.run_as_previewed()) == 7
    assert inner.read("all.txt") == inner.read("list.txt")
    assert inner.run_as_previewed() == set()
    file = os.path.join(".", name, "main.oxoflow")
    assert folder.will_run(file) == set(), "from elsewhere it is the same"
    assert "done" in folder.treadle("status", "--workdir", f"./{name}").stdout
    assert folder.will_run(file, "--force", "flat") == {"flat/sample=one", "flat/sample=two%20words"}
    folder.treadle("run", file, "--force", "flat")


def test_a_work_folder_that_is_reached_by_a_link_is_the_same_folder(folder):
    inner = folder.below("real")
    fill(inner, ["one"])
    (folder / "link").symlink_to("real")
    assert len(inner.run_as_previewed()) == 4
    assert folder.will_run("link/main.oxoflow") == set()
    assert folder.below("link").run_as_previewed() == set()


NOT_A_NAME = {
    **dict.fromkeys(["a\nb", "a\tb", "a\0b", "a\x7fb"], "samples.json [[0]]"),
    **dict.fromkeys(["a/b", ".."], "main.oxoflow:11 [rules.copy.input[0]]"),
    "x" * 260: "main.oxoflow:9 [rules.copy]",
}


@pytest.mark.parametrize("name", NOT_A_NAME)
def test_values_that_no_name_may_have_are_refused(folder, name):
    folder.flow(FLOW)
    folder.write("samples.json", json.dumps([{"sample": name}]))
    folder.write("copy.sh", COPY)
    assert folder.treadle("plan", exits=2).stderr.startswith(f"error: {NOT_A_NAME[name]}: ")
    assert not (folder / ".treadle").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_a_folder_whose_name_is_no_text_is_refused_by_name(folder):
    inner = folder.path / os.fsdecode(b"bad\xff")
    inner.mkdir()
    (inner / "main.oxoflow").write_text('[workflow]\nname = "w"\n')
    for words in (["plan"], ["run"]):
        said = folder.treadle(*words, cwd=inner, exits=2).stderr
        assert "bad" in said
        assert "UTF-8" in said


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_a_file_whose_name_is_no_text_is_refused_where_it_would_be_used(folder):
    folder.flow(
        """
        [[rules]]
        name = "all"
        input = ["in/*.txt"]
        output = ["all.txt"]
        shell = "cat {input} > {output}"
        """
    )
    folder.write("in/good.txt", "x")
    (folder.path / os.fsdecode(b"in/bad\xff.txt")).write_text("x")
    ended = folder.treadle("run", exits=None)
    assert ended.returncode in (2, 3)
    assert "bad" in ended.stderr
    assert "UTF-8" in ended.stderr
