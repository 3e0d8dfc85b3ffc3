"""`verdict`: how a job ended, if it did, from what the queue, its own exit file and accounting say.

A pure function: it asks nobody and knows no clock. Only positive evidence ends a job:

    the exit file says 0, outputs are there, no contrary final state    succeeded
    the queue or accounting shows a final state that is bad             failed, for that reason
    the exit file says another code                                     failed
    nobody knows the job for `lost_after`                               lost

An empty or failed answer is no evidence; it never gets here. Preempted and failed nodes count only once the
queue has forgotten the job: until then it may be queued again.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from treadle.backends.cluster.dialect import Account, Phase, Row
from treadle.backends.cluster.exit_file import Damage, ExitFile, Witness
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.verdict_end import Reason, ended_by, is_oom, outcome, short_of
from treadle.engine.backend import JobStatus
from treadle.plan.task import ScheduledTask
from treadle.records.event import EndReason, Outcome

FIRST_LOOK = 0.5  # seconds; the pauses between looks at a missing file double
_KILL = 9
_REQUEUEABLE = (EndReason.PREEMPTED, EndReason.NODE)
_OF_THE_JOB = (EndReason.OOM, EndReason.TIME)


class Facts(Struct, frozen=True, kw_only=True):
    """All that is known of one job. Times by one clock of the driver, in seconds; never a node's.

    `row` is the queue's last word (None: it answered, and does not know the job, or was never asked), `last`
    the last row that it ever showed. `polled` is when it last answered (None: not since the submission),
    `over` since when it says that the job is ended or unknown (None: it does not say so). `known`: when any
    source last knew it, accounting too; at least its submission. `witness` is as of `looked` (None: never),
    `account` as of `accounted`; `accounting`: there is any. `cancelled`: we asked for its end. `doomed`: an
    earlier driver did, and may not have been heard. `several`: other attempts are in the same job, whose own
    word counts most then: a state is that of the whole job.
    """

    now: float
    known: float
    row: Row | None = None
    last: Row | None = None
    polled: float | None = None
    over: float | None = None
    witness: Witness = Witness()
    looked: float | None = None
    account: Account | None = None
    accounted: float | None = None
    accounting: bool = False
    cancelled: bool = False
    doomed: bool = False
    several: bool = False


class Where(StrEnum):
    """Where to look again."""

    EXIT = "exit"
    ACCOUNTING = "accounting"


class InFlight(Struct, frozen=True):
    """It has not ended; `reason` in the scheduler's words."""

    status: JobStatus
    reason: str = ""


class LookAgain(Struct, frozen=True):
    """It seems to have ended, and how is not known: look at one source again after `seconds`."""

    where: Where
    seconds: float


class Ended(Struct, frozen=True, kw_only=True):
    """It ended. `evidence` is who said so: `exit`, `queue`, `accounting`, or `silence` (lost).

    `provisional`: accounting may still say otherwise (`withdraws`). `remove`: the queue still holds it, and
    should not. `exclude` is the node that failed, for the next attempt.
    """

    outcome: Outcome
    evidence: str
    provisional: bool = False
    remove: bool = False
    exclude: str = ""


Verdict = InFlight | LookAgain | Ended


def verdict(facts: Facts, task: ScheduledTask, limit: int | None, settings: ClusterSettings) -> Verdict:
    """What is known of the end of a job; `limit` is the time limit of this attempt in seconds."""
    case = _Case(facts, task, limit, settings)
    row = facts.row
    if facts.several and (own := case.by_itself()) is not None:
        return own
    if row is not None and row.phase is not Phase.ENDED:
        return case.queued(row)
    if row is not None:
        return case.final(row)
    if facts.over is None:
        return InFlight(JobStatus.UNKNOWN, "the queue has not been heard yet")
    return case.forgotten(facts.over)


def withdraws(earlier: Ended, later: Verdict) -> bool:
    """Whether later news take back a success that was provisional."""
    return (
        earlier.provisional
        and earlier.outcome.reason is EndReason.OK
        and isinstance(later, Ended)
        and later.outcome.reason is not EndReason.OK
    )


class _Case:
    """One look at one job."""

    def __init__(
        self, facts: Facts, task: ScheduledTask, limit: int | None, settings: ClusterSettings
    ) -> None:
        self.facts = facts
        self.task = task
        self.limit = limit
        self.settings = settings
        self.exit = facts.witness.exit
        account = facts.account
        self.settled = account if account is not None and account.settled else None

    @property
    def wanted(self) -> bool:
        """Whether a bad end is what was asked for; where that may not have been heard: as far as it shows."""
        asked = self.exit is None or bool(self.exit.asked)
        return self.facts.cancelled or (self.facts.doomed and asked)

    def by_itself(self) -> Ended | None:
        """One of several in a job wrote its end, and nothing that comes of the job can change it.

        None while the job may start it again, or where the job's state has to say what ended it.
        """
        exit = self.exit
        if exit is None:
            return None
        reason = ended_by(exit, self.task, self.limit, self.wanted)
        if reason.reason is EndReason.OK:
            return self._success(exit)
        if self.task.policy.restartable and self.facts.over is None:
            return None
        unsure = exit.asked != 0 or (exit.oom_kills is None and exit.signal == _KILL)
        if unsure and reason.reason is EndReason.APP:
            return None
        return self._end(reason, "exit")

    def queued(self, row: Row) -> Verdict:
        """The queue says that it waits or runs. Its own word that all is done is faster than the queue."""
        if row.hopeless:
            words = f"it can never start: {row.reason or row.state}"
            return self._end(Reason(EndReason.NEVER_STARTED, words), "queue", remove=True)
        if self.exit is not None and self._succeeded(self.exit) and self.exit.oom_kills == 0:
            return self._success(self.exit, remove=row.phase is Phase.PENDING)
        if self.exit is not None and self.facts.cancelled and self.exit.exit_code != 0:
            # It was asked to end, and did; a queue that cannot be read would not say so for long.
            return self._end(ended_by(self.exit, self.task, self.limit, cancelled=True), "exit")
        words = row.reason or row.state
        if row.requeued:
            words = f"requeued: {words}" if words else "requeued"
        return InFlight(JobStatus(row.phase.value), words)

    def final(self, row: Row) -> Verdict:
        """The queue shows a final state."""
        if row.ended in _REQUEUEABLE:
            return InFlight(JobStatus.UNKNOWN, f"requeued or gone: {row.state}")
        if (again := self._look_after_the_end()) is not None:
            return again
        if self.exit is not None:
            return self._witnessed(self.exit, row.ended, row.state, "queue")
        if row.ended is not None and row.ended is not EndReason.APP and not self.facts.several:
            return self._end(Reason(row.ended, _words(row)), "queue")
        return self._unwitnessed(row.ended, row)

    def forgotten(self, over: float) -> Verdict:
        """The queue has answered, and does not know it (any more)."""
        if (again := self._look_after_the_end()) is not None:
            return again
        exit, settled, last = self.exit, self.settled, self.facts.last
        said = last.ended if last is not None and last.phase is Phase.ENDED else None
        if exit is None:
            if last is not None and said is not None and not self.facts.several:
                return self._end(short_of(self.facts.witness, said, _words(last), None), "queue")
            if self.facts.cancelled:
                return self._cancelled(over)
            return self._unwitnessed(None, None)
        if settled is not None:
            return self._witnessed(exit, settled.ended, settled.state, "accounting")
        if said is not None and last is not None:
            return self._witnessed(exit, said, last.state, "queue")
        unsure = exit.oom_kills is None or (exit.exit_code != 0 and exit.asked != 0)
        ours = self.facts.cancelled and exit.exit_code != 0
        asks = self.facts.accounting and not (ours or exit.problem or exit.skipped)
        if unsure and asks:
            bound = self.settings.lost_after if exit.exit_code == 0 else self.settings.latency_wait
            if self.facts.now - over < bound:
                return self._ask_accounting(over + bound)
        return self._witnessed(exit, None, "", "exit")

    def _cancelled(self, over: float) -> Verdict:
        """We asked for its end, and it is gone without a word of its own: Grid Engine kills at once.

        Where it had begun, accounting may know that it was done before; it need not wait for the files.
        """
        if not self.facts.accounting or not self.facts.witness.starts:
            return self._end(Reason(EndReason.CANCELLED), "queue")
        until = over + self.settings.latency_wait
        if self.settled is None and self.facts.now < until:
            return self._ask_accounting(until)
        if self.settled is not None and self.settled.ended not in (None, EndReason.OK):
            return self._by_accounting(self.settled)
        return self._unwitnessed(None, None)

    def _look_after_the_end(self) -> LookAgain | None:
        """The last look at the exit file has to be after the job has left the queue."""
        over, looked = self.facts.over, self.facts.looked
        if self.exit is None and over is not None and (looked is None or looked < over):
            return LookAgain(Where.EXIT, 0.0)
        return None

    def _witnessed(self, exit: ExitFile, contrary: EndReason | None, state: str, source: str) -> Ended:
        """The job wrote its end; a final state may say otherwise."""
        if contrary is EndReason.OOM and exit.exit_code == 0 and self.task.policy.oom_ok:
            contrary = None
        if self._succeeded(exit) and contrary is None and not is_oom(exit, self.task):
            return self._success(exit)
        if self.facts.several and contrary is not None and exit.exit_code == 0 and exit.done:
            return self._success(exit)  # the state is that of the whole job, in which another one failed
        if contrary is not None and contrary is not EndReason.APP and not exit.skipped:
            return self._end(Reason(contrary, f"the scheduler says {state}"), source)
        reason = ended_by(exit, self.task, self.limit, self.wanted)
        if reason.reason is EndReason.OK:
            words = f"it ended with exit code 0, but the scheduler says {state}"
            return self._end(Reason(EndReason.APP, words), source)
        return self._end(reason, "exit")

    def _unwitnessed(self, contrary: EndReason | None, row: Row | None) -> Verdict:
        """It is over, and left no end: look again for a while, then ask accounting, then it is lost."""
        facts, settings = self.facts, self.settings
        assert facts.over is not None
        patience = facts.over + settings.latency_wait
        looked = facts.over if facts.looked is None else facts.looked
        if looked < patience and facts.witness.damage is not Damage.NEWER:
            pause = min(max(FIRST_LOOK, looked - facts.over), max(0.0, patience - facts.now))
            return LookAgain(Where.EXIT, pause)
        if self.settled is not None:
            return self._by_accounting(self.settled)
        until = self._until(facts.over, contrary, row)
        if facts.accounting and facts.now < until:
            return self._ask_accounting(until)
        account = facts.account
        if account is not None and account.phase is Phase.ENDED and account.ended is not None:
            return self._by_accounting(account)
        if contrary is not None and row is not None:
            return self._end(short_of(self.facts.witness, contrary, _words(row), None), "queue")
        if row is None and facts.now < facts.known + settings.lost_after:
            left = facts.known + settings.lost_after - facts.now
            return LookAgain(Where.EXIT, min(settings.poll_interval, left))
        return self._end(Reason(EndReason.LOST, self._asked()), "silence")

    def _until(self, over: float, contrary: EndReason | None, row: Row | None) -> float:
        """How long accounting is waited for: shorter where the queue has said that it failed."""
        if row is None:
            return self.facts.known + self.settings.lost_after
        if contrary is not None:
            return over + 2 * self.settings.latency_wait
        return over + self.settings.lost_after

    def _by_accounting(self, account: Account) -> Ended:
        if account.ended is None or account.ended is EndReason.OK:
            words = f"accounting says {account.state}, but it left no exit file"
            return self._end(Reason(EndReason.LOST, f"{words}; {self._asked()}"), "accounting")
        words = f"the scheduler says {account.state}"
        return self._end(short_of(self.facts.witness, account.ended, words, account.exit_code), "accounting")

    def _ask_accounting(self, until: float) -> LookAgain:
        pause = min(self.settings.poll_interval, max(0.0, until - self.facts.now))
        return LookAgain(Where.ACCOUNTING, pause)

    def _asked(self) -> str:
        """What was asked, for whoever has to find a lost job."""
        facts = self.facts

        def ago(when: float | None) -> str:
            return "never" if when is None else f"{max(0.0, facts.now - when):.0f} s ago"

        damage = facts.witness.damage
        asked = [f"the queue ({ago(facts.polled)}: {facts.row.state if facts.row else 'not known'})"]
        asked.append(f"its exit file ({ago(facts.looked)}: {damage.value if damage else 'not there'})")
        if facts.accounting:
            state = facts.account.state if facts.account else "not known"
            asked.append(f"accounting ({ago(facts.accounted)}: {state})")
        return "asked: " + ", ".join(asked)

    def _succeeded(self, exit: ExitFile) -> bool:
        missing = any(one.kind == "-" for one in exit.outputs)
        return exit.exit_code == 0 and not (missing or exit.problem or exit.skipped)

    def _success(self, exit: ExitFile, *, remove: bool = False) -> Ended:
        open_ = self.facts.accounting and self.settled is None and not self.facts.several
        made = outcome(Reason(EndReason.OK), exit, self._own_account(), self.facts.row or self.facts.last)
        return Ended(outcome=made, evidence="exit", provisional=open_, remove=remove)

    def _end(self, reason: Reason, evidence: str, *, remove: bool = False) -> Ended:
        never = self.facts.several and not self.facts.witness.starts
        if self.wanted and (never or reason.reason in (EndReason.APP, EndReason.LOST, *_REQUEUEABLE)):
            reason = Reason(EndReason.CANCELLED, reason.message)
        elif never and reason.reason in _OF_THE_JOB:
            reason = Reason(EndReason.INTERRUPTED, f"its job ended before its turn: {reason.message}")
        made = outcome(reason, self.exit, self._own_account(), self.facts.row or self.facts.last)
        exclude = made.host if reason.reason is EndReason.NODE else ""
        return Ended(outcome=made, evidence=evidence, remove=remove, exclude=exclude)

    def _own_account(self) -> Account | None:
        """What accounting says of it alone."""
        return None if self.facts.several else self.facts.account


def _words(row: Row) -> str:
    return f"the scheduler says {row.state}" + (f" ({row.reason})" if row.reason else "")
