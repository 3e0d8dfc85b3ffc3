"""Steps by name, artifacts of which a test says how they stand, and the drafts that come of both."""

from __future__ import annotations

from treadle.steps.expand import expand_steps
from treadle.steps.record import ArtifactRecord, ArtifactState, Result, Seen
from treadle.steps.spec import StepSpec


def work(out):
    """What all these steps do: nobody calls it here."""


def other_work(out):
    return 2


def step(name, *deps, fn=work, **options):
    return StepSpec(name, fn=fn, deps=deps, **options)


class Disk:
    """What stands there: the artifacts of some steps, with their results. Remembers what was looked at."""

    def __init__(self, *complete, results=(), states=()):
        self.complete = {one.identity for one in complete}
        self.results = {one.identity: value for one, value in dict(results).items()}
        self.states = {one.identity: state for one, state in dict(states).items()}
        self.looked: list[str] = []

    def __call__(self, spec, path):
        self.looked.append(spec.name)
        state = self.states.get(spec.identity)
        if state is None:
            state = ArtifactState.COMPLETE if spec.identity in self.complete else ArtifactState.ABSENT
        if state is ArtifactState.ABSENT:
            return Seen(state)
        result = Result(self.results[spec.identity]) if spec.identity in self.results else None
        return Seen(state, ArtifactRecord(identity=spec.identity, name=spec.name, path=path, result=result))


def expand(*steps, disk=None, prefix="/w/.treadle/artifacts", workdir="/w", **options):
    return expand_steps(steps, look=disk or Disk(), prefix=prefix, workdir=workdir, **options)


def names(expanded):
    return [draft.call.step for draft in expanded.drafts]


def needs(expanded):
    return {draft.call.step: [one[1:].rpartition("_")[0] for one in draft.steps] for draft in expanded.drafts}


def codes(caught):
    return [one.code for one in caught.value.diagnostics]
