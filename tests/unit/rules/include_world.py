"""A folder of workflow files that include each other, and what becomes of them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import pytest

from treadle.base.errors import WorkflowError
from treadle.base.names import task_id
from treadle.base.place import Diagnostic
from treadle.plan.task import Draft
from treadle.rules.expand.expand import Expansion, expand
from treadle.rules.file.read import ReadOptions, read
from treadle.rules.pattern.listing import PathListing
from treadle.rules.schema import Workflow

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'


class World:
    """A folder with workflow files."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def put(self, files: Mapping[str, str]) -> str:
        for name, text in files.items():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((HEAD if name == "main.oxoflow" else "") + text)
        return str(self.root / "main.oxoflow")

    def read(self, files: Mapping[str, str], config: Sequence[tuple[str, str]] = ()) -> Workflow:
        return read(self.put(files), ReadOptions(config=tuple(config)))

    def expand(self, files: Mapping[str, str], disk: Sequence[str] = ()) -> Expansion:
        return expand(self.read(files), PathListing(disk))

    def tasks(self, files: Mapping[str, str], disk: Sequence[str] = ()) -> dict[str, Draft]:
        return {task_id(one.rule, one.wildcards): one for one in self.expand(files, disk).drafts}

    def errors(self, files: Mapping[str, str]) -> list[Diagnostic]:
        with pytest.raises(WorkflowError) as caught:
            self.expand(files)
        return list(caught.value.diagnostics)

    def error(self, files: Mapping[str, str]) -> Diagnostic:
        (found,) = self.errors(files)
        return found

    def where(self, found: Diagnostic) -> str:
        return str(found.place).replace(f"{self.root}/", "")


def include(path: str, more: str = "") -> str:
    return f'[[include]]\npath = "{path}"\n{more}\n'


def rule(name: str, output: str = "", more: str = "", shell: str = "touch {output}") -> str:
    return f'[[rules]]\nname = "{name}"\noutput = ["{output or name}"]\nshell = "{shell}"\n{more}\n'
