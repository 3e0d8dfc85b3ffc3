"""Commands that are named to a person: such as work where he stands, for the workflow that he named."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from treadle.api.pipe import is_pipeline
from treadle.cli.options import request_of


class Again(Struct, frozen=True):
    """How the workflow and its folder were named, for the next command to name them alike: both as typed,
    `config` as (key, text)."""

    file: str = ""
    workdir: str = ""
    config: tuple[tuple[str, str], ...] = ()
    prefix: str = ""

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """From the arguments of a command that took a workflow."""
        asked = request_of(args)
        return cls(asked.file, asked.workdir, asked.config, asked.prefix)

    def records(self, command: str, *words: str) -> str:
        """A command that reads the records of the work folder (`logs`, `status`)."""
        folder = self.workdir or ("" if is_pipeline(self.file) else os.path.dirname(self.file))
        return shlex.join(["treadle", command, *words, *_option("--workdir", [folder] if folder else [])])

    def workflow(self, command: str, *words: str) -> str:
        """A command that reads the workflow (`exec`, `evict`)."""
        file = [self.file] if self.file else []
        folder = _option("--workdir", [self.workdir] if self.workdir else [])
        prefix = _option("--prefix", [self.prefix] if self.prefix else [])
        config = _option("--config", [f"{key}={text}" for key, text in self.config])
        return shlex.join(["treadle", command, *file, *words, *folder, *prefix, *config])


def _option(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (name, value)]
