"""`StepRunner`: runs steps from a script, down the same pipe and on the same engine as everything else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from treadle.api.collect import collecting
from treadle.api.steps_report import RunReport, StepRunError
from treadle.base.errors import OptionError, StepError

if TYPE_CHECKING:
    from treadle.api.steps_pipe import Places
    from treadle.steps.spec import StepSpec


class StepRunner:
    """Runs steps, each once its deps are done; a step whose artifact is complete is not run again.

    `workdir` holds the records (default: the current folder) and `prefix` the artifacts (a path or a URL;
    default: `TREADLE_PREFIX`, else `.treadle/artifacts` there). `client` is where steps with resources run
    (default: the current client). `unsafe_locks` allows object stores without conditional writes. `groups`
    are counted resources that steps share, and how many there are of each: `{"db": 2}`. `wait`: steps that
    read files need the folder to themselves, and wait for another run there to end. Raises `OptionError`.
    """

    def __init__(
        self,
        workdir: str | os.PathLike[str] | None = None,
        prefix: str | os.PathLike[str] | None = None,
        client: Any = None,
        unsafe_locks: bool = False,
        groups: Mapping[str, int] | None = None,
        wait: bool = False,
    ) -> None:
        self._workdir = os.fspath(workdir) if workdir is not None else ""
        self._prefix = os.fspath(prefix) if prefix is not None else ""
        self._client = client
        self._unsafe_locks = unsafe_locks
        self._groups = _counts(groups)
        self._wait = wait

    def run(
        self,
        steps: Iterable[StepSpec] | StepSpec,
        *,
        max_concurrent: int = 8,
        max_remote: int | None = None,
        dry_run: bool = False,
        force: bool = False,
        force_run_failed: bool = True,
        keep_going: bool = True,
        targets: Iterable[StepSpec | str] | None = None,
    ) -> RunReport:
        """Run the steps and all that they build on; a list is one plan, any other iterable a stream.

        `max_concurrent` steps run on this machine at a time, and `max_remote` jobs (default: as many) are in
        flight. `dry_run` tells what would run and writes nothing. `force` makes the steps asked for again.
        Without `force_run_failed` a step that failed before is an error. Without `keep_going` nothing new
        starts after a failure. `targets` are those of the steps that are wanted (steps, names, names with
        hash, paths, patterns), with what they build on.

        Raises `StepRunError` with every failure once all else is done, `StepError` and `PlanError` for steps
        that are wrong before anything runs, KeyboardInterrupt after an orderly end.
        """
        from treadle.api.steps_run import (
            StepRun,
            Wish,
        )  # half the engine, which `import treadle` need not load

        caller = sys._getframe(1)
        wish = Wish(
            max_concurrent=_count("max_concurrent", max_concurrent),
            max_remote=_count("max_remote", max_concurrent if max_remote is None else max_remote),
            dry_run=dry_run,
            force=force,
            force_run_failed=force_run_failed,
            keep_going=keep_going,
            targets=_names(targets),
            caller=(caller.f_code.co_filename, caller.f_lineno),
            wait=self._wait,
        )
        given = _iterable(steps)
        collector = collecting()
        if collector is not None:
            collector.take(given, self._groups)
            return RunReport(dry_run=True)
        try:
            with self._with_client():
                return StepRun(self._places(), wish).go(given)
        except StepRunError as error:
            raise error.with_traceback(None)  # noqa: B904 (how we came here tells nobody anything)

    def _with_client(self) -> AbstractContextManager[Any]:
        if self._client is None:
            return nullcontext()
        from treadle.backends.clients import use_client

        used: AbstractContextManager[Any] = use_client(self._client)
        return used

    def _places(self) -> Places:
        from treadle.api.steps_pipe import Places, client_is_local
        from treadle.api.view import work_folder
        from treadle.steps.paths import default_prefix, is_url

        workdir = work_folder("", self._workdir)
        prefix = self._prefix or default_prefix(workdir)
        return Places(
            workdir=workdir,
            prefix=prefix if is_url(prefix) else os.path.join(workdir, prefix),
            unsafe_locks=self._unsafe_locks,
            client_is_local=client_is_local(),
            groups=tuple(sorted(self._groups.items())),
        )


def _count(name: str, value: int) -> int:
    """A number of things at a time: at least one."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{name} is a whole number, not {value!r}")
    if value < 1:
        raise OptionError(f"{name} is at least 1, not {value}", hint="with 1 one step runs after the other")
    return value


def _counts(groups: Any) -> dict[str, int]:
    """Named groups, and how many there are of each."""
    if not isinstance(groups or {}, Mapping):
        raise OptionError(f"groups is a mapping of names to counts, not {groups!r}", hint='write {"db": 2}')
    for name, count in (groups or {}).items():
        if not isinstance(name, str) or isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise OptionError(
                f"groups: of {name!r} there is a whole number, at least 1, not {count!r}",
                hint='write {"db": 2}',
            )
    return dict(groups or {})


def _names(targets: Iterable[StepSpec | str] | None) -> tuple[str, ...] | None:
    """The names of the targets (None: all steps are wanted)."""
    if targets is None:
        return None
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        targets = [targets]
    return tuple([_name(one) for one in targets])


def _name(target: Any) -> str:
    name = target if isinstance(target, str) else getattr(target, "name_with_hash", None)
    if isinstance(name, str):
        return name
    raise OptionError(f"targets are steps or their names, not {target!r}", hint="write targets=[step]")


def _iterable(steps: Any) -> Iterable[StepSpec]:
    from treadle.steps.spec import StepSpec

    if isinstance(steps, StepSpec):
        return [steps]
    if not isinstance(steps, Iterable):
        raise StepError(f"run takes steps, not {steps!r}", hint="give it a list of StepSpec", code="no-step")
    return steps
