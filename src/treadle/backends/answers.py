"""What comes back from the process that called a step's function.

As JSON: the record, who holds the lease, or the exception, pickled and as text. Pickles are read only from a
file of our own, in a folder that nobody else can enter, or from whoever was sent the function.
"""

from __future__ import annotations

import os
import pickle
from enum import StrEnum

import msgspec
from msgspec import Struct

from treadle.steps.order import Done
from treadle.steps.perform import in_a_line, own_frames_off
from treadle.steps.record import ArtifactRecord, Owner


class Answered(StrEnum):
    """What came of a call."""

    DONE = "done"
    TAKEN = "taken"  # it was complete already
    HELD = "held"  # someone else is making it
    FAILED = "failed"
    REFUSED = "refused"  # the function could not be read here


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the process says. Of a failure: the exception pickled (empty: it cannot be), in one line, and as
    Python prints it."""

    state: Answered
    record: ArtifactRecord | None = None
    holder: Owner | None = None
    error: bytes = b""
    line: str = ""
    text: str = ""


class WorkerTraceback(Exception):  # noqa: N818 - not raised itself
    """The traceback of an exception in another process, as the cause of the one that is raised here."""

    def __str__(self) -> str:
        return f"in the worker:\n{self.args[0]}"


class WorkerError(Exception):
    """Stands for an exception of another process that could not be brought over; its text names the type."""


def answer_of(outcome: Done | Owner | BaseException) -> Answer:
    """What the driver is told."""
    if isinstance(outcome, Done):
        return Answer(state=Answered.TAKEN if outcome.taken else Answered.DONE, record=outcome.record)
    if isinstance(outcome, Owner):
        return Answer(state=Answered.HELD, holder=outcome)
    return failure(outcome)


def failure(error: BaseException, state: Answered = Answered.FAILED) -> Answer:
    """An exception as it travels."""
    from traceback import format_exception

    import cloudpickle  # type: ignore[import-untyped]

    own_frames_off(error)
    try:
        pickled = cloudpickle.dumps(error)
        pickle.loads(pickled)  # many can be written but not read: their __init__ wants other arguments
    except Exception:
        pickled = b""
    try:
        text = "".join(format_exception(error))
    except Exception as second:  # a __str__ that raises
        text = f"(its traceback cannot be shown: {in_a_line(second)})"
    return Answer(state=state, error=pickled, line=in_a_line(error), text=text)


def encode_answer(answer: Answer) -> bytes:
    """An answer as it stands in its file."""
    return msgspec.json.encode(answer)


def read_answer(path: str) -> Answer | None:
    """The answer in a file of ours; None when there is none that can be read."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            return msgspec.json.decode(file.read(), type=Answer)
    except (OSError, msgspec.MsgspecError):
        return None


def error_of(answer: Answer) -> BaseException:
    """The exception of a failed call, with its traceback there as its cause."""
    error: BaseException = WorkerError(answer.line)
    if answer.error:
        try:
            loaded = pickle.loads(answer.error)
        except Exception:
            loaded = None
        if isinstance(loaded, BaseException):
            error = loaded
    error.__cause__ = WorkerTraceback(answer.text)
    return error
