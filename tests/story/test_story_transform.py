"""Rules with `transform` and `scatter`: cut, mapped, put together, cleaned up, made again."""

from __future__ import annotations

import gzip
import json

import pytest

from cluster_runs import fake_site

LINES = "".join(f"line {at}\n" for at in range(10))
UPPER = """
    [[rules]]
    name = "upper"
    input = ["in.txt"]
    output = ["out.txt"]
    [rules.transform]
    map = "tr a-z A-Z < {input} > {output}"
    split = { by = "piece", n = 3 }
    combine = { aggregate = true }
"""
BY_LETTER = """
    [[rules]]
    name = "pick"
    input = ["in.txt"]
    output = ["out.txt"]
    retries = 1
    [rules.transform]
    map = "grep {letter} {input} > {output}"
    cleanup = true
    split = { by = "letter", values = ["a", "b"] }
    combine = { aggregate = true, header = "name" }
"""


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_lines_are_cut_in_order_into_pieces_of_one_size(folder, shell):
    head = f'[workflow]\nname = "story"\nshell_executable = "{shell}"\n'
    folder.flow(UPPER, head=head)
    folder.write("in.txt", LINES)
    folder.treadle("run")
    assert folder.read("out.txt") == LINES.upper()
    sizes = [len(folder.read(f".chunks/upper.cut/piece={at}/in.txt").splitlines()) for at in range(3)]
    assert sizes == [4, 4, 2]
    assert folder.will_run() == set()


def test_pieces_that_did_not_change_are_not_made_again(folder):
    folder.flow(UPPER)
    folder.write("in.txt", LINES)
    folder.treadle("run")
    folder.write("in.txt", LINES.replace("line 9", "last"))
    folder.treadle("run")
    assert folder.attempted() == {"upper.cut", "upper.map/piece=2", "upper"}
    assert folder.read("out.txt").endswith("LAST\n")


def test_there_may_be_more_pieces_than_lines(folder):
    folder.flow(UPPER)
    folder.write("in.txt", "one\n")
    folder.treadle("run")
    assert folder.read("out.txt") == "ONE\n"
    folder.write("in.txt", "")
    folder.treadle("run")
    assert folder.read("out.txt") == ""


def test_compressed_records_of_odd_names_are_cut_whole(folder):
    text = UPPER.replace("in.txt", "in/{who}.fq.gz").replace("out.txt", "out/{who}.fq.gz")
    text = text.replace('"piece"', '"records"')
    text = text.replace(
        "tr a-z A-Z < {input} > {output}", "gzip -dc {input} | tr a-z A-Z | gzip -nc > {output}"
    )
    folder.flow('[[values]]\nname = "who"\nvalues = ["it\'s; $HOME x=1"]\n' + text)
    records = "".join(f"@r{at}\nacgt\n+\n>>>>\n" for at in range(5))
    (folder / "in").mkdir()
    (folder / "in/it's; $HOME x=1.fq.gz").write_bytes(gzip.compress(records.encode()))
    folder.treadle("run")
    assert gzip.decompress((folder / "out/it's; $HOME x=1.fq.gz").read_bytes()).decode() == records.upper()
    piece = folder / ".chunks/upper.cut/who=it's; $HOME x=1/records=0/it's; $HOME x=1.fq.gz"
    assert gzip.decompress(piece.read_bytes()).count(b"@") == 2


def test_records_of_fasta_begin_with_their_sign(folder):
    folder.flow(UPPER.replace("in.txt", "in.fa").replace('"piece"', '"records"'))
    folder.write("in.fa", ">a\nac\ngt\n>b\na\n>c\nc\n>d\ng\n")
    folder.treadle("run")
    assert folder.read(".chunks/upper.cut/records=0/in.fa") == ">a\nac\ngt\n>b\na\n"
    assert folder.read(".chunks/upper.cut/records=1/in.fa") == ">c\nc\n>d\ng\n"
    assert folder.read("out.txt") == ">A\nAC\nGT\n>B\nA\n>C\nC\n>D\nG\n"


def test_a_broken_archive_fails_the_cut(folder):
    folder.flow(UPPER.replace("in.txt", "in.txt.gz"))
    (folder / "in.txt.gz").write_bytes(gzip.compress(LINES.encode())[:-9])
    folder.treadle("run", exits=1)
    assert folder.attempted() == {"upper.cut"}


@pytest.mark.parametrize("again", ["", "echo name > {output}; "])
def test_one_header_stands_at_the_top_whether_or_not_the_pieces_have_it(folder, again):
    folder.flow(
        BY_LETTER.replace("grep {letter}", f"{again}grep {{letter}}").replace("> {output}", ">> {output}")
    )
    folder.write("in.txt", "b1\na1\na2\n")
    folder.treadle("run")
    assert folder.read("out.txt") == "name\na1\na2\nb1\n"


def test_a_header_stands_at_the_top_of_a_compressed_file(folder):
    text = BY_LETTER.replace("out.txt", "out.gz").replace("> {output}", "| gzip -nc > {output}")
    folder.flow(text)
    folder.write("in.txt", "b1\na1\n")
    folder.treadle("run")
    assert gzip.decompress((folder / "out.gz").read_bytes()) == b"name\na1\nb1\n"


def test_pieces_go_once_they_are_combined_and_are_made_again_when_they_are_needed(folder):
    folder.flow(BY_LETTER)
    folder.write("in.txt", "a1\nb1\n")
    folder.treadle("run")
    assert not (folder / ".chunks").exists(), "nobody asked for that folder"
    assert folder.will_run() == set()
    folder.write("in.txt", "a1\nb2\n")
    folder.write(".chunks/pick.map/letter=b/mine.txt", "a person wrote this\n")
    assert folder.run_as_previewed() == {"pick.map/letter=a", "pick.map/letter=b", "pick"}
    left = [path.name for path in (folder / ".chunks").rglob("*")]
    assert sorted(left) == ["letter=b", "mine.txt", "pick.map"]


def test_pieces_stay_when_combining_them_failed_and_one_that_failed_is_tried_again(folder):
    text = BY_LETTER.replace('aggregate = true, header = "name"', 'shell = "false {chunks}"')
    folder.flow(text.replace("grep", "echo x >> tries; grep"))
    folder.write("in.txt", "a1\n")
    folder.treadle("run", "--keep-going", exits=1)
    assert len(folder.read("tries").splitlines()) == 3, "a once, b twice"
    assert (folder / ".chunks/pick.map/letter=a/out.txt").exists()


MERGE = """
    [[rules]]
    name = "m"
    output = ["out.json"]
    [rules.transform]
    map = "cat in/{one}.json > {output}"
    split = { by = "one", glob = "in/*.json" }
    combine = { aggregate = true, method = "json_merge" }
"""


def test_json_is_merged_key_by_key_and_list_by_list(folder):
    folder.flow(MERGE)
    folder.write("in/a.json", '{"n": {"a": 1}, "list": [1], "same": "é"}')
    folder.write("in/b.json", '{"n": {"b": 1.5}, "list": [2], "same": "é"}')
    folder.treadle("run")
    wanted = {"n": {"a": 1, "b": 1.5}, "list": [1, 2], "same": "é"}
    assert json.loads(folder.read("out.json")) == wanted
    folder.write("in/c.json", '{"same": "other"}')
    failed = folder.treadle("run", exits=1)
    assert "the pieces differ in same" in failed.stderr


def test_a_piece_may_be_named_as_a_target_and_the_rule_names_the_whole(folder):
    folder.flow(BY_LETTER)
    folder.write("in.txt", "a1\nb1\n")
    assert folder.will_run("pick.map/letter=a") == {"pick.map/letter=a"}
    assert folder.will_run("pick") == {"pick.map/letter=a", "pick.map/letter=b", "pick"}


SCATTER = """
    [[sample_groups]]
    name = "all"
    samples = ["S1", "S2"]
    [[rules]]
    name = "call"
    output = ["v/{sample}.{chr}"]
    scatter = { variable = "chr", values_from = "config.chrs", gather = "merge" }
    shell = "echo {chr} {sample} > {output}"
    [[rules]]
    name = "merge"
    output = ["v/{sample}"]
    shell = "cat {input} > {output}"
    [config]
    chrs = "chr1, chr2"
"""


def test_a_scattered_rule_hands_its_pieces_on(folder):
    folder.flow(SCATTER)
    folder.treadle("run")
    assert folder.read("v/S2") == "chr1 S2\nchr2 S2\n"
    assert folder.run_as_previewed("--config", "chrs=chr1,chr2,chr3") == {
        "call/sample=S1,chr=chr3",
        "call/sample=S2,chr=chr3",
        "merge/sample=S1",
        "merge/sample=S2",
    }


def test_it_is_the_same_on_a_scheduler(folder, fake_cluster):
    site = fake_site(fake_cluster("slurm", slots=4))
    folder.write("profiles/there.toml", site.profile())
    folder.flow(UPPER + BY_LETTER.replace("in.txt", "ab.txt").replace("out.txt", "picked.txt"))
    folder.write("in.txt", LINES)
    folder.write("ab.txt", "b1\na1\n")
    folder.treadle("run", "--profile", "there", env=folder.env(**site.env))
    assert folder.read("out.txt") == LINES.upper()
    assert folder.read("picked.txt") == "name\na1\nb1\n"
    assert folder.will_run() == set()


def test_forcing_a_rule_makes_its_pieces_again_and_no_others(folder):
    text = (
        BY_LETTER.replace("cleanup = true", "").replace("in.txt", "in/{s}.txt").replace("out.txt", "{s}.txt")
    )
    folder.flow('[[values]]\nname = "s"\nvalues = ["x", "y"]\n' + text)
    folder.write("in/x.txt", "a1\nb1\n")
    folder.write("in/y.txt", "a1\nb1\n")
    folder.treadle("run")
    wanted = {"pick.map/s=x,letter=a", "pick.map/s=x,letter=b", "pick/s=x"}
    assert folder.will_run("--force", "pick/s=x") == wanted
    assert folder.will_run("--force", "pick.map/s=x,letter=a") == {"pick.map/s=x,letter=a"}


def test_parts_may_ask_for_resources_of_their_own(folder):
    folder.flow(UPPER)
    folder.write("in.txt", LINES)
    settings = ("upper.threads=2", "upper.map.memory=1G", "upper.cut.time_limit=1h")
    plan = folder.plan(*(word for one in settings for word in ("--set", one)))
    asked = {task["rule"]: task["resources"] for task in plan["tasks"]}
    assert asked["upper"] == {"threads": 2}
    assert asked["upper.map"] == {"threads": 2, "memory": 2**30}
    assert asked["upper.cut"] == {"threads": 2, "time_limit": 3600}
    refused = folder.treadle("plan", "--set", "upper.mpa.memory=1G", exits=2)
    assert "there is no rule 'upper.mpa'" in refused.stderr


def test_a_check_counts_rules_and_not_their_parts_and_finds_nothing_to_say(folder):
    folder.flow(UPPER + '[[rules]]\nname = "all"\ninput = ["out.txt"]\ntarget = true\n')
    folder.write("in.txt", LINES)
    done = folder.treadle("check")
    assert "nothing to complain about: 2 rules, 6 tasks" in done.stdout + done.stderr
