"""Rules and steps in one plan: the files of a workflow's `[[steps]]` loaded, and drafts for their steps.

[[steps]] -> load -> names and paths -> (rules are expanded with them) -> drafts of the steps
"""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.api import pipeline
from treadle.api.pipeline_plan import places_of
from treadle.api.step_names import StepNames
from treadle.api.steps_grown import named_steps
from treadle.api.steps_pipe import Looker, Places, see_possible, with_made_inputs
from treadle.api.still_to_grow import Names
from treadle.base.errors import OptionError, UserError, WorkflowError
from treadle.base.names import step_id
from treadle.base.place import Diagnostic
from treadle.plan.task import Draft
from treadle.rules.schema import StepModule, StepPath, Workflow
from treadle.steps import paths
from treadle.steps.book import StepBook
from treadle.steps.expand import expand_steps
from treadle.steps.record import Seen
from treadle.steps.spec import StepSpec

if TYPE_CHECKING:
    from treadle.api.pipe import Request


class _Loaded(Struct, frozen=True):
    """The steps of one `[[steps]]` table."""

    steps: tuple[StepSpec, ...]
    places: Places
    names: StepNames


class StepDrafts(Struct, frozen=True):
    """The steps of a workflow on their way into its plan. `roots` and `parents` as in `Planned`."""

    drafts: tuple[Draft, ...]
    book: StepBook
    seen: dict[str, Seen]
    roots: tuple[str, ...]
    parents: dict[str, str]


class Modules:
    """The files of Python steps of one workflow, loaded; `names` is what `{step.NAME}` stands for.

    Raises `WorkflowError` with all that is wrong with the files.
    """

    def __init__(self, workflow: Workflow, request: Request, workdir: str) -> None:
        self._loaded: list[_Loaded] = []
        self._workdir = workdir
        found: list[Diagnostic] = []
        for module in workflow.modules:
            try:
                self._loaded.append(_load(module, workflow, request, workdir))
            except UserError as error:
                found += (_placed(one, module) for one in error.diagnostics)
        if found:
            raise WorkflowError(found)
        self.names, self.growing = self._named([one.names for one in self._loaded], ())

    @property
    def grows(self) -> bool:
        """Whether any of the steps grows others."""
        return any(step.bears_growth for one in self._loaded for step in one.steps)

    def named(self, pending: Collection[str]) -> tuple[dict[str, StepPath], tuple[str, ...]]:
        """What `{step.NAME}` stands for by now, and who may still grow more: what those had grown that are
        `pending` does not count."""
        return self._named([_names(one.steps, one.places) for one in self._loaded], pending)

    def _named(
        self, several: Sequence[StepNames], pending: Collection[str]
    ) -> tuple[dict[str, StepPath], tuple[str, ...]]:
        growing: list[str] = []
        for names in several:
            growing += [step.task_id for step in names.growing]
            growing += [parent for parent in dict.fromkeys(names.parents.values()) if parent in pending]
        known = _joined([names.paths(without=pending) for names in several])
        return (Names(known) if growing else known), tuple(dict.fromkeys(growing))

    def groups(self) -> list[tuple[tuple[StepSpec, ...], Places]]:
        """The steps that each file lists, and where they run."""
        return [(one.steps, one.places) for one in self._loaded]

    def chosen(self, targets: Sequence[str], where: str) -> list[tuple[StepSpec, str]]:
        """The steps that the targets name (without targets all that the files list), and their paths.

        Raises `OptionError` for all names that no step has.
        """
        wrong = [t for t in dict.fromkeys(targets) if not any(one.names.find(t) for one in self._loaded)]
        if wrong:
            raise OptionError(
                Diagnostic(
                    "unknown-target", f"{t} is no step of {where}", hint=self._loaded[0].names.hint(t, where)
                )
                for t in wrong
            )
        return [
            (step, paths.Places(one.places.prefix, self._workdir).of(step))
            for one in self._loaded
            for step in ([s for t in targets for s in one.names.find(t)] if targets else one.steps)
        ]

    def more_drafts(
        self,
        rules: Iterable[Draft],
        before: StepDrafts,
        made: Collection[str],
        pending: Collection[str],
    ) -> StepDrafts:
        """The drafts from `before`, and those of steps that the rules read besides, or that have grown since.

        `made` are the tasks that ran meanwhile, and `pending` those that are still to end: what these had
        grown before does not count.
        """
        read = {folder for draft in rules for path in draft.inputs for folder in _and_above(path)}
        book, seen, roots = before.book, dict(before.seen), list(before.roots)
        drafts, parents = list(before.drafts), dict(before.parents)
        looks = {task: Looker(self._loaded[0].places) for task in made if task in seen}
        seen.update((task, look(book[task].spec, book[task].path)) for task, look in looks.items())
        taken = {
            book[task].path: book[task].spec.name_with_hash
            for task in seen
            if book[task].spec.override_output_path is not None
        }
        for one in self._loaded:
            names = _names(one.steps, one.places)
            born = [
                step
                for step in names.every
                if (parent := names.parents.get(step.task_id)) is not None and parent not in pending
            ]
            needed = [step for path, step in names.by_path().items() if path in read]
            expanded = expand_steps(
                dict.fromkeys(step for step in (*born, *needed) if step.task_id not in seen),
                look=Looker(one.places),
                prefix=one.places.prefix,
                workdir=self._workdir,
                client_is_local=one.places.client_is_local,
                known=frozenset(seen),
                book=book,
                taken=taken,
            )
            see_possible(expanded.drafts, book, expanded.seen)
            paths_of = {draft.call.identity: draft.call.path for draft in drafts if draft.call is not None}
            seen.update(expanded.seen)
            drafts += with_made_inputs(tuple(_born(expanded.drafts, names.parents, seen)), book, paths_of)
            roots += expanded.targets
            parents.update({**names.parents, **expanded.parents})
        return StepDrafts(tuple(drafts), book, seen, tuple(roots), parents)

    def drafts(self, rules: Iterable[Draft], request: Request) -> StepDrafts:
        """Drafts of all steps that the files list, that the rules read, or that the request names."""
        read = {folder for draft in rules for path in draft.inputs for folder in _and_above(path)}
        book, drafts, seen = StepBook(), [], {}  # type: StepBook, list[Draft], dict[str, Seen]
        roots, parents = [], {}  # type: list[str], dict[str, str]
        for one in self._loaded:
            named = [step for target in request.targets for step in one.names.find(target)]
            needed = [step for path, step in one.names.by_path().items() if path in read]
            expanded = expand_steps(
                dict.fromkeys([*one.steps, *named, *needed]),
                look=Looker(one.places),
                prefix=one.places.prefix,
                workdir=self._workdir,
                forced=_forced(request, named),
                client_is_local=one.places.client_is_local,
                known=frozenset(seen),
                book=book,
            )
            see_possible(expanded.drafts, book, expanded.seen)
            seen.update(expanded.seen)
            drafts += _born(expanded.drafts, one.names.parents, seen)
            roots += expanded.targets
            parents.update({**one.names.parents, **expanded.parents})
        return StepDrafts(tuple(with_made_inputs(drafts, book)), book, seen, tuple(roots), parents)


def _born(drafts: Iterable[Draft], parents: Mapping[str, str], there: Container[str]) -> Iterator[Draft]:
    """The drafts, also those that rules name, with what grew them where that is in the plan."""
    from msgspec.structs import replace

    for draft in drafts:
        task = step_id(draft.call.step, draft.call.identity) if draft.call is not None else ""
        parent = parents.get(task, "")
        yield replace(draft, born=(parent,)) if parent in there and not draft.born else draft


def _forced(request: Request, named: Sequence[StepSpec]) -> frozenset[str] | bool:
    if request.force and request.targets:
        return frozenset([step.task_id for step in named])
    return request.force


def _and_above(path: str) -> Iterator[str]:
    """The path, and the folders that it lies in."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _load(module: StepModule, workflow: Workflow, request: Request, workdir: str) -> _Loaded:
    file = os.path.join(workflow.folder, module.module)
    if not workflow.file.startswith("/"):
        file = os.path.relpath(file)
    found = pipeline.load(file, module.name, module.params)
    steps, more = found.pulled()
    if more:
        message = f"{module.module} yields more than {len(steps):,} steps, and a plan of rules holds them all"
        hint = "run it by itself: treadle run " + module.module
        raise WorkflowError([Diagnostic("stream-in-plan", message, module.place, hint)])
    places = places_of(request, workdir, module.prefix)
    names = _names(steps, places)
    if found.picked:
        steps = tuple(names.chosen((found.picked,), module.module))
        names = _names(steps, places)
    return _Loaded(steps, places, names)


def _names(steps: Sequence[StepSpec], places: Places) -> StepNames:
    """The steps of a file, and what has grown of them, by name."""
    where = paths.Places(places.prefix, places.workdir)
    return named_steps(steps, where, places.workdir, unsafe_locks=places.unsafe_locks)


def _placed(one: Diagnostic, module: StepModule) -> Diagnostic:
    from msgspec.structs import replace

    return one if one.place.file else replace(one, place=module.place)


def _joined(several: Sequence[dict[str, StepPath]]) -> dict[str, StepPath]:
    """The names of all files; one that stands for different artifacts stands for none."""
    found: dict[str, StepPath] = {}
    for names in several:
        for name, path in names.items():
            known = found.setdefault(name, path)
            if known != path:
                both = [*_spelled(known, found), *_spelled(path, names)]
                found[name] = tuple(dict.fromkeys(both))
    return found


def _spelled(path: StepPath, names: dict[str, StepPath]) -> tuple[str, ...]:
    """The names with hash of what a name stands for."""
    if isinstance(path, tuple):
        return path
    longest = max((name for name, known in names.items() if known == path), key=len)
    return (longest,)
