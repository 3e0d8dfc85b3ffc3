"""References: built once, before what uses them, and again when their source changed."""

from __future__ import annotations

import os
import textwrap

FLOW = """
    [[references]]
    name = "genome_faidx"
    source = "ref/genome.fa"
    output = "ref/genome.fa.fai"
    build = "samtools_faidx"
    [[references]]
    name = "sizes"
    source = "{config.genome_faidx}"
    output = "ref/sizes.txt"
    build = "cut -f 1 {input} > {output}"
    [[rules]]
    name = "count"
    output = ["count.txt"]
    shell = "wc -l < {config.sizes} > {output}"
"""
TOOL = """#!/bin/sh
[ "$1" = faidx ] && [ $# = 2 ] || exit 2
echo "$2" >> tool.txt
sed -n 's/^>//p' "$2" > "$2.fai"
"""


def prepared(folder):
    folder.flow(FLOW)
    folder.write("ref/genome.fa", ">one\nACGT\n>two\nAC\n")
    folder.write("bin/samtools", TOOL).chmod(0o755)
    return {"env": folder.env(PATH=f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")}


def test_what_uses_a_reference_waits_for_it_and_it_is_built_once(folder):
    tools = prepared(folder)
    folder.treadle("run", **tools)
    assert folder.read("count.txt").strip() == "2"
    assert folder.read("tool.txt") == "ref/genome.fa\n"
    assert folder.will_run() == set()
    (folder / "count.txt").unlink()
    folder.treadle("run", **tools)
    assert folder.attempted() == {"count"}


def test_a_changed_source_builds_it_again_and_an_equal_result_stops_there(folder):
    tools = prepared(folder)
    folder.treadle("run", **tools)
    folder.write("ref/genome.fa", ">one\nTTTT\n>two\nAC\n")
    folder.treadle("run", **tools)
    assert folder.attempted() == {"reference::genome_faidx"}
    folder.write("ref/genome.fa", ">one\nTTTT\n")
    folder.treadle("run", **tools)
    assert folder.attempted() == {"reference::genome_faidx", "reference::sizes", "count"}
    assert folder.read("count.txt").strip() == "1"


def test_a_reference_is_named_like_a_rule(folder):
    prepared(folder)
    assert folder.will_run("reference::genome_faidx") == {"reference::genome_faidx"}
    told = folder.treadle("why", "reference::sizes").stdout
    assert "reference::sizes" in told


def test_references_of_included_files_are_in_their_namespace(folder):
    module = """
        [workflow]
        name = "module"
        [config]
        parts = 2
        [[references]]
        name = "ix"
        output = "ref/ix"
        build = "echo index > {output}"
        [[rules]]
        name = "use"
        output = ["used.txt"]
        [rules.transform]
        map = "echo {part} {config.ix} > {output}"
        split = { by = "part", n = "{config.parts}" }
        combine = { aggregate = true }
    """
    folder.write("module.oxoflow", textwrap.dedent(module))
    folder.flow('[[include]]\npath = "module.oxoflow"\nnamespace = "qc"\n')
    folder.treadle("run")
    assert folder.attempted() == {
        "qc::reference::ix",
        "qc::use.map/part=0",
        "qc::use.map/part=1",
        "qc::use",
    }
    assert folder.read("used.txt") == "0 ref/ix\n1 ref/ix\n"
