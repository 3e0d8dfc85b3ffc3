"""`scratch`: a task works in a private folder, and its outputs come into place as a whole or not at all."""

from __future__ import annotations

import os
import pathlib
import re
import shutil

import pytest

RULE = """
    [[rules]]
    name = "r"
    input = ["data/in.txt"]
    output = ["out/a.txt"]
    scratch = true
    {more}
    shell = '''{shell}'''
"""


def flow(folder, shell, more=""):
    folder.write("data/in.txt", "in\n")
    folder.flow(RULE.replace("{more}", more).replace("{shell}", shell))


def private(folder) -> list[pathlib.Path]:
    """The private folders that are there."""
    return sorted((folder / ".treadle" / "scratch").glob("*"))


def test_a_task_works_in_a_folder_of_its_own_and_only_what_it_declares_comes_out(folder):
    flow(folder, "pwd; echo junk > junk.txt; cat data/in.txt > {output}")
    assert folder.run_as_previewed() == {"r"}
    assert folder.read("out/a.txt") == "in\n"
    assert not (folder / "junk.txt").exists()
    assert "/.treadle/scratch/" in folder.treadle("logs", "r").stdout
    assert private(folder) == []
    assert folder.will_run() == set()


def test_only_declared_inputs_are_seen_unless_more_is_asked_for(folder):
    folder.write("other.txt", "other\n")
    folder.write("out/old.txt", "old\n")
    look = "ls other.txt out/old.txt > {output} || true"
    for kind, seen in (("true", ""), ("'shallow'", "other.txt\n"), ("'full'", "other.txt\nout/old.txt\n")):
        flow(folder, look)
        text = folder.read("main.oxoflow").replace("scratch = true", f"shadow = {kind}")
        folder.write("main.oxoflow", text)
        folder.treadle("run", "--force", "r")
        assert folder.read("out/a.txt") == seen, kind


def test_turning_scratch_on_or_off_runs_nothing_again(folder):
    flow(folder, "cat {input} > {output}")
    folder.treadle("run")
    folder.write("main.oxoflow", folder.read("main.oxoflow").replace("scratch = true", "scratch = false"))
    assert folder.will_run() == set()


def test_outputs_of_every_kind_come_into_place(folder):
    folder.write("data/in.txt", "in\n")
    folder.write("data/dir/x", "x\n")
    elsewhere = folder / "elsewhere.txt"
    folder.flow(f"""
        [[rules]]
        name = "r"
        input = ["data/in.txt", "data/dir"]
        output = ["top.txt", "a/b/c.txt", "tree", "it's $HOME.txt", "link", "inner", "{elsewhere}"]
        scratch = true
        log = "logs/r.log"
        benchmark = "logs/r.tsv"
        pre_exec = "echo pre > pre.txt"
        on_success = "cat pre.txt >> tree/deep/two"
        shell = '''
        echo said > {{log}}
        cp {{input[0]}} top.txt; cat data/dir/x > a/b/c.txt; mkdir -p tree/deep; echo two > tree/deep/two
        echo q > {{output[3]}}; ln -s data/in.txt link; echo inner > real; ln -s $PWD/real inner
        echo abs > {elsewhere}; chmod 640 top.txt; touch -d 2001-02-03 top.txt
        '''
    """)
    folder.treadle("run")
    assert folder.read("top.txt") == "in\n"
    assert (folder / "top.txt").stat().st_mode & 0o777 == 0o640
    assert (folder / "top.txt").stat().st_mtime < 1e9
    assert folder.read("a/b/c.txt") == "x\n"
    assert folder.read("tree/deep/two") == "two\npre\n"
    assert folder.read("it's $HOME.txt") == "q\n"
    assert os.readlink(folder / "link") == "data/in.txt"
    assert folder.read("inner") == "inner\n"
    assert elsewhere.read_text() == "abs\n"
    assert folder.read("logs/r.log") == "said\n"
    assert folder.read("logs/r.tsv").startswith("wall_seconds")
    assert private(folder) == []
    assert folder.will_run() == set()


def test_a_failed_attempt_leaves_its_folder_and_says_where(folder):
    flow(folder, "cat data/in.txt > {output}; echo clue > clue.txt; exit 3")
    told = folder.treadle("run", exits=1).stderr
    kept = re.search(r"its private folder is kept until the next attempt: '(.*)' on ", told)
    assert kept is not None, told
    assert (pathlib.Path(kept[1]) / "clue.txt").read_text() == "clue\n"
    assert not (folder / "out" / "a.txt").exists()
    assert not list((folder / "out").glob("*.failed"))
    flow(folder, "cat data/in.txt > {output}")
    folder.treadle("run")
    assert private(folder) == []


def test_an_output_that_was_not_made_fails_as_it_does_without_scratch(folder):
    flow(folder, ":")
    told = folder.treadle("run", exits=1).stderr
    assert "did not make out/a.txt" in told
    assert len(private(folder)) == 1


def test_clean_removes_what_failures_left(folder):
    flow(folder, "exit 3")
    folder.treadle("run", exits=1)
    assert len(private(folder)) == 1
    folder.treadle("clean", "--failed", "--yes")
    assert private(folder) == []


def test_folders_of_runs_that_are_gone_go_with_them(folder):
    flow(folder, "exit 3")
    folder.treadle("run", exits=1)
    (kept,) = private(folder)
    folder.flow("[[rules]]\nname = 'other'\noutput = ['other.txt']\nshell = 'echo > other.txt'\n")
    folder.treadle("run")
    assert private(folder) == [kept]
    (run,) = [run for run in folder.runs() if run in kept.name]
    shutil.rmtree(folder / ".treadle" / "runs" / run)
    folder.treadle("run", "--force", "other")
    assert private(folder) == []


def test_a_task_that_is_run_by_hand_has_a_folder_that_is_none_of_the_attempts(folder):
    flow(folder, "pwd; echo clue > clue.txt; cat {input} > {output}; test -e good")
    folder.treadle("exec", "r", exits=1)
    (by_hand,) = private(folder)
    folder.treadle("run", exits=1)
    assert len(private(folder)) == 2
    assert by_hand in private(folder)
    folder.treadle("exec", "r", exits=1)
    assert by_hand not in private(folder)
    assert len(private(folder)) == 2


def test_each_attempt_begins_in_an_empty_folder(folder):
    tries = folder / "tries"
    shell = f"echo x >> {tries}; test ! -e seen; touch seen; test $(wc -l < {tries}) -eq 2"
    flow(folder, shell + "; cat {input} > {output}", more="retries = 1")
    folder.treadle("run")
    assert folder.read("out/a.txt") == "in\n"
    assert private(folder) == []


def test_what_a_kill_left_is_gone_after_the_next_run(folder):
    flow(folder, f"touch {folder / 'began'}; test -e {folder / 'go'} || sleep 60; cat {{input}} > {{output}}")
    driver = folder.start("run")
    folder.until("began")
    driver.kill()
    driver.communicate()
    assert len(private(folder)) == 1
    folder.write("go", "")
    folder.treadle("run")
    assert folder.read("out/a.txt") == "in\n"
    assert private(folder) == []
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["a.txt"]


def test_a_cancelled_task_ends_at_once(folder):
    flow(folder, f"touch {folder / 'began'}; sleep 60")
    driver = folder.start("run")
    folder.until("began")
    driver.terminate()
    driver.communicate(timeout=60)
    assert driver.returncode == 143
    ended = [one for one in folder.events() if one["event"] == "task_settled"]
    assert ended[-1]["outcome"]["reason"] == "cancelled"


def test_inputs_may_stand_above_the_work_folder_or_hold_the_output(folder):
    folder.write("up/in.txt", "up\n")
    folder.write("work/ref/genome.fa", "acgt\n")
    text = """
        [[rules]]
        name = "r"
        input = ["../up/in.txt", "ref/genome.fa"]
        output = ["ref/genome.fa.idx", "../up/out.txt"]
        scratch = true
        shell = "cat {input} > {output[0]}; ls ref > {output[1]}"
    """
    folder.flow(text, name="work/main.oxoflow")
    folder.treadle("run", cwd=folder / "work")
    assert folder.read("work/ref/genome.fa.idx") == "up\nacgt\n"
    assert folder.read("up/out.txt") == "genome.fa\ngenome.fa.idx\n"


def test_what_stands_in_an_output_folder_stays_there(folder):
    folder.write("tree/mine.txt", "mine\n")
    folder.flow("""
        [[rules]]
        name = "r"
        output = ["tree"]
        scratch = true
        shell = "mkdir -p tree/sub; echo new > tree/sub/new.txt"
    """)
    folder.treadle("run")
    assert folder.read("tree/mine.txt") == "mine\n"
    assert folder.read("tree/sub/new.txt") == "new\n"
    assert folder.will_run() == set()


def test_a_list_of_many_inputs_and_their_list_file_are_there(folder):
    for at in range(3000):
        folder.write(f"data/with a rather long name, as they come from a sequencer {at:04}.txt", f"{at}\n")
    folder.flow("""
        [[rules]]
        name = "r"
        input = ["data/*.txt"]
        output = ["sum.txt"]
        scratch = true
        shell = '''tr '\\n' '\\0' < {input.list} | xargs -0 cat | wc -l > {output}'''
    """)
    folder.treadle("run")
    assert folder.read("sum.txt").strip() == "3000"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('scratch = "deep"', "'full'"),
        ('scratch = true\nshadow = "full"', "'shadow' is another name of 'scratch'"),
        ("scratch = true\nresumable = true", "do not go together"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder, fields, words):
    folder.flow(f"[[rules]]\nname = 'r'\noutput = ['a']\nshell = 'echo > a'\n{fields}\n")
    assert words in folder.treadle("check", exits=2).stderr + folder.treadle("run", exits=2).stderr


def test_a_node_that_does_not_set_the_variable_of_scratch_dir_says_so(folder):
    flow(folder, "cat {input} > {output}; pwd")
    folder.write("profiles/here.toml", '[cluster]\nbackend = "local"\nscratch_dir = "$NODE_DISK/of me"\n')
    told = folder.treadle("run", "--profile", "here", exits=1).stderr
    assert "NODE_DISK" in told
    folder.treadle("run", "--profile", "here", env=folder.env(NODE_DISK=str(folder / "disk")))
    assert f"{folder / 'disk'}/of me/treadle-" in folder.treadle("logs", "r").stdout
    assert list((folder / "disk" / "of me").iterdir()) == []


def test_a_scratch_dir_that_is_not_absolute_is_refused(folder):
    flow(folder, "cat {input} > {output}")
    folder.write("profiles/here.toml", '[cluster]\nbackend = "local"\nscratch_dir = "tmp"\n')
    assert "is not an absolute path" in folder.treadle("run", "--profile", "here", exits=2).stderr
