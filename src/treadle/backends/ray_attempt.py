"""One attempt on a Ray node: an actor that does it by itself, writes how it ended, and tells who asks.

It works from the moment it is made, and needs no driver: a driver that dies right after making it loses
nothing, and any later one asks the same question by the actor's name. Commands run through the local
backend, as a process group that is tied to this process; functions are called here, in a thread of the
actor, so that they may use Ray themselves.
"""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.backends.payload import disagreement, read_payload
from treadle.backends.ray_ends import Ends
from treadle.backends.ray_ticket import Ticket, Told, decode_ticket, encode_told, split_ticket
from treadle.base.errors import TreadleError
from treadle.base.files import write_whole
from treadle.base.proc import host
from treadle.records.event import EndReason, Outcome

if TYPE_CHECKING:
    from treadle.backends.local import LocalBackend
    from treadle.backends.payload import Head
    from treadle.engine.backend import Submission

LINGER = 600.0  # seconds that an actor waits after its end to be asked, where that is not written down
_BRIEF = 2.0  # seconds otherwise: what it holds is wanted by others
_LAST_WORDS = 1.0  # seconds for an answer to be on its way before the process ends


class RayAttempt:
    """The actor. `wire` is its ticket, or `file` the private file where that stands."""

    def __init__(self, wire: bytes, file: str = "", *, leaves: bool = True) -> None:
        self._ends = Ends()
        self._told: Told | None = None
        self._written = b""
        self._done = threading.Event()
        self._asked_for = threading.Event()
        self._leaves = leaves
        threading.Thread(target=self._work, args=(wire, file), name="treadle-attempt", daemon=True).start()

    def began(self) -> str:
        """The node's name: the actor lives."""
        return host()

    def told(self) -> bytes:
        """How it ended; waits for that."""
        self._done.wait()
        self._asked_for.set()
        return self._written

    def end(self, force: bool) -> None:
        """Ask it to end: SIGTERM or `ctx.cancelled`, SIGKILL after its grace (`force`: at once)."""
        self._ends.ask(EndReason.CANCELLED, force=force)

    def _work(self, wire: bytes, file: str) -> None:
        head: Head | None = None
        task = ""
        try:
            head, body = read_payload(file) if file else split_ticket(wire)
            if refused := disagreement(head):
                told = _never_started(task, refused)
            else:
                ticket = decode_ticket(body)
                task = ticket.submission.task.id
                if file:
                    os.unlink(file)
                told = self._carry_out(ticket)
        except (TreadleError, OSError) as error:
            told = _never_started(task, f"on {host()}: {error}")
        except BaseException as error:
            told = _never_started(task, f"on {host()}: {type(error).__name__}: {error}")
        self._settle(told, head.answer if head is not None else "")

    def _carry_out(self, ticket: Ticket) -> Told:
        if not ticket.order:
            return _told_of(ticket, run_command(ticket, self._ends))
        from treadle.backends.ray_call import CallInActor

        return CallInActor(ticket, self._ends).run()

    def _settle(self, told: Told, path: str) -> None:
        self._written = encode_told(told)
        found = False
        if os.path.isdir(os.path.dirname(path)):  # else the node does not see the driver's folders
            with suppress(TreadleError, OSError):
                write_whole(path, self._written, 0o600)
                found = True
        self._done.set()
        if self._leaves:
            self._asked_for.wait(_BRIEF if found else LINGER)
            time.sleep(_LAST_WORDS)
            os._exit(0)


def run_command(ticket: Ticket, ends: Ends) -> Outcome:
    """Run a command to its end, as this machine's own backend does it."""
    from treadle.backends.local import LocalBackend
    from treadle.backends.tethered import tethered_argv
    from treadle.engine.backend import Accepted

    if missing := _missing(ticket.submission):
        return Outcome(reason=EndReason.NEVER_STARTED, message=f"on {host()}: {missing}", host=host())
    tether, held = os.pipe()
    submission = replace(
        ticket.submission,
        argv=tethered_argv(ticket.submission.argv, tether),
        resources=replace(ticket.submission.resources, gpus=0),  # Ray has already handed them out
    )
    backend = LocalBackend()
    try:
        (answer,) = backend.submit([submission])
        if not isinstance(answer, Accepted):
            return Outcome(reason=EndReason.NEVER_STARTED, message=answer.message, host=host())
        return _wait(backend, answer.job, ends)
    finally:
        backend.close()
        os.close(held)
        os.close(tether)


def _missing(submission: Submission) -> str:
    """Why the command cannot be started here, in the words of this machine's own backend (empty: it can)."""
    from treadle.backends.local_start import refusal
    from treadle.base.proc import find_program

    path = submission.env.get("PATH", os.environ.get("PATH", os.defpath))
    name = submission.argv[0]
    try:
        os.stat(submission.cwd)
        os.stat(os.path.join(submission.cwd, find_program(name, path, submission.cwd)))
    except OSError as error:
        return refusal(submission, error)
    return ""


def _wait(backend: LocalBackend, job: str, ends: Ends) -> Outcome:
    watched = [ends.reader]
    if (news := backend.fileno()) is not None:
        watched.append(news)
    while True:
        ready, _, _ = select.select(watched, [], [], backend.next_timeout())
        if ends.reader in ready:
            ends.drain()
            backend.cancel([job], force=ends.force)
        for report in backend.poll([job]):
            if report.outcome is not None:
                return report.outcome


def _told_of(ticket: Ticket, outcome: Outcome) -> Told:
    submission = ticket.submission
    return Told(
        task=submission.task.id,
        attempt=submission.attempt,
        n=submission.n,
        log=submission.log,
        outcome=outcome,
    )


def _never_started(task: str, message: str) -> Told:
    return Told(task=task, outcome=Outcome(reason=EndReason.NEVER_STARTED, message=message, host=host()))
