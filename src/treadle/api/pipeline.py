"""Pipelines: Python files that hold steps, loaded as `pipeline.py[:name]`.

Loading runs the file, once, as a module of its own name: what is guarded by `__main__` is left alone,
and `StepRunner.run` only collects. What is found is a list of steps, or a function that yields them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.api.collect import Collector, collect, collecting
from treadle.api.step_names import closure
from treadle.api.user_code import blame, run_file
from treadle.base.errors import OptionError, StepError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic, Place
from treadle.steps.spec import StepSpec

__all__ = ["Collector", "Pipeline", "collect", "collecting", "load", "split"]

MOST = 10_000  # steps of a stream that are pulled for a look at them
_DEFAULT = "steps"


class Pipeline(Struct, frozen=True):
    """What was found in a file: the steps asked for, under which name.

    `stream`: they come from a function that yields them, and are pulled as they are wanted; then `steps` can
    be walked over once. `picked` names a step that the entry itself does not name (`pipeline.py:train` where
    `train` is the name of a step alone). `groups` are the counted resources that the file's runners have.
    """

    file: str
    entry: str
    steps: Iterable[StepSpec]
    stream: bool = False
    picked: str = ""
    groups: tuple[tuple[str, int], ...] = ()

    def pulled(self, most: int = MOST) -> tuple[tuple[StepSpec, ...], bool]:
        """The first steps, for a look at them, and whether there may be more."""
        if not self.stream:
            return tuple(self.steps), False
        with collect(), _talking():
            found = tuple(islice(self.steps, most + 1))
        return found[:most], len(found) > most


def split(word: str) -> tuple[str, str]:
    """The file and the name behind it (empty: none): `pipeline.py:train`."""
    if word.endswith(".py"):
        return word, ""
    file, _, name = word.rpartition(".py:")
    return f"{file}.py", name


def load(file: str, entry: str = "", settings: Sequence[tuple[str, str]] = ()) -> Pipeline:
    """Load a file and find the steps that are meant: under `entry`, else `steps`, else what the file gives
    to `StepRunner.run`, else the only list or function of the file.

    `settings` are (name, text) of parameters of a pipeline function. Raises `OptionError` where nothing fits,
    `StepError` for what the file itself does wrong.
    """
    with collect() as collector, _talking():
        module = run_file(file)
        given = _given(module, file, entry, collector)
        found = _opened(file, given, settings)
        return replace(found, groups=tuple(sorted(collector.groups.items())))


class _Given(Struct, frozen=True):
    """A thing of the file that stands for steps."""

    entry: str
    what: Any
    picked: str = ""


def _given(module: ModuleType, file: str, entry: str, collector: Collector) -> _Given:
    """What the name stands for; without one, what the file means by itself."""
    candidates = dict(_candidates(module))
    if entry and entry in candidates:
        return _Given(entry, candidates[entry])
    if entry:
        return _by_step(module, file, entry, collector, candidates)
    return _unnamed(file, collector, candidates)


def _by_step(
    module: ModuleType, file: str, entry: str, collector: Collector, candidates: dict[str, Any]
) -> _Given:
    """What a name stands for that is neither a list nor a function of steps: most often a step."""
    thing = getattr(module, entry, None)
    if isinstance(thing, StepSpec):
        return _Given(entry, (thing,))
    if _own_function(module, thing) and not _is_a_step(entry, candidates.get(_DEFAULT), collector):
        return _Given(entry, thing)
    if isinstance(thing, list | tuple | dict | set | frozenset):
        kind = type(thing).__name__
        raise OptionError(f"{entry} in {file} is a {kind}, not a list of steps", code="no-steps")
    try:
        found = _unnamed(file, collector, candidates)
    except OptionError:
        named = sorted(name for name, thing in vars(module).items() if isinstance(thing, StepSpec))
        hint = did_you_mean(entry, [*candidates, *named]) or _listing(candidates)
        raise OptionError(f"there is no '{entry}' in {file}", hint=hint, code="no-steps") from None
    return _Given(found.entry, found.what, picked=entry)


def _is_a_step(name: str, listed: Any, collector: Collector) -> bool:
    """Whether the file's own list leads to a step of that name, as of its function (`def train(out)`)."""
    if not isinstance(listed, list | tuple):
        listed = [step for one in collector.wanted if isinstance(one, tuple) for step in one]
    return any(step.name == name for step in closure(listed))


def _unnamed(file: str, collector: Collector, candidates: dict[str, Any]) -> _Given:
    if _DEFAULT in candidates:
        return _Given(_DEFAULT, candidates[_DEFAULT])
    if collector.wanted:
        return _Given("", _joined(collector))
    if len(candidates) == 1:
        return _Given(*next(iter(candidates.items())))
    if candidates:
        first = next(iter(candidates))
        message = f"{file} has several lists and functions that may be meant: {', '.join(candidates)}"
        raise OptionError(message, hint=f"name one, as in {file}:{first}", code="several-pipelines")
    hint = "give it a list of StepSpec, or a function that yields them: steps = [train]"
    raise OptionError(
        f"{file} holds no list of steps, and no function that yields them", hint=hint, code="no-steps"
    )


def _joined(collector: Collector) -> Any:
    """What the calls of `StepRunner.run` were given, one after the other; a stream where one is."""
    if all(isinstance(one, tuple) for one in collector.wanted):
        return [step for one in collector.wanted for step in one]
    return (step for one in collector.wanted for step in one)


def _candidates(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The lists of steps and the functions that yield steps, in the order of the file."""
    for name, thing in vars(module).items():
        if not name.startswith("_") and (
            _is_list(thing, name)
            or (_own_function(module, thing) and (name == _DEFAULT or _yields_steps(thing)))
        ):
            yield name, thing


def _is_list(thing: Any, name: str) -> bool:
    """Whether it is a list of steps; an empty one is, where its name says so."""
    if not isinstance(thing, list | tuple):
        return False
    return all(isinstance(one, StepSpec) for one in thing) if thing else name == _DEFAULT


def _own_function(module: ModuleType, thing: Any) -> bool:
    from types import FunctionType

    return isinstance(thing, FunctionType) and thing.__module__ == module.__name__


def _yields_steps(function: Any) -> bool:
    """By its annotation where it has one; else by being a generator."""
    said = function.__annotations__.get("return")
    if said is not None:
        return "StepSpec" in (said if isinstance(said, str) else repr(said))
    return bool(function.__code__.co_flags & 0x20)  # CO_GENERATOR, of `inspect`


def _opened(file: str, given: _Given, settings: Sequence[tuple[str, str]]) -> Pipeline:
    """The steps of the thing: a function is called, with its parameters set."""
    what, stream = given.what, False
    if callable(what):
        from treadle.api.parameters import arguments

        args, keywords = arguments(what, f"{file}:{given.entry}", settings)
        with blame(file):
            what = what(*args, **keywords)
        if isinstance(what, StepSpec):
            what = [what]
        elif not isinstance(what, Iterable):
            message = f"{given.entry} in {file} returned {type(what).__name__}, not steps"
            raise StepError(message, code="no-steps", hint="return a list of StepSpec, or yield them")
    elif settings:
        name = settings[0][0]
        where = f"{given.entry} in {file} is a list" if given.entry else f"{file} has no function"
        hint = "parameters belong to a function that yields steps"
        raise OptionError(f"there is no parameter '{name}': {where}", hint=hint, code="unknown-parameter")
    stream = not isinstance(what, list | tuple)
    steps = _checked(what, file, given.entry)
    return Pipeline(file, given.entry, steps if stream else tuple(steps), stream, given.picked)


def _checked(steps: Iterable[Any], file: str, entry: str) -> Iterator[StepSpec]:
    """The steps, each seen to be one; what the file's own code raises is told as its own."""
    with blame(file):
        for at, step in enumerate(steps):
            if not isinstance(step, StepSpec):
                message = f"item {at} of {entry or 'the steps'} is {type(step).__name__}, not a StepSpec"
                raise StepError([Diagnostic("no-steps", message, Place(file))])
            yield step


def _listing(candidates: dict[str, Any]) -> str:
    return f"there are: {', '.join(candidates)}" if candidates else "it holds no list of steps"


@contextmanager
def _talking() -> Iterator[None]:
    """What the file prints goes to stderr: stdout is for what the command was asked for."""
    from contextlib import redirect_stdout

    with redirect_stdout(sys.stderr):
        yield
