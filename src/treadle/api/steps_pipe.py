"""From steps to the plan of their tasks: the front half of the pipe for Python steps.

steps -> expand (looking at artifacts) -> build -> Planned; `pipe.view_of` goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.pipe import Planned
from treadle.base.errors import StepError
from treadle.base.names import step_id
from treadle.base.place import Diagnostic
from treadle.decide.reason import Decision, Verdict
from treadle.plan.build import build
from treadle.plan.task import Draft
from treadle.rules.expand.expansion import Expansion
from treadle.rules.schema import Workflow
from treadle.steps.record import ArtifactState, Seen

if TYPE_CHECKING:
    from treadle.steps.book import StepBook
    from treadle.steps.record import ArtifactRecord
    from treadle.steps.spec import StepSpec
    from treadle.steps.store import ArtifactStore

NAME = "steps"  # of a plan that no file names; evidence of steps with inputs is kept under it
PREVIEWED = 10_000  # steps of a stream that a preview pulls


class Places(Struct, frozen=True, kw_only=True):
    """Where steps run and where their artifacts stand: read once, when the plan is built.

    `workdir` is absolute, `prefix` a path or a URL. `unsafe_locks` lets object stores be used that know no
    conditional writes.
    """

    workdir: str
    prefix: str
    unsafe_locks: bool = False
    client_is_local: bool = True


class Looker:
    """Looks at artifacts, through one store for each place."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._stores: dict[str, ArtifactStore] = {}

    def __call__(self, spec: StepSpec, path: str) -> Seen:
        """What stands at the output path of a step."""
        return self.store(path).look(path, spec.identity)

    def store(self, path: str) -> ArtifactStore:
        """The store of a path: one for all that is local, one for each bucket."""
        scheme, mark, rest = path.partition("://")
        place = f"{scheme}{mark}{rest.partition('/')[0]}" if mark else ""
        found = self._stores.get(place)
        if found is None:
            from treadle.steps.stores import store_for

            found = self._stores[place] = store_for(path, unsafe_locks=self._places.unsafe_locks)
        return found


def steps_planned(
    steps: Sequence[StepSpec],
    places: Places,
    *,
    workflow: Workflow | None = None,
    forced: Container[str] = frozenset(),
    known: Container[str] = frozenset(),
    look: Looker | None = None,
) -> Planned:
    """The plan of these steps and of all that must be looked at below them.

    `forced` and `known` are task ids: of steps that are made again whatever stands there, and of those that
    earlier batches of the same run hold. Complete steps that grow have grown in it. Raises `StepError`,
    `PlanError`, `CycleError` with all that is wrong.
    """
    from treadle.steps.expand import expand_steps

    look = look or Looker(places)
    asked = list(steps)
    grown: set[str] = set()
    while True:
        expanded = expand_steps(
            asked,
            look=look,
            prefix=places.prefix,
            workdir=places.workdir,
            forced=forced,
            client_is_local=places.client_is_local,
            known=known,
        )
        more = list(_grown(expanded.book, expanded.drafts, expanded.seen, forced, grown))
        if not more:
            break
        asked += more
    drafts = _with_made_inputs(expanded.drafts, expanded.book)
    workflow = workflow or Workflow(file="", folder=places.workdir, name=NAME)
    plan = build(
        workflow.name,
        drafts,
        pools=workflow.pools,
        roots=tuple(dict.fromkeys((places.workdir, os.path.realpath(places.workdir)))),
        known=known,
    )
    return Planned(
        workflow=workflow,
        expansion=Expansion(drafts=()),
        plan=plan,
        selected=None,
        workdir=places.workdir,
        book=expanded.book,
        seen=expanded.seen,
    )


def note_rebuilds(book: StepBook, seen: Mapping[str, Seen], decision: Decision) -> None:
    """Tell the book which steps are wanted again though they are complete, and what they replace."""
    for task, answer in decision.answers.items():
        if answer.verdict is Verdict.WILL_RUN and task in book:
            found = seen.get(task)
            if found is not None and found.record is not None:
                wanted = found.state is ArtifactState.COMPLETE
                book.put(task, replace(book[task], wanted=wanted, replaces=found.record))


def grow(spec: StepSpec, record: ArtifactRecord | None) -> list[StepSpec]:
    """The steps that the result of a step makes: its `grow`, called in the driver.

    Raises what `grow` raises, and `StepError` for what it gives that is no step.
    """
    from treadle.steps.result import value_of
    from treadle.steps.spec import StepSpec

    if spec.grow is None or record is None:
        return []
    given: Any = spec.grow(value_of(record))
    if isinstance(given, StepSpec):
        return [given]
    found = list(given) if isinstance(given, Iterable) else [given]
    return [checked(one, f"grow of step '{spec.name}'") for one in found if one is not None]


def checked(thing: object, who: str) -> StepSpec:
    """The thing, seen to be a step."""
    from treadle.steps.spec import StepSpec

    if isinstance(thing, StepSpec):
        return thing
    message = f"{who} gave {type(thing).__name__}, not a StepSpec"
    raise StepError([Diagnostic("no-step", message, hint="give it StepSpec objects")])


def _grown(
    book: StepBook,
    drafts: Iterable[Draft],
    seen: Mapping[str, Seen],
    forced: Container[str],
    grown: set[str],
) -> Iterable[StepSpec]:
    """What the complete steps have grown that have not been asked yet; one that is made again grows then."""
    for draft in drafts:
        call = draft.call
        if call is None or not call.grows or call.mutable:
            continue
        task = step_id(call.step, call.identity)
        found = seen.get(task)
        if found is None or task in grown or task in forced or book[task].spec.bears_inputs:
            continue
        if found.state is ArtifactState.COMPLETE:
            grown.add(task)
            yield from grow(book[task].spec, found.record)


def _with_made_inputs(drafts: Sequence[Draft], book: StepBook) -> Sequence[Draft]:
    """The drafts; where inputs stand below a step, the artifacts from there are its inputs, too.

    So what they hold is evidence, and what builds on them is cut off where it did not change.
    """
    paths = {draft.call.identity: draft.call.path for draft in drafts if draft.call is not None}
    return [_with_made(draft, book, paths) for draft in drafts]


def _with_made(draft: Draft, book: StepBook, paths: Mapping[str, str]) -> Draft:
    if draft.call is None:
        return draft
    spec = book[step_id(draft.call.step, draft.call.identity)].spec
    if not spec.bears_inputs:
        return draft
    made = [paths[dep.identity] for dep in spec.deps if dep.bears_inputs and dep.identity in paths]
    return replace(draft, inputs=tuple(dict.fromkeys((*draft.inputs, *made)))) if made else draft
