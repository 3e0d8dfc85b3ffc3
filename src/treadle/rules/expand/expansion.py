"""What expanding a workflow gives: the drafts, and what a preview says about where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.base.place import Diagnostic
from treadle.plan.task import Draft
from treadle.rules.expand.join import Dropped
from treadle.rules.schema import Value

if TYPE_CHECKING:
    from treadle.rules.expand.fewer import Fewer  # a run of steps alone reads no rules


class RuleInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one rule became tasks.

    `origins` says where its values came from: labels of tables, and patterns with `(plan)`, `(disk)` or
    `(skipped)`. `dropped` are values that a join dropped, `valueless` counts rows without a value that the
    rule names. `fan_in` is the largest number of inputs that one task gathers. `skipped` and `narrowed`
    count tasks: those whose condition is false or that have nothing to gather, and gathers over a selection.
    """

    rule: str
    tasks: int = 0
    skipped: int = 0
    narrowed: int = 0
    fan_in: int = 0
    valueless: int = 0
    origins: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Expansion(Struct, frozen=True, kw_only=True):
    """A workflow as drafts, in the order of its rules.

    `notes` are warnings. `sources` has one entry for each rule. `narrowed` are the first outputs of
    gathers that a selection of samples made smaller; `samples` are those selected (None: no selection).
    `config` has the engine's own keys for samples that were found on the disk, too. `fewer` fills in gathers
    that go on without some of their inputs (None: no rule asks for that). `coming` are, by rule,
    the checkpoint rules that may bring further tasks of it.
    """

    drafts: tuple[Draft, ...]
    notes: tuple[Diagnostic, ...] = ()
    sources: tuple[RuleInfo, ...] = ()
    narrowed: frozenset[str] = frozenset()
    samples: tuple[str, ...] | None = None
    config: dict[str, Value] = {}
    fewer: Fewer | None = None
    coming: dict[str, tuple[str, ...]] = {}
