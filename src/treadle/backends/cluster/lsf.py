"""LSF in words: `bsub`, `bjobs`, `bacct`, `bkill`; by its public manuals, as `lsf_records` says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from treadle.backends.cluster.amounts import hours_and_minutes, memory_in
from treadle.backends.cluster.dialect import Account, Answer, Limits, Request, Row, Said, Silence, Sort
from treadle.backends.cluster.lsf_records import (
    COLUMNS,
    NOT_KNOWN,
    SIGNS,
    account_of,
    read_columns,
    read_long,
    row_of,
)
from treadle.backends.cluster.owned import of_words
from treadle.backends.cluster.settings import ClusterSettings
from treadle.backends.cluster.words import (
    chunks,
    complaint,
    distinct,
    given,
    job_name,
    lines,
    not_taken,
    number,
    one_line,
    plain,
    silence,
    unreadable,
)

_ID = re.compile(r"Job <([0-9]{1,18})> is submitted\b")
_OWNED = (
    *("-J", "-Jd", "-o", "-oo", "-e", "-eo", "-cwd", "-K", "-r", "-rn", "-Zs"),
    *("-I", "-Ip", "-Is", "-IS", "-ISp", "-ISs", "-IX"),
)
_ATTACHED = ("-J", "-o/", "-oo/", "-e/", "-eo/", "-o%", "-e%")
_ARRAY_SIZE = re.compile(r"MAX_JOB_ARRAY_SIZE\s*=\s*([0-9]{1,9})")
_UNIT = re.compile(r"\s*([KMGT])B?\s*\Z", re.IGNORECASE)
_FORMAT = " ".join(COLUMNS) + " delimiter='|'"
_QUOTABLE = re.compile(r'[^"\\$`\n\r]*\Z')
_IDS_AT_ONCE = 2000


class Lsf:
    """The dialect of LSF 9.1.3 and later.

    `memory_unit` is the site's LSF_UNIT_FOR_LIMITS; where it is not said, `-M` counts in KB and
    `rusage[mem=]` in MB, as LSF does without that parameter.
    """

    name = "lsf"
    index_variable = "LSB_JOBINDEX"
    id_variable = "LSB_JOBID"
    scrubbed = ("LSB_",)
    kept: tuple[str, ...] = ("LSB_CONFDIR", "LSB_SHAREDIR")
    name_length = 120
    throttles = True

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def owned(self, options: Sequence[str]) -> list[str]:
        return of_words(options, words=_OWNED, attached=_ATTACHED)

    def directives(self, request: Request) -> list[str]:
        return [
            f"#BSUB {option} {value if plain(value) else _quoted(value)}".rstrip()
            for option, value in self._options(request)
            if _QUOTABLE.match(value)
        ]

    def submit(self, request: Request) -> tuple[list[str], str]:
        """The script is read from standard input: only so are its directives."""
        awkward = [
            word for option in self._options(request) if not _QUOTABLE.match(option[1]) for word in option
        ]
        extra = given((*self._settings.extra_args, *request.resources.extra_args))
        return ["bsub", *awkward, *extra], request.script

    def _options(self, request: Request) -> list[tuple[str, str]]:
        asked, site = request.resources, self._settings
        limit = asked.time_limit or site.walltime
        said = {
            "-J": self._name(request),
            "-Jd": one_line(request.comment),
            "-o": f"{request.log}.%I" if request.size else request.log,
            "-cwd": request.workdir,
            "-q": asked.partition or site.partition,
            "-P": asked.account or site.account,
            "-n": str(asked.threads),
            "-W": hours_and_minutes(limit) if limit else "",
        }
        options = [(option, value) for option, value in said.items() if value]
        options.append(("-r" if request.requeue else "-rn", ""))
        if limit and request.signal_before:
            options += [("-wa", "TERM"), ("-wt", hours_and_minutes(request.signal_before))]
        return [*options, *self._amounts(request)]

    def _name(self, request: Request) -> str:
        name = job_name(request.name, self.name_length)
        throttle = f"%{request.running}" if request.running else ""
        return f"{name}[1-{request.size}]{throttle}" if request.size else name

    def _amounts(self, request: Request) -> list[tuple[str, str]]:
        asked = request.resources
        options = [("-R", "span[hosts=1]")]
        if asked.memory:
            unit = _UNIT.match(self._settings.memory_unit)
            limit, reserved = (unit[1].upper(), unit[1].upper()) if unit else ("K", "M")
            options.append(("-M", str(memory_in(asked.memory, limit))))
            options.append(("-R", f"rusage[mem={memory_in(asked.memory, reserved)}]"))
        if asked.gpus:
            model = f":gmodel={asked.gpu_model}" if asked.gpu_model else ""
            options.append(("-gpu", f"num={asked.gpus}{model}"))
        chosen = [asked.constraint or self._settings.constraint]
        chosen += [f"hname!='{host}'" for host in request.exclude]
        if any(chosen):
            options.append(("-R", f"select[{' && '.join(word for word in chosen if word)}]"))
        return options

    def submitted(self, said: Said) -> Answer:
        """Sites print other lines around the answer, and LSF itself does while it waits."""
        jobs = [found[1] for line in lines(said.out) if (found := _ID.match(line))]
        if not jobs:
            return not_taken(said, SIGNS)
        if said.code != 0:
            return Answer(Sort.UNCLEAR, message=complaint(said))
        return Answer(Sort.DONE, job=jobs[-1])

    def log_of(self, log: str, index: int) -> str:
        return f"{log}.{index}" if index else log

    def element(self, array: str, index: int) -> str:
        return f"{array}[{index}]"

    def poll(self, jobs: Sequence[str], user: str) -> list[list[str]]:
        return [[*_bjobs(), *ids] for ids in chunks(_whole(jobs), _IDS_AT_ONCE)]

    def polled(self, said: Said) -> list[Row] | Silence:
        values = self._values(said)
        return values if isinstance(values, Silence) else [row_of(one) for one in values]

    def _values(self, said: Said) -> list[dict[str, str]] | Silence:
        """The exit code of `bjobs` differs from site to site: what it printed counts."""
        if said.code is None:
            return silence(said, SIGNS)
        values = [one for one in map(read_columns, lines(said.out)) if one]
        others = [line for line in lines(said.err) if not NOT_KNOWN.search(line)]
        if not values and (others or (said.code != 0 and not said.err.strip())):
            return silence(said, SIGNS)
        printed = [line for line in lines(said.out) if not NOT_KNOWN.search(line)]
        return values if values or not printed else unreadable(said)

    def accounting(self, jobs: Sequence[str], since: float) -> list[list[str]]:
        """`bjobs` knows a job for an hour after its end, with more figures; `bacct` for ever."""
        past = [["bacct", "-l", *ids] for ids in chunks(_whole(jobs), _IDS_AT_ONCE)]
        return [*self.poll(jobs, ""), *past]

    def accounted(self, said: Said) -> list[Account] | Silence:
        if said.code is not None and re.search(r"^Job <[0-9]", said.out, re.MULTILINE):
            return read_long(said.out)
        values = self._values(said)
        return values if isinstance(values, Silence) else [account_of(one) for one in values]

    def cancel(self, jobs: Sequence[str]) -> list[list[str]]:
        return [["bkill", *ids] for ids in chunks(distinct(jobs), 500)]

    def find(self, names: Sequence[str], user: str, since: float) -> list[list[str]]:
        mine = ["-u", user] if user else []
        past = [["bhist", "-a", "-l", *mine, "-J", name] for name in distinct(names)]
        return [[*_bjobs(), *mine], *past] if names else []

    def found(self, argv: Sequence[str], said: Said) -> dict[str, str] | Silence:
        answer = self.accounted(said) if argv[:1] == ["bhist"] else self.polled(said)
        if isinstance(answer, Silence):
            return answer
        newest: dict[str, int] = {}
        for one in answer:
            newest[one.name] = max(number(one.job.partition("[")[0]), newest.get(one.name, 0))
        return {name: str(job) for name, job in newest.items() if name}

    def limits(self) -> list[str]:
        return ["bparams", "-a"]

    def limits_of(self, said: Said) -> Limits:
        found = _ARRAY_SIZE.search(said.out)
        return Limits(array_size=int(found[1])) if found else Limits()

    def ping(self) -> list[str]:
        return ["lsid"]


def _bjobs() -> list[str]:
    return ["bjobs", "-a", "-noheader", "-o", _FORMAT]


def _quoted(value: str) -> str:
    return f'"{value}"' if value else ""


def _whole(jobs: Sequence[str]) -> list[str]:
    """Arrays are asked for as a whole."""
    return distinct(job.partition("[")[0] for job in jobs)
