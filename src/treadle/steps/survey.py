"""Which steps a run must look at: from those asked for down to complete artifacts, wave by wave.

A wave is looked at in parallel where looking waits. No recursion: a chain of 100,000 steps is 100,000 waves.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from time import perf_counter

from treadle.base.errors import StepError
from treadle.base.place import Diagnostic
from treadle.steps.grow import grown_by, see_depth
from treadle.steps.paths import Places
from treadle.steps.record import ArtifactState, Seen
from treadle.steps.spec import StepSpec
from treadle.steps.twins import Twins

Look = Callable[[StepSpec, str], Seen]
_THREADS = 16
_TRIED = 4  # looks that tell whether looking waits
_WAITS = 0.0005  # seconds of one look: above, threads win; below, they only take turns


class Survey:
    """The steps that were met, in the order of the waves: by identity, each with what was seen of it.

    `through` are the deps that are visited through a step; `targets` the steps asked for and grown. `depths`
    are those of grown steps and of what was met through them, `parents` the task ids of who grew them.
    """

    def __init__(
        self,
        look: Look,
        places: Places,
        forced: Container[str],
        known: Container[str],
        *,
        all_forced: bool,
        depths: Mapping[str, int],
        taken: Mapping[str, str],
    ) -> None:
        self.steps: dict[str, StepSpec] = {}
        self.seen: dict[str, Seen] = {}
        self.paths: dict[str, str] = {}
        self.through: dict[str, tuple[StepSpec, ...]] = {}
        self.targets: dict[str, StepSpec] = {}
        self.depths: dict[str, int] = dict(depths)
        self.parents: dict[str, str] = {}
        self.faults: list[Diagnostic] = []
        self._look = look
        self._places = places
        self._forced = forced
        self._known = known
        self._above: set[str] = set()
        self._all_forced = all_forced
        self._growing: list[StepSpec] = []
        self._aside: dict[str, StepSpec] = {}  # below what is complete: looked at, since they may have grown
        self._twins = Twins(places, self.faults, taken)

    def go(self, asked: Sequence[StepSpec]) -> None:
        """Visit all that must be visited. Raises `StepError`, and what looking raises."""
        if self._forced and not self._all_forced:
            self._above = _above(asked, self._forced, self._known)
        wave = self._ask(asked)
        while wave:
            for spec, seen in zip(wave, self._looked_at(wave)):
                self.seen[spec.identity] = seen
            following: list[StepSpec] = []
            for spec in wave:
                if spec.identity in self.steps:
                    following += self._from(spec)
                else:
                    following += self._from_aside(spec)
            wave = following or self._grown()

    def served(self, spec: StepSpec) -> bool:
        """Whether the artifact that is there is taken, as far as the artifact alone tells."""
        return self.complete(spec) and not (self.rebuilt(spec) and spec.fn is not None)

    def complete(self, spec: StepSpec) -> bool:
        """Whether an artifact stands there that can be served."""
        state = self.seen[spec.identity].state
        return state is ArtifactState.COMPLETE or (state is ArtifactState.OTHER and spec.drift == "warn")

    def rebuilt(self, spec: StepSpec) -> bool:
        """Whether it is made again whatever stands there."""
        return spec.mutable or self._all_forced or (bool(self._forced) and spec.task_id in self._forced)

    def _ask(self, specs: Iterable[StepSpec], depth: int = 0) -> list[StepSpec]:
        specs = list(specs)
        for spec in specs:
            self.targets.setdefault(spec.identity, spec)
        return self._new(specs, depth)

    def _new(self, specs: Iterable[StepSpec], depth: int = 0) -> list[StepSpec]:
        """Those of the steps that were not met before."""
        found = []
        for spec in specs:
            identity = spec.identity
            first = self.steps.get(identity)
            if first is spec:
                continue
            if first is not None:
                self.steps[identity] = self._twins.one_of(first, spec)
            elif not self._known or spec.task_id not in self._known:
                self.steps[identity] = spec
                self.paths[identity] = self._places.of(spec)
                if depth or self.depths:
                    see_depth(spec, self.depths.setdefault(identity, depth))
                found.append(spec)
        return found

    def _from(self, spec: StepSpec) -> list[StepSpec]:
        """What is met through a step that was looked at."""
        spec = self.steps[spec.identity]
        self._twins.see_place(spec, self.paths[spec.identity])
        served = self.served(spec)
        more: list[StepSpec] = []
        if served and spec.grow is not None:
            self._growing.append(spec)
        if not served or spec.bears_inputs:
            deps = spec.deps
        elif spec.identity in self._above:
            deps = tuple(dep for dep in spec.deps if dep.identity in self._above)
        else:
            deps = ()
        if deps:
            self.through[spec.identity] = deps
            more += self._new(deps, self.depths.get(spec.identity, 0))
        if served and spec.bears_growth:
            more += self._grow_below(spec)
        return more

    def _grown(self) -> list[StepSpec]:
        """What has grown of the complete steps that were met, as far as it was not met before.

        Only now that all is met which does not hang on them: so a step counts as grown where nothing else
        leads to it, and what it was grown by does not build on it.
        """
        growing, self._growing = self._growing, []
        more: list[StepSpec] = []
        for spec in growing:
            found = grown_by(spec, self.seen[spec.identity].record)
            see_pins(found, self._known)
            fresh = self._ask(found, self.depths.get(spec.identity, 0) + 1)
            self.parents.update((one.identity, spec.task_id) for one in fresh)
            more += fresh
        return more

    def _grow_below(self, spec: StepSpec) -> list[StepSpec]:
        """The steps with `grow` below one that is complete: these are not made for its sake, but what has
        grown of them belongs to the run."""
        found = []
        depth = self.depths.get(spec.identity, 0)
        stack = [dep for dep in spec.deps if dep.bears_growth]
        while stack:
            dep = stack.pop()
            identity = dep.identity
            if identity in self._aside or identity in self.steps or dep.task_id in self._known:
                continue
            self._aside[identity] = dep
            if depth:
                self.depths.setdefault(identity, depth)
            if dep.grow is None:
                stack += (one for one in dep.deps if one.bears_growth)
            else:
                self.paths[identity] = self._places.of(dep)
                found.append(dep)
        return found

    def _from_aside(self, spec: StepSpec) -> list[StepSpec]:
        """What is met through a step below one that is complete."""
        if not self.served(spec):
            return self._grow_below(spec)
        self.steps[spec.identity] = self.targets[spec.identity] = spec
        return self._from(spec)

    def _looked_at(self, wave: Sequence[StepSpec]) -> Iterator[Seen]:
        work = [(spec, self.paths[spec.identity]) for spec in wave]
        quickest = _WAITS  # the first look may open a store, the next one may have met a busy moment
        for one in work[:_TRIED]:
            started = perf_counter()
            seen = self._look(*one)
            quickest = min(quickest, perf_counter() - started)
            yield seen
        rest = work[_TRIED:]
        if rest and quickest >= _WAITS:
            from treadle.steps.parallel import in_parallel

            yield from in_parallel(lambda one: self._look(*one), rest, _THREADS)
        else:
            for one in rest:
                yield self._look(*one)


def see_pins(asked: Iterable[StepSpec], known: Container[str]) -> None:
    """Compare every `expected_identity` from these steps on down. Raises `StepError` with all that differ."""
    faults = []
    stack = [spec for spec in asked if spec.bears_pins]
    met: set[int] = set()  # objects: two of one identity may be pinned differently
    while stack:
        spec = stack.pop()
        if id(spec) in met:
            continue
        met.add(id(spec))
        pin = spec.expected_identity
        if pin and not spec.identity.startswith(pin):
            faults.append(
                Diagnostic(
                    "identity-pinned",
                    f"step {spec.name!a} is pinned to identity {pin}, but has {spec.identity[: len(pin)]}",
                    hint="its name, hash_attrs, version, inputs or what it builds on changed: undo that, or "
                    "pin the new one",
                )
            )
        stack.extend(dep for dep in spec.deps if dep.bears_pins and dep.task_id not in known)
    if faults:
        raise StepError(dict.fromkeys(faults))


def _above(asked: Iterable[StepSpec], forced: Container[str], known: Container[str]) -> set[str]:
    """The identities of forced steps, and of all that builds on them; no recursion."""
    above: set[str] = set()
    done: set[str] = set()
    stack = [(spec, False) for spec in asked]
    while stack:
        spec, left = stack.pop()
        identity = spec.identity
        if left:
            if spec.task_id in forced or any(dep.identity in above for dep in spec.deps):
                above.add(identity)
        elif identity not in done:
            done.add(identity)
            stack.append((spec, True))
            stack.extend(
                (dep, False) for dep in spec.deps if dep.identity not in done and dep.task_id not in known
            )
    return above
