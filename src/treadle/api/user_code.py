"""Running a person's Python file, and telling what goes wrong in it as his own, not as a bug of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING

import treadle
from treadle.api.collect import collecting
from treadle.base.disk import disk_error
from treadle.base.errors import OptionError, StepError, TreadleError, UserError
from treadle.base.place import Diagnostic, Place

if TYPE_CHECKING:
    from traceback import FrameSummary

_OURS = os.path.dirname(treadle.__file__) + os.sep
_FRAMES = 6  # of a traceback that are shown, the last ones
_loaded: dict[str, ModuleType] = {}


def run_file(file: str) -> ModuleType:
    """The module that a file makes: run once in this process, its folder on `sys.path` from then on.

    Raises `OptionError` when there is no such file, `DiskError`, and `StepError` for what its code raises.
    """
    path = os.path.realpath(file)
    if path not in _loaded:
        source = _source(file)
        name = _module_name(path)
        with blame(file):
            _loaded[path] = _executed(source, os.path.abspath(file), name)
    return _loaded[path]


def _source(file: str) -> bytes:
    if os.path.isdir(file):
        raise OptionError(f"{file} is a folder, not a pipeline", code="cannot-read")
    try:
        with open(file, "rb") as source:
            return source.read()
    except FileNotFoundError:
        raise OptionError(f"there is no file {file}", hint=_beside(file), code="cannot-read") from None
    except OSError as error:
        raise disk_error("read the pipeline", file, error) from error


def _beside(file: str) -> str:
    """The nearest Python file of the folder."""
    from treadle.base.names import did_you_mean

    folder, name = os.path.split(file)
    try:
        names = sorted(one for one in os.listdir(folder or ".") if one.endswith(".py"))
    except OSError:
        return "is the folder right?"
    return did_you_mean(name, names)


def _executed(source: bytes, path: str, name: str) -> ModuleType:
    from importlib.machinery import ModuleSpec, SourceFileLoader

    loader = SourceFileLoader(name, path)
    module = ModuleType(name)
    module.__file__, module.__loader__, module.__package__ = path, loader, ""
    module.__spec__ = spec = ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    code = compile(source, path, "exec", dont_inherit=True)
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[name] = module
    argv, sys.argv = sys.argv, [path]
    try:
        exec(code, vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.argv = argv
    return module


def _module_name(path: str) -> str:
    """Its own name, where that is one that a module may have and that nobody else has."""
    stem = os.path.basename(path).removesuffix(".py")
    if stem.isidentifier() and stem not in sys.modules and stem not in sys.stdlib_module_names:
        return stem
    name = "pipeline_" + "".join(one if one.isalnum() else "_" for one in stem)
    number, free = 1, name
    while free in sys.modules:
        number += 1
        free = f"{name}_{number}"
    return free


@contextmanager
def blame(file: str) -> Iterator[None]:
    """Tell what the code of a person's file raises with his lines, as a `StepError`.

    Errors that are ours to tell (a step with a bad name) get the line that they come from.
    """
    try:
        yield
    except TreadleError as error:
        if not isinstance(error, UserError) or not (line := _last_of_his(error.__traceback__)):
            raise
        where = Place(_shown(line[0], file), line[1])
        raise type(error)([_placed(one, where, file) for one in error.diagnostics]) from error
    except (SyntaxError, ValueError) as error:
        raise _syntax(file, error) if _unparsed(error) else _told(file, error) from error
    except (Exception, SystemExit) as error:
        raise _told(file, error) from error


def _placed(one: Diagnostic, where: Place, file: str) -> Diagnostic:
    """The finding with a place: its own, its file as the person typed it, else `where`."""
    from msgspec.structs import replace

    own = one.place
    return replace(one, place=replace(own, file=_shown(own.file, file)) if own.file else where)


def _unparsed(error: Exception) -> bool:
    """Whether it was `compile` that raised it, not the code."""
    if isinstance(error, SyntaxError):
        return True
    return "null bytes" in str(error) and _last_of_his(error.__traceback__) is None


def _syntax(file: str, error: Exception) -> StepError:
    at = _shown(getattr(error, "filename", None) or file, file)
    message = f"this is not Python: {getattr(error, 'msg', error)}"
    line = getattr(error, "lineno", None) or 0
    return StepError([Diagnostic("pipeline-syntax", message, Place(at, line))])


def _told(file: str, error: BaseException) -> StepError:
    line = _last_of_his(error.__traceback__)
    where = Place(_shown(line[0], file), line[1]) if line else Place(file)
    collector = collecting()
    hint = ""
    if isinstance(error, SystemExit):
        hint = "the file is loaded as a module: put what ends the program below if __name__ == '__main__'"
    elif collector is not None and collector.wanted:
        hint = (
            "while a file is loaded, StepRunner.run only notes its steps: put what uses its report below "
            "if __name__ == '__main__'"
        )
    return StepError([Diagnostic("pipeline-failed", "\n".join(exception_lines(error)), where, hint)])


def exception_lines(error: BaseException) -> Iterator[str]:
    """An exception as it is told: what it is, the person's own lines that it came through, and what it came
    from."""
    from traceback import format_exception_only, format_list

    shown: set[int] = set()
    chained: BaseException | None = error
    begin = ""
    while chained is not None and id(chained) not in shown:
        shown.add(id(chained))
        if type(chained).__name__ == "WorkerTraceback":  # the same exception, as it was in its own process
            yield from _of_worker(str(chained.args[0]))
            break
        yield begin + "".join(format_exception_only(chained)).rstrip()
        for entry in format_list(_his(chained.__traceback__)[-_FRAMES:]):
            yield entry.rstrip()
        begin = "which came from "
        chained = chained.__cause__ or (None if chained.__suppress_context__ else chained.__context__)


def _of_worker(text: str) -> Iterator[str]:
    """The lines of a printed traceback that are the person's own."""
    ours = True
    for line in text.splitlines():
        if line.startswith("  File "):
            ours = line.startswith(f'  File "{_OURS}') or '"<frozen' in line
        elif not line.startswith("    "):
            ours = True
        if not ours:
            yield line


def _his(trace: TracebackType | None) -> list[FrameSummary]:
    """The frames of a traceback that are not ours."""
    from traceback import extract_tb

    return [frame for frame in extract_tb(trace) if not frame.filename.startswith((_OURS, "<frozen"))]


def _last_of_his(trace: TracebackType | None) -> tuple[str, int] | None:
    """File and line of the last frame that is not ours; None when all are."""
    frames = _his(trace)
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _shown(path: str, file: str) -> str:
    """The path as the person would type it: that of his file as he did."""
    return file if os.path.realpath(path) == os.path.realpath(file) else path
