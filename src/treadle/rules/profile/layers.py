"""One table as several files say it: each is read by itself, and the one that counts most wins.

fill        site < profiles, the last one first of them < workflow
override    site < workflow < profiles
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from treadle.base.place import Place
from treadle.rules.profile.find import is_sites, profile_file, site_files
from treadle.rules.toml.document import Document, load
from treadle.rules.toml.fields import PROFILE, Fields
from treadle.rules.toml.kinds import take
from treadle.rules.toml.section import Findings, Section
from treadle.rules.toml.tables import Tables


class Profile(Struct, frozen=True):
    """The tables of one profile; `always`: the site's file that nobody has to name."""

    tables: Tables
    sites: bool = False
    always: bool = False

    @property
    def file(self) -> str:
        return self.tables.document.file


class Layers(Struct, frozen=True):
    """The profiles that take part, those that count least first, and whether they override the workflow."""

    profiles: tuple[Profile, ...] = ()
    override: bool = False

    def of(self, name: str, *own: Section) -> list[Section]:
        """A table of all files, those that count least first; `own` is the workflow's, and behind it those of
        included files on the way to the one that is read."""
        below = [one.tables.one(name) for one in self.profiles if one.always or not self.override]
        above = [one.tables.one(name) for one in self.profiles if self.override and not one.always]
        return [*below, *own, *above]


class Layered(Struct, frozen=True):
    """The values of a table, and the section that each of them comes from."""

    values: dict[str, Any]
    origins: dict[str, Section]

    def at(self, key: str) -> Place:
        return self.origins[key].place(key)

    def places(self) -> dict[str, Place]:
        return {key: self.at(key) for key in self.origins}


def layered(sections: Sequence[Section], fields: Fields, what: str) -> Layered:
    """What the sections say together; everything wrong with any of them is reported."""
    values: dict[str, Any] = {}
    origins: dict[str, Section] = {}
    for section in sections:
        got = take(section, fields, what)
        values |= got
        origins |= dict.fromkeys(got, section)
    return Layered(values, origins)


def read_profiles(
    names: Sequence[str], flowdir: str, findings: Findings, *, site: bool
) -> tuple[Profile, ...]:
    """The profiles of these names, and with `site` what the site says to all.

    Raises OptionError for one that there is not, WorkflowError for one that is no TOML.
    """
    found = [Profile(_tables(load(path), findings), True, True) for path in site_files()] if site else []
    for name in names:
        path = profile_file(name, flowdir)
        found.append(Profile(_tables(load(path), findings), is_sites(path)))
    for one in found:
        _check_bounds(one, findings)
    return tuple(found)


def _tables(document: Document, findings: Findings) -> Tables:
    return Tables(document, findings, PROFILE, acts=True)


def _check_bounds(profile: Profile, findings: Findings) -> None:
    """Bounds are the site's to set: in anybody's own profile they would bind nobody."""
    for name in () if profile.sites else ("ceilings", "floors"):
        section = profile.tables.one(name)
        if section.table:
            message = f"[{name}] has no effect here: it counts in the files of the site alone"
            findings.warn("no-effect", message, section.place())
