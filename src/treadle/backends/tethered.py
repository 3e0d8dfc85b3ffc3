"""A command that ends with the process that started it: `python -m treadle.backends.tethered PIPE ARGV...`.

PIPE is the path of the reading end of a pipe whose writing end only that process holds, such as
/proc/<pid>/fd/<n>. Once it is gone, however it ended, the kernel sends SIGKILL to the command's whole
process group (fcntl(2): F_SETSIG, and F_SETOWN with a group, live on in the open file over an exec).
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Sequence

from treadle.backends.last_breath import kernel_watches

_HIGH = 200  # a descriptor that no command is likely to use


def tethered_argv(argv: Sequence[str], pipe: int) -> tuple[str, ...]:
    """The same command, tied to this process; `pipe` is the reading end of a pipe of ours."""
    if not hasattr(fcntl, "F_SETSIG"):
        return tuple(argv)
    held = f"/proc/{os.getpid()}/fd/{pipe}"
    return (sys.executable, "-P", "-m", "treadle.backends.tethered", held, *argv)


def main(pipe: str, argv: Sequence[str]) -> None:
    """Tie this process group to the pipe, and become the command."""
    opened = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    line = fcntl.fcntl(opened, fcntl.F_DUPFD, _HIGH)
    os.close(opened)
    kernel_watches(line)
    try:
        if os.read(line, 1) == b"":  # it was gone before the kernel watched
            return
    except BlockingIOError:
        pass
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores these two, and ignoring is inherited
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        print(f"treadle: cannot start '{argv[0]}': {error.strerror}", file=sys.stderr)
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
