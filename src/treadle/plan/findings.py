"""What is wrong with a plan, collected: everything at once, and what many tasks share only once."""

from __future__ import annotations

from treadle.base.errors import CycleError, PlanError
from treadle.base.place import Diagnostic, Place, Severity


class Findings:
    """Collects errors and warnings on the way; `stop` raises the errors, `notes` are the warnings."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, ...], Diagnostic] = {}
        self._number: dict[tuple[str, ...], int] = {}
        self.cycle: tuple[str, ...] = ()

    def error(self, code: str, message: str, place: Place, hint: str = "", *, alike: tuple[str, ...]) -> None:
        """An error; those with one `code` and `alike` (such as the two rules) are told once, with a count."""
        self._add(Diagnostic(code, message, place, hint), alike)

    def note(self, code: str, message: str, place: Place, hint: str = "", *, alike: tuple[str, ...]) -> None:
        """A warning, told as an error is."""
        self._add(Diagnostic(code, message, place, hint, Severity.WARNING), alike)

    def _add(self, found: Diagnostic, alike: tuple[str, ...]) -> None:
        key = (found.code, *alike)
        self._first.setdefault(key, found)
        self._number[key] = self._number.get(key, 0) + 1

    def notes(self) -> tuple[Diagnostic, ...]:
        """The warnings, by place."""
        return self._told(Severity.WARNING)

    def stop(self) -> None:
        """Raise PlanError with every error, if there are any; CycleError when one of them is a cycle."""
        errors = self._told(Severity.ERROR)
        if self.cycle:
            error = CycleError(errors)
            error.path = self.cycle
            raise error
        if errors:
            raise PlanError(errors)

    def _told(self, severity: Severity) -> tuple[Diagnostic, ...]:
        told = [
            _counted(found, self._number[key])
            for key, found in self._first.items()
            if found.severity is severity
        ]
        return tuple(sorted(told, key=lambda one: (one.place, one.code, one.message)))


def _counted(found: Diagnostic, number: int) -> Diagnostic:
    if number == 1:
        return found
    message = f"{found.message} (and {number - 1:,} more like it)"
    return Diagnostic(found.code, message, found.place, found.hint, found.severity)
