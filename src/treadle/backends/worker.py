"""The process that calls one step's function: `python -m treadle.backends.worker PAYLOAD`.

It is the leader of a process group of its own. Its exit code is 0 when the artifact is complete or someone
else makes it, 1 when the step failed; what came of it stands in the answer's file, written aside and renamed.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from treadle.backends.answers import Answer, Answered, answer_of, encode_answer, failure
from treadle.backends.last_breath import end_with_driver
from treadle.backends.lease_guard import guard
from treadle.backends.payload import Head, decode, disagreement, read_payload
from treadle.base.errors import DiskError, StepError
from treadle.base.files import write_whole
from treadle.base.forked import restore_in_children


class Ending:
    """What SIGTERM does: a function that looks at `ctx.cancelled` is trusted to end, any other one is ended.

    Only the function itself is interrupted, not what comes before and after it. `__wrapped__`: whoever looks
    for parameters looks at the function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.__wrapped__ = fn
        self.asked = False
        self._calling = False
        self._trusted = False

    def __call__(self, *args: Any, **named: Any) -> Any:
        self._calling = True
        try:
            if self.asked:
                raise SystemExit(128 + signal.SIGTERM)
            return self.__wrapped__(*args, **named)
        finally:
            self._calling = False

    def on_signal(self, number: int, frame: object) -> None:
        self.asked = True
        if self._calling and not self._trusted:
            raise SystemExit(128 + number)

    def is_asked_to_end(self) -> bool:
        if self._calling:
            self._trusted = True
        return self.asked


def main(payload: str) -> int:
    """Call the function in a payload, and write the answer. Returns the exit code."""
    _settle_streams()
    end_with_driver()
    try:
        head, body = read_payload(payload)
    except (OSError, StepError) as error:
        print(f"treadle: cannot read {payload}: {error}", file=sys.stderr)
        return 2
    answer = _answer(head, body)
    if answer.text:
        with suppress(Exception):  # whatever the function made of it
            print(answer.text, end="", file=sys.stderr)
    _flush()
    write_whole(head.answer, encode_answer(answer), 0o600)
    return 0 if answer.state in (Answered.DONE, Answered.TAKEN, Answered.HELD) else 1


def _answer(head: Head, body: bytes) -> Answer:
    if refused := disagreement(head):
        return Answer(state=Answered.REFUSED, line=refused, text=refused + "\n")
    sys.path[:], sys.argv[:] = head.path, head.argv
    try:
        order = decode(body)
    except BaseException as error:  # it imports modules of a person, which may do anything
        return failure(error, Answered.REFUSED)
    return _perform(order)


def _perform(order: Any) -> Answer:
    from msgspec.structs import replace

    from treadle.steps.owner import this_owner
    from treadle.steps.perform import perform
    from treadle.steps.stores import store_for

    order = replace(order, owner=this_owner(order.attempt), alone=True)
    ending = Ending(order.fn) if order.fn is not None else None
    if ending is not None:
        before = signal.signal(signal.SIGTERM, ending.on_signal)
        restore_in_children(lambda: _put_back(before))
        order = replace(order, fn=ending)
    asked = ending.is_asked_to_end if ending is not None else _never
    store = store_for(order.path, unsafe_locks=order.unsafe_locks)
    try:
        outcome = perform(order, store, cancelled=asked, holding=guard)
        with suppress(DiskError):
            store.sync()
        return answer_of(outcome)
    except BaseException as error:  # SystemExit, KeyboardInterrupt: the step's failure, too
        return answer_of(_handler_off(error))


def _put_back(before: Any) -> None:
    signal.signal(signal.SIGTERM, before)


def _handler_off(error: BaseException) -> BaseException:
    """Let the traceback of a function that was told to end stop where it was, not in what told it."""
    at = error.__traceback__
    while at is not None:
        if at.tb_next is not None and at.tb_next.tb_frame.f_code is Ending.on_signal.__code__:
            at.tb_next = None
        at = at.tb_next
    return error


def _never() -> bool:
    return False


def _settle_streams() -> None:
    """Lines go into the log as they are written, so that a killed worker leaves what it said."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed by the function, or set to something else; or the disk is full
            stream.flush()


if __name__ == "__main__":
    code = main(sys.argv[1])
    # The answer is written: no thread that the function left running may hold the process.
    atexit._run_exitfuncs()
    _flush()
    os._exit(code)
