"""What holders that were killed left behind, removed by who takes the lease over."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from treadle.base.errors import DiskError, RecordError
from treadle.base.files import remove
from treadle.base.layout import ArtifactPlaces
from treadle.steps.local_publish import settle
from treadle.steps.local_record import read_filed
from treadle.steps.owner import gone
from treadle.steps.record import Owner


def sweep(places: ArtifactPlaces, before: Iterable[Owner], attempt: str) -> None:
    """Finish or drop what is pending, remove what those `before` us were making, and what was replaced.

    The lease must be ours, for `attempt`. Holders of whom nothing is known may be at work still, in vain:
    what they make stays. That something cannot be removed is in nobody's way.
    """
    with suppress(OSError, DiskError, RecordError):
        if pending := read_filed(places.pending, places.path):
            settle(places, pending)
        for owner in before:
            if owner.attempt and owner.attempt != attempt and gone(owner):
                remove(places.work(owner.attempt))
        filed = read_filed(places.record, places.path)
        if filed is not None and filed.record is not None:
            remove(places.aside(filed.mark))
