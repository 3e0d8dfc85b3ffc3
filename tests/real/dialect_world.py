"""A real batch system as a `Dialect` sees it: it makes every command and reads every answer."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from schedulers.start import Scheduler
from treadle.backends.cluster.dialect import Account, Answer, Dialect, Request, Row, Said, Silence
from treadle.plan.task import Resources

T = TypeVar("T")
USER = "root"


class Asked:
    """Submits below `folder`, and asks. Every wait is bounded, and says at its end what was seen last."""

    def __init__(self, scheduler: Scheduler, dialect: Dialect, folder: Path) -> None:
        self.scheduler, self.dialect, self.folder = scheduler, dialect, folder
        self.since = time.time() - 1
        self._count = 0

    def offer(
        self,
        body: str,
        *,
        size: int = 0,
        running: int = 0,
        requeue: bool = False,
        workdir: str = "",
        resources: Resources = Resources(),  # noqa: B008 (it is frozen)
    ) -> Answer:
        """Submit a script with that body: the answer."""
        request = Request(
            name=self.new_name(),
            script=str(self.folder / f"{self._count}.sh"),
            log=self.log(),
            workdir=workdir or str(self.folder),
            resources=resources,
            size=size,
            running=running,
            requeue=requeue,
            comment=f'run 1 task {self._count} it\'s a "comment"',
        )
        directives = self.dialect.directives(request)
        Path(request.script).write_text("\n".join(("#!/bin/bash", *directives, body, "")))
        argv, stdin = self.dialect.submit(request)
        assert not stdin, "neither SLURM nor Grid Engine reads a script from there"
        return self.dialect.submitted(self.said(argv))

    def submit(self, body: str, **asked: object) -> str:
        """Submit what must be taken: its id."""
        answer = self.offer(body, **asked)  # type: ignore[arg-type]
        assert answer.job, answer
        return answer.job

    def new_name(self) -> str:
        """A job name that nobody had before, as short as all schedulers take it."""
        self._count += 1
        return self.name()

    def name(self) -> str:
        """The name of what was submitted last."""
        return f"t{hash(str(self.folder)) % 10**6:06}-{self._count}"

    def log(self, index: int = 0) -> str:
        """Where the output of what was submitted last goes."""
        log = str(self.folder / f"{self._count}.log")
        return self.dialect.log_of(log, index)

    def said(self, argv: Sequence[str]) -> Said:
        done = self.scheduler.run(*argv, env={**self.dialect.environment, "USER": USER})
        return Said(done.returncode, done.stdout, done.stderr)

    def polled(self, *jobs: str) -> dict[str, Row] | Silence:
        rows: dict[str, Row] = {}
        for argv in self.dialect.poll(jobs, USER):
            answer = self.dialect.polled(self.said(argv))
            if isinstance(answer, Silence):
                return answer
            rows |= {row.job: row for row in answer}
        return rows

    def row(self, job: str) -> Row | None:
        """What the queue shows of it; None where it is not known (any more)."""
        rows = self.polled(job)
        assert not isinstance(rows, Silence), rows
        return rows.get(job)

    def accounted(self, *jobs: str) -> dict[str, Account] | Silence:
        accounts: dict[str, Account] = {}
        for argv in self.dialect.accounting(jobs, self.since):
            answer = self.dialect.accounted(self.said(argv))
            if isinstance(answer, Silence):
                return answer
            accounts |= {account.job: account for account in answer}
        return accounts

    def account(self, job: str) -> Account | None:
        """What accounting tells of it (of its last run), once that is final."""
        accounts = self.accounted(job)
        if isinstance(accounts, Silence):  # as before the first job of a new Grid Engine has ended
            assert not accounts.down, accounts
            return None
        found = accounts.get(job)
        return found if found is not None and found.settled else None

    def found(self, *names: str) -> list[dict[str, str] | Silence]:
        """By name: what each source answers, the queue first."""
        commands = self.dialect.find(names, USER, self.since)
        return [self.dialect.found(argv, self.said(argv)) for argv in commands]

    def cancel(self, *jobs: str) -> None:
        for argv in self.dialect.cancel(jobs):
            self.said(argv)

    def until(self, look: Callable[[], T | None], *, seconds: float = 60) -> T:
        """Look until there is something to see: that."""
        end = time.monotonic() + seconds
        while not (seen := look()):
            assert time.monotonic() < end, f"not within {seconds:g} s; seen last: {seen}"
            time.sleep(0.1)
        return seen

    def row_when(self, job: str, is_so: Callable[[Row], bool], *, seconds: float = 60) -> Row:
        """Its row, once that is as wanted."""
        last: list[Row | None] = [None]

        def look() -> Row | None:
            row = last[0] = self.row(job)
            return row if row is not None and is_so(row) else None

        try:
            return self.until(look, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{job}: {error}; its row: {last[0]}") from None

    def final(self, job: str, *, seconds: float = 60) -> Account:
        """Its account, once that is final."""
        return self.until(lambda: self.account(job), seconds=seconds)


def touches(path: Path) -> str:
    """A line of a script that adds one line to a file, which tells how often it ran."""
    return f"echo started >> {shlex.quote(os.fspath(path))}"


def lines_of(path: Path | str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except FileNotFoundError:
        return []
