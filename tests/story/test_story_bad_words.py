"""Words on the command line that mean nothing: told with the nearest that does."""

from __future__ import annotations

import pytest
from story_bad_input import Case, is_told, rule

OPTIONS = {
    "a target that is none": Case(rule("alpha"), [("", "did you mean 'alpha'?")], args=("alpa",)),
    "a config key that is none": Case(
        rule("a"), [("[nope]", "no config key 'nope'")], args=("--config", "nope=3")
    ),
    "an option that is none": Case(rule("a"), [("", "--wibble is neither an option")], args=("--wibble",)),
    "an option mistyped": Case(rule("a"), [("", "did you mean '--samples'?")], args=("--sampels", "S1")),
    "a look first, by habit": Case(rule("a"), [("", "treadle plan shows what")], args=("--dry-run",)),
    "a look first, in one letter": Case(rule("a"), [("", "treadle plan shows what")], args=("-n",)),
    "CPUs as others call them": Case(rule("a"), [("", "-j 8")], args=("--cores", "8")),
    "CPUs in one word": Case(rule("a"), [("", "-j 8")], args=("-c8",)),
    "--set": Case(rule("a"), [("", "no rule")], args=("--set", "b.memory=64G")),
    "--profile": Case(rule("a"), [("", "no profile")], args=("--profile=slurm",)),
    "--backend": Case(rule("a"), [("", "backend")], args=("--backend", "slurmm")),
    "values of the wrong type": Case(
        "[config]\nn = 3\nb = true\n" + rule("a"),
        [
            ("the command line [n]", "'x' is not a whole number"),
            ("the command line [b]", "not true or false"),
        ],
        args=("n=x", "b=maybe"),
    ),
    "a file that is not there": Case(
        rule("a"), [("", "did you mean 'main.oxoflow'?")], args=("mian.oxoflow",)
    ),
    "a work folder that is none": Case(
        rule("a"), [("", "is a file, not a folder")], args=("--workdir", "main.oxoflow")
    ),
    "an option that is a key which nobody declared": Case(
        "[config]\nmin_quality = 3\n" + rule("a"), [("", "min_quality=VALUE")], args=("--min-quality", "4")
    ),
    "the file behind a target": Case(
        rule("a"), [("", "the workflow file comes first")], args=("a", "main.oxoflow")
    ),
    "two files": Case(
        rule("a"),
        [("", "'main.oxoflow' is the one that is read")],
        files=(("b.oxoflow", ""),),
        args=("main.oxoflow", "b.oxoflow"),
    ),
    "an empty word": Case(rule("a"), [("", "an empty word names nothing")], args=("",)),
    "a Python file without steps": Case(
        rule("a"), [("", "p.py holds no list of steps")], files=(("p.py", ""),), args=("p.py",)
    ),
    "a name that a Python file does not have": Case(
        rule("a"), [("", "there is no 'runner' in p.py")], files=(("p.py", ""),), args=("p.py:runner",)
    ),
    "steps of a file that is not there": Case(
        '[[steps]]\nmodule = "p.py"\n' + rule("a"),
        [("main.oxoflow:5 [steps[0].module]", "there is no file p.py")],
    ),
    "a target with escape sequences": Case(rule("a"), [("", "a\\x1b[31m")], args=("a\x1b[31m",)),
}

SAMPLES = '[[sample_groups]]\nname = "g"\nsamples = ["S1", "S2"]\n' + rule("a", 'output = ["{sample}.txt"]\n')


def selected(text: str, words: str) -> Case:
    return Case(SAMPLES, [("--samples", words)], args=("--samples", text))


SELECTIONS = {
    "an unknown sample": selected("S3", "there are S1, S2"),
    "a sample mistyped": selected("S11", "did you mean 'S1'?"),
    "nothing left": selected("!S1,!S2", "no sample is left"),
    "no number": selected("first:x", "first:5"),
    "nothing": selected("", "nothing is selected"),
    "a sheet that is not there": selected("@no.tsv", "the sheet 'no.tsv' cannot be read"),
    "no samples to select": Case(
        rule("a"), [("--samples", "the workflow has no samples")], args=("--samples", "S1")
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_words_that_mean_nothing_are_told(folder, name):
    is_told(folder, OPTIONS[name])


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_that_select_nothing_are_told(folder, name):
    is_told(folder, SELECTIONS[name])
