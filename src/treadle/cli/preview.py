"""A view in lines for people: one per rule, or one per task, and what it adds up to."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from treadle.api.pipe import View
from treadle.base.units import format_duration, format_size
from treadle.cli.again import Again
from treadle.cli.found_words import come_with, coming, found_lines
from treadle.cli.printer import Printer
from treadle.cli.words import (
    CACHED,
    STEP_NOTES,
    VERDICTS,
    count,
    listed,
    main_reason,
    reason,
    reason_kind,
    verdict,
)
from treadle.decide.reason import Answer, CohortKept, OutputMissing, Verdict
from treadle.plan.graph import critical_path
from treadle.records.event import key_of_task
from treadle.rules.expand.expansion import RuleInfo

_COLOURS = {
    Verdict.WILL_RUN: "yellow",
    Verdict.UP_TO_DATE: "green",
    Verdict.SKIPPED: "dim",
    Verdict.IN_FLIGHT: "cyan",
}

_WORTH_TELLING = 1.0  # seconds of past work
_LINKS = 4  # tasks of a critical path that are named
_OF_THE_PLAN = re.compile(r" \((?:plan|skipped)\)\Z")


def rule_lines(view: View, printer: Printer) -> Iterator[str]:
    """One line per rule: how many tasks, how many will run, for which reasons; values and gathers."""
    rules: dict[str, list[Answer]] = {rule.name: [] for rule in view.workflow.rules}
    for task_id, answer in view.decision.answers.items():
        if not task_id.startswith("@"):
            rules.setdefault(view.plan.tasks[task_id].rule, []).append(answer)
    taskless = rules.keys() - {task.rule for task in view.plan.tasks.values()}
    rules = {rule: answers for rule, answers in rules.items() if answers or rule in taskless}
    steps = [task for task in view.decision.answers if task.startswith("@")]
    width = max((len(rule) for rule in rules), default=0)
    about = _about(view.expansion.sources, rules)
    asked = _figures(view, [rule for rule, answers in rules.items() if answers])
    still = coming(view)
    for rule, answers in rules.items():
        if not answers:
            yield f"{rule:<{width}}  no tasks" + (
                f" yet: they {come_with(still[rule])}" if rule in still else ""
            )
            continue
        verdicts = Counter([answer.verdict for answer in answers])
        parts = [
            printer.style(f"{verdicts[verdict]} {VERDICTS[verdict]}", _COLOURS[verdict])
            for verdict in Verdict
            if verdicts[verdict]
        ]
        kinds = Counter(
            reason_kind(main_reason(answer.reasons))
            for answer in answers
            if answer.reasons and answer.verdict is not Verdict.UP_TO_DATE
        )
        why = ", ".join(
            f"{kind} ({number})" if len(kinds) > 1 else kind for kind, number in kinds.most_common()
        )
        more = f"; more may {come_with(still[rule])}" if rule in still else ""
        yield f"{rule:<{width}}  {', '.join(parts)}{': ' + why if why else ''}{more}{about[rule]}"
        if verdicts[Verdict.WILL_RUN] and rule in asked:
            yield printer.style(f"{'':<{width}}    {asked[rule]}", "dim")
    yield from task_lines(view, printer, steps)


def pin_lines(view: View) -> Iterator[str]:
    """One line per git pin: which commit it is."""
    for pinned, commit in pins_of(view).items():
        yield f"{pinned} is commit {commit}"


def pins_of(view: View) -> dict[str, str]:
    """The git pins of a workflow: what was asked for (`repo@ref`), and the commit that it is."""
    return {one.pinned: one.commit for one in view.workflow.includes if one.pinned}


def task_lines(view: View, printer: Printer, tasks: Iterable[str] | None = None) -> Iterator[str]:
    """One line per task (of these), with its reasons (a cascade is told once, at its root)."""
    answers = view.decision.answers
    for task_id in answers if tasks is None else tasks:
        answer = answers[task_id]
        said = printer.style(f"{verdict(answer, task_id):<10}", _COLOURS[answer.verdict])
        maybe = " (may be cut off)" if answer.may_cut_off else ""
        why = "; ".join(reason(one) for one in answer.reasons)
        if not why and answer.note in STEP_NOTES:
            why = STEP_NOTES[answer.note]
        yield f"{said}  {task_id}{_inside(view, task_id)}{maybe}{': ' + why if why else ''}"


def _inside(view: View, task: str) -> str:
    """The environment that a task runs in."""
    environment = view.plan.tasks[task].policy.environment
    if environment is None:
        return ""
    name, value = environment.said[0]
    return f" (in {name.partition('_')[0]} {value})"


def summary_lines(view: View, printer: Printer, again: Again) -> Iterator[str]:
    """What it adds up to: counts, hours at stake, peak resources, and what to do next."""
    answers = view.decision.answers
    verdicts = Counter(answer.verdict for answer in answers.values())
    to_run = view.decision.to_run()
    flying = verdicts[Verdict.IN_FLIGHT]
    steps_alone = view.book is not None and not view.workflow.rules
    noun = "step" if steps_alone else "task"
    if view.stream:
        yield f"{view.workflow.name} yields its steps one by one: each runs as soon as it can"
    elif not answers:
        yield "no steps" if steps_alone else "nothing is selected"
    elif not to_run and flying:
        yield f"{count(flying, noun)} of {len(answers)} {_at_work(view, flying)}"
    elif not to_run:
        done = f"{count(verdicts[Verdict.UP_TO_DATE], noun)} {CACHED if steps_alone else 'up to date'}"
        skipped = f", {verdicts[Verdict.SKIPPED]} skipped" if verdicts[Verdict.SKIPPED] else ""
        yield f"nothing to do: {done}{skipped}"
    else:
        yield f"{count(len(to_run), noun)} of {len(answers)} will run" + _where(view) + _maybe(view)
        if flying:
            yield f"{count(flying, noun)} {_at_work(view, flying)}"
        yield from _stakes(view, to_run)
    yield from found_lines(view)
    if view.decision.adoptable:
        number = len(view.decision.adoptable)
        yield (
            f"{count(number, 'task')} of these {'has' if number == 1 else 'have'} outputs that nobody here "
            "recorded: --adopt takes them over as up to date"
        )
    yield from _kept(view)
    yield from _unread(view)
    yield from _partial(view)
    yield from _deleted(view, again)


def _figures(view: View, rules: Iterable[str]) -> dict[str, str]:
    """By rule: what its tasks ask of the scheduler, in its own figures; nothing where the run is local."""
    cluster = view.workflow.cluster
    if cluster is None or not cluster.is_scheduler:
        return {}
    from treadle.backends.cluster.configured import settings_of  # only here
    from treadle.backends.cluster.dialects import dialect_of
    from treadle.backends.cluster.figures import figures_of

    settings = settings_of(cluster)
    dialect = dialect_of(settings)
    found = {}
    known = {rule.name: rule for rule in view.workflow.rules}
    for name in rules:
        rule = known[name]
        found[name] = "on this machine" if rule.stays else figures_of(dialect, settings, rule.resources)
    return {name: text for name, text in found.items() if text}


def hours_at_stake(view: View) -> float:
    """Seconds of work that succeeded before and would be done again."""
    return sum(_past_seconds(view).values())


def _past_seconds(view: View) -> dict[str, float]:
    """How long the tasks that will run took last time, where that is known."""
    found: dict[str, float] = {}
    for task in view.decision.to_run() if view.past.size else ():
        seconds = view.past.seconds(key_of_task(view.plan.name, view.plan.tasks[task]))
        if seconds is not None:
            found[task] = seconds
    return found


def _at_work(view: View, tasks: int) -> str:
    """What is said of tasks whose jobs an earlier run left."""
    if any(one.code == "in-flight-elsewhere" for one in view.beyond):
        return "is at work elsewhere" if tasks == 1 else "are at work elsewhere"
    return "is at work: its job is taken over" if tasks == 1 else "are at work: their jobs are taken over"


def _where(view: View) -> str:
    """` on slurm (profiles/hpc.toml)`."""
    cluster = view.workflow.cluster
    if cluster is None or cluster.backend == "local":
        return ""
    files = [os.path.relpath(file, view.workflow.folder) for file in cluster.profiles]
    shown = [there if near.startswith("..") else near for near, there in zip(files, cluster.profiles)]
    return f" on {cluster.backend}" + (f" ({', '.join(shown)})" if shown else "")


def _maybe(view: View) -> str:
    number = sum(answer.may_cut_off for answer in view.decision.answers.values())
    reads = "it reads" if number == 1 else "they read"
    return f" ({number} of them only if what {reads} comes out different)" if number else ""


def _deleted(view: View, again: Again) -> Iterator[str]:
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
            f"{again.workflow('evict', *names)}"
        )


def _stakes(view: View, to_run: list[str]) -> Iterator[str]:
    """Past times and what the largest task asks for."""
    known = _past_seconds(view)
    total = sum(known.values())
    if total >= _WORTH_TELLING:
        some = "they" if len(known) == len(to_run) > 1 else f"{len(known)} of them"
        chain, seconds = critical_path(view.plan, to_run, known)
        yield f"last time {'it' if len(to_run) == 1 else some} took {format_duration(round(total))} of work"
        if len(chain) > 1:
            yield (
                f"at least {format_duration(round(seconds))} of it is one after the other: "
                f"{listed(chain, _LINKS)}"
            )
    tasks = [view.plan.tasks[task] for task in to_run]
    threads = max(task.resources.threads for task in tasks)
    memory = max(task.resources.memory or 0 for task in tasks)
    if threads > 1 or memory:
        most = f"{count(threads, 'thread')}" + (f", {format_size(memory)} of memory" if memory else "")
        yield f"the largest asks for {most}"


def _kept(view: View) -> Iterator[str]:
    """Gathers that a selection of samples would make smaller."""
    answers = view.decision.answers.values() if view.expansion.narrowed else ()
    number = sum(any(isinstance(one, CohortKept) for one in answer.reasons) for answer in answers)
    if number:
        keeps, them = ("gather keeps what it", "it") if number == 1 else ("gathers keep what they", "them")
        yield f"{number} {keeps} made over more samples: --overwrite-cohort makes {them} over these alone"


def _unread(view: View) -> Iterator[str]:
    answers = view.decision.answers.values() if view.facts.unread else ()
    number = sum(answer.note == "unread" for answer in answers)
    if number:
        yield f"{count(number, 'task')} up to date by size and time alone: too large to be read"


def _partial(view: View) -> Iterator[str]:
    """Results that stand, but lack something."""
    tasks = [task for task, answer in view.decision.answers.items() if answer.note == "partial"]
    if tasks:
        verb = "is" if len(tasks) == 1 else "are"
        yield f"{listed(tasks)} {verb} partial: made without inputs whose tasks had failed"


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
