"""`ArtifactStore`: the one protocol behind artifacts, for plain file systems and object stores alike.

    claim -> Lease -> work path -> (the function) -> publish -> release
                \\                                       \\
                 held by someone else: their Owner        someone was faster: their record
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from treadle.steps.record import ArtifactRecord, ArtifactStatus, Owner, Seen


class LeaseLost(Exception):  # noqa: N818 - nobody's error: somebody else goes on
    """Another owner has the lease now: what was made must not be published. `owner` is that owner."""

    def __init__(self, owner: Owner | None) -> None:
        super().__init__(f"the lease was taken by {owner}" if owner else "the lease was lost")
        self.owner = owner


class Lease(Protocol):
    """The right to make one artifact, kept alive by `beat`. Beats come from the store's own thread."""

    @property
    def number(self) -> int:
        """The fencing number: a later lease on the same artifact has a higher one."""
        ...

    @property
    def lost(self) -> Owner | None:
        """Who took it, as the last beat saw (None: it is ours as far as we know)."""
        ...

    def check(self) -> None:
        """See that it is still ours, claiming it again where it is unchanged after an outage.

        Raises `LeaseLost`, `DiskError` while the storage cannot be reached.
        """
        ...

    def release(self) -> None:
        """Give it back; a lost one is left alone."""
        ...


class ArtifactStore(Protocol):
    """Artifacts of one kind of storage. Paths are absolute output paths, or URLs.

    All methods may be called from any thread, and raise `DiskError` where the storage fails.
    """

    def look(self, path: str, identity: str, *, mend: bool = False, fresh: bool = False) -> Seen:
        """What stands there. A pending record whose output is in place counts as one; `mend` finishes it.

        `fresh`, for who holds the lease: no earlier attempt is known, so that where there is no record a
        status need not be looked for.
        """
        ...

    def claim(self, path: str, owner: Owner) -> Lease | Owner:
        """Take the lease: the lease, or who holds it and lives as far as is known."""
        ...

    def holder(self, path: str) -> Owner | None:
        """Who holds the lease now (None: nobody, or its owner is gone or silent for too long by our clock).

        Silence is measured from the first call on: who waits asks again and again.
        """
        ...

    def work(self, path: str, attempt: str, *, resumable: bool = False, fresh: bool = False) -> str:
        """A local path to write to: nothing is there (but what a resumable step left), its parent is.

        `fresh`: this attempt was not begun before, so that nothing of it can stand there.
        """
        ...

    def publish(
        self, lease: Lease, work: str, record: ArtifactRecord, *, replaces: ArtifactRecord | None = None
    ) -> ArtifactRecord:
        """Move what was made into its place, with its record; what counts in the end is returned.

        `record` comes without what only the store knows (`at`, `kind`, `size`, `digest`). When the same
        identity is complete already its record is returned and ours is dropped, unless it is the one that
        this attempt `replaces`. Raises `LeaseLost`.
        """
        ...

    def tell(self, path: str, status: ArtifactStatus) -> None:
        """Write the status of the last attempt."""
        ...

    def discard(self, work: str) -> None:
        """Remove what a failed attempt made at its work path."""
        ...

    def fetch(self, record: ArtifactRecord) -> str:
        """A local path where the artifact can be read (fetched once per process)."""
        ...

    def url(self, record: ArtifactRecord) -> str:
        """Where the artifact stands: a local path or a URL."""
        ...

    def records(self, prefix: str) -> Iterator[ArtifactRecord]:
        """The records of all artifacts below a prefix, sorted by path."""
        ...

    def remove(self, path: str) -> None:
        """Remove an artifact with all that stands beside it."""
        ...

    def sync(self) -> None:
        """See what was published so far onto the disk; called every 2 s at most, and at the end of a run.

        Until then a crash of the machine (not of a process) may tear it; that is seen, and it is made again.
        """
        ...
