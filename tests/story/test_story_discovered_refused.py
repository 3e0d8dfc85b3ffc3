"""Checkpoint rules: manifests that cannot be used, and finds that fit into no plan."""

from __future__ import annotations

import textwrap

import pytest
from story_discovered import FLOW, found, made

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


def test_a_failed_checkpoint_blocks_what_waits_for_it(folder):
    folder.flow(FLOW.replace('"cp {input} {output}"', '"exit 3"'))
    found(folder, "a")
    ended = folder.treadle("run", exits=1)
    assert "1 failed" in ended.stderr
    assert "1 blocked" in ended.stderr
