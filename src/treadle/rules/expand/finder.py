"""Which paths a pattern finds: among planned outputs if any match, else on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from treadle.base.place import Place
from treadle.rules.pattern.listing import Listing, PathListing
from treadle.rules.pattern.matching import Values
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.pattern.text import CONTROL
from treadle.rules.pattern.tree import NOTHING, Match
from treadle.rules.toml.section import Findings

_SHOWN = 5


class Found(Struct, frozen=True):
    """What a pattern found, sorted by path, and where: `plan`, `disk`, `skipped` tasks, or nowhere."""

    matches: list[Match]
    origin: str = ""


class Finder:
    """The disk and the outputs planned so far; what is planned hides what lies on the disk.

    `lenient`: source files that are not there are a warning.
    """

    def __init__(
        self, listing: Listing, findings: Findings, *, tell_ghosts: bool = True, lenient: bool = False
    ) -> None:
        self.lenient = lenient
        self.listing = listing
        self._findings = findings
        self._tell_ghosts = tell_ghosts
        self.awaited: frozenset[Pattern] = frozenset()  # what the disk is not asked for
        self._planned = PathListing(folders=False)
        self._skipped = PathListing(folders=False)
        self._ghosts: dict[tuple[Place, str], dict[str, None]] = {}
        self._looked_into: dict[str, Pattern] = {}
        self._from_disk: dict[str, Pattern] = {}
        self._asked: dict[str, Place] = {}
        self._refused: dict[str, None] = {}

    def plan(self, outputs: Iterable[str], *, skipped: bool = False) -> None:
        """Take in the outputs of planned tasks; those of `skipped` ones are found only if nothing else is."""
        (self._skipped if skipped else self._planned).add(outputs)

    def find(self, pattern: Pattern, known: Values = NOTHING) -> Found:
        """The paths that match, with `known` values held fast; files that a plan hides are remembered."""
        planned = self._planned.match(pattern, known) if self._planned else []
        if planned:
            if self._tell_ghosts:
                self._remember(pattern, known, planned)
            return Found(planned, "plan")
        if pattern in self.awaited:
            return Found([], "")
        self._looked_into.setdefault(pattern.stem(known), pattern)
        there = self.listing.match(pattern, known)
        if there:
            for folder in {path.rpartition("/")[0] for path, _ in there}:
                self._looked_into.setdefault(folder, pattern)
            if not pattern.names:
                self._from_disk.update((path, pattern) for path, _ in there)
            return Found([match for match in there if self._fit(match[0], pattern)], "disk")
        skipped = self._skipped.match(pattern, known) if self._skipped else []
        return Found(skipped, "skipped" if skipped else "")

    def find_in(self, folder: Pattern, pattern: Pattern, known: Values = NOTHING) -> Found:
        """As `find`, for the files of a folder; a folder that a task makes as a whole stands for them."""
        planned = self._planned.match(folder, known)
        return Found(planned, "plan") if planned else self.find(pattern, known)

    def missing(self, message: str, place: Place, hint: str = "") -> None:
        """Tell that nothing was found which had to be."""
        tell = self._findings.warn if self.lenient else self._findings.error
        tell("no-match", message, place, hint or "are the files there, under that name?")

    def exists(self, path: str, place: Place) -> bool:
        """Whether `path` is on the disk; a condition at `place` asks."""
        self._asked.setdefault(path, place)
        return self.listing.exists(path)

    def planned(self, path: str) -> bool:
        """Whether a task that runs makes `path`, a folder above it, or something in it."""
        return self._planned.within(path) or self.lies_in_output(path)

    def lies_in_output(self, path: str) -> bool:
        """Whether a task that runs makes `path`, or a folder above it."""
        return any(map(self._planned.exists, _upwards(path)))

    def _made(self, path: str) -> bool:
        """As `planned`, by skipped tasks too."""
        return self.planned(path) or any(map(self._skipped.exists, _upwards(path)))

    def _remember(self, pattern: Pattern, known: Values, planned: list[Match]) -> None:
        there = self.listing.match(pattern, known)
        if there:
            kept = {path for path, _ in planned}
            ghosts = self._ghosts.setdefault((pattern.place, pattern.text), {})
            ghosts.update((path, None) for path, _ in there if path not in kept)

    def _fit(self, path: str, pattern: Pattern) -> bool:
        if not CONTROL.search(path):
            return True
        if path not in self._refused:
            self._refused[path] = None
            message = f"the file {path!r} matches {pattern.text}, but its name cannot be used in a plan"
            hint = "rename it: names must be UTF-8 text without control characters"
            self._findings.error("bad-file-name", message, pattern.place, hint)
        return False

    def finish(self) -> None:
        """Tell what can only be told once everything is planned."""
        self._tell_of_ghosts()
        for path, pattern in self._from_disk.items():
            if self._planned.within(path):
                message = f"'{pattern.text}' takes in '{path}', a folder that holds outputs of this workflow"
                hint = "it was not there before the first run: name the files (*.txt), or write elsewhere"
                self._findings.warn("folder-of-outputs", message, pattern.place, hint)
        for path, place in self._asked.items():
            if self._made(path):
                message = f"file_exists asks for '{path}', which a rule of this workflow makes"
                hint = "a condition can only ask for files that are there before the run"
                self._findings.error("file-is-planned", message, place, hint)
        told: set[Pattern] = set()
        for folder, pattern in sorted(self._looked_into.items(), key=lambda one: one[0]):
            if pattern not in told and any(map(self._planned.exists, _upwards(folder))):
                told.add(pattern)
                message = f"'{pattern.text}' looks into '{folder}', a folder that a rule makes as a whole"
                hint = f"what it will hold is not known: name '{folder}', or {{ path, pattern }}"
                self._findings.error("glob-in-output", message, pattern.place, hint)

    def _tell_of_ghosts(self) -> None:
        """Warn of files on the disk that planned outputs hid: most are left over from removed samples."""
        for (place, text), paths in self._ghosts.items():
            if not paths:
                continue
            names = sorted(paths)
            shown = ", ".join(names[:_SHOWN]) + (
                f" and {len(names) - _SHOWN:,} more" if names[_SHOWN:] else ""
            )
            count = "1 file on disk matches" if len(names) == 1 else f"{len(names):,} files on disk match"
            them = "it" if len(names) == 1 else "them"
            message = f"{count} {text}, but no task of this plan makes {them}: left out: {shown}"
            hint = f"remove {them}, or add {'its' if them == 'it' else 'their'} values to the workflow"
            self._findings.warn("left-on-disk", message, place, hint)


def _upwards(path: str) -> Iterator[str]:
    """The path itself, then the folders above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
