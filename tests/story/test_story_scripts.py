"""Scripts: each kind of file is run by its program, with its arguments, and never by a shell."""

from __future__ import annotations

import os

import pytest

RMD = "rmarkdown::render(commandArgs(TRUE)[1], knit_root_dir = getwd())"
PROGRAMS = {
    ".py": ["python3"],
    ".R": ["Rscript"],
    ".r": ["Rscript"],
    ".sh": ["bash"],
    ".bash": ["bash"],
    ".jl": ["julia"],
    ".pl": ["perl"],
    ".rb": ["ruby"],
    ".qmd": ["quarto", "render", "--execute-dir", "."],
    ".Rmd": ["Rscript", "-e", RMD],
    ".ipynb": ["jupyter", "execute"],
    ".m": ["octave", "--quiet"],
}
STAND_IN = """#!/usr/bin/python3 -I
import os, sys
open(sys.argv[-1], "w").write("\\n".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]))
"""


@pytest.mark.parametrize("where", ["", "inner"])
def test_each_kind_of_script_is_run_by_its_program_with_its_arguments(folder, where):
    text = '[workflow]\nname = "story"\ninterpreter_map = { ".m" = "octave --quiet" }\n'
    for at, ending in enumerate(PROGRAMS):
        folder.write(f"scripts/it's{ending}", "")
        script = f"""'''"scripts/it's{ending}" '$HOME; x' {{output}}'''"""
        text += f'[[rules]]\nname = "r{at}"\noutput = ["out/{at}"]\nscript = {script}\n'
    folder.flow("", head=text)
    for program in {words[0] for words in PROGRAMS.values()}:
        folder.write(f"bin/{program}", STAND_IN).chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    work = ["--workdir", str(folder / where)] if where else []
    (folder / where).mkdir(exist_ok=True)
    folder.treadle("run", *work, env=folder.env(PATH=path))
    for at, (ending, words) in enumerate(PROGRAMS.items()):
        told = (folder / where / f"out/{at}").read_text().split("\n")
        assert told == [*words, str(folder / f"scripts/it's{ending}"), "$HOME; x", f"out/{at}"], ending


def test_a_script_runs_after_the_text_and_only_if_that_went_well(folder):
    folder.write("s.sh", 'cat text.txt > "$1"\n')
    text = """
        [[rules]]
        name = "both"
        output = ["out.txt"]
        shell = "echo first > text.txt; {config.then}"
        script = "s.sh {output}"
        [config]
        then = "true"
    """
    folder.flow(text)
    folder.treadle("run")
    assert folder.read("out.txt") == "first\n"
    folder.treadle("run", "--config", "then=exit 3", exits=1)
    assert not (folder / "out.txt").exists()
