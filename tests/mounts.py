"""File systems of a test's own: small, full or read-only, below its folder, and gone with it."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

Mount = Callable[..., pathlib.Path]
"""Mounts with the words of mount(8) on a new folder of this name, and gives that; skips where it may not."""


@contextmanager
def mounts(folder: pathlib.Path) -> Iterator[Mount]:
    """Within: what is mounted below `folder` stands; afterwards it is gone."""
    mounted: list[pathlib.Path] = []

    def mount(name: str, *words: str) -> pathlib.Path:
        where = folder / name
        where.mkdir()
        try:
            done = subprocess.run(["mount", *words, str(where)], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount here")
        if done.returncode:
            pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
        mounted.append(where)
        return where

    try:
        yield mount
    finally:
        for where in mounted:
            subprocess.run(["umount", "--lazy", str(where)], check=True)


def small_disk(mount: Mount, name: str, size: str) -> pathlib.Path:
    """A file system of this size (as of tmpfs(5): `64k`, `2m`) and no larger."""
    return mount(name, "-t", "tmpfs", "-o", f"size={size}", "none")
