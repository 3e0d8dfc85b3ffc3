"""What a checkpoint task found: values that join those of the wildcards once it has succeeded."""

from __future__ import annotations

from msgspec import Struct


class Discovered(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The content of one manifest, checked; each value once, in the order of the file.

    `group` is that of the `samples` (empty: they are in none). Of a pair those columns that it has. `values`
    are by the name of their wildcard.
    """

    group: str = ""
    samples: tuple[str, ...] = ()
    pairs: tuple[dict[str, str], ...] = ()
    values: dict[str, tuple[str, ...]] = {}

    @property
    def size(self) -> int:
        """How many samples, pairs and values there are."""
        return len(self.samples) + len(self.pairs) + sum(map(len, self.values.values()))


class Found(Struct, frozen=True, kw_only=True):
    """What one checkpoint task found, with the wildcards under which its values hold. `depth` is 1 where
    nothing that it builds on was found by another checkpoint, else one more than that one's."""

    task: str
    rule: str
    values: Discovered
    wildcards: tuple[tuple[str, str], ...] = ()
    depth: int = 1
