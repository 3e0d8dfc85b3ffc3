"""SLURM in words: `sbatch`, `squeue`, `sacct`, `scancel`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from treadle.backends.cluster.amounts import local_time, memory_in, whole_seconds
from treadle.backends.cluster.dialect import Account, Answer, Limits, Phase, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.owned import of_getopt
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.slurm_accounts import FIELDS, job_ids, read_accounts, read_rows
from treadle.backends.cluster.slurm_states import (
    NO_ACCOUNTING,
    SIGNS,
    UNKNOWN_JOB,
    end_of,
    is_hopeless,
    is_requeued,
    phase_of,
    state_of,
)
from treadle.backends.cluster.words import (
    chunks,
    complaint,
    distinct,
    given,
    job_name,
    last_line,
    lines,
    not_taken,
    number,
    one_line,
    plain,
    silence,
    unreadable,
)
from treadle.base.units import format_clock

_ID = re.compile(r"(?:Submitted batch job )?([0-9]{1,18})(?:;([\w.-]+)|(?: on cluster ([\w.-]+)))?\Z")
_ARRAY_SIZE = re.compile(r"^\s*MaxArraySize\s*=\s*([0-9]{1,9})", re.MULTILINE)
_OWNED_LONG = (
    *("job-name", "output", "error", "array", "parsable", "wrap", "chdir", "workdir", "comment", "open-mode"),
    *("wait", "test-only", "requeue", "no-requeue"),
)
_OWNED_SHORT = "JoeaDW"
_FLAGS = "HhIkOQsvVX"
_CLUSTERS = re.compile(r"(?:-M\s*|--clusters?[=\s]+|--cluster[=\s]+)([\w.-]+)\Z")
_SKEW = 3600.0  # the clocks of the accounting and of this machine may differ, and change with the season


class Slurm:
    """The dialect of SLURM (recorded with 22.05; long state names, `-r`, `-P` since 15.08)."""

    name = "slurm"
    index_variable = "SLURM_ARRAY_TASK_ID"
    id_variable = "SLURM_JOB_ID"
    scrubbed = ("SLURM_", "SBATCH_", "SRUN_", "SQUEUE_", "SACCT_", "SCANCEL_")
    kept = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")
    name_length = 120
    throttles = True

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings

    @property
    def environment(self) -> dict[str, str]:
        """Times free of zones, and lists of elements that are not cut."""
        return {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}

    def owned(self, options: Sequence[str]) -> list[str]:
        return of_getopt(options, long=_OWNED_LONG, short=_OWNED_SHORT, flags=_FLAGS)

    def directives(self, request: Request) -> list[str]:
        return [f"#SBATCH {option}" for option in self._options(request) if plain(option)]

    def submit(self, request: Request) -> tuple[list[str], str]:
        awkward = [option for option in self._options(request) if not plain(option)]
        extra = given((*self._settings.extra_args, *request.resources.extra_args))
        return ["sbatch", "--parsable", *awkward, *extra, request.script], ""

    def _options(self, request: Request) -> list[str]:
        log = request.log.replace("%", "%%")
        options = [
            f"--job-name={job_name(request.name, self.name_length)}",
            f"--chdir={request.workdir}",
            f"--output={log}.%a" if request.size else f"--output={log}",
            "--open-mode=append",
            "--requeue" if request.requeue else "--no-requeue",
            *self._amounts(request),
        ]
        if request.comment:
            options.append(f"--comment={one_line(request.comment)}")
        if request.exclude:
            options.append(f"--exclude={','.join(request.exclude)}")
        if request.signal_before:
            options.append(f"--signal=B:TERM@{request.signal_before}")
        if request.size:
            throttle = f"%{request.running}" if request.running else ""
            options.append(f"--array=1-{request.size}{throttle}")
        return options

    def _amounts(self, request: Request) -> list[str]:
        """What the job asks for; a task's own words win over the settings'."""
        asked, site = request.resources, self._settings
        limit = asked.time_limit or site.walltime
        model = f":{asked.gpu_model}" if asked.gpu_model else ""
        said = {
            "partition": asked.partition or site.partition,
            "account": asked.account or site.account,
            "qos": asked.qos or site.qos,
            "constraint": asked.constraint or site.constraint,
            "nodes": asked.nodes,
            "ntasks-per-node": asked.tasks_per_node,
            "cpus-per-task": asked.threads,
            "mem": f"{memory_in(asked.memory, 'M')}M" if asked.memory else "",
            "tmp": f"{memory_in(asked.disk, 'M')}M" if asked.disk else "",
            "time": format_clock(whole_seconds(limit)) if limit else "",
            "gres": f"gpu{model}:{asked.gpus}" if asked.gpus else "",
        }
        return [f"--{option}={value}" for option, value in said.items() if value]

    def submitted(self, said: Said) -> Answer:
        found = _ID.match(last_line(said.out)) if said.code == 0 else None
        if found is None:
            if _ID.match(last_line(said.out)):
                return Answer(Sort.UNCLEAR, message=complaint(said))
            return not_taken(said, SIGNS)
        cluster = found[2] or found[3]
        return Answer(Sort.DONE, job=f"{found[1]};{cluster}" if cluster else found[1])

    def log_of(self, log: str, index: int) -> str:
        return f"{log}.{index}" if index else log

    def element(self, array: str, index: int) -> str:
        job, semicolon, cluster = array.partition(";")
        return f"{job}_{index}{semicolon}{cluster}"

    def poll(self, jobs: Sequence[str], user: str) -> list[list[str]]:
        return [
            [
                "squeue",
                "-h",
                "-r",
                "-t",
                "all",
                *_clusters(cluster),
                "-j",
                ",".join(ids),
                "-o",
                _format(cluster),
            ]
            for cluster, ids in _by_cluster(_whole(jobs))
        ]

    def polled(self, said: Said) -> list[Row] | Silence:
        if said.code is None or said.code != 0:
            # One id that was purged already is an error; two or more are not.
            return [] if said.code and UNKNOWN_JOB.search(said.err) else silence(said, SIGNS)
        printed = [line for line in lines(said.out) if not line.startswith("CLUSTER:")]
        if not printed and said.err.strip() and silence(said, SIGNS).down:
            return silence(said, SIGNS)
        rows = [row for line in printed for row in _rows(line)]
        return rows if rows or not printed else unreadable(said)

    def accounting(self, jobs: Sequence[str], since: float) -> list[list[str]]:
        return [
            [*_sacct(cluster, since), "-j", ",".join(ids), "-o", _fields(cluster)]
            for cluster, ids in _by_cluster(_whole(jobs))
        ]

    def accounted(self, said: Said) -> list[Account] | Silence:
        if said.code is None or said.code != 0:
            return silence(said, SIGNS)
        printed = lines(said.out)
        rows = list(read_rows(printed))
        return read_accounts(rows) if rows or not printed else unreadable(said)

    def cancel(self, jobs: Sequence[str]) -> list[list[str]]:
        return [["scancel", *_clusters(cluster), *ids] for cluster, ids in _by_cluster(distinct(jobs), 500)]

    def find(self, names: Sequence[str], user: str, since: float) -> list[list[str]]:
        cluster = self._cluster()
        mine = ["-u", user] if user else []
        commands = []
        for group in chunks(names):
            listed = ",".join(group)
            queue = ["squeue", "-h", "-r", "-t", "all", *_clusters(cluster), *mine, "-n", listed]
            commands.append([*queue, "-o", _format(cluster)])
            commands.append([*_sacct(cluster, since), *mine, f"--name={listed}", "-o", _fields(cluster)])
        return commands

    def found(self, argv: Sequence[str], said: Said) -> dict[str, str] | Silence:
        answer = self.accounted(said) if argv[:1] == ["sacct"] else self.polled(said)
        if isinstance(answer, Silence):
            return {} if NO_ACCOUNTING.search(answer.message) else answer
        newest: dict[str, str] = {}
        for one in answer:
            job, semicolon, cluster = one.job.partition(";")
            job = job.partition("_")[0]
            if one.name and number(job) >= number(newest.get(one.name, "0").partition(";")[0]):
                newest[one.name] = job + semicolon + cluster
        return newest

    def limits(self) -> list[str]:
        return ["scontrol", "show", "config"]

    def limits_of(self, said: Said) -> Limits:
        found = _ARRAY_SIZE.search(said.out)
        # The largest index is one less than the setting, and ours start at 1; 0 and 1 switch arrays off.
        return Limits(array_size=max(0, int(found[1]) - 1)) if found else Limits()

    def ping(self) -> list[str]:
        return ["scontrol", "ping"]

    def _cluster(self) -> str:
        """The cluster that the user's options name, where there is one."""
        options = self._settings.extra_args
        pairs = (*options, *(f"{one} {two}" for one, two in pairwise(options)))
        return next((found[1] for one in pairs if (found := _CLUSTERS.match(one))), "")


def _rows(line: str) -> list[Row]:
    """One line of `squeue`; several rows where an array is not written out; none of an odd line."""
    columns = line.split("|", 4)
    if len(columns) < 5:
        return []
    printed, state, reason, host, name = columns
    job, semicolon, cluster = printed.partition(";")
    long = state_of(state)
    phase = phase_of(long)
    return [
        Row(
            job=one + semicolon + cluster,
            phase=phase,
            state=state.strip(),
            reason="" if reason in ("None", "(None)") else reason.strip("()"),
            name=name,
            ended=end_of(long) if phase is Phase.ENDED else None,
            hopeless=phase is Phase.PENDING and is_hopeless(reason),
            requeued=phase is Phase.PENDING and is_requeued(long, reason),
            host=host,
        )
        for one in job_ids(job)
    ]


def _format(cluster: str) -> str:
    """The columns; a cluster's name is written into each id, as the answer does not tell it reliably."""
    return f"%i;{cluster}|%T|%r|%N|%j" if cluster else "%i|%T|%r|%N|%j"


def _fields(cluster: str) -> str:
    return ",".join(("Cluster", *FIELDS) if cluster else FIELDS)


def _sacct(cluster: str, since: float) -> list[str]:
    return ["sacct", "-P", "-n", "-D", *_clusters(cluster), "-S", local_time(since - _SKEW)]


def _clusters(cluster: str) -> list[str]:
    return ["-M", cluster] if cluster else []


def _whole(jobs: Sequence[str]) -> list[str]:
    """Arrays are asked for as a whole: their elements come in one row each."""
    parts = (job.partition(";") for job in jobs)
    return distinct(job.partition("_")[0] + semicolon + cluster for job, semicolon, cluster in parts)


def _by_cluster(jobs: Sequence[str], most: int = 100_000) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for job in jobs:
        number, _, cluster = job.partition(";")
        groups.setdefault(cluster, []).append(number)
    return [(cluster, group) for cluster, ids in groups.items() for group in chunks(ids, most)]
