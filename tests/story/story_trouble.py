"""Words for trouble: waiting for a sign, finding processes that were left, a command that dies half-way."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from waiting import PATIENCE, until


def mortal() -> None:
    """For `preexec_fn`: permissions hold for what is started, also where root runs the tests.

    CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH leave the bounding set: capabilities(7).
    """
    prctl = ctypes.CDLL(None).prctl
    for capability in (1, 2):
        prctl(24, capability, 0, 0, 0)


def processes(path: pathlib.Path) -> dict[int, str]:
    """Living processes that were started from a folder or one below it (`Folder.env` makes it their HOME), or
    that work in it; with the words of their commands."""
    return {pid: words for pid, words in map(_look, _numbers()) if words and _is_of(pid, path)}


def _numbers() -> list[int]:
    """Of all processes but this one; none where there is no /proc."""
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    return [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]


def _look(pid: int) -> tuple[int, str]:
    """The words of a process, nothing when it has ended (no one has words that has)."""
    try:
        return pid, pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(
            errors="replace"
        ).strip()
    except OSError:
        return pid, ""


def _is_of(pid: int, path: pathlib.Path) -> bool:
    home = os.fsencode(f"HOME={path}")
    try:
        environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        works_in = os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # it went meanwhile, or was never ours to see
        return False
    return works_in == str(path) or any(one == home or one.startswith(home + b"/") for one in environ)


def none_left(path: pathlib.Path) -> None:
    """No process of the folder lives on."""
    until(lambda: not processes(path), f"the end of {processes(path)}", seconds=20)


# Loads the command once and runs it in forks: a kill at each of a hundred places must not cost a hundred
# start-ups. What a fork does is told by one line of JSON, how it ended by another.
_HOST = """
import json, os, signal, sys
import treadle.cli.main, treadle.cli.run_command, treadle.cli.plan_command, treadle.cli.status_command
import treadle.engine.scribe
from treadle.records.journal import Journal
MOVES = ("write", "pwrite", "rename", "replace", "link", "symlink", "unlink", "mkdir", "rmdir", "ftruncate",
         "fsync", "fdatasync", "posix_spawn")

def killed(folder, mark, sent):
    def act():
        open(mark, "w").close()
        open(folder + "/killed", "w").close()
        os.kill(os.getpid(), sent)
    return act

def at_event(number, act, after):
    real, seen = Journal.write, 0
    def write(self, events):
        nonlocal seen
        for event in events:
            seen += 1
            if seen == number and not after:
                act()
            real(self, [event])
            if seen == number and after:
                act()
    Journal.write = write

def at_move(number, act):
    seen = 0
    def wrapped(real):
        def move(*args, **options):
            nonlocal seen
            if not (real is os_write and args[0] <= 2):
                seen += 1
                if seen == number:
                    act()
            return real(*args, **options)
        return move
    os_write = os.write
    for name in MOVES:
        setattr(os, name, wrapped(getattr(os, name)))

def fail(number, mark):
    def act():
        open(mark, "w").close()
        raise OSError(number, os.strerror(number))
    return act

def child(order):
    os.setpgid(0, 0)
    os.chdir(order["cwd"])
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    err = os.open(order["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(out, 1); os.dup2(err, 2)
    os.environ.clear(); os.environ.update(order["env"])
    treadle.engine.scribe.LOOK_AGAIN = 0.05  # seconds between two looks at a disk that refused
    mark, sent, error = order["mark"], order["sent"], order["error"]
    act = fail(error, mark) if error else killed(order["cwd"], mark, sent)
    match order["when"]:
        case "before": at_event(order["number"], act, False)
        case "after": at_event(order["number"], act, True)
        case "move": at_move(order["number"], act)
    sys.argv[1:] = order["args"]
    sys.exit(treadle.cli.main.main(order["args"]))

for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        child(order)
    _, status = os.waitpid(pid, 0)
    print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
"""


class Ended:
    """How a command of a `Host` ended: exit code (negative: a signal), stdout, stderr."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


class Host:
    """Runs the command in forks of one process, and lets it die or meet an error where it is told to."""

    def __init__(self, process: subprocess.Popen[str], scratch: pathlib.Path) -> None:
        self._process = process
        self._scratch = scratch
        self.met = False  # whether the last command met its trouble

    def treadle(
        self, folder: Any, *args: str, when: str = "", number: int = 0, error: int = 0, sent: int = 0
    ) -> Ended:
        """Run the command in a folder. `when`: it is killed (and leaves a file `killed`) `before` or `after`
        event `number` is written, or before its `number`th `move`: a change that it makes to the disk, or a
        process that it starts. `sent`: that signal comes instead; `error`: an OSError of that number."""
        out, err, mark = (self._scratch / name for name in ("out", "err", "met"))
        mark.unlink(missing_ok=True)
        order = {
            "cwd": str(folder.path),
            "env": folder.env(),
            "args": args,
            "out": str(out),
            "err": str(err),
            "mark": str(mark),
            "when": when,
            "number": number,
            "error": error,
            "sent": sent or int(signal.SIGKILL),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        code = json.loads(self._process.stdout.readline())
        self.met = mark.exists()
        ended = Ended(code, out.read_text(), err.read_text())
        assert "Traceback" not in ended.err, f"{order}\n{ended.err}"
        return ended


@contextmanager
def host(scratch: pathlib.Path) -> Iterator[Host]:
    """A `Host` with a folder of its own for what commands print."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Host(process, scratch)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)
