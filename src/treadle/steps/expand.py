"""From the steps asked for to drafts of tasks, the book of their functions, and what was seen of them.

pins -> survey (looking at artifacts, wave by wave) -> order (deps first) -> drafts
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct

from treadle.base.errors import CycleError, StepError
from treadle.base.place import Diagnostic
from treadle.plan.paths import relative_to
from treadle.plan.task import Call, Draft, Policy, Resources
from treadle.steps.book import Entry, StepBook
from treadle.steps.canon import canonical
from treadle.steps.paths import Places, default_prefix, is_url
from treadle.steps.record import ArtifactState, Dep, Seen
from treadle.steps.spec import StepSpec
from treadle.steps.survey import Look, Survey, see_pins
from treadle.steps.where import planned_resources, resources_of, where_of

__all__ = ["Expanded", "default_prefix", "expand_steps"]


class Expanded(Struct, frozen=True):
    """The steps of a plan: `drafts` with deps before what builds on them, `seen` by task id.

    `targets` are the ids of the steps asked for, in that order, and then of those that grew. `parents` are
    the ids of the steps that grew others, by the id of what grew.
    """

    drafts: tuple[Draft, ...]
    book: StepBook
    seen: dict[str, Seen]
    targets: tuple[str, ...]
    parents: dict[str, str] = {}


def expand_steps(
    steps: Iterable[StepSpec],
    *,
    look: Look,
    prefix: str,
    workdir: str,
    forced: Container[str] | bool = (),
    client_is_local: bool = True,
    known: Container[str] = (),
    book: StepBook | None = None,
    depths: Mapping[str, int] | None = None,
    taken: Mapping[str, str] | None = None,
) -> Expanded:
    """All steps that must be looked at to have these, as drafts.

    The deps of a step whose artifact is complete are not visited through it, unless it or one below it has
    `inputs`, or it is made again: it is forced (its task id is in `forced`, or that is True) or mutable. On
    the way to a forced step deeper down, the steps in between are visited as well. A complete step with
    `grow` grows here; those that are met below another complete step are looked at for that, and not made.
    `known` are task ids that the run has already: they are needed by id and not drafted again; `taken` are
    the output paths of these that were set by hand, each with the name of its step. `depths` tell, by
    identity, how deep steps that are asked for have grown. `book` takes the entries in (a new one if None).
    `look` may be called from several threads.

    Raises `StepError` with all that does not go together, `CycleError`, and what `look` raises.
    """
    asked = _checked(steps)
    see_pins(asked, known)
    places = Places(prefix, workdir)
    all_forced = forced is True
    chosen = () if isinstance(forced, bool) else forced
    survey = Survey(
        look, places, chosen, known, all_forced=all_forced, depths=depths or {}, taken=taken or {}
    )
    survey.go(asked)
    order = list(_post_order(survey))
    _refuse(survey, order)
    return _Drafter(survey, places, workdir, client_is_local).drafted(
        order, StepBook() if book is None else book
    )


def _checked(steps: Iterable[StepSpec]) -> list[StepSpec]:
    asked = list(steps)
    faults = [
        Diagnostic("no-step", f"steps[{number}]: a StepSpec is wanted, not {one!r}")
        for number, one in enumerate(asked)
        if not isinstance(one, StepSpec)
    ]
    if faults:
        raise StepError(faults)
    return asked


def _post_order(survey: Survey) -> Iterator[StepSpec]:
    """The visited steps, each after its deps. Raises `CycleError`.

    Deps are made before what builds on them and cannot be changed, so there is no cycle, unless someone
    went behind our back; then it must not become an endless loop.
    """
    steps, through = survey.steps, survey.through
    begun: dict[str, bool] = {}  # False: it is on the way from the root; True: done
    for root in survey.targets:
        if root not in steps or root in begun:
            continue
        begun[root] = False
        stack = [(root, iter(through.get(root, ())))]
        while stack:
            identity, deps = stack[-1]
            for dep in deps:
                below = dep.identity
                state = begun.get(below)
                if state is None and below in steps:
                    begun[below] = False
                    stack.append((below, iter(through.get(below, ()))))
                    break
                if state is False:
                    raise _cycle([steps[one] for one, _ in stack], steps[below])
            else:
                stack.pop()
                begun[identity] = True
                yield steps[identity]


def _cycle(way: list[StepSpec], back: StepSpec) -> CycleError:
    start = next(number for number, spec in enumerate(way) if spec.identity == back.identity)
    circle = way[start:][::-1]
    names = [spec.name_with_hash for spec in circle]
    error = CycleError(
        f"steps need each other in a circle: {' -> '.join((*names, names[0]))}",
        hint="each is needed by the next: take one of these deps away",
    )
    error.path = tuple(spec.task_id for spec in circle)
    return error


def _refuse(survey: Survey, order: Iterable[StepSpec]) -> None:
    """Tell all that does not go together at once."""
    faults = survey.faults
    for spec in order:
        if not spec.mutable:
            for dep in spec.deps:
                if dep.mutable:
                    faults.append(
                        Diagnostic(
                            "mutable-dep",
                            f"{spec.name_with_hash} builds on {dep.name_with_hash}, whose version "
                            f"{dep.version!a} is a development version",
                            hint="it would be made once and never again: give it a development version, too, "
                            "or give the dep a fixed one",
                        )
                    )
        if spec.fn is None and not survey.complete(spec):
            faults.append(
                Diagnostic(
                    "nothing-to-call",
                    f"{spec.name_with_hash} has no function (fn=None), and no complete artifact stands at "
                    f"{survey.paths[spec.identity]}",
                    hint="give it a function, or the prefix or path where its artifact stands",
                )
            )
    if faults:
        raise StepError(faults)


class _Drafter:
    """Makes the draft and the entry of one step after the other; what many share is made once."""

    def __init__(self, survey: Survey, places: Places, workdir: str, client_is_local: bool) -> None:
        self._survey = survey
        self._places = places
        self._workdir = workdir
        self._inside = workdir + "/"
        self._client_is_local = client_is_local
        self._policies: dict[tuple[int, bool], Policy] = {}
        self._resources: dict[tuple[int, float | None], Resources] = {}

    def drafted(self, order: Iterable[StepSpec], book: StepBook) -> Expanded:
        drafts = []
        seen = {}
        for spec in order:
            task = spec.task_id
            seen[task] = self._survey.seen[spec.identity]
            drafts.append(self._draft(spec))
            book.put(task, self._entry(spec))
        survey = self._survey
        targets = tuple(spec.task_id for spec in survey.targets.values())
        parents = {}
        if survey.parents:
            parents = {survey.targets[grown].task_id: parent for grown, parent in survey.parents.items()}
        return Expanded(tuple(drafts), book, seen, targets, parents)

    def _draft(self, spec: StepSpec) -> Draft:
        return Draft(
            rule=f"@{spec.name}",
            call=self._call(spec),
            steps=self._needed(spec),
            inputs=spec.inputs,
            born=self._born(spec),
            resources=self._resources_of(spec),
            policy=self._policy(spec),
        )

    def _born(self, spec: StepSpec) -> tuple[str, ...]:
        """By what it was grown, where that is in the same plan."""
        parents = self._survey.parents
        parent = parents.get(spec.identity) if parents else None
        return () if parent is None else (parent,)

    def _call(self, spec: StepSpec) -> Call:
        path = self._survey.paths[spec.identity]
        return Call(
            step=spec.name,
            identity=spec.identity,
            path=path if is_url(path) else self._relative(path),
            where=where_of(spec, client_is_local=self._client_is_local),
            version=spec.version,
            attrs=canonical(spec.hash_attrs) if spec.hash_attrs else "{}",
            code=spec.code,
            mutable=spec.mutable and spec.fn is not None,
            grows=spec.grow is not None,
            drift=spec.drift,
            code_policy=spec.code_policy,
        )

    def _relative(self, path: str) -> str:
        """The path as the plan spells it; nearly all lie plainly under the work folder."""
        inside = path.removeprefix(self._inside)
        plain = len(inside) < len(path) and "//" not in path and "/." not in inside
        if plain and inside[-1:] not in ("", "/", ".") and not inside.startswith(("./", "../")):
            return inside
        return relative_to(path, self._workdir)

    def _needed(self, spec: StepSpec) -> tuple[str, ...]:
        """The deps that are visited through it, or were in the run before."""
        deps = self._survey.through.get(spec.identity, ())
        return tuple(dict.fromkeys([dep.task_id for dep in deps])) if deps else ()

    def _entry(self, spec: StepSpec) -> Entry:
        survey = self._survey
        seen, wanted = survey.seen[spec.identity], survey.complete(spec) and not survey.served(spec)
        deps = tuple([Dep(dep.name, dep.identity, self._path(dep)) for dep in spec.deps]) if spec.deps else ()
        return Entry(
            spec=spec,
            path=survey.paths[spec.identity],
            deps=deps,
            wanted=wanted,
            replaces=seen.record if wanted else None,
            tried=seen.state is not ArtifactState.ABSENT or seen.status is not None,
            depth=survey.depths.get(spec.identity, 0) if survey.depths else 0,
            prefix=self._places.prefix,
        )

    def _path(self, dep: StepSpec) -> str:
        paths = self._survey.paths
        found = paths.get(dep.identity)
        if found is None:
            found = paths[dep.identity] = self._places.of(dep)
        return found

    def _policy(self, spec: StepSpec) -> Policy:
        key = (spec.retries, spec.resumable)
        found = self._policies.get(key)
        if found is None:
            found = self._policies[key] = Policy(retries=spec.retries, resumable=spec.resumable)
        return found

    def _resources_of(self, spec: StepSpec) -> Resources:
        key = (id(resources_of(spec)), spec.timeout)
        found = self._resources.get(key)
        if found is None:
            found = self._resources[key] = planned_resources(spec)
        return found
