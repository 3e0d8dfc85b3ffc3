"""What the batches of steps that a run has taken in came to, for those that follow."""

from __future__ import annotations

from msgspec import Struct

from treadle.api.view import View
from treadle.decide.reason import Verdict
from treadle.steps.spec import StepSpec

RUNS = (Verdict.WILL_RUN, Verdict.IN_FLIGHT)


class Standing(Struct, frozen=True):
    """What the earlier batches of a run came to: ids of tasks, and artifacts by identity.

    `known` are all, `fallen` those that failed before and are not tried again; `running` are those with
    inputs that run, and `made` are the artifacts of all with inputs. `taken` are output paths that were set
    by hand, each with the name of its step; `met` are the steps themselves, where all are kept. All go on
    growing. `depths`: how deep the steps of the next batch have grown, by identity.
    """

    known: set[str]
    fallen: set[str]
    running: set[str]
    made: dict[str, str]
    taken: dict[str, str]
    met: dict[str, StepSpec] | None
    depths: dict[str, int]

    @classmethod
    def nothing(cls, *, keep: bool) -> Standing:
        """Before the first batch. `keep` the steps: else what has ended is known by its id alone."""
        return cls(set(), set(), set(), {}, {}, {} if keep else None, {})

    def take_in(self, view: View) -> tuple[int, list[str]]:
        """Count what a batch brings: how many of it run, and which of these may grow."""
        runs, growing = 0, []
        for task, answer in view.decision.answers.items():
            self.known.add(task)
            if view.book is not None and task in view.book:
                spec, path = view.book[task].spec, view.book[task].path
                if spec.override_output_path is not None:
                    self.taken[path] = spec.name_with_hash
                if self.met is not None:
                    self.met.setdefault(task, spec)
            if answer.verdict is Verdict.SKIPPED:
                self.fallen.add(task)
                continue
            one = view.plan.tasks[task]
            at_work = answer.verdict in RUNS
            runs += at_work
            if one.call is None:
                continue
            if at_work and one.call.grows:
                growing.append(task)
            if one.inputs:
                self.made[one.call.identity] = one.call.path
                if at_work:
                    self.running.add(task)
        return runs, growing
