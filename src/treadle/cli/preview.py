"""A view in lines for people: one per rule, or one per task, and what it adds up to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from shlex import quote

from treadle.api.pipe import View
from treadle.base.units import format_duration, format_size
from treadle.cli.printer import Printer
from treadle.cli.words import VERDICTS, count, reason, reason_kind
from treadle.decide.reason import Answer, OutputMissing, Verdict
from treadle.plan.task import ScheduledTask
from treadle.records.event import evidence_key
from treadle.rules.expand.expansion import RuleInfo

_COLOURS = {
    Verdict.WILL_RUN: "yellow",
    Verdict.UP_TO_DATE: "green",
    Verdict.SKIPPED: "dim",
    Verdict.IN_FLIGHT: "cyan",
}

_OF_THE_PLAN = re.compile(r" \((?:plan|skipped)\)\Z")


def rule_lines(view: View, printer: Printer) -> Iterator[str]:
    """One line per rule: how many tasks, how many will run, for which reasons; values and gathers."""
    rules: dict[str, list[tuple[ScheduledTask, Answer]]] = {}
    for task_id, answer in view.decision.answers.items():
        task = view.plan.tasks[task_id]
        rules.setdefault(task.rule, []).append((task, answer))
    width = max((len(rule) for rule in rules), default=0)
    about = _about(view.expansion.sources, rules)
    for rule, tasks in rules.items():
        verdicts = Counter(answer.verdict for _, answer in tasks)
        parts = [
            printer.style(f"{verdicts[verdict]} {VERDICTS[verdict]}", _COLOURS[verdict])
            for verdict in Verdict
            if verdicts[verdict]
        ]
        kinds = Counter(
            reason_kind(answer.reasons[0])
            for _, answer in tasks
            if answer.reasons and answer.verdict is not Verdict.UP_TO_DATE
        )
        why = ", ".join(
            f"{kind} ({number})" if len(kinds) > 1 else kind for kind, number in kinds.most_common()
        )
        yield f"{rule:<{width}}  {', '.join(parts)}{': ' + why if why else ''}{about[rule]}"


def task_lines(view: View, printer: Printer) -> Iterator[str]:
    """One line per task, with its reasons (a cascade is told once, at its root)."""
    for task_id, answer in view.decision.answers.items():
        verdict = printer.style(f"{VERDICTS[answer.verdict]:<10}", _COLOURS[answer.verdict])
        maybe = " (may be cut off)" if answer.may_cut_off else ""
        why = "; ".join(reason(one) for one in answer.reasons)
        yield f"{verdict}  {task_id}{maybe}{': ' + why if why else ''}"


def summary_lines(view: View, printer: Printer) -> Iterator[str]:
    """What it adds up to: counts, hours at stake, peak resources, and what to do next."""
    answers = view.decision.answers
    verdicts = Counter(answer.verdict for answer in answers.values())
    to_run = view.decision.to_run()
    if not answers:
        yield "nothing is selected"
    elif not to_run:
        yield f"nothing to do: {count(verdicts[Verdict.UP_TO_DATE], 'task')} up to date" + (
            f", {verdicts[Verdict.SKIPPED]} skipped" if verdicts[Verdict.SKIPPED] else ""
        )
    else:
        yield f"{count(len(to_run), 'task')} of {len(answers)} will run" + _maybe(view)
        yield from _stakes(view, to_run)
    if view.decision.adoptable:
        number = len(view.decision.adoptable)
        yield (
            f"{count(number, 'task')} of these {'has' if number == 1 else 'have'} outputs that nobody here "
            "recorded: --adopt takes them over as up to date"
        )
    yield from _deleted(view)


def hours_at_stake(view: View) -> float:
    """Seconds of work that succeeded before and would be done again."""
    known = (
        view.past.seconds(evidence_key(view.plan.name, task, view.plan.tasks[task].outputs))
        for task in view.decision.to_run()
    )
    return sum(seconds for seconds in known if seconds is not None)


def _maybe(view: View) -> str:
    number = sum(answer.may_cut_off for answer in view.decision.answers.values())
    return f" ({number} of them only if what they read comes out different)" if number else ""


def _deleted(view: View) -> Iterator[str]:
    """Tasks that run only because outputs were deleted which nothing that must run needs."""
    answers = view.decision.answers
    lost = {
        task
        for task, answer in answers.items()
        if answer.reasons and all(isinstance(one, OutputMissing) for one in answer.reasons)
    }
    read: set[str] = set()
    needed: set[str] = set()
    for task, answer in answers.items() if lost else ():
        must_run = answer.verdict is Verdict.WILL_RUN and not answer.may_cut_off
        found = lost.intersection(view.plan.tasks[task].needs)
        (needed if must_run else read).update(found)
    unneeded = [task for task in answers if task in read and task not in needed]
    if unneeded:
        names = [
            one.path for task in unneeded for one in answers[task].reasons if isinstance(one, OutputMissing)
        ]
        if len(names) > 3:
            names = list(dict.fromkeys(view.plan.tasks[task].rule for task in unneeded))
        number = count(len(unneeded), "task runs", "tasks run")
        yield (
            f"{number} only because outputs were deleted that nothing else needs; to accept that: "
            f"treadle evict {' '.join(map(quote, names))}"
        )


def _stakes(view: View, to_run: list[str]) -> Iterator[str]:
    """Past times and what the largest task asks for."""
    tasks = [view.plan.tasks[task] for task in to_run]
    known = [view.past.seconds(evidence_key(view.plan.name, task.id, task.outputs)) for task in tasks]
    seconds = [one for one in known if one is not None]
    if seconds:
        yield (
            f"last time {count(len(seconds), 'of them', 'of them')} took {format_duration(sum(seconds))} "
            "of work together"
        )
    threads = max(task.resources.threads for task in tasks)
    memory = max(task.resources.memory or 0 for task in tasks)
    if threads > 1 or memory:
        most = f"{count(threads, 'thread')}" + (f", {format_size(memory)} of memory" if memory else "")
        yield f"the largest asks for {most}"


def _about(sources: Iterable[RuleInfo], shown: Collection[str]) -> dict[str, str]:
    """By rule: where its values come from, at the first rule that takes them from there, and its fan-in."""
    found = dict.fromkeys(shown, "")
    told: set[str] = set()
    infos = {info.rule: info for info in sources}
    for rule in shown:
        if (info := infos.get(rule)) is None:
            continue
        fresh = [origin for origin in info.origins if origin not in told and not _OF_THE_PLAN.search(origin)]
        told.update(fresh)
        parts = [f"from {', '.join(origin.removesuffix(' (disk)') for origin in fresh)}"] if fresh else []
        parts += [f"gathers {info.fan_in} inputs"] if info.fan_in > 1 else []
        found[rule] = f"  [{'; '.join(parts)}]" if parts else ""
    return found
