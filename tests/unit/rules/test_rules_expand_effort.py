"""Effort: what is looked up is looked up once, and grows with the work."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rules_world import HEAD

from treadle.rules.expand.expand import expand
from treadle.rules.file.read import read_text
from treadle.rules.pattern.listing import DiskListing, PathListing
from treadle.rules.pattern.matching import Values
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.tree import NOTHING, Entries, Match

RULES = """
[[rules]]
name = "one"
input = ["in/{s}_*.fq", "ref/*.fa"]
output = ["out/{s}.txt"]
shell = "x {input} > {output}"
[[rules]]
name = "all"
input = ["out/*.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"
"""


class Counting(PathListing):
    """A listing that counts what it is asked."""

    asked: Counter[str]

    def match(self, pattern: Pattern, known: Values = NOTHING) -> list[Match]:
        self.asked[pattern.text] += 1
        return super().match(pattern, known)


def test_a_glob_is_looked_up_once_for_each_value_and_once_if_it_has_none() -> None:
    values = ", ".join(f'"S{number}"' for number in range(200))
    workflow = read_text(HEAD + f'[[values]]\nname = "s"\nvalues = [{values}]\n' + RULES)
    listing = Counting([f"in/S{number}_1.fq" for number in range(200)] + ["ref/a.fa"])
    listing.asked = Counter()
    assert len(expand(workflow, listing).drafts) == 201
    assert listing.asked == {"in/{s}_*.fq": 200, "ref/*.fa": 1, "out/*.txt": 1}


class Reading(DiskListing):
    """A disk that counts how often each folder is read."""

    read: Counter[str]

    def entries(self, folder: str) -> Entries:
        if folder not in self._folders:
            self.read[folder] += 1
        return super().entries(folder)


def test_only_folders_that_must_be_read_are_read_and_each_once(tmp_path: Path) -> None:
    for name in ("in", "ref", "other", "in/deep"):
        (tmp_path / name).mkdir()
    for name in ("in/a_1.fq", "in/b_1.fq", "ref/r.fa", "other/x"):
        (tmp_path / name).write_text("")
    workflow = read_text(HEAD + '[[values]]\nname = "s"\nvalues = ["a", "b"]\n' + RULES)
    listing = Reading(str(tmp_path))
    listing.read = Counter()
    assert len(expand(workflow, listing).drafts) == 3
    assert listing.read == {"in": 1, "ref": 1, "out": 1}


def test_tasks_of_ten_thousand_values_come_in_order() -> None:
    values = ", ".join(f'"S{number}"' for number in range(10_000))
    rule = '[[rules]]\nname = "r"\ninput = ["i/{s}"]\noutput = ["o/{s}"]\nshell = "cp {input} {output}"\n'
    workflow = read_text(HEAD + f'[[values]]\nname = "s"\nvalues = [{values}]\n' + rule)
    drafts = expand(workflow, PathListing()).drafts
    assert len(drafts) == 10_000
    assert drafts[9_999].command.text == "cp i/S9999 o/S9999"
