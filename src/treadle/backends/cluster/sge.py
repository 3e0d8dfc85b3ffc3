"""Grid Engine in words: `qsub`, `qstat`, `qacct`, `qdel`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from treadle.backends.cluster.amounts import memory_in, per_slot, whole_seconds
from treadle.backends.cluster.dialect import Account, Answer, Limits, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.owned import of_words
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.sge_records import NO_ACCOUNTING, NOT_KNOWN, SIGNS, read_accounts, read_rows
from treadle.backends.cluster.words import (
    chunks,
    complaint,
    distinct,
    given,
    job_name,
    last_line,
    not_taken,
    number,
    plain,
    silence,
    unreadable,
)

_ID = re.compile(
    r"(?:([0-9]{1,18})(?:\.[0-9]+-[0-9]+:[0-9]+)?|Your job(?:-array)? ([0-9]{1,18})\b.* has been submitted)\Z"
)
_OWNED = (
    *("-N", "-o", "-e", "-j", "-t", "-tc", "-terse", "-sync", "-cwd", "-wd", "-S", "-b", "-shell", "-r"),
    *("-now", "-verify", "-C", "-@"),
)
_ARRAY_SIZE = re.compile(r"^max_aj_tasks\s+([0-9]{1,9})", re.MULTILINE)
_USER_JOBS = re.compile(r"^max_u_jobs\s+([0-9]{1,9})", re.MULTILINE)
_ASKED_ONE_BY_ONE = 4
_SKEW = 3600.0


class Sge:
    """The dialect of the Grid Engine family (recorded with Son of Grid Engine 8.1.9).

    `user` bounds what `qacct` reads, which takes one job or all those since a time.
    """

    name = "sge"
    index_variable = "SGE_TASK_ID"
    id_variable = "JOB_ID"
    scrubbed = ("SGE_",)
    kept = ("SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT")
    name_length = 15
    throttles = True

    def __init__(self, settings: ClusterSettings, user: str = "") -> None:
        self._settings = settings
        self._user = user

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def owned(self, options: Sequence[str]) -> list[str]:
        return of_words(options, words=_OWNED)

    def directives(self, request: Request) -> list[str]:
        return [f"#$ {' '.join(option)}" for option in self._options(request) if all(map(plain, option))]

    def submit(self, request: Request) -> tuple[list[str], str]:
        awkward = [
            word for option in self._options(request) if not all(map(plain, option)) for word in option
        ]
        extra = given((*self._settings.extra_args, *request.resources.extra_args))
        return ["qsub", "-terse", *awkward, *extra, request.script], ""

    def _options(self, request: Request) -> list[tuple[str, ...]]:
        asked, site = request.resources, self._settings
        said = {
            "-N": job_name(request.name, self.name_length),
            "-S": "/bin/bash",
            "-wd": request.workdir,
            "-o": f"{request.log}.$TASK_ID" if request.size else request.log,
            "-j": "y",
            "-r": "y" if request.requeue else "n",
            "-q": asked.partition or site.partition,
            "-P": asked.account or site.account,
            "-t": f"1-{request.size}" if request.size else "",
            "-tc": str(request.running) if request.size and request.running else "",
        }
        options: list[tuple[str, ...]] = [(option, value) for option, value in said.items() if value]
        if asked.threads > 1:
            options.append(("-pe", site.parallel_environment, str(asked.threads)))
        return [*options, *(("-l", amount) for amount in self._amounts(request))]

    def _amounts(self, request: Request) -> list[str]:
        """Memory is counted for each slot."""
        asked, site = request.resources, self._settings
        limit = asked.time_limit or site.walltime
        amounts = []
        if asked.memory:
            slot = memory_in(per_slot(asked.memory, asked.threads), "M")
            amounts.append(f"{site.memory_resource}={slot}M")
        if limit:
            amounts.append(f"h_rt={whole_seconds(limit)}")
        if asked.gpus:
            amounts.append(f"{site.gpu_resource}={asked.gpus}")
        if constraint := asked.constraint or site.constraint:
            amounts.append(constraint)
        if request.exclude:
            amounts.append(f"hostname=!({'|'.join(request.exclude)})")
        return amounts

    def submitted(self, said: Said) -> Answer:
        found = _ID.match(last_line(said.out))
        if found is None:
            return not_taken(said, SIGNS)
        if said.code != 0:
            return Answer(Sort.UNCLEAR, message=complaint(said))
        return Answer(Sort.DONE, job=found[1] or found[2])

    def log_of(self, log: str, index: int) -> str:
        return f"{log}.{index}" if index else log

    def element(self, array: str, index: int) -> str:
        return f"{array}.{index}"

    def poll(self, jobs: Sequence[str], user: str) -> list[list[str]]:
        """All jobs of the user: there is no list of ids, and those that ended are not among them."""
        return [["qstat", "-xml", "-s", "prs", *(["-u", user] if user else [])]] if jobs else []

    def polled(self, said: Said) -> list[Row] | Silence:
        if said.code is None or said.code != 0:
            return silence(said, SIGNS)
        if said.out.strip() and not said.out.rstrip().endswith("</job_info>"):
            return unreadable(said)  # cut off, or no list of jobs at all
        if not said.out.strip() and said.err.strip():
            return silence(said, SIGNS)
        return read_rows(said.out)

    def accounting(self, jobs: Sequence[str], since: float) -> list[list[str]]:
        numbers = distinct(job.partition(".")[0] for job in jobs)
        if len(numbers) <= _ASKED_ONE_BY_ONE:
            return [["qacct", "-j", number] for number in numbers]
        begin = time.strftime("%Y%m%d%H%M", time.localtime(max(0.0, since - _SKEW)))
        owner = ["-o", self._user] if self._user else []
        return [["qacct", "-b", begin, *owner, "-j"]]

    def accounted(self, said: Said) -> list[Account] | Silence:
        if said.code is None:
            return silence(said, SIGNS)
        if said.code != 0:
            return [] if NOT_KNOWN.search(said.err + said.out) else silence(said, SIGNS)
        accounts = read_accounts(said.out)
        known = accounts or not said.out.strip() or "Total System Usage" in said.out
        return accounts if known else unreadable(said)

    def cancel(self, jobs: Sequence[str]) -> list[list[str]]:
        return [["qdel", *ids] for ids in chunks(distinct(jobs), 500)]

    def find(self, names: Sequence[str], user: str, since: float) -> list[list[str]]:
        if not names:
            return []
        return [*self.poll(names, user), *(["qacct", "-j", name] for name in distinct(names))]

    def found(self, argv: Sequence[str], said: Said) -> dict[str, str] | Silence:
        answer = self.accounted(said) if argv[:1] == ["qacct"] else self.polled(said)
        if isinstance(answer, Silence):
            return {} if NO_ACCOUNTING.search(answer.message) else answer
        newest: dict[str, int] = {}
        for one in answer:
            job = number(one.job.partition(".")[0])
            newest[one.name] = max(job, newest.get(one.name, 0))
        return {name: str(job) for name, job in newest.items() if name}

    def limits(self) -> list[str]:
        return ["qconf", "-sconf"]

    def limits_of(self, said: Said) -> Limits:
        """0 stands for no limit in both."""
        size, jobs = _ARRAY_SIZE.search(said.out), _USER_JOBS.search(said.out)
        return Limits(
            array_size=(int(size[1]) or None) if size else None,
            submitted=(int(jobs[1]) or None) if jobs else None,
        )

    def ping(self) -> list[str]:
        return ["qconf", "-sql"]
