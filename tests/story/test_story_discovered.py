"""Checkpoint rules: work that is found while the run is on, in the first run, in previews and afterwards."""

from __future__ import annotations

import json
import os
import textwrap

import pytest

FIND = """
[[rules]]
name = "find"
input = ["names.toml"]
output = ["found.toml"]
checkpoint = true
checkpoint_manifest = "found.toml"
checkpoint_extends = ["values.part"]
shell = "cp {input} {output}"
"""
PARTS = """
[[rules]]
name = "make"
output = ["parts/{part}"]
shell = "echo {part} >> made && echo {part} > {output}"
"""
GATHER = """
[[rules]]
name = "all"
input = ["parts/{part}"]
output = ["all.txt"]
shell = "echo all >> made && cat {input} > {output}"

[[rules]]
name = "last"
input = ["all.txt"]
output = ["last.txt"]
shell = "echo last >> made && cp {input} {output}"
"""
FLOW = FIND + PARTS + GATHER


def found(folder, *names: str) -> None:
    folder.write("names.toml", f"[reentry.values]\npart = {json.dumps(names)}\n")


def made(folder) -> list[str]:
    """What ran since the last time that this was asked, sorted."""
    path = folder / "made"
    lines = sorted(path.read_text().split()) if path.exists() else []
    path.write_text("")
    return lines


def why(folder, task: str) -> str:
    return folder.treadle("why", task).stdout


def test_what_a_checkpoint_finds_runs_in_the_same_run_and_is_gathered_once(folder):
    folder.flow(FLOW)
    found(folder, "a", "b", "c")
    assert folder.will_run() == {"find", "last"}
    ended = folder.treadle("run")
    assert made(folder) == ["a", "all", "b", "c", "last"]
    assert folder.read("last.txt") == "a\nb\nc\n"
    assert "6 done" in ended.stderr
    assert folder.will_run() == set()
    folder.treadle("run")
    assert made(folder) == []


def test_a_checkpoint_is_settled_and_its_plan_enters_in_one_write(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    events = folder.events()
    at = next(n for n, one in enumerate(events) if one["event"] == "task_settled" and one["task"] == "find")
    assert events[at]["evidence"]["discovered"] == {"values": {"part": ["a"]}}
    assert events[at + 1]["event"] == "plan_entered"
    assert events[at + 1]["round"] == 2


def test_one_more_and_one_fewer_run_exactly_what_is_needed(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    found(folder, "a", "b", "c")
    assert folder.will_run() == {"find", "last"}
    folder.treadle("run")
    assert made(folder) == ["all", "c", "last"]
    found(folder, "a", "c")
    folder.treadle("run")
    assert made(folder) == ["all", "last"]
    assert folder.read("last.txt") == "a\nc\n"
    tasks = {task["id"] for task in folder.plan()["tasks"]}
    assert tasks == {"find", "make/part=a", "make/part=c", "all", "last"}


def test_a_checkpoint_that_finds_the_same_again_changes_nothing(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    folder.write("names.toml", folder.read("names.toml") + "\n")
    folder.treadle("run")
    assert made(folder) == []


def test_what_was_found_is_known_from_the_record_and_not_from_the_file(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    journal = folder / ".treadle" / "checkpoint.jsonl"
    assert '"discovered"' in journal.read_text()
    stat = (folder / "found.toml").stat()
    text = folder.read("found.toml")
    (folder / "found.toml").write_text(text.replace('"a"', '"z"'))
    os.utime(folder / "found.toml", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    tasks = {task["id"] for task in folder.plan()["tasks"]}
    assert "make/part=z" not in tasks


def test_an_empty_manifest_finds_nothing_and_what_reads_the_gather_is_skipped(folder):
    folder.flow(FLOW)
    folder.write("names.toml", "")
    ended = folder.treadle("run")
    assert made(folder) == []
    assert "1 done" in ended.stderr
    plan = {task["id"]: task["verdict"] for task in folder.plan()["tasks"]}
    assert plan == {"find": "up_to_date", "last": "skipped"}


def test_what_lies_on_the_disk_from_before_is_not_taken_for_what_a_checkpoint_finds(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    folder.write("names.toml", "")
    folder.treadle("run")
    assert made(folder) == []
    assert folder.will_run() == set()


def test_a_gather_over_a_set_that_is_partly_known_waits_and_sees_all_of_it(folder):
    folder.flow('[[values]]\nname = "part"\nvalues = ["x"]\n' + FLOW)
    found(folder, "a")
    plan = {task["id"]: task for task in folder.plan()["tasks"]}
    assert plan["all"]["awaits"] == ["find"]
    assert plan["all"]["reasons"][0] == {"reason": "awaits", "by": "find"}
    assert plan["make/part=x"]["verdict"] == "will_run"
    folder.treadle("run")
    assert made(folder) == ["a", "all", "last", "x"]
    assert folder.read("all.txt") == "x\na\n"


def test_the_words_say_what_is_recorded_what_may_come_and_what_waits(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    before = folder.treadle("plan").stdout
    assert "make  no tasks yet: they come with what find finds" in before
    assert "last  1 will run: waits for a checkpoint" in before
    assert "all +?" in folder.treadle("graph").stdout
    assert "dashed" in folder.treadle("graph", "--format", "dot").stdout
    assert "stroke-dasharray" in folder.treadle("graph", "--format", "mermaid").stdout
    assert "it waits for what find finds" in why(folder, "last")
    folder.treadle("run")
    assert "found by find, as recorded: 2 values of part" in folder.treadle("plan").stderr
    assert "it came with what find found" in why(folder, "make/part=a")
    assert "2 rounds" in folder.treadle("status").stdout
    assert json.loads(folder.treadle("status", "--json").stdout)["rounds"] == 2
    rounds = [json.loads(line) for line in (folder / ".treadle/runs/latest/plan.json").open()]
    assert [one["round"] for one in rounds] == [1, 2]
    assert [len(one["tasks"]) for one in rounds] == [2, 4]
    assert [len(one["order"]) for one in rounds] == [2, 5]
    assert folder.treadle("graph", "--tasks").stdout.count("make/part=") == 2


BAD = {
    "no manifest": ("rm -f found.toml", "did not make found.toml"),
    "no TOML": ("echo '[reentry' > found.toml", "toml"),
    "another table": ("echo '[renetry]' > found.toml", "reentry"),
    "an unknown key": ("printf '[reentry]\\nsamples = [\"a\"]\\n' > found.toml", "sample"),
    "not what it may add to": ("printf '[reentry]\\nsample = [\"a\"]\\n' > found.toml", "checkpoint_extends"),
    "a way out": ("printf '[reentry.values]\\npart = [\"..\"]\\n' > found.toml", "'..'"),
    "a slash": ("printf '[reentry.values]\\npart = [\"a/b\"]\\n' > found.toml", "'/'"),
    "a control character": ("printf '[reentry.values]\\npart = [\"a\\\\u0007\"]\\n' > found.toml", "control"),
    "a NUL": ("printf '[reentry.values]\\npart = [\"a\\\\u0000b\"]\\n' > found.toml", "NUL"),
    "no text": ("printf '[reentry.values]\\npart = [[1]]\\n' > found.toml", "a text or a number"),
    "an empty value": ("printf '[reentry.values]\\npart = [\"\"]\\n' > found.toml", "empty"),
    "a name of the engine's": ("printf '[reentry.values]\\ninput = [\"a\"]\\n' > found.toml", "wildcard"),
    "a list in the place of the table": ("printf '[[reentry]]\\n' > found.toml", "one table"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_manifest_that_cannot_be_used_fails_its_task_in_words(folder, what):
    command, words = BAD[what]
    folder.write("bad.sh", command)
    folder.flow(FLOW.replace('"cp {input} {output}"', '"sh bad.sh"'))
    found(folder, "a")
    ended = folder.treadle("run", exits=1)
    assert words.lower() in ended.stderr.lower(), ended.stderr
    assert made(folder) == []
    settled = [one for one in folder.events() if one["event"] == "task_settled" and one["task"] == "find"]
    assert [one["state"] for one in settled] == ["failed"]
    assert folder.will_run() == {"find", "last"}


def test_a_manifest_that_came_out_wrong_is_tried_again(folder):
    folder.write(
        "try.sh",
        "if test -e tried; then cp names.toml found.toml; else touch tried; echo x > found.toml; fi",
    )
    folder.flow(FLOW.replace('"cp {input} {output}"', '"sh try.sh"\nretries = 1\nretry_delay = "0s"'))
    found(folder, "a")
    folder.treadle("run")
    assert made(folder) == ["a", "all", "last"]


def test_names_that_collide_with_what_others_make_fail_the_checkpoint_and_nothing_of_it_counts(folder):
    fixed = """
    [[rules]]
    name = "fixed"
    output = ["parts/taken"]
    shell = "echo fixed >> made && touch {output}"
    """
    folder.flow(FLOW + textwrap.dedent(fixed))
    found(folder, "a", "taken")
    ended = folder.treadle("run", "--keep-going", exits=1)
    assert "both make parts/taken" in ended.stderr
    assert made(folder) == ["fixed"]
    found(folder, "a")
    folder.treadle("run")
    assert made(folder) == ["a", "all", "last"]


def test_an_input_that_nobody_has_fails_the_checkpoint_that_asked_for_it(folder):
    folder.flow(
        FLOW.replace('output = ["parts/{part}"]', 'input = ["raw/{part}.txt"]\noutput = ["parts/{part}"]')
    )
    found(folder, "a")
    ended = folder.treadle("run", exits=1)
    assert "raw/a.txt does not exist" in ended.stderr
    folder.write("raw/a.txt", "")
    folder.treadle("run")
    assert made(folder) == ["a", "all", "last"]


def test_two_checkpoints_in_series_and_one_that_finds_work_for_itself(folder):
    folder.flow(
        FIND
        + PARTS
        + """
        [[rules]]
        name = "deeper"
        input = ["parts/{part}"]
        output = ["deeper/{part}.toml"]
        checkpoint = true
        checkpoint_manifest = "deeper/{part}.toml"
        checkpoint_extends = ["values.part"]
        shell = '''printf '[reentry.values]\\npart = [%s]\\n' "$(cat next.{part} 2>/dev/null)" > {output}'''

        [[rules]]
        name = "all"
        input = ["parts/{part}"]
        output = ["all.txt"]
        shell = "echo all >> made && cat {input} > {output}"
        """
    )
    found(folder, "a")
    folder.write("next.a", '"b", "c"')
    folder.write("next.c", '"d"')
    folder.treadle("run")
    assert made(folder) == ["a", "all", "b", "c", "d"]
    assert folder.read("all.txt") == "a\nb\nc\nd\n"
    assert folder.will_run() == set()
    depths = {task: one["depth"] for task, one in folder.plan()["discovered"]["found"].items()}
    assert depths == {
        "find": 1,
        "deeper/part=a": 2,
        "deeper/part=b": 3,
        "deeper/part=c": 3,
        "deeper/part=d": 4,
    }
    (folder / "next.c").write_text('"e"')
    folder.treadle("run", "--force", "deeper/part=c")
    assert made(folder) == []
    folder.treadle("run")
    assert folder.read("all.txt") == "a\nb\nc\ne\n"
    assert made(folder) == ["all", "e"]


def test_work_that_finds_work_without_end_fails_at_its_depth(folder):
    folder.flow(
        """
        [[values]]
        name = "n"
        values = [0]

        [[rules]]
        name = "more"
        output = ["n/{n}.toml"]
        checkpoint = true
        checkpoint_manifest = "n/{n}.toml"
        checkpoint_extends = ["values.n"]
        shell = "printf '[reentry.values]\\\\nn = [%s]\\\\n' $(( {n} + 1 )) > {output}"
        """
    )
    ended = folder.treadle("run", exits=1)
    assert "33 deep" in ended.stderr
    assert "32 are the most" in ended.stderr


def test_what_a_checkpoint_with_wildcards_finds_holds_under_its_own(folder):
    folder.flow(
        """
        [[values]]
        name = "s"
        values = ["s1", "s2"]

        [[rules]]
        name = "cut"
        input = ["in/{s}.toml"]
        output = ["cut/{s}.toml"]
        checkpoint = true
        checkpoint_manifest = "cut/{s}.toml"
        checkpoint_extends = ["values.chunk"]
        shell = "cp {input} {output}"

        [[rules]]
        name = "work"
        output = ["work/{s}.{chunk}"]
        shell = "echo {s}.{chunk} | tee -a made > {output}"

        [[rules]]
        name = "join"
        input = ["work/{s}.{chunk}"]
        output = ["join/{s}"]
        shell = "cat {input} > {output}"

        [[rules]]
        name = "all"
        input = ["join/{s}"]
        output = ["all.txt"]
        shell = "cat {input} > {output}"
        """
    )
    folder.write("in/s1.toml", '[reentry.values]\nchunk = ["1", "2"]\n')
    folder.write("in/s2.toml", '[reentry.values]\nchunk = ["2", "3"]\n')
    waits = {task["id"]: task.get("awaits") for task in folder.plan()["tasks"]}
    assert waits["all"] == ["cut/s=s1", "cut/s=s2"]
    folder.treadle("run")
    assert made(folder) == ["s1.1", "s1.2", "s2.2", "s2.3"]
    assert folder.read("all.txt") == "s1.1\ns1.2\ns2.2\ns2.3\n"
    folder.write("in/s2.toml", '[reentry.values]\nchunk = ["3"]\n')
    folder.treadle("run")
    assert folder.read("all.txt") == "s1.1\ns1.2\ns2.3\n"
    assert made(folder) == []
    assert folder.will_run() == set()


SAMPLES = """
[[sample_groups]]
name = "first"
samples = ["A", "B"]

[[rules]]
name = "align"
output = ["align/{sample}"]
shell = "echo {sample} | tee -a made > {output}"

[[rules]]
name = "look"
input = ["align/{sample}", "more.toml"]
output = ["look.toml"]
checkpoint = true
checkpoint_manifest = "look.toml"
shell = "echo look >> made && cp more.toml {output}"

[[rules]]
name = "all"
input = ["align/{sample}"]
output = ["all.txt"]
shell = "echo all >> made && cat {input} > {output}"
"""


def test_what_a_checkpoint_builds_on_does_not_see_what_it_finds(folder):
    folder.flow(SAMPLES)
    folder.write("more.toml", '[reentry]\nsample = ["C"]\n')
    folder.treadle("run")
    assert made(folder) == ["A", "B", "C", "all", "look"]
    assert folder.read("all.txt") == "A\nB\nC\n"
    plan = {task["id"]: task for task in folder.plan()["tasks"]}
    assert plan["look"]["inputs"] == ["align/A", "align/B", "more.toml"]
    assert folder.will_run() == set()
    assert folder.treadle("run").stderr.startswith("nothing to do")


def test_pairs_that_are_found_bring_their_sides_and_must_not_contradict_others(folder):
    flow = """
    [[pairs]]
    pair_id = "P1"
    experiment = "T1"
    control = "N1"

    [[rules]]
    name = "look"
    input = ["more.toml"]
    output = ["look.toml"]
    checkpoint = true
    checkpoint_manifest = "look.toml"
    checkpoint_extends = ["pairs"]
    shell = "cp {input} {output}"

    [[rules]]
    name = "align"
    output = ["align/{sample}"]
    shell = "echo {sample} | tee -a made > {output}"

    [[rules]]
    name = "call"
    input = ["align/{experiment}", "align/{control}"]
    output = ["call/{pair_id}"]
    shell = "cat {input} | tr '\\\\n' ' ' > {output}"
    """
    folder.flow(flow)
    folder.write("more.toml", '[reentry]\npairs = [{ pair_id = "P2", experiment = "T2", control = "N1" }]\n')
    folder.treadle("run")
    assert made(folder) == ["N1", "T1", "T2"]
    assert folder.read("call/P2") == "T2 N1 "
    folder.write("more.toml", '[reentry]\npairs = [{ pair_id = "P1", experiment = "T2", control = "N1" }]\n')
    ended = folder.treadle("run", exits=1)
    assert "'P1' was found, and it was given before with other content" in ended.stderr
    folder.write("more.toml", '[reentry]\npairs = [{ pair_id = "P1", experiment = "T1", control = "N1" }]\n')
    folder.treadle("run")
    assert folder.will_run() == set()


def test_a_temporary_output_stays_while_a_checkpoint_may_add_a_reader(folder):
    folder.flow(
        """
        [[rules]]
        name = "base"
        output = ["base.txt"]
        temporary = true
        shell = "echo base > {output}"

        [[rules]]
        name = "first"
        input = ["base.txt"]
        output = ["first.txt"]
        shell = "cp {input} {output}"
        """
        + FIND.replace('input = ["names.toml"]', 'input = ["names.toml", "first.txt"]').replace(
            "cp {input}", "cp {input[0]}"
        )
        + """
        [[rules]]
        name = "use"
        input = ["base.txt"]
        output = ["use/{part}"]
        shell = "cat {input} > {output}"
        """
    )
    found(folder, "a")
    folder.treadle("run")
    attempts = [one["task"] for one in folder.events() if one["event"] == "attempt_submitted"]
    assert attempts.count("base") == 1
    assert folder.read("use/a") == "base\n"
    assert not (folder / "base.txt").exists()
    assert folder.will_run() == set()


def test_targets_that_a_checkpoint_brings_are_found_when_it_has_run(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run", "make/part=b")
    assert made(folder) == ["b"]
    assert folder.will_run("make/part=b") == set()
    assert "part=z" in folder.treadle("run", "make/part=z", exits=2).stderr
    folder.treadle("run", "make")
    assert made(folder) == ["a"]


def test_a_failed_checkpoint_blocks_what_waits_for_it(folder):
    folder.flow(FLOW.replace('"cp {input} {output}"', '"exit 3"'))
    found(folder, "a")
    ended = folder.treadle("run", exits=1)
    assert "1 failed" in ended.stderr
    assert "1 blocked" in ended.stderr


def test_exec_touch_clean_and_evict_know_what_was_found(folder):
    folder.flow(FLOW)
    found(folder, "a", "b")
    folder.treadle("run")
    made(folder)
    folder.treadle("exec", "make/part=a")
    assert made(folder) == ["a"]
    folder.treadle("touch")
    assert folder.will_run() == set()
    folder.treadle("evict", "make", "-y")
    assert not (folder / "parts/a").exists()
    assert folder.will_run() == set()
    found(folder, "a", "b", "c")
    refused = folder.treadle("evict", "all", "-y", exits=2).stderr
    assert "find" in refused
    cleaned = folder.treadle("clean", "-y").stdout
    assert "all.txt" in cleaned
    folder.treadle("run")
    assert folder.read("last.txt") == "a\nb\nc\n"


def test_a_manifest_that_was_mended_by_hand_and_touched_is_what_was_found(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    made(folder)
    folder.write("found.toml", '[reentry.values]\npart = ["a", "b"]\n')
    folder.treadle("touch", "find")
    assert folder.will_run() == {"make/part=b", "all", "last"}
    folder.treadle("run")
    assert made(folder) == ["all", "b", "last"]


def test_check_says_nothing_against_rules_that_wait_for_a_checkpoint(folder):
    folder.flow(FLOW)
    found(folder, "a")
    checked = folder.treadle("check", "--inputs")
    assert "warning" not in checked.stderr + checked.stdout


def test_a_mistyped_wildcard_is_told_from_one_that_is_still_to_be_found(folder):
    wrong = """
[[rules]]
name = "o"
input = ["align/{sampel}"]
output = ["o/{sampel}.{sampl}"]
shell = "true"
"""
    folder.flow(SAMPLES + wrong)
    folder.write("more.toml", "")
    assert "nothing gives values to {sampl} but what a checkpoint may find" in folder.treadle("plan").stderr
    folder.flow(SAMPLES.replace("shell =", 'checkpoint_extends = ["sample"]\nshell =', 2) + wrong)
    refused = folder.treadle("plan", exits=2).stderr
    assert "nothing gives values to {sampl}" in refused
    assert "did you mean 'sample'" in refused


def test_a_checkpoint_that_is_cut_off_brings_back_what_it_had_found(folder):
    pre = """
[[rules]]
name = "pre"
input = ["raw.toml"]
output = ["names.toml"]
shell = "echo pre >> made && grep -v '^#' {input} > {output}"
"""
    folder.flow(pre + FLOW.replace('"cp {input}', '"echo find >> made && cp {input}'))
    folder.write("raw.toml", '[reentry.values]\npart = ["a", "b"]\n')
    folder.treadle("run")
    assert made(folder) == ["a", "all", "b", "find", "last", "pre"]
    folder.write("raw.toml", '# a remark\n[reentry.values]\npart = ["a", "b"]\n')
    plan = {task["id"]: task for task in folder.plan()["tasks"]}
    assert plan["find"]["may_cut_off"]
    assert "make/part=a" not in plan
    ended = folder.treadle("run")
    assert made(folder) == ["pre"]
    assert "1 done" in ended.stderr
    assert [one["round"] for one in folder.events() if one["event"] == "plan_entered"] == [1, 2]
    assert folder.will_run() == set()
    (folder / "parts/b").unlink()
    folder.treadle("run")
    assert made(folder) == ["b"]


def test_forced_runs_make_again_what_was_found(folder):
    folder.flow(FLOW)
    found(folder, "a")
    folder.treadle("run")
    made(folder)
    folder.treadle("run", "--force")
    assert made(folder) == ["a", "all", "last"]
    assert folder.will_run() == set()
    folder.treadle("run", "--force", "all")
    assert made(folder) == ["all"]


def test_without_cutoff_and_with_depends_on_a_run_reaches_what_is_found(folder):
    folder.flow(
        """
        [[rules]]
        name = "base"
        input = ["base.in"]
        output = ["base.txt"]
        shell = "echo base >> made && touch {output}"
        """
        + FIND
        + PARTS.replace('output = ["parts', 'depends_on = ["base"]\noutput = ["parts')
    )
    found(folder, "a")
    folder.write("base.in", "1")
    folder.treadle("run")
    assert made(folder) == ["a", "base"]
    folder.write("base.in", "2")
    found(folder, "a", "b")
    folder.treadle("run")
    assert made(folder) == ["a", "b", "base"]
    assert folder.will_run() == set()


def test_a_hundred_thousand_values_make_one_round(folder):
    folder.flow(FIND + PARTS.replace("[[rules]]", "[[rules]]\nwhen = \"part in ['p7', 'p99999']\"") + GATHER)
    found(folder, *(f"p{number}" for number in range(100_000)))
    folder.treadle("run")
    assert made(folder) == ["all", "last", "p7", "p99999"]
    assert folder.read("last.txt") == "p7\np99999\n"
    assert "found by find, as recorded: 100000 values of part" in folder.treadle("plan").stderr
    assert [one["tasks"] for one in folder.events() if one["event"] == "plan_entered"] == [2, 100_003]
