"""What is wrong with values that a person gave in Python, collected and told all at once."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from msgspec import Struct

from treadle.base.errors import StepError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place


class Fault(Struct, frozen=True):
    """What is wrong with one value: `where` as one would point at it (`hash_attrs.lr[2]`)."""

    code: str
    where: str
    what: str
    hint: str = ""


def see_unknown(unknown: Iterable[str], known: Iterable[str], faults: list[Fault]) -> None:
    """Refuse arguments that there are not, with the nearest that there is."""
    for name in unknown:
        names = tuple(known)
        hint = did_you_mean(name, names) or f"there are: {', '.join(names)}"
        faults.append(Fault("unknown-option", name, "there is no such argument", hint))


def refuse(subject: str, faults: list[Fault]) -> StepError:
    """All that is wrong with one thing as one error, with the line of the user's that made it."""
    place = made_at()
    return StepError(
        Diagnostic(fault.code, f"{subject}: {fault.where}: {fault.what}", place, fault.hint)
        for fault in faults
    )


def made_at() -> Place:
    """The nearest line outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("treadle."):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)
