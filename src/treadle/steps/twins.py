"""Steps that are met twice: one step where the identity is the same; two at one place are refused."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.base.place import Diagnostic
from treadle.steps.paths import Places
from treadle.steps.spec import StepSpec
from treadle.steps.where import resources_of


def differing(first: StepSpec, second: StepSpec) -> list[str]:
    """In what two objects of one identity differ, that may not: code, resources."""
    differ = []
    if first.fn is not None and second.fn is not None:
        if first.fn is not second.fn and first.code and second.code and first.code != second.code:
            differ.append("code")
        if resources_of(first) != resources_of(second):
            differ.append("resources")
    return differ


def twice(step: StepSpec, differ: list[str]) -> Diagnostic:
    """The error for a step that is there twice and differs."""
    return Diagnostic(
        "step-twice",
        f"step {step.name_with_hash} is there twice, with different {' and '.join(differ)}",
        hint="what makes them differ belongs into hash_attrs or version; or make the step once",
    )


class Twins:
    """Compares objects of one identity, and places of several; what does not agree is told in `faults`.

    `taken` are output paths of steps that came before, each with the name of its step.
    """

    def __init__(self, places: Places, faults: list[Diagnostic], taken: Mapping[str, str]) -> None:
        self._places = places
        self._faults = faults
        self._taken = taken
        self._owner: dict[str, StepSpec] = {}
        self._told: set[str] = set()

    def one_of(self, first: StepSpec, second: StepSpec) -> StepSpec:
        """The one of two objects of the same identity that counts: the first that has a function."""
        differ = differing(first, second)
        if self._places.of(first) != self._places.of(second):
            differ.append("output path")
        if differ and first.identity not in self._told:
            self._told.add(first.identity)
            self._faults.append(twice(first, differ))
        return second if first.fn is None and second.fn is not None else first

    def see_place(self, spec: StepSpec, path: str) -> None:
        """See that no other step has this output path."""
        first = self._owner.setdefault(path, spec)
        other = first.name_with_hash
        if self._taken and first is spec:
            other = self._taken.get(path, other)
        if other != spec.name_with_hash:
            self._faults.append(
                Diagnostic(
                    "two-steps-one-path",
                    f"{other} and {spec.name_with_hash} both have the output path {path}",
                    hint="give one of them another override_output_path",
                )
            )
