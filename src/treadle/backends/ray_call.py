"""A step's function in a Ray actor: called in a thread, its output in a log, ended when its time is over."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from contextlib import suppress

from msgspec.structs import replace

from treadle.backends.answers import Answer, Answered, answer_of, failure
from treadle.backends.payload import decode
from treadle.backends.ray_ends import Ends
from treadle.backends.ray_ticket import Ticket, Told, split_ticket
from treadle.base.proc import host
from treadle.records.event import EndReason, Outcome, Usage

_TAIL = 64 * 1024  # bytes of a log that the driver cannot see


class CallInActor:
    """One call. `run` waits for its end, at the latest until its time and its grace are over."""

    def __init__(self, ticket: Ticket, ends: Ends) -> None:
        self._submission = ticket.submission
        self._order = ticket.order
        self._ends = ends
        self._answer: Answer | None = None
        self._done, self._writer = os.pipe()

    def run(self) -> Told:
        submission = self._submission
        os.environ.update(submission.env)
        with suppress(OSError):  # the node may not see the folder, and the function may not need it
            os.chdir(submission.cwd)
        log = _redirect(submission.log)
        begun, before = time.time(), time.monotonic()
        threading.Thread(target=self._call, name="treadle-step", daemon=True).start()
        alive = not self._wait()
        reason = EndReason.OK if self._answer is not None and not self._ends.is_asked() else self._ends.reason
        message = "it did not end when it was asked to" if alive else ""
        if reason is EndReason.TIME:
            message = f"its time limit of {submission.resources.time_limit} s was over" + (
                ", and it did not end when it was asked to" if alive else ""
            )
        outcome = Outcome(
            reason=reason or EndReason.CANCELLED,
            message=message,
            start=begun,
            end=time.time(),
            host=host(),
            usage=Usage(wall=time.monotonic() - before),
        )
        tail = _tail(log) if log != submission.log else ""
        return Told(
            task=submission.task.id,
            attempt=submission.attempt,
            n=submission.n,
            log=submission.log,
            outcome=outcome,
            answer=self._answer,
            tail=tail,
            alive=alive,
        )

    def _wait(self) -> bool:
        """Wait until the call has ended; False: it does not end."""
        limit = self._submission.resources.time_limit
        until = None if limit is None else time.monotonic() + limit
        while True:
            rest = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._done, self._ends.reader], [], [], rest)
            if self._done in ready:
                return True
            if ready:
                self._ends.drain()
                grace = 0.0 if self._ends.force else self._submission.grace
                until = time.monotonic() + grace
            elif self._ends.is_asked():
                return False
            else:
                self._ends.ask(EndReason.TIME)

    def _call(self) -> None:
        try:
            self._answer = self._called()
        except BaseException as error:  # SystemExit, KeyboardInterrupt: the step's failure, too
            self._answer = failure(error)
        if self._answer.text:
            print(self._answer.text, end="", file=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os.write(self._writer, b"\0")

    def _called(self) -> Answer:
        from treadle.steps.owner import this_owner
        from treadle.steps.perform import perform
        from treadle.steps.stores import store_for

        head, body = split_ticket(self._order)
        sys.path[:] = [*head.path, *(one for one in sys.path if one not in head.path)]
        try:
            order = decode(body)
        except BaseException as error:  # it imports modules of a person, which may do anything
            return failure(error, Answered.REFUSED)
        owner = this_owner(order.attempt, job=self._submission.name)
        order = replace(order, owner=owner, alone=True)
        store = store_for(order.path, unsafe_locks=order.unsafe_locks)
        return answer_of(perform(order, store, cancelled=self._ends.is_asked))


def _redirect(log: str) -> str:
    """Let all that this process writes go to `log`, or to a file of the node where that cannot be: which."""
    from tempfile import mkstemp

    try:  # its folder is not made here: that would be one which the driver does not see
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError:
        fd, log = mkstemp(prefix="treadle-", suffix=".log")
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    return log


def _tail(log: str) -> str:
    with suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return file.read().decode(errors="replace")
    return ""
