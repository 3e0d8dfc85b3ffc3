"""Whether nobody else has a file open."""

from __future__ import annotations

import fcntl
import signal

_LEASES = all(hasattr(fcntl, name) for name in ("F_SETLEASE", "F_SETSIG"))


def is_sole(fd: int) -> bool:
    """Whether `fd`, open for writing, is the only way in which the file is open: nobody who was started with
    it can write to it any more. False where the system cannot tell (macOS, network file systems).

    The kernel grants a write lease on no other terms (fcntl(2)). Who opens the file in that very moment makes
    it send a signal, which would end us if it were SIGIO.
    """
    if not _LEASES:
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
