"""From steps to the plan of their tasks: the front half of the pipe for Python steps.

steps -> expand (looking at artifacts) -> build -> Planned; `pipe.view_of` goes on from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.view import Planned
from treadle.base.names import step_id
from treadle.decide.reason import Decision, Verdict
from treadle.plan.build import build
from treadle.plan.paths import is_url, record_of
from treadle.plan.task import Draft, Where
from treadle.rules.expand.expansion import Expansion
from treadle.rules.schema import Workflow
from treadle.steps.absent import NOTHING, Absent
from treadle.steps.killed import with_killed
from treadle.steps.record import ArtifactState, Seen
from treadle.steps.stores import store_for

if TYPE_CHECKING:
    from treadle.steps.book import StepBook
    from treadle.steps.spec import StepSpec
    from treadle.steps.store import ArtifactStore

NAME = "steps"  # of a plan that no file names; evidence of steps with inputs is kept under it
PREVIEWED = 10_000  # steps of a stream that a preview pulls


class Places(Struct, frozen=True, kw_only=True):
    """Where steps run and where their artifacts stand: read once, when the plan is built.

    `workdir` is absolute, `prefix` a path or a URL. `unsafe_locks` lets object stores be used that know no
    conditional writes. `groups` are counted resources by name, where no workflow tells of them.
    """

    workdir: str
    prefix: str
    unsafe_locks: bool = False
    client_is_local: bool = True
    groups: tuple[tuple[str, int], ...] = ()


def client_is_local() -> bool:
    """Whether the current client stands for this machine, as it does where nobody says otherwise."""
    if "TREADLE_CLIENT" not in os.environ and "treadle.backends.clients" not in sys.modules:
        return True
    from treadle.backends.clients import current_client

    return bool(current_client().is_local)


class Looker:
    """Looks at artifacts, in the store of each.

    Where one look after the other finds nothing in a folder its names are read at once, and for a moment
    these tell what is not there.
    """

    def __init__(self, places: Places) -> None:
        self._unsafe_locks = places.unsafe_locks
        self._local: ArtifactStore | None = None
        self._absent = Absent()

    def __call__(self, spec: StepSpec, path: str) -> Seen:
        """What stands at the output path of a step, and what is left of an attempt that was killed."""
        if path[0] != "/":  # hardly ever so
            store = store_for(path, unsafe_locks=self._unsafe_locks)
        elif self._absent.surely(path):
            return NOTHING
        else:
            store = self._local = self._local or store_for(path)
        seen = store.look(path, spec.identity)
        if seen.state is not ArtifactState.ABSENT:
            return seen
        if path[0] == "/":
            self._absent.note(path)
        return with_killed(seen, store, spec, path)


def steps_planned(
    steps: Sequence[StepSpec],
    places: Places,
    *,
    workflow: Workflow | None = None,
    forced: Container[str] | bool = frozenset(),
    known: Container[str] = frozenset(),
    look: Looker | None = None,
    made: Mapping[str, str] | None = None,
    depths: Mapping[str, int] | None = None,
    taken: Mapping[str, str] | None = None,
) -> Planned:
    """The plan of these steps and of all that must be looked at below them.

    `forced` and `known` are task ids: of steps that are made again whatever stands there, and of those that
    earlier batches of the same run hold; `made` are the artifacts of these on which evidence hangs, by their
    identity; `depths` and `taken` as `expand_steps` takes them. Raises `StepError`, `PlanError`, `CycleError`
    with all that is wrong.
    """
    from treadle.steps.expand import expand_steps

    expanded = expand_steps(
        steps,
        look=look or Looker(places),
        prefix=places.prefix,
        workdir=places.workdir,
        forced=forced,
        client_is_local=places.client_is_local,
        known=known,
        depths=depths,
        taken=taken,
    )
    see_possible(expanded.drafts, expanded.book, expanded.seen)
    drafts = with_made_inputs(expanded.drafts, expanded.book, made)
    workflow = workflow or Workflow(file="", folder=places.workdir, name=NAME, pools=places.groups)
    plan = build(
        workflow.name,
        drafts,
        pools=workflow.pools,
        roots=tuple(dict.fromkeys((places.workdir, os.path.realpath(places.workdir)))),
        known=known,
    )
    if made:
        earlier = {path for artifact in made.values() for path in _read_of(artifact)}
        plan = replace(plan, sources=plan.sources - earlier)
    return Planned(
        workflow=workflow,
        expansion=Expansion(drafts=()),
        plan=plan,
        selected=None,
        workdir=places.workdir,
        book=expanded.book,
        seen=expanded.seen,
        roots=expanded.targets,
        parents=expanded.parents,
    )


def see_possible(drafts: Sequence[Draft], book: StepBook, seen: Mapping[str, Seen]) -> None:
    """See that the current client can do what the steps ask for that are to be made. Raises `StepError`."""
    asking = []
    for draft in drafts:
        if draft.call is not None and draft.call.where is not Where.THREAD:
            task = step_id(draft.call.step, draft.call.identity)
            if book[task].wanted or seen[task].state is not ArtifactState.COMPLETE:
                asking.append((book[task].spec, book[task].path))
    if asking:
        from treadle.backends.clients import current_client, refuse_impossible

        refuse_impossible(current_client(), asking)


def note_rebuilds(book: StepBook, seen: Mapping[str, Seen], decision: Decision) -> None:
    """Tell the book which steps are wanted again though they are complete, and what they replace."""
    for task, answer in decision.answers.items():
        if answer.verdict is Verdict.WILL_RUN and task in book:
            found = seen.get(task)
            if found is not None and found.record is not None:
                wanted = found.state is ArtifactState.COMPLETE
                book.put(task, replace(book[task], wanted=wanted, replaces=found.record))


def with_made_inputs(
    drafts: Sequence[Draft], book: StepBook, made: Mapping[str, str] | None = None
) -> Sequence[Draft]:
    """The drafts; where inputs stand below a step, the artifacts from there are its inputs, too.

    So what they hold is evidence, and what builds on them is cut off where it did not change. `made` are
    artifacts of earlier batches, by identity.
    """
    paths = {draft.call.identity: draft.call.path for draft in drafts if draft.call is not None}
    if made:
        paths = {**made, **paths}
    return [_with_made(draft, book, paths) for draft in drafts]


def _with_made(draft: Draft, book: StepBook, paths: Mapping[str, str]) -> Draft:
    if draft.call is None:
        return draft
    spec = book[step_id(draft.call.step, draft.call.identity)].spec
    if not spec.bears_inputs:
        return draft
    made = [
        path
        for dep in spec.deps
        if dep.bears_inputs and dep.identity in paths
        for path in _read_of(paths[dep.identity])
    ]
    return replace(draft, inputs=tuple(dict.fromkeys((*draft.inputs, *made)))) if made else draft


def _read_of(artifact: str) -> tuple[str, ...]:
    """What is read of an artifact: what stands there, and the value that its record holds."""
    return (artifact,) if is_url(artifact) else (artifact, record_of(artifact))
