"""What goes to stdout as JSON."""

from __future__ import annotations

import json
import sys

import pytest

from treadle.cli.printer import Printer

HEAD = {"schema": 1, "order": ["a", "b"], "groups": [], "pools": {}}
TAIL = {"summary": {"tasks": 2}, "warnings": []}


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1203])
@pytest.mark.parametrize("item", [0, "x", [], {}, {"id": 'a"]\n}', "more": [1, {"b": "{0}"}]}])
def test_a_long_object_is_written_as_a_short_one_is(capfdbinary, count, item):
    Printer().object({**HEAD, "tasks": [item] * count, **TAIL})
    whole = capfdbinary.readouterr().out
    Printer().long_object(HEAD, "tasks", (item for _ in range(count)), TAIL)
    assert capfdbinary.readouterr().out == whole
    assert json.loads(whole)["tasks"] == [item] * count


def test_text_and_objects_keep_their_order(capfdbinary):
    sys.stdout.write("before\n")
    Printer().object([])
    sys.stdout.write("behind\n")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"before\n[]\nbehind\n"
