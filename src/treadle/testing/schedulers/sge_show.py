"""`qstat` and `qacct` of Grid Engine (recorded with Son of Grid Engine 8.1.9)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import ctime, iso
from treadle.testing.schedulers.options import OptionError, ranges, read
from treadle.testing.schedulers.voice import Call, Reply, StopError
from treadle.testing.schedulers.work import Element, End, Run, Stage

_SPEC = {
    **dict.fromkeys(("-xml", "-f", "-r", "-ext", "-urg", "-pri", "-help"), 0),
    **dict.fromkeys(("-s", "-u", "-j", "-g", "-q", "-l", "-explain", "-F"), 1),
}
_XSD = "http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat"
_HEAD = (
    "job-ID  prior   name       user         state submit/start at     queue                          "
    "slots ja-task-ID \n" + "-" * 113 + "\n"
)
_FAILED = {
    End.SIGNALLED: "100 : assumedly after job",
    End.CANCELLED: "100 : assumedly after job",
    End.TIMEOUT: "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit",
    End.OOM: "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit",
    End.REQUEUED: "25  : rescheduling",
    End.NODE_FAIL: "25  : rescheduling",
    End.PREEMPTED: "24  : migrating",
    End.LAUNCH: "28  : changing into working directory",
}
Line = tuple[Element, list[int]]  # with the tasks that it stands for


def state_of(cluster: Cluster, element: Element) -> str:
    """Letters: `qw`, `hqw`, `Eqw`, `Rq`, `r`, `Rr`, `s`, `dr`."""
    if element.shown:
        return element.shown
    again = "R" if element.restarts and element.runs and element.runs[-1].end is not End.LAUNCH else ""
    match element.stage:
        case Stage.PENDING if element.error:
            return "Eqw"
        case Stage.PENDING:
            held = element.held or cluster.waits_for_others(element.job)
            return "hqw" if held else f"{again}q" if again else "qw"
        case Stage.RUNNING:
            return f"{again}r"
        case Stage.SUSPENDED:
            return "s"
        case Stage.ENDING:
            return "dr"
        case _:
            return "z"


def qstat(cluster: Cluster, call: Call) -> Reply:
    try:
        options, _ = read(call.arguments, _SPEC, attached=False)
    except OptionError as error:
        raise StopError(1, f"error: Unknown option {error}\n") from error
    said = {name: (values or ("",))[0] for name, values in options}
    if "-help" in said:
        return Reply(out="SGE 8.1.9\nusage: qstat [options]\n")
    if "-j" in said:
        return _detail(cluster, said["-j"], "-xml" in said)
    lines = list(_lines(cluster, said))
    if "-xml" in said:
        return Reply(out=_xml(cluster, lines))
    return Reply(out=_HEAD + "".join(_row(cluster, line) for line in lines) if lines else "")


def _lines(cluster: Cluster, said: dict[str, str]) -> Iterator[Line]:
    """Running elements first, one by one; those that wait in one line an array, unless `-g d`."""
    users = said.get("-u", cluster.site.user).split(",")
    shown = said.get("-s", "prs")
    mine = [
        one for one in cluster.queue if one.live and any(fnmatchcase(one.job.user, user) for user in users)
    ]
    waiting: dict[tuple[int, str], list[Element]] = {}
    for element in mine:
        state = element.stage
        if state is Stage.PENDING:
            if "p" in shown or "a" in shown:
                waiting.setdefault((element.job.number, state_of(cluster, element)), []).append(element)
        elif ("s" if state is Stage.SUSPENDED else "r") in shown or "a" in shown:
            yield element, [element.index] if element.job.is_array else []
    for group in waiting.values():
        if said.get("-g") == "d" and group[0].job.is_array:
            yield from ((one, [one.index]) for one in group)
        else:
            yield group[0], [one.index for one in group] if group[0].job.is_array else []


def _tasks(numbers: list[int]) -> str:
    """`3`, `3,4`, `5-10:1`."""
    if len(numbers) > 2:
        parts = ranges(numbers).split(",")
        return ",".join(f"{part}:1" if "-" in part else part for part in parts)
    return ",".join(map(str, numbers))


def _priority(element: Element) -> str:
    return "0.00000" if element.held else "0.50000"


def _row(cluster: Cluster, line: Line) -> str:
    element, tasks = line
    wish = element.job.wish
    stamp = time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(element.started or element.job.submitted))
    queue = f"{wish.partition}@{element.node}" if element.node else ""
    return (
        f"{element.job.number:>7} {_priority(element)} {wish.name:<10.10} {element.job.user:<12.12} "
        f"{state_of(cluster, element):<5} {stamp} {queue:<30.30} {wish.cpus:>5} {_tasks(tasks):<8}\n"
    )


def _xml(cluster: Cluster, lines: Iterable[Line]) -> str:
    running: list[str] = []
    pending: list[str] = []
    for element, tasks in lines:
        waits = element.stage is Stage.PENDING
        wish, kind = element.job.wish, "pending" if waits else "running"
        queue = f"{wish.partition}@{element.node}" if element.node else ""
        tag = "JB_submission_time" if waits else "JAT_start_time"
        (pending if waits else running).append(
            f'    <job_list state="{kind}">\n'
            f"      <JB_job_number>{element.job.number}</JB_job_number>\n"
            f"      <JAT_prio>{_priority(element)}</JAT_prio>\n"
            f"      <JB_name>{escaped(wish.name)}</JB_name>\n"
            f"      <JB_owner>{element.job.user}</JB_owner>\n"
            f"      <state>{state_of(cluster, element)}</state>\n"
            f"      <{tag}>{iso(element.started or element.job.submitted)}</{tag}>\n"
            f"      <queue_name>{queue}</queue_name>\n"
            f"      <slots>{wish.cpus}</slots>\n"
            + (f"      <tasks>{_tasks(tasks)}</tasks>\n" if tasks else "")
            + "    </job_list>\n"
        )
    return (
        f"<?xml version='1.0'?>\n<job_info  xmlns:xsd=\"{_XSD}/qstat.xsd\">\n"
        f"  <queue_info>\n{''.join(running)}  </queue_info>\n"
        f"  <job_info>\n{''.join(pending)}  </job_info>\n</job_info>\n"
    )


def escaped(text: str) -> str:
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;")):
        text = text.replace(letter, entity)
    return text


def _detail(cluster: Cluster, word: str, xml: bool) -> Reply:
    job = cluster.jobs.get(int(word)) if word.isdigit() else None
    live = [one for one in job if one.live and one.known] if job else []
    if job is None or not live:
        if xml:
            return Reply(
                out="<?xml version='1.0'?>\n<unknown_jobs >\n"
                f"    <ST_name>{escaped(word)}</ST_name>\n</unknown_jobs>\n"
            )
        raise StopError(1, f"Following jobs do not exist: \n{word}\n")
    rows = {
        "job_number": str(job.number),
        "submission_time": ctime(job.submitted),
        "owner": job.user,
        "cwd": job.wish.workdir,
        "job_name": job.wish.name,
        "script_file": job.wish.command,
    }
    lines = ["=" * 62, *(f"{name + ':':<28}{value}" for name, value in rows.items())]
    for element in live:
        if element.error:
            stamp = time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(element.submitted))
            lines.append(
                f"error reason {max(element.index, 1):>10}:      {stamp} [0:1]: error: {element.error}"
            )
            lines.append(f"{'scheduling info:':<28}Job is in error state")
    return Reply(out="".join(f"{line}\n" for line in lines))


def qacct(cluster: Cluster, call: Call) -> Reply:
    """Records of ended runs; it reads a file, so it works while the master is away."""
    try:
        options, words = read(
            [word if word != "-j" else "-j" for word in call.arguments],
            {**dict.fromkeys(("-b", "-e", "-o", "-t", "-f", "-d"), 1), "-j": 0},
            attached=False,
        )
    except OptionError as error:
        raise StopError(1, f"error: {error}\n") from error
    said = {name: (values or ("",))[0] for name, values in options}
    word = words[0] if words else ""
    records = [record for _, record in sorted(_records(cluster, said, word), key=lambda pair: pair[0])]
    if not records and word:
        if "-t" in said:
            raise StopError(1, f"error: Job-array tasks {word}.{said['-t']}-{said['-t']}:1 not found\n")
        raise StopError(1, f"error: job {'id' if word.isdigit() else 'name'} {word} not found\n")
    total = "" if word else "Total System Usage\n    WALLCLOCK         UTIME         STIME           CPU\n"
    return Reply(out="".join(records) + total)


def _records(cluster: Cluster, said: dict[str, str], word: str) -> Iterator[tuple[float, str]]:
    if not cluster.site.accounting:
        return
    since = time.mktime(time.strptime(said["-b"], "%Y%m%d%H%M")) if "-b" in said else 0.0
    now = cluster.clock.now()
    for job in cluster.jobs.values():
        if word and word not in (str(job.number), job.wish.name):
            continue
        if said.get("-o", job.user) != job.user:
            continue
        for element in job:
            if "-t" in said and said["-t"] != str(element.index):
                continue
            for run in element.runs:
                yield run.ended, _record(cluster, element, run)
            never = element.end is End.CANCELLED and not element.started and not element.runs
            known = element.end and element.traced and not never and now >= element.recorded
            if known and element.ended >= since:
                yield element.ended, _record(cluster, element, None)


def _record(cluster: Cluster, element: Element, run: Run | None) -> str:
    job, wish = element.job, element.job.wish
    end = run.end if run else element.end
    started, ended = (run.started, run.ended) if run else (element.started, element.ended)
    failed = _FAILED.get(end, "0    ") if end else "0    "
    code = run.code if run else element.code
    if end is End.LAUNCH:
        started = ended = 0.0
    if end is End.REQUEUED and code == 100:
        failed = "30  : application error returned"
    if end in (End.SIGNALLED, End.CANCELLED, End.TIMEOUT, End.OOM):
        code = 137
    if element.lied:
        failed, code = "0    ", 0
    cpu, peak = (run.cpu, run.peak) if run else (element.cpu, element.peak)
    ran = int(ended) - int(started) if started else 0
    rows = {
        "qname": wish.partition,
        "hostname": (run.node if run else element.node) or "-/-",
        "group": job.user,
        "owner": job.user,
        "project": wish.account or "NONE",
        "department": "defaultdepartment",
        "jobname": wish.name,
        "jobnumber": str(job.number),
        "taskid": str(element.index) if job.is_array else "undefined",
        "account": "sge",
        "priority": "0",
        "qsub_time": ctime(run.submitted if run else element.submitted),
        "start_time": ctime(started) if started else "-/-",
        "end_time": ctime(ended) if started else "-/-",
        "granted_pe": wish.select or "NONE",
        "slots": str(wish.cpus),
        "failed": failed,
        "exit_status": f"{code:<20} (Killed)" if code == 137 else str(code),
        "ru_wallclock": f"{ran}s",
        "ru_maxrss": f"{peak / 1024 / 1024:.3f}KB" if peak else "0.000B",  # it says KB where it is MB
        "cpu": f"{cpu:.3f}s",
        "mem": "0.000Bs",
        "io": "0.000B",
        "iow": "0.000s",
        "maxvmem": f"{peak / 1024 / 1024:.3f}MB" if peak else "0.000B",
        "arid": "undefined",
        "ar_sub_time": "undefined",
        "category": wish.arguments or "NONE",
    }
    bare = (
        "taskid",
        "ru_wallclock",
        "cpu",
        "mem",
        "io",
        "iow",
        "maxvmem",
        "ru_maxrss",
        "arid",
        "ar_sub_time",
    )
    lines = [
        f"{name:<12} {value}" if name in (*bare, "category") else f"{name:<12} {value:<20}"
        for name, value in rows.items()
    ]
    return "".join(f"{line}\n" for line in ["=" * 62, *lines])
