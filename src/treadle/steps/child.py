"""A process that a step's function forked, and that came back out of it: it ends here.

Only the process that was given the step publishes it. A child that went on would do so too, give back the
lease of its parent, or wait for more work in a copy of the driver that has no other threads.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn


def end_child(error: BaseException | None = None) -> NoReturn:
    """End this process as Python ends one, by what the function raised; what is the parent's stays."""
    code = 0
    if isinstance(error, SystemExit):
        code = _exit_code(error)
    elif error is not None:
        code = 1
        _print(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    with suppress(Exception):
        print(error.code, file=sys.stderr)
    return 1


def _print(error: BaseException) -> None:
    from traceback import print_exception

    with suppress(Exception):
        print_exception(error)
