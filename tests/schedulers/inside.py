"""The first process of the namespaces: starts one batch system, then does what comes on standard input.

    one line in:  {"do": "start" | "stop" | "kill", "daemon": name}
    one line out: {"error": ""} (the first one, unasked: the facts of what was started)

It ends when its input does, also because whoever held the other end was killed; with it ends, by the kernel's
own hand, everything that was started in here.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

from schedulers import sge, slurm
from schedulers.daemons import Daemons, NotStartedError

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1


def main(kind: str, folder: Path, options: dict[str, Any]) -> NoReturn:
    child = os.fork()
    if child:
        _bury_until(child)
    for number in (signal.SIGINT, signal.SIGHUP):  # a Ctrl-C is meant for whoever holds our input
        signal.signal(number, signal.SIG_IGN)
    try:
        if kind == "sge":
            raise_loopback()
            daemons, facts = sge.start(folder, **options)
        else:
            daemons, facts = slurm.start(folder, **options)
    except (NotStartedError, OSError) as error:
        _say({"error": str(error)})
        os._exit(1)
    _say({"error": "", **facts})
    for line in sys.stdin:
        _say({"error": _obey(daemons, **json.loads(line))})
    os._exit(0)


def _bury_until(child: int) -> NoReturn:
    """Be what the first process of a system is: reap every orphan, until the one child has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _obey(daemons: Daemons, do: str, daemon: str) -> str:
    try:
        match do:
            case "start":
                daemons.start(daemon)
            case "stop" | "kill":
                daemons.stop(daemon, hard=do == "kill")
            case _:
                return f"nobody can {do}"
    except (NotStartedError, OSError) as error:
        return str(error)
    except KeyError:
        return f"there is no {daemon}"
    return ""


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
