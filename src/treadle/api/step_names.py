"""Which steps a person means by names, ids, patterns and paths: among those of a file, and all below them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean, listing
from treadle.base.place import Diagnostic
from treadle.plan.paths import is_url, normal, relative_to
from treadle.rules.schema import StepPath
from treadle.steps.paths import Places
from treadle.steps.spec import StepSpec

_SIGNS = frozenset("*?[")
_LISTED = 8  # names that an error tells
_CANDIDATES = 2000  # names that a mistyped one is compared with


class StepNames:
    """Steps and all that they build on, by what they may be called; `places` says where artifacts stand.

    `growing` are those of them that have not grown yet: of what they will, nobody knows the names. `parents`
    are the task ids of the steps that grew others, by the id of what grew.
    """

    def __init__(
        self,
        steps: Iterable[StepSpec],
        places: Places,
        workdir: str,
        *,
        growing: Sequence[StepSpec] = (),
        parents: Mapping[str, str] | None = None,
    ) -> None:
        self.every = closure(steps)
        self.parents = parents or {}
        self.growing = growing
        self._places = places
        self._workdir = workdir
        self._named: dict[str, list[StepSpec]] = {}
        for step in self.every:
            self._named.setdefault(step.name, []).append(step)
        self._exact = {step.name_with_hash: step for step in self.every}
        self._exact.update((step.task_id, step) for step in self.every)
        self._by_path: dict[str, StepSpec] | None = None

    def find(self, target: str) -> Sequence[StepSpec]:
        """The steps that a target names; none when it names no step."""
        bare = target.removeprefix("@")
        if named := self._named.get(bare):
            return named
        if target in self._exact or bare in self._exact:
            return (self._exact.get(target) or self._exact[bare],)
        if step := self.by_path().get(self.path(target)):
            return (step,)
        if _SIGNS.isdisjoint(target):
            return ()
        pattern = f"@{bare}"
        return [step for step in self.every if fnmatchcase(step.task_id, pattern)]

    def chosen(self, targets: Sequence[str], where: str) -> list[StepSpec]:
        """The steps that the targets name, each once; `where` is the file, or what else has the steps.

        Raises `OptionError` for all that name none.
        """
        found: dict[StepSpec, None] = {}
        wrong = []
        for target in dict.fromkeys(targets):
            steps = self.find(target)
            found.update(dict.fromkeys(steps))
            if not steps:
                hint = self.hint(target, where)
                wrong.append(Diagnostic("unknown-target", f"{target} is no step of {where}", hint=hint))
        if wrong:
            raise OptionError(wrong)
        return list(found)

    def hint(self, target: str, where: str) -> str:
        """The nearest name, or how names are listed of the file, else some of them."""
        near = did_you_mean(target.removeprefix("@"), islice(self._named, _CANDIDATES))
        if near:
            return near
        if self.growing:
            return f"steps that {self.growing[0].name_with_hash} grows can be named once it has run"
        if where.endswith((".py", ".oxoflow")):
            return f"{listing(where)} lists what there is"
        some = list(islice(self._named, _LISTED + 1))
        return f"there are: {', '.join(some[:_LISTED])}{', ...' if len(some) > _LISTED else ''}"

    def by_path(self) -> dict[str, StepSpec]:
        """The steps by the paths of their artifacts, as a plan spells them."""
        if self._by_path is None:
            self._by_path = {self.path(self._places.of(step)): step for step in self.every}
        return self._by_path

    def path(self, text: str) -> str:
        """A path as a plan spells it: relative where it leads below the work folder."""
        return text if is_url(text) else relative_to(normal(text), self._workdir) if text else text

    def paths(self, without: Container[str] = ()) -> dict[str, StepPath]:
        """What `{step.NAME}` stands for, by name and by name with hash; but for what was grown by the tasks
        that are named."""
        lost: set[str] = set()
        for born, parent in self.parents.items() if without else ():
            if parent in without or parent in lost:
                lost.add(born)
        found: dict[str, StepPath] = {}
        for path, step in self.by_path().items():
            if step.task_id not in lost:
                found[step.name_with_hash] = path
        for name, those in self._named.items():
            steps = [step for step in those if step.task_id not in lost]
            if not steps:
                continue
            several = tuple(step.name_with_hash for step in steps)
            found[name] = found[several[0]] if len(several) == 1 else several
        return found


def closure(steps: Iterable[StepSpec]) -> list[StepSpec]:
    """The steps and all that they build on, each once, those asked for first; no recursion."""
    found = {step.identity: step for step in steps}
    pending = list(found.values())
    while pending:
        for dep in pending.pop().deps:
            if dep.identity not in found:
                found[dep.identity] = dep
                pending.append(dep)
    return list(found.values())
