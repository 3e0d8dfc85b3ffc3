"""One step in front: its function called here, with a terminal; nothing is recorded, nothing published."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.pipe import Planned
from treadle.base.errors import PlanError
from treadle.base.place import Diagnostic
from treadle.plan.task import ScheduledTask
from treadle.steps.book import Entry
from treadle.steps.order import order_of
from treadle.steps.owner import this_owner
from treadle.steps.paths import is_url
from treadle.steps.perform import try_out
from treadle.steps.record import ArtifactState
from treadle.steps.stores import store_for


class Tried(Struct, frozen=True):
    """What came of it: `work` is where the function was to write, `made` whether it did; `value` what it gave
    back. `error` is what it raised."""

    work: str
    made: bool
    value: Any = None
    error: BaseException | None = None


def try_step(planned: Planned, task: ScheduledTask) -> Tried:
    """Call the function of a step in this process, in the work folder, with its environment variables.

    An interrupt is raised as it is.
    """
    assert planned.book is not None
    entry = planned.book[task.id]
    work = os.path.join(tempfile.mkdtemp(prefix="treadle-exec-"), os.path.basename(entry.path))
    os.chdir(planned.workdir)
    os.environ.update(entry.spec.env_vars)
    # Its own place, too, so that checkpoints go there.
    order = replace(order_of(entry, attempt="exec", number=1, owner=this_owner()), path=work)
    try:
        found = try_out(order, store_for(work), work)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Tried(work, os.path.lexists(work), error=error)
    return Tried(work, os.path.lexists(work), found and found.value)


def see_ready(planned: Planned, task: ScheduledTask) -> None:
    """See that what the step reads is there. Raises `PlanError` with all that is not made yet."""
    assert planned.book is not None
    entry, found = planned.book[task.id], []
    for dep in entry.deps:
        seen = store_for(dep.path).look(dep.path, dep.identity)
        if seen.state is not ArtifactState.COMPLETE and not (seen.record and _lenient(entry, dep.identity)):
            name = f"{dep.name}_{dep.identity[:12]}"
            message = f"{entry.spec.name_with_hash} builds on {name}, which is not made yet"
            hint = f"make it first: treadle run {planned.workflow.file} {name}"
            found.append(Diagnostic("missing-artifact", message, hint=hint))
    missing = [path for path in entry.spec.inputs if not os.path.lexists(os.path.join(planned.workdir, path))]
    found += [
        Diagnostic("missing-input", f"the input {path} of {entry.spec.name_with_hash} does not exist")
        for path in missing
        if not is_url(path)
    ]
    if found:
        raise PlanError(found)


def _lenient(entry: Entry, identity: str) -> bool:
    return any(dep.identity == identity and dep.drift == "warn" for dep in entry.spec.deps)
