"""Every error that Treadle raises on purpose, as one drawn tree.

    TreadleError
     +-- UserError          the user's fault, exit code 2
     |    +-- WorkflowError     a workflow file, with all its diagnostics
     |    +-- PlanError         the plan cannot be built
     |    |    +-- CycleError       (also a ValueError)
     |    +-- StepError         a Python step, or how it is used
     |    +-- OptionError       a command-line option or an argument
     +-- WorldError         the world's fault, exit code 3
          +-- DiskError
          +-- LockError
          +-- SchedulerError
          +-- RecordError       what stands under .treadle/ cannot be read

An error says the thing, the place and the way out. Anything else that is raised is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from treadle.base.place import Diagnostic, Place


class TreadleError(Exception):
    """The root; `exit_code` is what the command ends with.

    Carries one diagnostic or several; `str()` shows them all, one after the other.
    """

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str | Iterable[Diagnostic],
        *,
        place: Place | None = None,
        hint: str = "",
        code: str = "",
    ) -> None:
        if isinstance(message, str):
            message = [Diagnostic(code or self.code, message, place or Place(), hint)]
        found = tuple(message)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__("\n".join(str(one) for one in found))


class UserError(TreadleError):
    """The workflow or the options are wrong: mend them and run again."""

    exit_code = 2


class WorkflowError(UserError):
    """A workflow file is wrong; all its errors are told together."""

    code = "workflow"


class PlanError(UserError):
    """The tasks do not make a plan; all reasons are told together."""

    code = "plan"


class CycleError(PlanError, ValueError):
    """Tasks need each other in a circle; the message draws it as a path.

    `path` holds the ids of the first one: each is needed by the next, the last by the first.
    """

    code = "cycle"
    path: tuple[str, ...] = ()


class StepError(UserError):
    """A Python step is wrong, or is used wrongly: its name, its values, its function."""

    code = "step"


class OptionError(UserError):
    """An option or argument of a command is wrong."""

    code = "option"


class WorldError(TreadleError):
    """The disk, another process or a scheduler is in the way, not the workflow."""

    exit_code = 3


class DiskError(WorldError):
    """A file or folder cannot be read or written."""

    code = "disk"


class LockError(WorldError):
    """Another run holds the lock, or the lock was lost."""

    code = "lock"


class SchedulerError(WorldError):
    """A backend as a whole failed (not one request to it)."""

    code = "backend"


class RecordError(WorldError):
    """A record under `.treadle/` is damaged or from a newer Treadle; nothing was changed."""

    code = "record"
