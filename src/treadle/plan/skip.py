"""The skip cascade: what cannot be made because all who would make what it reads are skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from treadle.base.names import step_id
from treadle.plan.paths import PathIndex, made_by
from treadle.plan.task import Draft, Skip

_STEP = "\0"  # before the id of a step where it stands for what others build on; no path holds a NUL


class Cascade(Struct, frozen=True):
    """For each draft why it is skipped (None: it is not), and the inputs that only skipped tasks make."""

    skips: list[Skip | None]
    lost: frozenset[str] = frozenset()


def cascade(drafts: Sequence[Draft]) -> Cascade:
    """Follow the drafts that are skipped from the start to all that cannot be had without them.

    A task is skipped when all makers of one of its fixed inputs are, whatever lies on disk; a gather when
    nothing is left of what it gathers. `depends_on` a skipped task is met. Linear; the answer does not
    hang on the order of the drafts.
    """
    skips = [draft.skip for draft in drafts]
    falling = [node for node, skip in enumerate(skips) if skip]
    if not falling:
        return Cascade(skips)
    makers = Counter(thing for draft in drafts for thing in _makes(draft))
    readers = _readers(drafts)
    feeds, left = _feeders(makers, readers)
    gone: Counter[int] = Counter()
    skipped = set(falling)
    while falling:
        for dead in _died(drafts[falling.pop()], makers, feeds, left):
            for reader in readers[dead]:
                gathered = drafts[reader].gathered
                gone[reader] += dead in gathered
                if reader not in skipped and (dead not in gathered or gone[reader] == len(gathered)):
                    skipped.add(reader)
                    falling.append(reader)
    lost = frozenset(path for path, number in left.items() if not number)
    for node in skipped:
        skips[node] = skips[node] or _reason(drafts[node], lost)
    return Cascade(skips, lost)


def _makes(draft: Draft) -> tuple[str, ...]:
    """What is lost when the task is skipped: the paths that it makes, and that a step was made."""
    call = draft.call
    return made_by(draft) if call is None else (call.path, _STEP + step_id(call.step, call.identity))


def _reads(draft: Draft) -> tuple[str, ...]:
    """What the task cannot do without."""
    return (*draft.inputs, *(_STEP + step for step in draft.steps)) if draft.steps else draft.inputs


def _readers(drafts: Sequence[Draft]) -> dict[str, list[int]]:
    readers: dict[str, list[int]] = {}
    for node, draft in enumerate(drafts):
        for path in _reads(draft):
            readers.setdefault(path, []).append(node)
    return readers


def _feeders(
    makers: Counter[str], readers: dict[str, list[int]]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Output -> the inputs that hang on it: itself, what is in it, folders above it; input -> on how many."""
    outputs = PathIndex(makers)
    feeds: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    for path in readers:
        feeders = [path] if path in makers else []
        feeders.extend(outputs.above(path))
        if outputs.has_below(path):
            feeders.extend(outputs.below(path))
        if feeders:
            left[path] = len(feeders)
        for output in feeders:
            feeds.setdefault(output, []).append(path)
    return feeds, left


def _died(draft: Draft, makers: Counter[str], feeds: dict[str, list[str]], left: dict[str, int]) -> list[str]:
    """The inputs that nobody makes any more now that `draft` is skipped."""
    died = []
    for output in _makes(draft):
        makers[output] -= 1
        if makers[output]:
            continue
        for path in feeds.get(output, ()):
            left[path] -= 1
            if not left[path]:
                died.append(path)
    return died


def _reason(draft: Draft, lost: frozenset[str]) -> Skip:
    """The first fixed input that is lost; without one, the gather has nothing left."""
    for path in _reads(draft):
        if path in lost and path not in draft.gathered:
            return Skip("upstream", path.removeprefix(_STEP))
    return Skip("empty", next(path for path in draft.inputs if path in lost))
