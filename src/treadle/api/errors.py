"""All errors of a file at once: where some rules are refused, the pipe goes on with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from treadle.base.errors import UserError, WorkflowError
from treadle.base.place import Diagnostic
from treadle.rules.file.read import without_rules
from treadle.rules.file.understood import Understood
from treadle.rules.schema import Workflow

# What may only seem wrong because rules are left out whose outputs would have been found instead.
_DOUBTFUL = frozenset(
    {"ambiguous-match", "bad-file-name", "bad-value", "join-empty", "unknown-rule", "unknown-step"}
)


def with_texts(
    error: WorkflowError, known: Understood | None, look: Callable[[Workflow], object]
) -> WorkflowError:
    """The error, with what `look` finds wrong with the texts of those rules that do not hang on it.

    `known` is None where there is no telling which these are.
    """
    if known is None:
        return error
    try:
        look(known.workflow)
    except WorkflowError as another:
        certain = [one for one in known.certain(another.diagnostics) if one.code not in _DOUBTFUL]
        return _joined(error, certain)
    return error


def with_the_rest(
    error: WorkflowError, sound: Workflow | None, go_on: Callable[[Workflow], object]
) -> WorkflowError:
    """The error, with what `go_on` finds wrong with the rules that it does not concern.

    `sound` is the workflow without the rules that have the errors (None: there is none). `go_on` takes it
    down the pipe as far as it goes, and raises what is wrong.
    """
    found: dict[Diagnostic, None] = dict.fromkeys(error.diagnostics)
    while sound is not None and sound.rules:
        try:
            go_on(sound)
        except UserError as another:
            more = [one for one in another.diagnostics if one.code not in _DOUBTFUL]
            found.update(dict.fromkeys(more))
            sound = without_rules(sound, more) if more and isinstance(another, WorkflowError) else None
        else:
            break
    return _joined(error, found)


def _joined(error: WorkflowError, more: Iterable[Diagnostic]) -> WorkflowError:
    """The error with further findings, by their places; each once."""
    found = dict.fromkeys((*error.diagnostics, *more))
    if len(found) == len(error.diagnostics):
        return error
    file = error.diagnostics[0].place.file
    return WorkflowError(
        sorted(found, key=lambda one: (one.place.file != file, one.place.file, one.place.line))
    )
