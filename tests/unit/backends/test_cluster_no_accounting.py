"""A site that turns out to have no accounting: all that waited for its word are judged without it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from treadle.backends.cluster.accounting import Accountant
from treadle.backends.cluster.dialect import Silence


def test_who_is_wanted_while_the_first_question_is_asked_is_told_too() -> None:
    asked: list[Any] = []
    told: list[list[Any]] = []
    link = SimpleNamespace(
        now=lambda: 0.0,
        note=lambda *words, **values: None,
        settings=SimpleNamespace(poll_interval=0.1, lost_after=1.0),
        dialect=SimpleNamespace(accounting=lambda ids, since: []),
        commands=SimpleNamespace(begin=lambda ask, answered: asked.append(answered)),
    )
    accountant = Accountant(link, told.append)  # type: ignore[arg-type]
    first, second = (
        SimpleNamespace(id=id, sent=None, ended=None, tries=0, several=False) for id in ("1", "2")
    )
    first.sent = SimpleNamespace(time=0.0)
    accountant.want(first, 0.0)  # type: ignore[arg-type]
    accountant.advance(0.0)
    accountant.want(second, 0.0)  # type: ignore[arg-type]
    asked[0](Silence("there is none", False))
    assert told == [[first, second]]
    assert not accountant.there
