"""`treadle fmt` and `treadle schema`: files in one layout, and what editors are told about them."""

from __future__ import annotations

import json
import os
import stat

import pytest

UNTIDY = """\
# the flow
[workflow]
name='w'   # of the story
[[rules]]
shell = '''
echo '# no comment' > {output}
'''
# made of nothing
output=[ "o" ]
name = "r"

# how
retries = 2


[rules.resources]
memory = "1G"
threads=2
"""
TIDY = """\
# the flow
[workflow]
name = "w"   # of the story

[[rules]]
name = "r"
# made of nothing
output = ["o"]
shell = '''
echo '# no comment' > {output}
'''

# how
retries = 2

[rules.resources]
threads = 2
memory = "1G"
"""


def test_a_file_is_put_in_one_layout_and_its_plan_stays(folder):
    folder.write("main.oxoflow", UNTIDY)
    digest = folder.plan()["digest"]
    done = folder.treadle("fmt")
    assert (done.stdout, done.stderr) == ("main.oxoflow\n", "1 file changed\n")
    assert folder.read("main.oxoflow") == TIDY
    assert folder.plan()["digest"] == digest
    assert folder.treadle("fmt").stderr == "nothing to change\n"
    assert folder.read("main.oxoflow") == TIDY


def test_check_and_diff_write_nothing(folder):
    folder.write("a.oxoflow", UNTIDY)
    folder.write("b.oxoflow", TIDY)
    done = folder.treadle("fmt", "--check", "a.oxoflow", "b.oxoflow", exits=1)
    assert (done.stdout, done.stderr) == ("a.oxoflow\n", "1 file would change\n")
    shown = folder.treadle("fmt", "--diff", "a.oxoflow", "b.oxoflow").stdout
    assert "-name='w'   # of the story\n" in shown
    assert '+name = "w"   # of the story\n' in shown
    assert "b.oxoflow" not in shown
    assert folder.treadle("fmt", "--diff", "--check", "a.oxoflow", exits=1).stdout == "\n".join(
        line for line in shown.split("\n")
    )
    assert folder.read("a.oxoflow") == UNTIDY
    assert json.loads(folder.treadle("fmt", "--check", "--json", "a.oxoflow", exits=1).stdout) == {
        "schema": 1,
        "changed": ["a.oxoflow"],
        "errors": [],
    }
    folder.treadle("fmt", "--check", "b.oxoflow")


def test_a_file_that_is_no_toml_is_left_and_the_others_are_formatted(folder):
    broken = '[workflow]\nname = "w\n'
    folder.write("broken.oxoflow", broken)
    folder.write("main.oxoflow", UNTIDY)
    done = folder.treadle("fmt", "broken.oxoflow", "main.oxoflow", exits=2)
    assert done.stdout == "main.oxoflow\n"
    assert "error: broken.oxoflow:2" in done.stderr
    assert folder.read("broken.oxoflow") == broken
    assert folder.read("main.oxoflow") == TIDY
    assert "no file 'nowhere.oxoflow'" in folder.treadle("fmt", "nowhere.oxoflow", exits=2).stderr


def test_mode_and_links_of_a_file_stay(folder):
    folder.write("real/main.oxoflow", UNTIDY)
    os.chmod(folder / "real/main.oxoflow", 0o666)
    os.symlink("real/main.oxoflow", folder / "main.oxoflow")
    folder.treadle("fmt", "main.oxoflow")
    assert os.path.islink(folder / "main.oxoflow")
    assert folder.read("real/main.oxoflow") == TIDY
    assert stat.S_IMODE(os.stat(folder / "real/main.oxoflow").st_mode) == 0o666
    assert os.listdir(folder / "real") == ["main.oxoflow"]


@pytest.mark.parametrize(("first", "end"), [("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", "\r\n")])
def test_what_windows_editors_put_in_is_taken_out(folder, first, end):
    (folder / "main.oxoflow").write_bytes((first + UNTIDY.replace("\n", end)).encode())
    folder.treadle("fmt")
    assert (folder / "main.oxoflow").read_bytes() == TIDY.encode()
    (folder / "main.oxoflow").write_bytes((first + TIDY.replace("\n", end)).encode())
    assert folder.treadle("fmt", "--check", exits=1).stdout == "main.oxoflow\n"


def test_inline_tables_over_several_lines_are_kept(folder):
    text = TIDY + '\n[[rules]]\nname = "s"\nshell = "echo {params.a}"\nparams = {\n  a = 1,  # one\n}\n'
    folder.write("main.oxoflow", text)
    assert folder.treadle("fmt").stderr == "nothing to change\n"


def test_a_profile_is_formatted_as_well(folder):
    folder.write("p.toml", "[cluster]\npartition='x'\nbackend=\"slurm\"\n[rules.a.resources]\nmemory='1G'\n")
    folder.treadle("fmt", "p.toml")
    assert folder.read("p.toml") == (
        '[cluster]\nbackend = "slurm"\npartition = "x"\n[rules.a.resources]\nmemory = "1G"\n'
    )


def test_named_inputs_stay_in_their_order(folder):
    folder.write(
        "main.oxoflow",
        TIDY
        + '\n[[rules]]\nname = "s"\nshell = "cat {input}"\n[rules.input]\nz = "1"\npath = "2"\na = "3"\n',
    )
    for name in "123":
        folder.write(name, name)
    digest = folder.plan()["digest"]
    assert folder.treadle("fmt").stderr == "nothing to change\n"
    assert folder.plan()["digest"] == digest


def test_from_stdin_to_stdout_for_editors(folder):
    folder.write("main.oxoflow", UNTIDY)
    with open(folder / "main.oxoflow") as file:
        process = folder.start("fmt", "-", stdin=file)
        assert process.communicate()[0] == TIDY
    assert process.returncode == 0
    assert folder.read("main.oxoflow") == UNTIDY


def test_editors_get_a_schema_of_workflows_and_one_of_profiles(folder):
    flow = json.loads(folder.treadle("schema").stdout)
    profile = json.loads(folder.treadle("schema", "--profile").stdout)
    assert flow["$schema"] == profile["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "rules" in flow["properties"]
    assert "partitions" in profile["properties"]
