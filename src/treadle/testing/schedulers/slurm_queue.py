"""`squeue`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import short
from treadle.testing.schedulers.options import OptionError, read
from treadle.testing.schedulers.slurm_words import SHORT, moment, named, reason_of, rows, state_of
from treadle.testing.schedulers.voice import Call, Reply, StopError
from treadle.testing.schedulers.work import Element, Stage

_SPEC = {
    **dict.fromkeys(("-h", "--noheader", "-r", "--array", "-a", "--all", "-l", "--long", "--me", "-v"), 0),
    **dict.fromkeys(("-t", "--states", "-j", "--jobs", "-o", "--format", "-u", "--user", "-n", "--name"), 1),
    **dict.fromkeys(("-p", "--partition", "-M", "--clusters", "-A", "--account", "-S", "--sort"), 1),
    **dict.fromkeys(("-V", "--version"), 0),
}
_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_HEADS = {
    "i": "JOBID", "F": "ARRAY_JOB_ID", "K": "ARRAY_TASK_ID", "A": "JOBID", "P": "PARTITION", "j": "NAME",
    "u": "USER", "t": "ST", "T": "STATE", "M": "TIME", "l": "TIME_LIMIT", "L": "TIME_LEFT", "D": "NODES",
    "R": "NODELIST(REASON)", "r": "REASON", "N": "NODELIST", "S": "START_TIME", "e": "END_TIME",
    "V": "SUBMIT_TIME", "C": "CPUS", "m": "MIN_MEMORY", "k": "COMMENT", "Z": "WORK_DIR", "a": "ACCOUNT",
    "q": "QOS", "Q": "PRIORITY", "o": "COMMAND", "U": "UID",
}  # fmt: skip
_FIELD = re.compile(r"%(\.?)(\d*)([a-zA-Z])")

Row = tuple[Element, str]
Column = Callable[[Row], str]


def squeue(cluster: Cluster, call: Call) -> Reply:
    try:
        found, _ = read(call.arguments, _SPEC)
    except OptionError as error:
        raise StopError(1, f'squeue: {error}\nTry "squeue --help" for more information\n') from error
    options = {name: (values or ("",))[0] for name, values in found}
    if options.keys() & {"-V", "--version"}:
        return Reply(out="slurm 22.05.8\n")

    def one(*names: str) -> str | None:
        return next((options[name] for name in names if name in options), None)

    elements = _asked(cluster, one("-j", "--jobs"))
    elements = _kept(cluster, elements, one)
    split = one("-r", "--array") is not None
    shown = list(rows(elements, split))
    shown.sort(key=lambda row: row[0].stage is not Stage.PENDING)
    layout = one("-o", "--format") or _DEFAULT
    lines = [] if one("-h", "--noheader") is not None else [_head(layout)]
    lines += _lines(cluster, layout, shown, call.env)
    return Reply(out="".join(f"{line}\n" for line in lines))


def _asked(cluster: Cluster, ids: str | None) -> Iterable[Element]:
    if ids is None:
        return list(cluster.queue)
    words = [word for word in ids.split(",") if word]
    try:
        found = [element for _, elements in named(cluster, words) for element in elements]
    except ValueError as error:
        raise StopError(1, f"squeue: error: Invalid job id: {error}\n") from error
    if not found and len(words) == 1:  # two or more: silence
        raise StopError(1, "slurm_load_jobs error: Invalid job id specified\n")
    return dict.fromkeys(found)


def _kept(cluster: Cluster, elements: Iterable[Element], one: Callable[..., str | None]) -> Iterable[Element]:
    states, users, names = one("-t", "--states"), one("-u", "--user"), one("-n", "--name")
    partitions = one("-p", "--partition")
    if one("--me") is not None:
        users = cluster.site.user
    if states is None:
        elements = [element for element in elements if element.live]
    elif states.lower() != "all":
        wanted = {word.strip().upper() for word in states.split(",")}
        elements = [e for e in elements if wanted & {state_of(e), SHORT.get(state_of(e), "")}]
    for text, key in ((users, _user), (names, _name), (partitions, _partition)):
        if text is not None:
            allowed = set(text.split(","))
            elements = [element for element in elements if key(element) in allowed]
    return elements


def _user(element: Element) -> str:
    return element.job.user


def _name(element: Element) -> str:
    return element.job.wish.name


def _partition(element: Element) -> str:
    return element.job.wish.partition


def _head(layout: str) -> str:
    return _FIELD.sub(lambda match: _fit(_HEADS.get(match[3], "?"), match), layout)


def _lines(cluster: Cluster, layout: str, shown: list[Row], env: dict[str, str]) -> list[str]:
    columns = _columns(cluster, env)
    parts: list[tuple[str, Column | None, re.Match[str] | None]] = []
    at = 0
    for match in _FIELD.finditer(layout):
        parts.append((layout[at : match.start()], None, None))
        parts.append(("", columns.get(match[3], lambda row: "?"), match))
        at = match.end()
    parts.append((layout[at:], None, None))
    return [
        "".join(
            text if column is None or match is None else _fit(column(row), match)
            for text, column, match in parts
        )
        for row in shown
    ]


def _fit(value: str, match: re.Match[str]) -> str:
    if not match[2]:
        return value
    width = int(match[2])
    value = value[:width]
    return value.rjust(width) if match[1] else value.ljust(width)


def _columns(cluster: Cluster, env: dict[str, str]) -> dict[str, Column]:
    now = cluster.clock.now()

    def begin(row: Row) -> str:
        element = row[0]
        waits = element.not_before if element.live and element.not_before > now else 0
        return moment(cluster, element.started or element.ended or waits, env, "N/A")

    def finish(row: Row) -> str:
        element = row[0]
        if element.ended:
            return moment(cluster, element.ended, env)
        due = element.started + element.job.wish.limit if element.started and element.job.wish.limit else 0
        return moment(cluster, due, env, "N/A")

    return {
        "i": lambda row: f"{row[0].job.number}_{row[1]}" if row[0].job.is_array else str(row[0].job.number),
        "A": lambda row: str(row[0].number),
        "F": lambda row: str(row[0].job.number),
        "K": lambda row: row[1].strip("[]"),
        "T": lambda row: state_of(row[0]),
        "t": lambda row: SHORT.get(state_of(row[0]), state_of(row[0])[:2]),
        "r": lambda row: reason_of(cluster, row[0]),
        "R": lambda row: _place(cluster, row[0]),
        "N": lambda row: row[0].node,
        "j": lambda row: row[0].job.wish.name,
        "u": lambda row: row[0].job.user,
        "U": lambda row: str(cluster.site.uid),
        "P": lambda row: row[0].job.wish.partition,
        "M": lambda row: short((row[0].ended or now) - row[0].started) if row[0].started else "0:00",
        "l": lambda row: short(row[0].job.wish.limit) if row[0].job.wish.limit else "UNLIMITED",
        "S": begin,
        "e": finish,
        "V": lambda row: moment(cluster, row[0].submitted, env),
        "C": lambda row: str(row[0].job.wish.cpus),
        "D": lambda row: "1",
        "m": lambda row: f"{row[0].job.wish.memory >> 20}M",
        "k": lambda row: row[0].job.wish.comment or "(null)",
        "Z": lambda row: row[0].job.wish.workdir,
        "a": lambda row: row[0].job.wish.account or "(null)",
        "q": lambda row: row[0].job.wish.qos,
        "Q": lambda row: "1",
        "o": lambda row: row[0].job.wish.command or "(null)",
    }


def _place(cluster: Cluster, element: Element) -> str:
    """Where it runs; for what waits or failed, why."""
    reason = reason_of(cluster, element)
    if element.stage is Stage.PENDING or (element.end and reason not in ("None", "NodeDown", "JobHeldUser")):
        return f"({reason})"
    return element.node
