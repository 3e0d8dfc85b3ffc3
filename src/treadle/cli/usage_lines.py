"""`treadle status --resources` in lines: what each rule took, and requests that are far off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.base.units import format_duration, format_size
from treadle.cli.printer import Printer
from treadle.report.usage import Hint, RuleUsage, Span

_HEAD = ("rule", "attempts", "peak memory", "CPUs", "waited", "ran")


def usage_lines(found: Sequence[RuleUsage], printer: Printer) -> Iterator[str]:
    """A table, one line for each rule, and the hints below it."""
    rows = [_HEAD, *(_row(one) for one in found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    for number, row in enumerate(rows):
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        yield printer.style(line, "bold") if number == 0 else line
    for one in found:
        for hint in one.hints:
            yield printer.style(_hint(one.rule, hint), "yellow")


def _row(one: RuleUsage) -> tuple[str, ...]:
    memory = "?" if one.memory is None else figure(one.memory)
    asked = "" if one.asked_memory is None else f" of {format_size(one.asked_memory)}"
    cpu = "?" if one.cpu is None else f"{one.cpu.median:.1f}"
    return (
        one.rule,
        str(one.attempts),
        memory + asked,
        f"{cpu} of {one.threads}",
        _span(one.waited),
        _span(one.ran),
    )


def _span(span: Span | None) -> str:
    """`2m`, or `2m, up to 10m`."""
    if span is None:
        return "?"
    middle, most = seconds(span.median), seconds(span.most)
    return middle if middle == most else f"{middle}, up to {most}"


def _hint(rule: str, hint: Hint) -> str:
    match hint.field:
        case "memory":
            used, asked, value = figure(hint.used), format_size(hint.asked), f'"{format_size(hint.value)}"'
        case "time_limit":
            used, asked = seconds(hint.used), format_duration(hint.asked)
            value = f'"{format_duration(hint.value)}"'
        case _:
            used, asked, value = f"{hint.used:.1f}", str(hint.asked), str(hint.value)
    if hint.tight:
        return f"{rule}: {used} of {asked} is close to the {hint.field} it asked for: raise it"
    return f"{rule}: at most {used} of {asked} was used: {hint.field} = {value} would do"


def figure(size: float) -> str:
    """`3.1G`, `812M`: a measured size, as far as a person compares it."""
    for unit, letter in ((1024**4, "T"), (1024**3, "G"), (1024**2, "M"), (1024, "K")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + letter
    return f"{size:.0f}B"


def seconds(span: float) -> str:
    """`0.3s`, `4s`, `1h3m`: a measured time, as far as a person compares it."""
    if span < 10:
        return f"{span:.1f}".removesuffix(".0") + "s"
    return format_duration(round(span) if span < 600 else round(span / 60) * 60)
