"""Secrets are blotted out of texts."""

from __future__ import annotations

import json
import shlex

from treadle.base.mask import Mask


def mask(*secrets: str) -> Mask:
    made = Mask()
    for secret in secrets:
        made.add(secret)
    return made


def test_every_occurrence_is_masked():
    assert mask("s3cret").text("a s3cret, s3crets3cret") == "a ***, ******"


def test_the_longest_secret_wins():
    assert mask("pass", "password").text("password pass") == "*** ***"


def test_secrets_that_overlap_become_one():
    assert mask("abcd", "cdef").text("xabcdefx") == "x***x"
    assert mask("aa").text("aaa") == "***"


def test_without_secrets_the_text_is_the_same_object():
    text = "plain"
    assert not Mask()
    assert Mask().text(text) is text
    assert mask("other").text(text) is text


def test_an_empty_secret_is_none():
    assert not mask("")
    assert mask("").text("abc") == "abc"


def test_secrets_are_no_patterns():
    assert mask("a.c*").text("abc a.c*") == "abc ***"


def test_the_forms_that_a_secret_takes_in_json_are_masked():
    for secret in ('quo"te', "back\\slash", "tab\there", "ümlaut"):
        made = mask(secret)
        for ascii_only in (True, False):
            assert made.text(json.dumps({"k": secret}, ensure_ascii=ascii_only)) == '{"k": "***"}'


def test_the_forms_that_a_secret_takes_in_a_shell_are_masked():
    secret = 'it\'s $5 "now" `x`'
    made = mask(secret)
    assert made.text(f"curl {shlex.quote(secret)}") == "curl '***'"
    assert made.text("curl 'it'\\''s $5 \"now\" `x`'") == "curl '***'"
    assert made.text('curl "it\'s \\$5 \\"now\\" \\`x\\`"') == 'curl "***"'
    assert made.text(json.dumps(shlex.quote(secret))) == "\"'***'\""


def test_lines_of_a_secret_are_masked_one_by_one():
    made = mask("-----BEGIN-----\nMIIEpAIBAAKCAQEA\n")
    assert made.text("got MIIEpAIBAAKCAQEA here") == "got *** here"


def test_a_secret_that_comes_later_counts_too():
    made = mask("one")
    assert made.text("one two") == "*** two"
    made.add("two")
    assert made.text("one two") == "*** ***"


def test_in_a_value_every_text_is_masked_and_no_number():
    mask = Mask()
    mask.add("7")
    value = {"pin 7": ["7", 7, 1.7, None, True, ("a7",)]}
    assert mask.within(value) == {"pin ***": ["***", 7, 1.7, None, True, ["a***"]]}
