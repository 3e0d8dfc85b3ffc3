"""How a fake cluster can be told to misbehave: rules that say what happens to which job or which call."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct


class Do(StrEnum):
    """What a rule does. Times are seconds of the fake's clock; those of `HANG` are real ones."""

    # A call of the command that submits
    REFUSE = "refuse"  # not taken: `words`, exit `code`
    LIMIT = "limit"  # not taken: too many jobs of this user
    LOSE_ANSWER = "lose_answer"  # taken, but it prints no id: `words` on stderr, exit `code`
    BANNER = "banner"  # `words` stand before the answer
    # A call of any command (`command`, a pattern)
    HANG = "hang"  # the answer takes `seconds`
    DOWN = "down"  # the controller cannot be reached
    SAY = "say"  # it prints `words`, exit `code`, and does nothing
    # A job that waits
    DELAY = "delay"  # it waits `seconds`
    PEND = "pend"  # it waits for ever, for the reason `words`
    HOLD = "hold"  # it is held until it is released
    ERROR = "error"  # SGE: Eqw; others: held by the system
    LOSE = "lose"  # it is taken, and then nobody ever knew it
    # A job that runs, `after` seconds after its start
    KILL = "kill"  # SIGKILL
    TIMEOUT = "timeout"  # ended as over its time limit
    OOM = "oom"  # ended as out of memory
    REQUEUE = "requeue"  # ended, and it waits again
    PREEMPT = "preempt"  # the same, or its end where it may not run again
    NODE_FAIL = "node_fail"  # its node fails: it waits again, or it has ended
    SUSPEND = "suspend"  # it is stopped, for `seconds` (0: until it is resumed)
    SHOW = "show"  # the queue shows the state `words`, for `seconds` (0: until it ends)
    VANISH = "vanish"  # killed, and gone from the queue and the accounting
    # A job that has ended
    OOM_UNSEEN = "oom_unseen"  # it ended well, and its state is out of memory all the same
    FORGET = "forget"  # the queue forgets it at once
    LAG = "lag"  # accounting knows it `seconds` later
    LIE = "lie"  # accounting says the state `words`, exit code 0, end unknown; for `seconds` (0: for ever)
    NO_RECORD = "no_record"  # accounting never knows it
    # Instead of running it
    SIMULATE = "simulate"  # no process: it takes `seconds`, and ends with exit `code`


OF_SUBMISSIONS = frozenset({Do.REFUSE, Do.LIMIT, Do.LOSE_ANSWER, Do.BANNER})
OF_CALLS = frozenset({Do.HANG, Do.DOWN, Do.SAY})


class Rule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One misbehaviour.

    `name` is a pattern over job names (as in a shell), `command` one over command names, `index` an
    element of arrays (0: all). Of the jobs (or calls) that match, `nth` picks one, counted from 1 (0:
    all), and `times` bounds how many are hit (0: no bound). A job is hit by a rule once, also when it
    starts again.
    """

    do: Do
    name: str = "*"
    command: str = "*"
    index: int = 0
    nth: int = 0
    times: int = 0
    after: float = 0.0
    seconds: float = 0.0
    words: str = ""
    code: int | None = None


class Armed:
    """A rule, with what it has seen and hit so far."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.seen = 0
        self.hits = 0

    def hit(self) -> bool:
        """Count one that matches: whether it is to be hit."""
        rule = self.rule
        self.seen += 1
        if (rule.nth and self.seen != rule.nth) or (rule.times and self.hits >= rule.times):
            return False
        self.hits += 1
        return True


class Rules:
    """All rules of a cluster, in the order in which they were written."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._armed: list[Armed] = []
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        self._armed.append(Armed(rule))

    def clear(self) -> None:
        self._armed.clear()

    def of_call(self, command: str) -> list[Rule]:
        """Rules that hit this call."""
        return [
            one.rule
            for one in self._armed
            if one.rule.do in OF_CALLS and fnmatchcase(command, one.rule.command) and one.hit()
        ]

    def of_submission(self, name: str) -> list[Rule]:
        """Rules that hit the submission of a job of this name."""
        return [
            one.rule
            for one in self._armed
            if one.rule.do in OF_SUBMISSIONS and fnmatchcase(name, one.rule.name) and one.hit()
        ]

    def of_element(self, dos: frozenset[Do], name: str, index: int, met: set[int]) -> list[Rule]:
        """Rules for these doings that hit an element; `met` are those it has met before, and grows."""
        found = []
        for at, one in enumerate(self._armed):
            rule = one.rule
            if rule.do not in dos or at in met or rule.index not in (0, index):
                continue
            if fnmatchcase(name, rule.name):
                met.add(at)
                if one.hit():
                    found.append(rule)
        return found

    def any_of(self, dos: frozenset[Do]) -> bool:
        """Whether there is any rule for these doings: 10,000 elements need not ask one by one."""
        return any(one.rule.do in dos for one in self._armed)
