"""The same words whatever Python is told: with `-O`, which leaves assertions out, and with any hash seed."""

from __future__ import annotations

import subprocess
import sys

import pytest

FLOW = """
    [config]
    names = ["b", "a", "c"]
    [[values]]
    name = "part"
    values = ["x", "y", "z"]
    [[rules]]
    name = "make"
    output = ["out/{part}.txt"]
    shell = "echo {part} > {output}"
    [[rules]]
    name = "gather"
    input = ["out/{part}.txt"]
    output = ["all.txt"]
    shell = "cat {input} > {output}"
"""
WRONG = """
    [[rules]]
    name = "one"
    outptu = ["a"]
    inptu = ["b"]
    shel = "x"
    [[rules]]
    name = "two"
    output = ["{nothing}.txt", "{other}.txt"]
    shell = "echo {config.a} {config.b} {params.c} {unknown}"
    [[rules]]
    name = "three"
    output = ["same.txt"]
    depends_on = ["nobody", "noone"]
    shell = "echo > {output}"
"""
COMMANDS = [
    ("plan", "--json"),
    ("plan", "--tasks"),
    ("why", "gather"),
    ("graph", "--json"),
    ("check", "--json"),
    ("plan", "wrong.oxoflow", "--json"),
    ("check", "wrong.oxoflow"),
    ("run", "nobody", "noone", "--json"),
]


def said(folder, command: tuple[str, ...], *python: str, seed: str = "0") -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, *python, "-m", "treadle.cli.main", *command],
        cwd=folder.path,
        env=folder.env(PYTHONHASHSEED=seed),
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=["-".join(one) for one in COMMANDS])
def test_a_command_says_the_same_to_the_byte(folder, command):
    folder.flow(FLOW)
    folder.flow(WRONG, name="wrong.oxoflow")
    first = said(folder, command)
    assert first[0] in (0, 2)
    assert said(folder, command, seed="1") == first
    assert said(folder, command, "-O", seed="2") == first
    assert said(folder, command, "-OO", seed="3")[:2] == first[:2]


def test_a_run_without_assertions_does_and_records_the_same(folder):
    folder.flow(FLOW)
    assert said(folder, ("run", "-j", "2"), "-O")[0] == 0
    assert folder.read("all.txt") == "x\ny\nz\n"
    assert folder.will_run() == set()
    folder.flow(FLOW.replace("cat {input} >", "cat {input} nothing.txt >"))
    assert said(folder, ("run",), "-O")[0] == 1
    assert folder.will_run() == {"gather"}
