"""Whether the code that runs is what its file says: people edit files while a run is on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cache
from types import CodeType

from treadle.base.proc import start_time
from treadle.steps.heartbeats import uptime

_MARGIN = 1.0  # seconds: clocks of file servers, and ticks


def changed_since_start(file: str) -> bool:
    """Whether a file was written since this process began, by its change time; one that is gone was not."""
    try:
        return os.stat(file).st_ctime >= _began() - _MARGIN
    except (OSError, ValueError):
        return False


@cache
def _began() -> float:
    """When this process began: seconds since the epoch; 0 when unknown."""
    ticks = start_time(os.getpid())
    return time.time() - uptime() + ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


@cache
def future_flags() -> int:
    """The flags of a code object that say which features `from __future__` it was compiled with."""
    import __future__

    flags = 0
    for name in __future__.all_feature_names:
        flags |= getattr(__future__, name).compiler_flag
    return flags


def compiled(text: str, file: str, flags: int) -> list[CodeType]:
    """All code of a file; nothing where it cannot be compiled."""
    try:
        whole = compile(text, file, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(_inside(whole))


def _inside(code: CodeType) -> Iterator[CodeType]:
    pending = [code]
    while pending:
        one = pending.pop()
        yield one
        pending += [const for const in one.co_consts if isinstance(const, CodeType)]


def same_code(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects do the same, at the same line."""
    if _told(one) != _told(other) or len(one.co_consts) != len(other.co_consts):
        return False
    for mine, theirs in zip(one.co_consts, other.co_consts):
        if isinstance(mine, CodeType) and isinstance(theirs, CodeType):
            if not same_code(mine, theirs):
                return False
        elif type(mine) is not type(theirs) or mine != theirs:
            return False
    return True


def _told(code: CodeType) -> tuple[object, ...]:
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (*names, code.co_firstlineno, code.co_argcount, code.co_kwonlyargcount, code.co_code)
