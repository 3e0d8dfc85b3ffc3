"""The files that a workflow is made of: its own, and those that it includes, each with its tables.

An included file is looked for in the folder of the main file, also when another included one names it; in a
git pin, and for what that includes, in the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.errors import UserError
from treadle.base.names import RULE_NAME
from treadle.base.place import Place
from treadle.rules.file.naming import joined
from treadle.rules.schema import PathSpec
from treadle.rules.toml.document import Document, load
from treadle.rules.toml.fields import INCLUDE, INCLUDED
from treadle.rules.toml.kinds import take
from treadle.rules.toml.section import Findings, Section, clip
from treadle.rules.toml.tables import Tables

MOST = 1000  # files: two that include each other's copies twice would double with every level

# Tasks that make environments. Those of [[references]] are rules: a name that both have is told as two rules
# of one name, so that modules of the public name `reference` can be read.
_OWN_NAMESPACES = ("env",)


class Part(Struct, frozen=True, kw_only=True):
    """One file of a workflow.

    `within` is the number of the file that includes it; the first is the main one, with number 0, and nothing
    includes it. `file` is where it stands, absolute; `pinned` is the `repo@ref` that it comes from, and
    `commit` what that is. `params` are those of
    the `[[include]]` at `place`, and `inputs` and `outputs` its contract.
    """

    tables: Tables
    file: str
    within: int = 0
    namespace: str = ""
    name: str = ""
    pinned: str = ""
    commit: str = ""
    params: Section | None = None
    inputs: tuple[PathSpec, ...] = ()
    outputs: tuple[PathSpec, ...] = ()
    place: Place = Place()

    @property
    def findings(self) -> Findings:
        return self.tables.findings


def chain(parts: Sequence[Part], number: int) -> list[int]:
    """The numbers of the files that lead to one: the main file first, the one itself last."""
    found = [number]
    while found[-1]:
        found.append(parts[found[-1]].within)
    return found[::-1]


def gather_parts(main: Tables, folder: str) -> list[Part]:
    """All files of a workflow: each before those that it includes, in the order in which they are named.

    What cannot be read or included is reported, and left out. `folder` is that of the main file, absolute.
    """
    return _Gatherer(main, folder).all()


def reference_keys(parts: Sequence[Part]) -> dict[str, Section]:
    """The config keys that the references of all files make: each has the output as its value."""
    found: dict[str, Section] = {}
    for section in (section for part in parts for section in part.tables.many("references")):
        name, output = section.table.get("name"), section.table.get("output")
        if isinstance(name, str) and isinstance(output, str):
            found.setdefault(name, section)
    return found


class _Gatherer:
    """One walk over the includes, on a stack of its own."""

    def __init__(self, main: Tables, folder: str) -> None:
        self.folder = folder
        name = os.path.basename(main.document.file)
        self.parts = [Part(tables=main, file=os.path.join(folder, name))]
        self.documents: dict[str, Document | None] = {}
        self.full = False

    def all(self) -> list[Part]:
        waiting = self._named_by(0)
        while waiting and not self.full:
            part = self._part(*waiting.pop())
            if part is not None:
                self.parts.append(part)
                waiting += self._named_by(len(self.parts) - 1)
        return self.parts

    def _named_by(self, number: int) -> list[tuple[int, Section]]:
        """The includes of a file, the last one first: it is the last to be taken off the stack."""
        return [(number, section) for section in reversed(self.parts[number].tables.many("include"))]

    def _part(self, within: int, section: Section) -> Part | None:
        got = take(section, INCLUDE, "an include")
        if not _is_whole(section, got):
            return None
        if len(self.parts) >= MOST:
            self.full = True
            section.error("too-many-includes", f"more than {MOST:,} files are included", "path")
            return None
        above = self.parts[within]
        home = self._home(section, got, above)
        if home is None:
            return None
        findings, pinned, commit = home
        path = os.path.normpath(os.path.join(findings.root or self.folder, got["path"]))
        if self._circles(within, path, section) or _leads_out(path, findings, section):
            return None
        main = os.path.dirname(self.parts[0].tables.document.file)
        shown = f"{pinned}:{got['path']}" if pinned else os.path.normpath(os.path.join(main, got["path"]))
        document = self._document(shown, path, section)
        if document is None:
            return None
        findings = findings.beside(document.text, findings.root, findings.pin)
        stem = os.path.splitext(os.path.basename(path))[0]
        return Part(
            tables=Tables(document, findings, INCLUDED),
            file=path,
            within=within,
            namespace=joined(above.namespace, got.get("namespace", "")).removesuffix("::"),
            name=got.get("name", stem),
            pinned=pinned,
            commit=commit,
            params=section.inner(got.get("params", {}), "params"),
            inputs=_contract(section, got, "inputs"),
            outputs=_contract(section, got, "outputs"),
            place=section.place(),
        )

    def _home(
        self, section: Section, got: Mapping[str, Any], above: Part
    ) -> tuple[Findings, str, str] | None:
        """What tells where the file is looked for; the `repo@ref` and the commit, where it is a git pin."""
        if "repo" not in got:
            return above.findings, above.pinned, above.commit
        from treadle.rules.file.pins import checked_out  # few workflows pin anything

        return checked_out(section, got["repo"], got["ref"])

    def _circles(self, within: int, path: str, section: Section) -> bool:
        """Report an include that leads back to a file on the way to it."""
        way = [self.parts[number] for number in chain(self.parts, within)]
        at = next((at for at, part in enumerate(way) if part.file == path), None)
        if at is None:
            return False
        files = [part.tables.document.file for part in way[at:]]
        message = f"files include each other in a circle: {' -> '.join([*files, files[0]])}"
        section.error("include-cycle", message, "path")
        return True

    def _document(self, shown: str, path: str, section: Section) -> Document | None:
        """The parsed file, each once; what is wrong with it is reported."""
        if path not in self.documents:
            self.documents[path] = None
            try:
                self.documents[path] = load(shown, path)
            except UserError as error:
                found = [
                    one if one.place.file else replace(one, place=section.place("path"))
                    for one in error.diagnostics
                ]
                section.findings.found.extend(found)
        found_before = self.documents[path]
        return None if found_before is None else replace(found_before, file=shown)


def _is_whole(section: Section, got: Mapping[str, Any]) -> bool:
    """Whether an include says what it must; what is missing or wrong is reported."""
    wrong = any(key in section.table and key not in got for key in ("path", "namespace", "repo", "ref"))
    if "path" not in section.table:
        section.error("missing-key", "this include has no path", hint='name the file: path = "qc.oxoflow"')
        wrong = True
    if "repo" in section.table and "ref" not in section.table:
        hint = 'pin it: ref = "v1.2.0", or the id of a commit'
        section.error("missing-key", "this include names a repo, but no ref of it", "repo", hint=hint)
        wrong = True
    elif "ref" in section.table and "repo" not in section.table:
        section.error("missing-key", "this include names a ref, but no repo", "ref")
        wrong = True
    if "namespace" in got and not RULE_NAME.match(got["namespace"]):
        hint = "write letters, digits, _ and -, and no digit or - first"
        message = f"'{clip(got['namespace'])}' cannot name a namespace"
        section.error("bad-name", message, "namespace", hint=hint)
        wrong = True
    elif got.get("namespace") in _OWN_NAMESPACES:
        message = f"'{got['namespace']}' is the namespace of tasks that the engine makes"
        section.error("reserved-name", message, "namespace", hint="choose another one")
        wrong = True
    return not wrong


def _leads_out(path: str, findings: Findings, section: Section) -> bool:
    """Report a path that leads out of the checkout of a git pin, by itself or by a link."""
    if not findings.pin:
        return False
    root = os.path.realpath(findings.root)
    if os.path.realpath(path).startswith(f"{root}/"):
        return False
    section.error("bad-value", "this path leads out of the repository that it is looked for in", "path")
    return True


def _contract(section: Section, got: Mapping[str, Any], key: str) -> tuple[PathSpec, ...]:
    paths: Iterator[tuple[int, str]] = enumerate(got.get(key, ()))
    return tuple(PathSpec(text=text, place=section.place(key, at)) for at, text in paths)
