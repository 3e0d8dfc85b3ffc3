"""All sources of wildcard values of a workflow, in the order in which they multiply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.base.place import Place
from treadle.rules.schema import Source
from treadle.rules.sources.pairs import pairs, samples_of_pairs
from treadle.rules.sources.rows import Constraints
from treadle.rules.sources.samples import samples
from treadle.rules.sources.sheets import Sheet, read_sheet
from treadle.rules.sources.values import free_table, value_list
from treadle.rules.toml.section import Findings, Section, clip


class NamedSheet(Struct, frozen=True):
    """A sheet that somebody named at `place`.

    `holds` is `pairs` or `samples`; empty for one of the command line, whose columns tell. `replaces`:
    it stands for all that the workflow file gives of that kind. `root` is where it lies, where that is not
    the workflow's folder.
    """

    path: str
    place: Place
    holds: str = ""
    replaces: bool = False
    root: str = ""


def read_sources(
    tables: Callable[[str], list[Section]],
    named: Sequence[NamedSheet],
    folder: str,
    constraints: Constraints,
    findings: Findings,
    *,
    discovers: bool,
) -> tuple[Source, ...]:
    """Pairs, samples, lists of values and tables; everything wrong with them is reported.

    `tables(name)` gives the sections of an array of tables. `discovers`: samples will come from the disk.
    """
    read = [(one, read_sheet(one.path, one.root or folder, findings, one.place)) for one in named]
    held = [(one.holds or _tells(sheet), one, sheet) for one, sheet in read if sheet is not None]
    replaced = {holds for holds, one, _ in held if one.replaces}

    def inline(holds: str, table: str) -> list[Section]:
        return [] if holds in replaced else tables(table)

    def sheets(holds: str) -> list[Sheet]:
        mine = [(one, sheet) for what, one, sheet in held if what == holds]
        return [sheet for one, sheet in mine if not one.holds or holds not in replaced]

    paired = pairs(inline("pairs", "pairs"), sheets("pairs"), constraints, findings)
    grouped = samples(inline("samples", "sample_groups"), sheets("samples"), constraints, findings)
    if paired and paired.rows and not grouped and not discovers:
        grouped = samples_of_pairs(paired)
    lists = [value_list(section, constraints) for section in tables("values")]
    free = [free_table(section, section.findings.root or folder) for section in tables("tables")]
    found = [source for source in (paired, grouped, *lists, *free) if source is not None]
    return _names_once(found, findings)


def _tells(sheet: Sheet) -> str:
    return "pairs" if "pair_id" in sheet.columns else "samples"


def _names_once(sources: Sequence[Source], findings: Findings) -> tuple[Source, ...]:
    """The sources, each name once; the same again in another file, such as one that is included twice, is
    nothing new."""
    first: dict[str, Source] = {}
    for source in sources:
        known = first.setdefault(source.label, source)
        again = known.columns == source.columns and known.rows == source.rows
        if known is not source and not (again and _in_other_include(known, source)):
            message = f"two of them are named '{clip(source.label.partition('.')[2])}'"
            findings.error("duplicate-name", message, source.place, f"first at {known.place}")
    return tuple(first.values())


def _in_other_include(one: Source, other: Source) -> bool:
    """Whether two tables come from two includes: from two files, or from one that is read twice."""
    return one.place.file != other.place.file or one.place == other.place
