"""What a backend may have besides: each of it has a stand-in, and the page for authors names all of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from treadle.engine import backend as protocols
from treadle.engine.backend import (
    Accepted,
    Adopting,
    Joining,
    Parted,
    Queueing,
    Refused,
    Remarking,
    Sharing,
)
from treadle.engine.besides import adopt, joins_by, keep_line, maker_of, parts_of, remarks_of, withdraw
from treadle.plan.task import Resources
from treadle.testing.plans import task

PAGE = Path(__file__).parents[3] / "docs/adding-a-backend.md"
BESIDES = (Adopting, Remarking, Sharing, Queueing, Joining, Parted)


class Plain:
    """A backend as the page has it, as far as it is asked here."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def cancel(self, jobs: Sequence[str], *, force: bool = False) -> None:
        self.cancelled += jobs

    def find(self, names: Sequence[str]) -> dict[str, str]:
        return {name: "7" for name in names if name == "known"}


class Rich(Plain):
    """One that has all of it."""

    def adopt(self, batch: Sequence[Any]) -> list[Any]:
        return [Accepted("8")] * len(batch)

    def remarks(self) -> list[Any]:
        return ["said"]

    def taken(self, task: str, attempt: str) -> str:
        return "someone"

    def keep_line(self, most: int) -> bool:
        return most < 100

    def withdraw(self, jobs: Sequence[str]) -> None:
        self.withdrawn = list(jobs)

    def fits_together(self, wanted: Sequence[Resources]) -> bool:
        return True

    def part(self, task: object) -> Any:
        return "a part"


def _adoptee(name: str) -> Any:
    return SimpleNamespace(submission=SimpleNamespace(name=name))


def test_a_backend_that_has_nothing_besides_is_asked_for_nothing() -> None:
    plain: Any = Plain()
    known, unknown = adopt(plain, [_adoptee("known"), _adoptee("unknown")])
    assert known == Accepted("7")
    assert isinstance(unknown, Refused)
    assert remarks_of(plain) is None
    assert maker_of(plain, "a", "r.1") == ""
    assert keep_line(plain, 4) == 0
    withdraw(plain, ["1"])
    assert plain.cancelled == ["1"]
    assert joins_by(plain) is None
    assert parts_of(plain)(task("a")) is plain


def test_a_backend_that_has_it_is_asked_by_it() -> None:
    rich: Any = Rich()
    assert adopt(rich, [_adoptee("unknown")]) == [Accepted("8")]
    remarks = remarks_of(rich)
    assert remarks is not None
    assert remarks() == ["said"]
    assert maker_of(rich, "a", "r.1") == "someone"
    assert (keep_line(rich, 4), keep_line(rich, 100), keep_line(rich, None)) == (32, 0, 0)
    withdraw(rich, ["1"])
    assert (rich.cancelled, rich.withdrawn) == ([], ["1"])
    assert joins_by(rich) == rich.fits_together
    assert parts_of(rich)(task("a")) == "a part"


@pytest.mark.parametrize("protocol", BESIDES, ids=lambda one: one.__name__)
def test_who_writes_a_backend_finds_it_in_both_tables(protocol: type) -> None:
    methods = [name for name in vars(protocol) if not name.startswith("_")]
    told = re.findall(r"^\| `(\w+)` \| `(\w+)\(", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [method for name, method in told if name == protocol.__name__] == methods
    assert re.search(
        rf"^    {protocol.__name__} +{', '.join(methods)} ", protocols.__doc__ or "", re.MULTILINE
    )
