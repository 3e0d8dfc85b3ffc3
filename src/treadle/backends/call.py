"""The process of one job of a client: `python -m treadle.backends.call PAYLOAD` calls a function.

What it returned or raised stands in the answer's file, written aside and renamed. Payload and answer are
private files, as those of steps are.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from treadle import __version__
from treadle.backends.answers import Answer, Answered, failure
from treadle.backends.payload import PYTHON, Head, disagreement, dumps, read_payload
from treadle.base.errors import StepError
from treadle.base.files import write_whole
from treadle.steps.loading import loading


class Returned(Struct, frozen=True, omit_defaults=True):
    """What came of the call: the value, pickled, or how it failed."""

    value: bytes = b""
    failed: Answer | None = None


def call_argv(payload: str) -> tuple[str, ...]:
    """The command of a job. `-P`: what stands in the work folder is not taken for the library's modules."""
    return (sys.executable, "-P", "-m", "treadle.backends.call", payload)


def encode_call(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], answer: str) -> bytes:
    """A payload whose answer is to be written to `answer`. Raises whatever pickling raises."""
    path = tuple(os.path.abspath(one) for one in sys.path)
    head = Head(python=PYTHON, treadle=__version__, path=path, answer=answer)
    return msgspec.json.encode(head) + b"\n" + dumps((fn, tuple(args), dict(kwargs)), fn)


def read_returned(path: str) -> Returned | None:
    """The answer in a file of ours; None when there is none that can be read."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            return msgspec.json.decode(file.read(), type=Returned)
    except (OSError, msgspec.MsgspecError):
        return None


def main(payload: str) -> int:
    """Call the function in a payload, and write the answer. Returns the exit code."""
    try:
        head, body = read_payload(payload)
    except (OSError, StepError) as error:
        print(f"treadle: cannot read {payload}: {error}", file=sys.stderr)
        return 2
    returned = _returned(head, body)
    if returned.failed is not None:
        print(returned.failed.text, end="", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    write_whole(head.answer, msgspec.json.encode(returned), 0o600)
    return 0 if returned.failed is None else 1


def _returned(head: Head, body: bytes) -> Returned:
    if refused := disagreement(head):
        return Returned(failed=Answer(state=Answered.REFUSED, line=refused, text=refused + "\n"))
    sys.path[:] = head.path
    try:
        with loading():
            fn, args, kwargs = pickle.loads(body)
    except BaseException as error:  # it imports modules of a person, which may do anything
        return Returned(failed=failure(error, Answered.REFUSED))
    try:
        return Returned(value=dumps(fn(*args, **kwargs), fn))
    except BaseException as error:
        return Returned(failed=failure(error))


if __name__ == "__main__":
    # Without the finalizers of modules and threads that a function left running: the answer is written.
    os._exit(main(sys.argv[1]))
