"""What is said about an expansion: values that joins dropped, rows without values, globs that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.plan.skip import cascade
from treadle.plan.task import Draft
from treadle.rules.expand.expansion import RuleInfo
from treadle.rules.expand.join import Dropped
from treadle.rules.expand.trip import Expanded
from treadle.rules.pattern.listing import Listing
from treadle.rules.toml.section import Findings


def info(one: Expanded) -> RuleInfo:
    """How a rule became tasks."""
    return RuleInfo(
        rule=one.blueprint.rule.name,
        tasks=len(one.drafts),
        skipped=sum(draft.skip is not None for draft in one.drafts),
        narrowed=len(one.narrowed),
        fan_in=max((len(draft.gathered) for draft in one.drafts), default=0),
        valueless=one.rows.valueless,
        origins=one.rows.origins,
        dropped=one.rows.dropped,
    )


def tell(rules: Sequence[Expanded], listing: Listing, findings: Findings) -> None:
    """Add the warnings."""
    _tell_dropped(rules, findings)
    _tell_there(rules, listing, findings)
    for one in rules:
        _tell_valueless(one, findings)
        _tell_shared(one, findings)
        _tell_ancient(one, findings)


def _tell_dropped(rules: Iterable[Expanded], findings: Findings) -> None:
    """One warning for each loss, however many rules have it."""
    by_loss: dict[Dropped, list[Expanded]] = {}
    for one in rules:
        for loss in one.rows.dropped:
            by_loss.setdefault(loss, []).append(one)
    for loss, having in by_loss.items():
        names = ", ".join(one.blueprint.rule.name for one in having)
        shown = ", ".join(loss.examples) + (" ..." if loss.count > len(loss.examples) else "")
        what = "1 value" if loss.count == 1 else f"{loss.count:,} values"
        message = f"{what} of {loss.present} not in {loss.absent}, so no task of {names} for {shown}"
        findings.warn("values-dropped", message, having[0].blueprint.rule.place)


def _tell_valueless(one: Expanded, findings: Findings) -> None:
    if one.rows.valueless:
        count, rule = one.rows.valueless, one.blueprint.rule
        shown = "; ".join(one.rows.lacking) + (" ..." if count > len(one.rows.lacking) else "")
        rows = "1 row has" if count == 1 else f"{count:,} rows have"
        message = f"{rows} no value for a wildcard that rule {rule.name} names: no task of it ({shown})"
        findings.warn("rows-without-value", message, rule.place)


def _tell_shared(one: Expanded, findings: Findings) -> None:
    for entry in one.drafter.entries:
        if entry.shared is None:
            continue
        path, first, second = entry.shared
        pattern, names = entry.entry.pattern, entry.entry.pattern.names
        owners = (",".join(f"{n}={v}" for n, v in zip(names, row)) for row in (first, second))
        message = f"'{path}' matches {pattern.text} for {' and for '.join(owners)}"
        hint = "say more of the name in the pattern, such as what stands behind the wildcard"
        findings.warn("file-matched-twice", message, pattern.place, hint)


def _tell_ancient(one: Expanded, findings: Findings) -> None:
    if not one.drafts:
        return
    for pattern in one.blueprint.ancient:
        if pattern not in one.drafter.ancient_used:
            message = f"ancient '{pattern.text}' is no input of rule {one.blueprint.rule.name}"
            findings.warn("no-effect", message, pattern.place)


def _tell_there(rules: Sequence[Expanded], listing: Listing, findings: Findings) -> None:
    """Files that lie on the disk and do not count, because the tasks that make them are skipped by `when`."""
    drafts = [draft for one in rules for draft in one.drafts]
    if not any(draft.skip for draft in drafts):
        return
    readers: dict[str, list[Draft]] = {}
    for draft, skip in zip(drafts, cascade(drafts).skips):
        if draft.skip is None and skip is not None and skip.why == "upstream":
            readers.setdefault(skip.what, []).append(draft)
    makers = {path: draft for draft in drafts for path in draft.outputs if path in readers}
    told: set[tuple[str, str]] = set()
    for path, reading in readers.items():
        maker, reader = makers.get(path), reading[0]
        if maker is None or maker.skip is None or maker.skip.why != "when":
            continue
        if (maker.rule, reader.rule) in told or not listing.exists(path):
            continue
        told.add((maker.rule, reader.rule))
        message = (
            f"{path} is there, but rule {maker.rule}, which makes it, is skipped by its condition, "
            f"and so is what reads it: rule {reader.rule}"
        )
        hint = f"where the file is to be used as it is, let a config key say what rule {reader.rule} reads"
        findings.warn("skipped-though-there", message, reader.place, hint)
