"""The contract of an include, `inputs` and `outputs`: what its rules must read and make, and what others may
read of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from treadle.rules.expand.blueprint import Ground
from treadle.rules.expand.trip import Expanded
from treadle.rules.pattern.language import meet
from treadle.rules.pattern.matching import ways
from treadle.rules.pattern.pattern import Pattern
from treadle.rules.schema import Module, PathSpec, Workflow

_SHOWN = 3


class _Contract(Struct, frozen=True):
    """What one include promises. `within` are the numbers of its file and of those that this includes."""

    module: Module
    within: frozenset[int]
    inputs: tuple[Pattern, ...]
    outputs: tuple[Pattern, ...]


def check_contracts(workflow: Workflow, rules: Sequence[Expanded], ground: Ground, *, whole: bool) -> None:
    """Report every contract that is not kept. `whole`: no sample was left out, so all tasks are there."""
    for contract in _contracts(workflow, ground):
        own = [one for one in rules if one.blueprint.rule.module in contract.within]
        _check_inputs(contract, own, ground)
        _check_outputs(contract, own, ground, whole)
        if contract.module.outputs:
            others = [one for one in rules if one.blueprint.rule.module not in contract.within]
            _check_readers(contract, own, others, ground)


def _contracts(workflow: Workflow, ground: Ground) -> Iterator[_Contract]:
    for number, module in enumerate(workflow.includes):
        if module.inputs or module.outputs:
            within = {number}
            for other, one in enumerate(workflow.includes):
                if other and one.within in within:
                    within.add(other)
            inputs, outputs = _patterns(module.inputs, ground), _patterns(module.outputs, ground)
            yield _Contract(module, frozenset(within), inputs, outputs)


def _patterns(specs: Iterable[PathSpec], ground: Ground) -> tuple[Pattern, ...]:
    read = [ground.paths.pattern(spec.text, spec.place, globs=True) for spec in specs]
    return tuple(pattern for pattern in read if pattern is not None)


def _check_inputs(contract: _Contract, own: Sequence[Expanded], ground: Ground) -> None:
    read = [entry.pattern for one in own for entry in one.blueprint.inputs]
    for pattern in contract.inputs:
        if not any(meet(pattern.parts, other.parts) for other in read):
            message = f"no rule of {_named(contract)} reads '{pattern.text}'"
            hint = _those("its rules read", read)
            ground.findings.error("contract-input", message, pattern.place, hint)


def _check_outputs(contract: _Contract, own: Sequence[Expanded], ground: Ground, whole: bool) -> None:
    made = [output.pattern for one in own for output in one.blueprint.outputs]
    paths: set[str] | None = None
    for pattern in contract.outputs:
        kept = any(meet(pattern.parts, other.parts) for other in made)
        if kept and whole and not pattern.names and not pattern.glob:
            if paths is None:
                paths = {path for one in own for draft in one.drafts for path in draft.outputs}
            kept = pattern.spelled in paths
        if not kept:
            message = f"no rule of {_named(contract)} makes '{pattern.text}'"
            hint = _those("its rules make", made)
            ground.findings.error("contract-output", message, pattern.place, hint)


def _check_readers(
    contract: _Contract, own: Sequence[Expanded], others: Sequence[Expanded], ground: Ground
) -> None:
    """Warn of files that others read, though the include does not name them among its outputs."""
    hidden = {
        path
        for one in own
        for draft in one.drafts
        for path in draft.outputs
        if not any(ways(pattern.parts, path, {}, 1) for pattern in contract.outputs)
    }
    for one in others if hidden else ():
        found = next((path for draft in one.drafts for path in draft.inputs if path in hidden), None)
        if found is not None:
            rule = one.blueprint.rule
            message = (
                f"{rule.name} reads '{found}', which {_named(contract)} makes but does not name in 'outputs'"
            )
            hint = f"name it there: {contract.module.place}"
            ground.findings.warn("contract-hidden", message, rule.at("input"), hint)


def _named(contract: _Contract) -> str:
    return f"module '{contract.module.name}'"


def _those(what: str, patterns: Iterable[Pattern]) -> str:
    texts = list(dict.fromkeys(pattern.text for pattern in patterns))
    if not texts:
        return ""
    more = " ..." if len(texts) > _SHOWN else ""
    return f"{what} {', '.join(texts[:_SHOWN])}{more}"
