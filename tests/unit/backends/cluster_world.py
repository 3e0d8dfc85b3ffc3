"""A work folder, a fake scheduler that runs jobs for real, and its backend, driven as the loop does."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from treadle.backends.cluster.backend import ClusterBackend
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.layout import JobFolder, RunFolder, StateFolder
from treadle.base.names import job_name
from treadle.engine.backend import Accepted, Adoptee, JobReport, Refused, Remark, Submission
from treadle.plan.task import Command, Policy, Resources, ScheduledTask
from treadle.records.event import Outcome
from treadle.testing.schedulers import FakeCluster

RUN = "20261129T110501Z-ab12"
PATIENCE = 60.0


class World:
    """One driver's view; `again` is that of the next one, after this was killed."""

    def __init__(self, folder: Path, kind: str = "slurm", site: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.kind = kind
        self.fake = FakeCluster(kind, folder / "cluster", **{"kill_wait": 0.5, **(site or {})})
        self.fake.start()
        self.run: RunFolder = StateFolder(str(folder)).run(RUN)
        os.makedirs(self.run.logs)
        self.n = 0
        self.backends: list[ClusterBackend] = []
        self.reports: dict[str, list[JobReport]] = {}
        self.live: set[str] = set()
        self.remarks: list[Remark] = []

    def settings(self, **changes: Any) -> ClusterSettings:
        torque = self.kind == "torque"
        fields = {
            "backend": "pbs" if torque else self.kind,
            "dialect": "torque" if torque else "",
            "bin_dir": self.fake.bin,
            "poll_interval": 0.2,
            "latency_wait": 0.5,
            "lost_after": 2.0,
            "command_timeout": 20.0,
        }
        return ClusterSettings(**{**fields, **changes})

    def begin(self, **changes: Any) -> ClusterBackend:
        """A new driver."""
        backend = ClusterBackend(self.settings(**changes), workdir=str(self.folder), user=self.fake.site.user)
        self.backends.append(backend)
        self.live.clear()
        return backend

    @property
    def backend(self) -> ClusterBackend:
        return self.backends[-1] if self.backends else self.begin()

    def task(self, text: str = "true", **changes: Any) -> Submission:
        """An attempt, not submitted."""
        self.n += 1
        n = self.n
        rule = changes.pop("rule", "t")
        task = ScheduledTask(
            id=f"{rule}/n={n}",
            rule=rule,
            command=Command(text=text, secrets=changes.pop("secrets", ())),
            outputs=changes.pop("outputs", ()),
            policy=changes.pop("policy", Policy()),
        )
        fields: dict[str, Any] = {
            "task": task,
            "attempt": 1,
            "n": n,
            "name": job_name(RUN, n),
            "argv": ("bash", "-c", text),
            "env": {"TREADLE_ATTEMPT": f"{RUN}.{n}", **changes.pop("env", {})},
            "cwd": str(self.folder),
            "log": self.run.attempt_log(n),
            "resources": Resources(time_limit=changes.pop("time_limit", None)),
            "grace": 0.3,
        }
        return Submission(**{**fields, **changes})

    def tasks(self, count: int, text: str = "true", **changes: Any) -> list[Submission]:
        return [self.task(text, **changes) for _ in range(count)]

    def submit(self, *batch: Submission) -> list[Accepted | Refused]:
        answers = self.backend.submit(list(batch))
        self.live.update(answer.job for answer in answers if isinstance(answer, Accepted))
        return answers

    def adopt(self, *batch: Submission, job: str = "", since: float = 0.0) -> list[Accepted | Refused]:
        """Take over what an earlier driver submitted."""
        found = [Adoptee(submission=one, run=self.run, job=job, since=since) for one in batch]
        answers = self.backend.adopt(found)
        self.live.update(answer.job for answer in answers if isinstance(answer, Accepted))
        return answers

    def turn(self, longest: float = 0.05) -> None:
        backend = self.backend
        wish = backend.next_timeout()
        fd = backend.fileno()
        assert fd is not None
        select.select([fd], [], [], longest if wish is None else min(wish, longest))
        for report in backend.poll(sorted(self.live)):
            self.reports.setdefault(report.job, []).append(report)
            if report.outcome is not None and not report.provisional:
                self.live.discard(report.job)
        self.remarks += backend.remarks()

    def until(self, done: Callable[[], Any], what: str = "it") -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"{what} never came: {self.reports} {self.remarks}"
            self.turn()

    def for_seconds(self, seconds: float) -> None:
        """Go on for a while."""
        until = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until)

    def finish(self) -> list[Outcome]:
        """Go on until all have ended; their ends in the order of their names."""
        self.until(lambda: not self.live, "the end")
        return [self.outcome(name) for name in sorted(self.reports, key=lambda name: (len(name), name))]

    def do(self, *batch: Submission) -> list[Outcome]:
        """Submit, and go on until these have ended."""
        self.submit(*batch)
        self.until(lambda: not any(one.name in self.live for one in batch), "the end")
        return [self.outcome(one.name) for one in batch]

    def outcome(self, name: str) -> Outcome:
        found = [report.outcome for report in self.reports[name] if report.outcome is not None]
        return found[-1]

    def until_said(self, code: str) -> Remark:
        """Go on until the backend has said something."""
        self.until(lambda: any(one.code == code for one in self.remarks), code)
        return next(one for one in self.remarks if one.code == code)

    def until_there(self, name: str) -> None:
        self.until(lambda: (self.folder / name).exists(), name)

    def codes(self) -> list[str]:
        return [one.code for one in self.remarks]

    def sent(self) -> list[JobFolder]:
        """The folders of submissions."""
        root = Path(self.run.jobs)
        names = sorted(root.iterdir()) if root.exists() else []
        return [JobFolder(str(folder)) for folder in names]

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def close(self) -> None:
        for backend in self.backends:
            backend.close()
        self.fake.close()
