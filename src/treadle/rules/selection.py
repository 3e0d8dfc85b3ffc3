"""`--samples`: which samples a run works on."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place

_FIRST = re.compile(r"first:(.*)", re.DOTALL)
_WHERE = Place("the command line", key="--samples")


class Selection(Struct, frozen=True, kw_only=True):
    """What `--samples` asks for: `names` (none: all), without the `excluded`; of these those that are
    `ready`, and of these the `first` so many. `replaced`: a sheet stands for the workflow's own samples.
    """

    names: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    first: int | None = None
    ready: bool = False
    replaced: bool = False

    @property
    def narrows(self) -> bool:
        """Whether it may leave samples out."""
        return bool(self.names or self.excluded or self.ready or self.first is not None)


EVERYTHING = Selection()


def parse_selection(texts: Sequence[str]) -> Selection:
    """Read `--samples`: names, `!name`, `first:N`, `ready`; commas divide them, too.

    `@sheet` and `+@sheet` are read with the workflow (`ReadOptions.sheets`); here they only say that its own
    samples are replaced. Raises OptionError.
    """
    if any(not text.strip(" ,") for text in texts):
        hint = "name samples, or leave it out to work on all of them"
        raise OptionError([Diagnostic("empty-selection", "nothing is selected", _WHERE, hint)])
    names: dict[str, None] = {}
    excluded: dict[str, None] = {}
    first: int | None = None
    ready = replaced = False
    for word in (part.strip() for text in texts for part in text.split(",")):
        if word.startswith(("@", "+@")):
            replaced = replaced or word.startswith("@")
        elif word == "ready":
            ready = True
        elif number := _FIRST.fullmatch(word):
            first = _count(number[1])
        elif word.startswith("!"):
            excluded[word[1:]] = None
        elif word:
            names[word] = None
    return Selection(
        names=tuple(names), excluded=tuple(excluded), first=first, ready=ready, replaced=replaced
    )


def _count(text: str) -> int:
    if re.fullmatch(r"[1-9][0-9]{0,8}", text):
        return int(text)
    hint = "write a whole number from 1 on: first:5"
    message = f"'first:{text}' is no number of samples"
    raise OptionError([Diagnostic("bad-selection", message, _WHERE, hint)])


def choose(
    selection: Selection, known: Collection[str], ready: Callable[[], Collection[str]]
) -> frozenset[str]:
    """The samples that are selected among all that are `known`, in their order.

    `ready` tells which samples have all their outside inputs; it is asked only if that matters.
    Raises OptionError for names that are not known and for a selection that is empty.
    """
    wrong = [name for name in (*selection.names, *selection.excluded) if name not in known]
    if wrong:
        raise OptionError([_unknown(name, known) for name in wrong])
    wanted = set(selection.names) or set(known)
    chosen = [name for name in known if name in wanted and name not in selection.excluded]
    if selection.ready and chosen:
        complete = ready()
        chosen = [name for name in chosen if name in complete]
    if selection.first is not None:
        chosen = chosen[: selection.first]
    if not chosen:
        raise OptionError([_empty(selection, known)])
    return frozenset(chosen)


def _unknown(name: str, known: Collection[str]) -> Diagnostic:
    hint = did_you_mean(name, known)
    if not hint:
        some = ", ".join(list(known)[:10])
        hint = (
            f"there are {some}" + (" ..." if len(known) > 10 else "")
            if known
            else "the workflow has no samples"
        )
    return Diagnostic("unknown-sample", f"there is no sample '{name}'", _WHERE, hint)


def _empty(selection: Selection, known: Collection[str]) -> Diagnostic:
    if not known:
        return Diagnostic("empty-selection", "the workflow has no samples to select from", _WHERE)
    message = "no sample is left of this selection"
    hint = f"the workflow has {len(known):,} samples"
    if selection.ready:
        hint += "; 'ready' leaves out those that lack an input file"
    return Diagnostic("empty-selection", message, _WHERE, hint)
