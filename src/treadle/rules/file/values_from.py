"""`[[values]]` with `values_from`: the values are those of a config key, as the file of the table sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from treadle.rules.config.types import listed
from treadle.rules.file.views import Constraints, View
from treadle.rules.schema import Source, Value
from treadle.rules.sources.cells import check_values
from treadle.rules.text.placeholder import spelled
from treadle.rules.toml.section import Findings, clip


def filled_sources(
    sources: Iterable[Source], views: Sequence[View], constraints: Constraints, findings: Findings
) -> tuple[Source, ...]:
    """The sources with the values of config keys filled in; a key that cannot give them is reported."""
    return tuple([_filled(one, views, constraints, findings) if one.given else one for one in sources])


def _filled(source: Source, views: Sequence[View], constraints: Constraints, findings: Findings) -> Source:
    """A file that is included more than once may see several values; its table has but one list."""
    lists = [_values(source, view, findings) for view in views if _is_in(source, view)]
    if any(one != lists[0] for one in lists):
        message = f"config.{clip(source.given)} has several values here: the file is included more than once"
        findings.error("duplicate-name", message, source.place, "give the two lists two names")
    once = list(dict.fromkeys(lists[0]))
    check_values({source.columns[0]: once}, lambda _at: source.place, constraints, findings)
    return replace(source, rows=tuple([(value,) for value in once]))


def _is_in(source: Source, view: View) -> bool:
    return view.part.tables.document.file == source.place.file


def _values(source: Source, view: View, findings: Findings) -> list[str]:
    config, key = view.config, source.given
    if key not in config.values:
        hint = findings.guess(key, config.values) or "declare it in [config]"
        findings.error("unknown-config", f"there is no config key '{clip(key)}'", source.place, hint)
        return []
    if key in config.sensitive:
        message = f"config.{clip(key)} is sensitive and cannot stand in a path"
        findings.error("secret-in-path", message, source.place)
        return []
    values: tuple[Value, ...] = listed(config.values[key])
    found = [text for value in values if (text := spelled(value))]
    if not found:
        findings.error("no-values", f"config.{clip(key)} lists no values", source.place)
    return found
