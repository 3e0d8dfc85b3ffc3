"""Logs and benchmark files in the way of their own rule: what it searches on the disk would find them."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.rules.expand.blueprint import Blueprint
from treadle.rules.expand.ordering import Makers
from treadle.rules.pattern.language import meet
from treadle.rules.toml.section import Findings


def check_logs(blueprints: Sequence[Blueprint], makers: Makers, findings: Findings) -> None:
    """Refuse a log that an input of the same rule would find in the next run: it would run for ever.

    Where other rules make what is found, their outputs alone count, and a log beside them does no harm.
    """
    for blueprint in blueprints:
        written = [pattern for pattern in (blueprint.log, blueprint.benchmark) if pattern]
        for entry in blueprint.searching() if written else ():
            for pattern in written:
                if meet(entry.pattern.parts, pattern.parts) and not makers.of(entry.pattern):
                    message = (
                        f"'{pattern.text}' would be found by an input of its rule, '{entry.pattern.text}'"
                    )
                    hint = "write it to another folder, or under a name that the input does not match"
                    findings.error("log-feeds-input", message, pattern.place, hint)
