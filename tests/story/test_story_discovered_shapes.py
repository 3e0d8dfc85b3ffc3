"""Checkpoint rules: in series, with wildcards of their own, and with samples and pairs that are found."""

from __future__ import annotations

from story_discovered import FIND, FLOW, PARTS, SAMPLES, found, made


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
