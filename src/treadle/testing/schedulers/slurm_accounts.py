"""`sacct`: what the accounting knows, which may be late, or wrong for a moment, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import days_hms, from_iso
from treadle.testing.schedulers.options import OptionError, indices, ranges, read
from treadle.testing.schedulers.slurm_words import ENDS, exit_of, id_of, moment, reason_of, state_of
from treadle.testing.schedulers.voice import Call, Reply, StopError
from treadle.testing.schedulers.work import Element, End, Run, Stage

_SPEC = {
    **dict.fromkeys(("-P", "--parsable2", "-p", "--parsable", "-n", "--noheader", "-X", "--allocations"), 0),
    **dict.fromkeys(("-D", "--duplicates", "-a", "--allusers", "-L", "--allclusters", "--noconvert"), 0),
    **dict.fromkeys(("-c", "--completion", "-V", "--version"), 0),
    **dict.fromkeys(
        ("-S", "--starttime", "-E", "--endtime", "-j", "--jobs", "-o", "--format", "--delimiter"), 1
    ),
    **dict.fromkeys(("-u", "--user", "--uid", "-s", "--state", "--name", "--units", "-M", "--clusters"), 1),
    **dict.fromkeys(("-A", "--accounts", "-f", "--file", "-r", "--partition", "-q", "--qos"), 1),
}
_DEFAULT = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
_WIDTHS = {"jobid": 12, "exitcode": 8, "submit": 19, "start": 19, "end": 19, "nodelist": 15, "jobidraw": 12}
_LATE = ("PENDING", "allocation")  # what stands there before the news of the job has come

Fields = dict[str, str]
Option = Callable[..., str | None]


def sacct(cluster: Cluster, call: Call) -> Reply:
    if not cluster.site.accounting:
        raise StopError(1, "Slurm accounting storage is disabled\n")
    try:
        found, _ = read(call.arguments, _SPEC)
    except OptionError as error:
        raise StopError(1, f'sacct: {error}\nTry "sacct --help" for more information\n') from error
    options = {name: (values or ("",))[0] for name, values in found}

    def one(*names: str) -> str | None:
        return next((options[name] for name in names if name in options), None)

    if one("-V", "--version") is not None:
        return Reply(out="slurm 22.05.8\n")
    if one("-c", "--completion") is not None:
        raise StopError(1, "Slurm job completion is disabled\n")
    names = [name.partition("%")[0] for name in (one("-o", "--format") or _DEFAULT).split(",")]
    told: list[Fields] = []
    for element in _wanted(cluster, one):
        told += _records(
            cluster,
            element,
            call.env,
            steps=one("-X", "--allocations") is None,
            runs=one("-D", "--duplicates") is not None,
        )
    return Reply(out=_table(_merged(told), names, one))


def _wanted(cluster: Cluster, one: Option) -> Iterator[Element]:
    """Those asked for, of those that accounting has heard of."""
    ids, users, names, states = one("-j", "--jobs"), one("-u", "--user"), one("--name"), one("-s", "--state")
    now = cluster.clock.now()
    since = _since(one("-S", "--starttime"), now, ids is not None)
    for element in _elements(cluster, ids):
        if not element.traced or now < element.job.submitted + cluster.site.lag:
            continue
        if element.ended and element.ended < since:
            continue
        if users is not None and element.job.user not in users.split(","):
            continue
        if names is not None and element.job.wish.name not in names.split(","):
            continue
        if states is not None and state_of(element) not in states.upper().split(","):
            continue
        yield element


def _since(text: str | None, now: float, by_id: bool) -> float:
    """Without a start, questions by id go back to the beginning, others to midnight."""
    if text is None:
        return 0.0 if by_id else now - now % 86400
    try:
        return from_iso(text, now)
    except ValueError as error:
        raise StopError(1, f"sacct: error: Invalid time specification (pos=0): {text}\n") from error


def _elements(cluster: Cluster, ids: str | None) -> Iterable[Element]:
    if ids is None:
        return [element for job in cluster.jobs.values() for element in job]
    found: dict[Element, None] = {}
    for word in ids.split(","):
        number, _, element = word.partition(";")[0].partition(".")[0].partition("_")
        job = cluster.jobs.get(int(number)) if number.isdigit() else None
        if job is not None:
            wanted = set(indices(element.strip("[]").partition("%")[0])) if element else None
            found.update(dict.fromkeys(one for one in job if wanted is None or one.index in wanted))
    return found


def _records(
    cluster: Cluster, element: Element, env: dict[str, str], *, steps: bool, runs: bool
) -> Iterator[Fields]:
    """The rows of one element: earlier runs if they are asked for, the last one, and their steps."""
    if runs:
        for run in element.runs:
            earlier = _row(cluster, element, env, run)
            yield earlier
            if steps:
                yield _step(earlier, "CANCELLED", "" if run.end is End.NODE_FAIL else "0:15", run.peak)
    row = _row(cluster, element, env, None)
    yield row
    if steps and element.started and row["state"] != _LATE[0]:
        state, code = row["state"].partition(" ")[0], row["exitcode"]
        if element.end in (End.TIMEOUT, End.CANCELLED):
            state, code = "CANCELLED", "0:15"
        elif element.end is End.NODE_FAIL:
            state, code = "CANCELLED", ""
        elif element.end in (End.SIGNALLED, End.LAUNCH):
            state = "CANCELLED"
        yield _step(row, state, code, element.peak)


def _row(cluster: Cluster, element: Element, env: dict[str, str], run: Run | None) -> Fields:
    wish, site = element.job.wish, cluster.site
    now = cluster.clock.now()
    started, ended = (run.started, run.ended) if run else (element.started, element.ended)
    state, code, known = _verdict(cluster, element, run)
    ended = ended if known else 0.0
    elapsed = max(0.0, (ended or now) - started) if started else 0.0
    cpu = run.cpu if run else element.cpu
    return {
        "jobid": id_of(element),
        "jobidraw": str(element.number),
        "jobname": _LATE[1] if state == _LATE[0] and element.started else wish.name,
        "state": state,
        "exitcode": code,
        "derivedexitcode": "0:0",
        "elapsed": days_hms(elapsed),
        "elapsedraw": str(int(elapsed)),
        "cputimeraw": str(int(elapsed) * wish.cpus),
        "maxrss": "",
        "totalcpu": _cpu(cpu if known else 0.0),
        "submit": moment(cluster, run.submitted if run else element.submitted, env),
        "start": moment(cluster, started, env, "None" if ended else "Unknown"),
        "end": moment(cluster, ended, env),
        "nodelist": (run.node if run else element.node) or "None assigned",
        "reqmem": f"{wish.memory >> 20}M",
        "timelimit": days_hms(wish.limit) if wish.limit else "UNLIMITED",
        "reason": "None" if run or element.started else reason_of(cluster, element),
        "user": element.job.user,
        "uid": str(site.uid),
        "partition": wish.partition,
        "account": wish.account,
        "alloccpus": str(wish.cpus),
        "ncpus": str(wish.cpus),
        "comment": wish.comment,
        "workdir": wish.workdir,
        "cluster": "fake",
        "qos": wish.qos,
        "nnodes": "1",
    }


def _verdict(cluster: Cluster, element: Element, run: Run | None) -> tuple[str, str, bool]:
    """State, exit code, and whether the end is told."""
    if run:
        return ENDS[run.end], "0:0", True
    if element.lied and element.end:
        return element.lied, "0:0", False
    if element.end is None:
        state = state_of(element)
        return "RUNNING" if element.stage is Stage.ENDING else state, "0:0", False
    if cluster.clock.now() < element.recorded:
        return _LATE[0], "0:0", False
    state = state_of(element)
    if element.end is End.CANCELLED:
        state = f"CANCELLED by {cluster.site.uid}"
    return state, exit_of(element), True


def _step(row: Fields, state: str, code: str, peak: int) -> Fields:
    blank = dict.fromkeys(
        ("reqmem", "timelimit", "reason", "derivedexitcode", "user", "uid", "partition"), ""
    )
    return {
        **row,
        **blank,
        "jobid": f"{row['jobid']}.batch",
        "jobidraw": f"{row['jobidraw']}.batch",
        "jobname": "batch",
        "state": state,
        "exitcode": code,
        "submit": row["start"],
        "maxrss": f"{peak >> 10}K" if peak else "",
    }


def _cpu(seconds: float) -> str:
    """`00:02.569` below an hour, `00:00:00` where there is none."""
    if seconds <= 0:
        return "00:00:00"
    if seconds >= 3600:
        return days_hms(seconds)
    return f"{int(seconds) // 60:02d}:{seconds % 60:06.3f}"


def _merged(told: list[Fields]) -> list[Fields]:
    """Elements of an array that never started stand in one row, as `10_[1,4-5]`."""
    groups: dict[tuple[str, str], list[int]] = {}
    kept: list[Fields] = []
    together: list[tuple[Fields, str, list[int]]] = []
    for row in told:
        array, _, index = row["jobid"].partition("_")
        if not index.isdigit() or row["start"] not in ("None", "Unknown"):
            kept.append(row)
            continue
        group = groups.setdefault((array, row["state"]), [])
        if not group:
            kept.append(row)
            together.append((row, array, group))
        group.append(int(index))
    for row, array, group in together:
        row["jobid"] = f"{array}_[{ranges(group)}]"
    return kept


def _table(told: list[Fields], names: list[str], one: Option) -> str:
    heads = [] if one("-n", "--noheader") is not None else [names]
    lines = [*heads, *([row.get(name.lower(), "") for name in names] for row in told)]
    if one("-P", "--parsable2") is not None or one("-p", "--parsable") is not None:
        mark = one("--delimiter") or "|"
        last = mark if one("-p", "--parsable") is not None else ""
        return "".join(mark.join(line) + last + "\n" for line in lines)
    widths = [_WIDTHS.get(name.lower(), 10) for name in names]
    if heads:
        lines.insert(1, ["-" * width for width in widths])
    return "".join(
        " ".join(_cut(value, width) for value, width in zip(line, widths)) + " \n" for line in lines
    )


def _cut(value: str, width: int) -> str:
    """Too long a value is cut, with a `+` for what is not shown."""
    return value.rjust(width) if len(value) <= width else value[: width - 1] + "+"
