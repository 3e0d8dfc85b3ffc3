"""The tables at the top of a workflow file: which are known, which are single, which are arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.base.place import Place
from treadle.rules.toml.document import Document
from treadle.rules.toml.fields import HOMES, TOP, State, Top
from treadle.rules.toml.section import Findings, Section, clip, found

# The key by which a person would look for one table of an array.
_NAMED_BY = {"pairs": "pair_id"}


class Tables:
    """The tables of one document as sections; what stands at the top and may not is reported at once.

    `known` are those that there may be. `acts`: a backend or a profile was chosen.
    """

    def __init__(
        self, document: Document, findings: Findings, known: Mapping[str, Top] = TOP, *, acts: bool = False
    ) -> None:
        self.document = document
        self.findings = findings
        self._known = known
        self._acts = acts
        self._singles: dict[str, Section] = {}
        self._arrays: dict[str, list[Section]] = {}
        for name, value in document.values.items():
            self._take(name, value)

    def one(self, name: str) -> Section:
        """The table `[name]`; an empty one where the file has none."""
        return self._singles.get(name) or self._section({}, name)

    def many(self, name: str) -> list[Section]:
        """The tables `[[name]]`, in order."""
        return self._arrays.get(name, [])

    def places(self) -> dict[str, Place]:
        """Where each key of the single tables stands, by `table.key`."""
        return {
            f"{name}.{key}": section.place(key)
            for name, section in self._singles.items()
            for key in section.table
        }

    def _section(self, table: dict[str, Any], name: str, *path: str | int, shown: str = "") -> Section:
        spot = self.document.spots.at(*(path or (name,)))
        return Section(table, spot, shown or name, self.document.file, self.findings)

    def _take(self, name: str, value: Any) -> None:
        top = self._known.get(name)
        if top is None:
            self._unknown(name, value)
        elif top.array:
            self._array(name, value, top)
        elif not isinstance(value, dict):
            many = f"[[{name}]]" if isinstance(value, list) else f"{found(value)}"
            self._error("wrong-type", f"{many} stands where one table [{name}] is wanted", name)
        elif not self._refused(name, top):
            self._singles[name] = self._section(value, name)

    def _array(self, name: str, value: Any, top: Top) -> None:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            hint = "write two brackets on each side, once for each of them"
            self._error("wrong-type", f"[{name}] stands where [[{name}]] is wanted", name, hint)
        elif not self._refused(name, top):
            self._arrays[name] = [self._element(name, at, each) for at, each in enumerate(value)]

    def _element(self, name: str, at: int, table: dict[str, Any]) -> Section:
        named = table.get(_NAMED_BY.get(name, "name"))
        shown = f"{name}.{named}" if isinstance(named, str) and named else f"{name}[{at}]"
        return self._section(table, name, name, at, shown=shown)

    def _refused(self, name: str, top: Top) -> bool:
        """Report a table that has no effect."""
        idle = top.state is State.NO_EFFECT or (top.state is State.SCHEDULER and not self._acts)
        if idle:
            place = self._section({}, name).place()
            self.findings.warn("no-effect", f"[{name}] has no effect here: {top.why}", place)
        return idle

    def _unknown(self, name: str, value: Any) -> None:
        what = "table" if isinstance(value, dict | list) else "key at the top of the file"
        hint = self.findings.guess(name, self._known)
        homes = [home for home, fields in HOMES.items() if name in fields]
        if homes and not isinstance(value, dict):
            hint = f"it belongs below {homes[0]}"
        code = "unknown-table" if isinstance(value, dict | list) else "unknown-key"
        self._error(code, f"'{clip(name)}' is not a {what} that Treadle knows", name, hint)

    def _error(self, code: str, message: str, name: str, hint: str = "") -> None:
        self.findings.error(code, message, self._section({}, name).place(), hint)
