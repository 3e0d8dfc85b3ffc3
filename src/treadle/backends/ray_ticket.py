"""What the driver and a Ray actor tell each other: plain bytes, so that either side can be an older Treadle.

ticket  a line of JSON that any version can read (a payload's head), then all that the attempt needs
told    how it ended, and for a step what came of it
"""

from __future__ import annotations

import sys

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle import __version__
from treadle.backends.answers import Answer
from treadle.backends.payload import PYTHON, Head
from treadle.engine.backend import Submission
from treadle.plan.task import ScheduledTask
from treadle.records.event import Outcome


class Ticket(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt. `order` is the payload of a step (empty: a command)."""

    submission: Submission
    order: bytes = b""


class Told(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of an attempt at `task`.

    `answer` is a step's; `tail` the end of its log, where the driver's own log path cannot be written on
    the node. `alive`: its function did not end when it was asked to, and its process must be killed.
    """

    task: str
    attempt: int = 1
    n: int = 0
    log: str = ""
    outcome: Outcome
    answer: Answer | None = None
    tail: str = ""
    alive: bool = False


def encode_ticket(ticket: Ticket, told: str) -> bytes:
    """The ticket as it travels; `told` is the path where the end is written down, too (empty: nowhere)."""
    task = ticket.submission.task
    light = ScheduledTask(id=task.id, rule=task.rule, call=task.call, policy=task.policy)
    ticket = replace(ticket, submission=replace(ticket.submission, task=light))
    head = Head(python=PYTHON, treadle=__version__, path=tuple(sys.path), answer=told)
    return msgspec.json.encode(head) + b"\n" + msgspec.msgpack.encode(ticket)


def split_ticket(wire: bytes) -> tuple[Head, bytes]:
    """The head of a ticket, which says whether the rest can be read here."""
    line, _, body = wire.partition(b"\n")
    return msgspec.json.decode(line, type=Head), body


def decode_ticket(body: bytes) -> Ticket:
    """What follows the head, between equal versions."""
    return msgspec.msgpack.decode(body, type=Ticket)


def encode_told(told: Told) -> bytes:
    return msgspec.json.encode(told)


def decode_told(wire: bytes) -> Told:
    return msgspec.json.decode(wire, type=Told)
