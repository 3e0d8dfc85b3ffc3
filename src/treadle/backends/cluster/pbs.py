"""PBS in words: `qsub`, `qstat`, `qdel`; OpenPBS and PBS Pro, and Torque."""

from __future__ import annotations

import re
from collections.abc import Sequence

from treadle.backends.cluster.amounts import memory_in, whole_seconds
from treadle.backends.cluster.dialect import Account, Answer, Limits, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.owned import of_getopt
from treadle.backends.cluster.pbs_ends import NO_HISTORY, NOT_KNOWN, SIGNS, account_of, row_of
from treadle.backends.cluster.pbs_status import Entry, bare_id, read_entries
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.words import (
    chunks,
    complaint,
    distinct,
    given,
    job_name,
    last_line,
    lines,
    not_taken,
    plain,
    silence,
    unreadable,
)
from treadle.base.units import format_clock

_IDS_AT_ONCE = 2000
_TRACED_AT_ONCE = 10
_WAITS = re.compile(r"-W\s*(?:block|interactive)\b")
_ARRAY_SIZE = re.compile(r"max(?:_job)?_array_size = ([0-9]{1,9})")
_USER_QUEUED = re.compile(r"max_user_queuable = ([0-9]{1,9})|max_queued = .*?\[u:PBS_GENERIC=([0-9]{1,9})\]")


class Pbs:
    """The dialect of OpenPBS and PBS Pro (recorded with 23.06).

    Jobs are called without their server, whose name `qsub` and `qstat` may spell differently. The queue is
    asked without `-x`, which fails where the site keeps no history; the history is the accounting.
    """

    name = "pbs"
    index_variable = "PBS_ARRAY_INDEX"
    id_variable = "PBS_JOBID"
    scrubbed: tuple[str, ...] = ("PBS_",)
    kept: tuple[str, ...] = ("PBS_CONF_FILE", "PBS_SERVER", "PBS_DEFAULT", "PBS_EXEC", "PBS_HOME")
    name_length = 15
    throttles = False  # PBS Pro does from 2020 on
    _torque = False
    _owned_short = "NoejJzICSr"
    _flags = "fhIVXz"

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def owned(self, options: Sequence[str]) -> list[str]:
        mine = of_getopt(options, long=(), short=self._owned_short, flags=self._flags)
        before = ("", *options)
        waits = [
            option
            for option, last in zip(options, before)
            if _WAITS.match(option) or (last == "-W" and _WAITS.match(f"-W{option}"))
        ]
        return distinct([*mine, *waits])

    def directives(self, request: Request) -> list[str]:
        return [f"#PBS {' '.join(option)}" for option in self._options(request) if all(map(plain, option))]

    def submit(self, request: Request) -> tuple[list[str], str]:
        awkward = [
            word for option in self._options(request) if not all(map(plain, option)) for word in option
        ]
        extra = given((*self._settings.extra_args, *request.resources.extra_args))
        return ["qsub", *awkward, *extra, request.script], ""

    def _options(self, request: Request) -> list[tuple[str, ...]]:
        asked, site = request.resources, self._settings
        limit = asked.time_limit or site.walltime
        said = {
            "-N": job_name(request.name, self.name_length),
            "-o": self._log_option(request),
            "-j": "oe",
            "-S": "/bin/bash",
            "-r": "y" if request.requeue else "n",
            "-q": asked.partition or site.partition,
            "-A": asked.account or site.account,
        }
        options = [(option, value) for option, value in said.items() if value]
        options += [("-l", amount) for amount in self._amounts(request)]
        if limit:
            options.append(("-l", f"walltime={format_clock(whole_seconds(limit), days=False)}"))
        return [*options, *self._array(request)]

    def _log_option(self, request: Request) -> str:
        return f"{request.log}.^array_index^" if request.size else request.log

    def _amounts(self, request: Request) -> list[str]:
        asked = request.resources
        chunk = f"select={asked.nodes or 1}:ncpus={asked.threads * (asked.tasks_per_node or 1)}"
        if asked.tasks_per_node:
            chunk += f":mpiprocs={asked.tasks_per_node}"
        if asked.memory:
            chunk += f":mem={memory_in(asked.memory, 'M')}mb"
        if asked.gpus:
            chunk += f":ngpus={asked.gpus}"
        constraint = asked.constraint or self._settings.constraint
        return [f"{chunk}:{constraint}" if constraint else chunk]

    def _array(self, request: Request) -> list[tuple[str, ...]]:
        """Ranges must have two ends that differ: the one element of `1-2:2` is 1. No throttle before 2020."""
        if not request.size:
            return []
        return [("-J", f"1-{request.size}" if request.size > 1 else "1-2:2")]

    def submitted(self, said: Said) -> Answer:
        job = bare_id(last_line(said.out))
        if not job:
            return not_taken(said, SIGNS)
        if said.code != 0:
            return Answer(Sort.UNCLEAR, message=complaint(said))
        return Answer(Sort.DONE, job=job)

    def log_of(self, log: str, index: int) -> str:
        return f"{log}.{index}" if index else log

    def element(self, array: str, index: int) -> str:
        return f"{array.partition('[')[0]}[{index}]"

    def poll(self, jobs: Sequence[str], user: str) -> list[list[str]]:
        return [["qstat", "-f", "-F", "json", "-t", *ids] for ids in chunks(_whole(jobs), _IDS_AT_ONCE)]

    def polled(self, said: Said) -> list[Row] | Silence:
        entries = self._entries(said)
        if isinstance(entries, Silence):
            return entries
        return [row_of(job, entry, self._torque) for job, entry in entries.items()]

    def _entries(self, said: Said) -> dict[str, Entry] | Silence:
        """Jobs that are not known are no error here: whatever else was printed counts."""
        if said.code is None:
            return silence(said, SIGNS)
        entries = read_entries(said.out)
        complaints = [line for line in lines(said.err) if not NOT_KNOWN.search(line)]
        if said.code != 0 and not entries and (complaints or not said.err.strip()):
            return silence(said, SIGNS)
        return unreadable(said) if entries is None else entries

    def accounting(self, jobs: Sequence[str], since: float) -> list[list[str]]:
        return [["qstat", "-x", *command[1:]] for command in self.poll(jobs, "")]

    def accounted(self, said: Said) -> list[Account] | Silence:
        entries = self._entries(said)
        if isinstance(entries, Silence):
            return entries
        return [account_of(job, entry, self._torque) for job, entry in entries.items()]

    def cancel(self, jobs: Sequence[str]) -> list[list[str]]:
        return [["qdel", *ids] for ids in chunks(distinct(jobs), 500)]

    def find(self, names: Sequence[str], user: str, since: float) -> list[list[str]]:
        mine = ["-u", user] if user else []
        return [
            ["qselect", *past, *mine, "-N", name] for past in ([], *self._past) for name in distinct(names)
        ]

    _past: tuple[list[str], ...] = (["-x"],)

    def found(self, argv: Sequence[str], said: Said) -> dict[str, str] | Silence:
        if said.code is None or said.code != 0:
            return {} if NO_HISTORY.search(said.err) else silence(said, SIGNS)
        jobs = [job for job in map(bare_id, lines(said.out)) if job]
        if not jobs or "-N" not in argv[:-1]:
            return {}
        newest = max(jobs, key=lambda job: int(job.partition("[")[0]))
        return {argv[argv.index("-N") + 1]: newest.partition("[")[0] + ("[]" if "[" in newest else "")}

    def limits(self) -> list[str]:
        return ["qstat", "-B", "-f"]

    def limits_of(self, said: Said) -> Limits:
        size, queued = _ARRAY_SIZE.search(said.out), _USER_QUEUED.search(said.out)
        return Limits(
            array_size=int(size[1]) if size else None,
            submitted=int(queued[1] or queued[2]) if queued else None,
        )

    def ping(self) -> list[str]:
        return ["qstat", "-B"]


class Torque(Pbs):
    """The dialect of Torque, by its public manuals: text only, jobs that ended stay for a while as `C`."""

    index_variable = "PBS_ARRAYID"
    throttles = True
    _torque = True
    _owned_short = "NoejtzICSrdwx"
    _flags = "fhIVXzx"
    _past = ()

    def _log_option(self, request: Request) -> str:
        return request.log

    def log_of(self, log: str, index: int) -> str:
        """Torque itself adds the index to the path."""
        return f"{log}-{index}" if index else log

    def _amounts(self, request: Request) -> list[str]:
        asked, site = request.resources, self._settings
        nodes = f"nodes={asked.nodes or 1}:ppn={asked.threads * (asked.tasks_per_node or 1)}"
        if asked.gpus:
            nodes += f":gpus={asked.gpus}"
        if constraint := asked.constraint or site.constraint:
            nodes += f":{constraint}"
        amounts = [nodes]
        if asked.memory:
            amounts.append(f"mem={memory_in(asked.memory, 'M')}mb")
        if qos := asked.qos or site.qos:
            amounts.append(f"qos={qos}")
        return amounts

    def _array(self, request: Request) -> list[tuple[str, ...]]:
        throttle = f"%{request.running}" if request.running else ""
        return [("-t", f"1-{request.size}{throttle}")] if request.size else []

    def poll(self, jobs: Sequence[str], user: str) -> list[list[str]]:
        return [["qstat", "-f", "-t", *ids] for ids in chunks(_whole(jobs), _IDS_AT_ONCE)]

    def accounting(self, jobs: Sequence[str], since: float) -> list[list[str]]:
        """The queue, which keeps jobs for a while; the logs are searched job by job, so only for a few."""
        commands = self.poll(jobs, "")
        if len(few := distinct(jobs)) <= _TRACED_AT_ONCE:
            commands += [["tracejob", "-q", "-n", "3", job] for job in few]
        return commands


def version_question() -> list[str]:
    """The command whose answer tells which of the two a site has."""
    return ["qstat", "--version"]


def dialect_from_version(said: Said) -> str:
    """`torque` or `pbspro`, of the answer to `version_question`; empty: it cannot be told."""
    text = said.out + said.err
    if "pbs_version" in text or re.search(r"PBS ?Pro|OpenPBS", text, re.IGNORECASE):
        return "pbspro"
    return "torque" if re.search(r"^\s*version:\s*[0-9]|torque", text, re.IGNORECASE | re.MULTILINE) else ""


def _whole(jobs: Sequence[str]) -> list[str]:
    """Arrays are asked for as a whole: `-t` writes their elements out."""
    return distinct(f"{job.partition('[')[0]}[]" if "[" in job else job for job in jobs)
