"""`environment` tables of a file: each read once, its config values filled, its files looked at."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec.structs import replace

from treadle.base.digest import digest_file
from treadle.base.errors import DiskError
from treadle.base.files import look
from treadle.base.place import Diagnostic
from treadle.plan.environment import Environment, Making
from treadle.rules.environment.kinds import Table
from treadle.rules.pattern.text import PathText
from treadle.rules.schema import Value
from treadle.rules.toml.section import Section, clip

_READ = 64 * 1024 * 1024  # bytes of a file that are read to know its content; of larger ones size and time


class Environments:
    """Reads the environments of one workflow.

    `folder` is that of the workflow file, where environment files are; `program` runs images of `docker`;
    `paths` are those that containers see besides what a task names. `makings` are those of all files, by the
    place in which they make something: what several rules have alike is made by one task. What is wrong with
    config values is added to `problems`.
    """

    def __init__(
        self,
        config: Mapping[str, Value],
        sensitive: frozenset[str],
        folder: str,
        problems: list[Diagnostic],
        makings: dict[str, Making],
        *,
        program: str = "docker",
        paths: tuple[str, ...] = (),
    ) -> None:
        self._texts = PathText(config, sensitive, {}, problems)
        self._folder = folder
        self.program = program
        self.paths = paths
        self._makings = makings
        self._known: dict[tuple[int, int], tuple[Section, Environment | None]] = {}

    def read(self, section: Section, label: str, gpus: int) -> Environment | None:
        """The environment that a table says; None where it says nothing, or something wrong, which is told.

        `label` is a name for what makes it, where its file gives none; `gpus` are those of a task.
        """
        key = (id(section.table), min(gpus, 1) and gpus)
        if key not in self._known:
            one = Table(section, label, gpus, self).environment()
            self._known[key] = (section, one)  # held, so that its id stays its own
        return self._known[key][1]

    def filled(self, section: Section, text: str, key: str | int, *more: int) -> str | None:
        """A text with config values; a placeholder of a task has no value here."""
        place = section.place(key, *more)
        found = self._texts.fill_config(text, place)
        if found is not None and (mark := re.search(r"\{[A-Za-z_][A-Za-z0-9_.]*\}", found)):
            message = f"{mark[0]} is of one task, and an environment is of a rule"
            hint = "write it out, or use {config.KEY}"
            section.findings.error("bad-placeholder", message, place, hint)
            return None
        return found

    def made(self, section: Section, key: str, making: Making) -> Making:
        """The making, named; one that is known already where it makes the same in the same place."""
        known = self._makings.get(making.place)
        if known is None:
            taken = {one.task for one in self._makings.values()}
            if making.task in taken:
                making = replace(making, task=f"{making.task}-{making.digest[:8]}")
            known = self._makings[making.place] = making
        elif known.digest != making.digest:
            message = f"two environments would be made in one place, {clip(known.place.split('/', 1)[-1])}"
            section.error("environment-twice", message, key, hint="give each a place of its own")
        return known

    def content(self, section: Section, key: str, path: str) -> str | None:
        """What stands for the content of an environment file; None where it cannot be read, which is told."""
        place = os.path.join(section.findings.root or self._folder, path)
        try:
            stat = look(place)
            if stat is not None and not stat.folder:
                return digest_file(place) if stat.size <= _READ else f"{stat.size}:{stat.mtime}"
            what = "is a folder" if stat is not None else "is not there"
            hint = "it is looked for in the workflow's folder"
        except DiskError as error:
            what, hint = f"cannot be read: {error}", ""
        message = f"the environment file '{clip(path)}' {what}"
        section.error("no-environment-file", message, key, hint=hint)
        return None

    def is_folder(self, section: Section, path: str) -> bool:
        return os.path.isdir(os.path.join(section.findings.root or self._folder, path))
