"""What one scheduler's commands are like: a call comes in, a reply goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.mischief import Do
from treadle.testing.schedulers.work import Element, End, Job, Wish


class StdinError(Exception):
    """The command reads its standard input, which has not been sent yet."""


class Call(Struct):
    """One call of a command."""

    program: str
    arguments: list[str]
    cwd: str
    env: dict[str, str]
    given: bytes | None = None

    @property
    def stdin(self) -> bytes:
        """Raises `StdinError`, where the client is to be asked for it."""
        if self.given is None:
            raise StdinError
        return self.given


class Reply(Struct, frozen=True):
    """What a command prints, and its exit code."""

    code: int = 0
    out: str = ""
    err: str = ""


class StopError(Exception):
    """The command ends here, with this reply."""

    def __init__(self, code: int, err: str = "", out: str = "") -> None:
        super().__init__(err)
        self.reply = Reply(code, out, err)


class Launch(Struct, frozen=True):
    """How a job is started; `copies` are files brought to their places at its end, as (from, to)."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    out: str
    err: str = ""
    append: bool = False
    copies: tuple[tuple[str, str], ...] = ()


Command = Callable[[Cluster, Call], Reply]


class Voice(Protocol):
    """The words of one scheduler."""

    @property
    def commands(self) -> Mapping[str, Command]: ...

    def launch(self, cluster: Cluster, element: Element) -> Launch: ...

    def note(self, cluster: Cluster, element: Element, how: End) -> str:
        """What the job's own output says when it is ended from outside (empty: nothing)."""
        ...

    def ended(self, cluster: Cluster, element: Element) -> End | None:
        """What its exit means here, where that is not the usual."""
        ...

    def down(self, call: Call) -> Reply | None:
        """The answer while the controller is away (None: this command needs none)."""
        ...

    def accepted(self, job: Job, call: Call) -> Reply: ...

    def refused(self, words: str) -> Reply: ...

    def limited(self) -> Reply: ...

    def unanswered(self) -> Reply:
        """It was taken, but the answer did not come."""
        ...


def submit(voice: Voice, cluster: Cluster, wish: Wish, call: Call) -> Reply:
    """Take a job, unless a rule or a limit says no; the answer may get lost."""
    rules = {rule.do: rule for rule in cluster.rules.of_submission(wish.name)}
    if no := rules.get(Do.REFUSE):
        reply = voice.refused(no.words)
        return reply if no.code is None else Reply(no.code, reply.out, reply.err)
    if Do.LIMIT in rules or cluster.full(len(wish.indices or (0,))):
        limit = rules.get(Do.LIMIT)
        return voice.refused(limit.words) if limit and limit.words else voice.limited()
    reply = voice.accepted(cluster.add(wish), call)
    if lost := rules.get(Do.LOSE_ANSWER):
        reply = voice.unanswered()
        code = reply.code if lost.code is None else lost.code
        return Reply(code, "", f"{lost.words}\n" if lost.words else reply.err)
    if banner := rules.get(Do.BANNER):
        reply = Reply(reply.code, f"{banner.words}\n{reply.out}", reply.err)
    return reply
