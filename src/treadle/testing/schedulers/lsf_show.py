"""`bjobs`, `bacct`, `bhist` (by LSF's public manuals; none of it was recorded)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.options import OptionError, read
from treadle.testing.schedulers.voice import Call, Reply, StopError
from treadle.testing.schedulers.work import Element, End, Stage

_SPEC = {
    **dict.fromkeys(
        ("-a", "-noheader", "-json", "-l", "-w", "-d", "-p", "-r", "-s", "-A", "-V", "-UF", "-W"), 0
    ),
    **dict.fromkeys(("-o", "-u", "-J", "-q", "-m", "-P", "-g", "-n", "-S", "-C", "-D"), 1),
}
_TERMS = {
    End.CANCELLED: "TERM_OWNER: job killed by owner",
    End.TIMEOUT: "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
    End.OOM: "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
    End.SIGNALLED: "TERM_EXTERNAL_SIGNAL: job killed by a signal external to LSF",
    End.NODE_FAIL: "TERM_ZOMBIE: job killed because the host was down",
    End.PREEMPTED: "TERM_PREEMPT: job killed after preemption",
    End.LAUNCH: "TERM_CWD_NOTEXIST: current working directory is not accessible or does not exist",
}
_CODES = {End.CANCELLED: 130, End.TIMEOUT: 140, End.OOM: 137, End.SIGNALLED: 137, End.NODE_FAIL: 137}


def id_of(element: Element) -> str:
    job = element.job
    return f"{job.number}[{element.index}]" if job.is_array else str(job.number)


def name_of(element: Element) -> str:
    name = element.job.wish.name
    return f"{name}[{element.index}]" if element.job.is_array else name


def state_of(element: Element) -> str:
    if element.shown:
        return element.shown
    match element.stage:
        case Stage.PENDING:
            return "PSUSP" if element.held else "PEND"
        case Stage.RUNNING | Stage.ENDING:
            return "RUN"
        case Stage.SUSPENDED:
            return "USUSP"
        case _:
            return "DONE" if element.end is End.COMPLETED else "EXIT"


def code_of(element: Element) -> int:
    """128 + signal where a signal ended it; 0 for what never ran."""
    if not element.started or element.end is None:
        return 0
    if element.end is End.SIGNALLED and element.signal:
        return 128 + element.signal
    return _CODES.get(element.end, element.code)


def reason_of(element: Element) -> str:
    return _TERMS.get(element.end, "") if element.end else ""


def found(cluster: Cluster, words: Iterable[str]) -> Iterator[tuple[str, list[Element]]]:
    """The elements that `12`, `12[3]`, `12[1-3]` name."""
    for word in words:
        match = re.fullmatch(r"(\d+)(?:\[([\d,-]+)\])?", word)
        job = cluster.jobs.get(int(match[1])) if match else None
        if job is None or match is None:
            yield word, []
            continue
        wanted = {int(one) for one in match[2].split(",") if one.isdigit()} if match[2] else None
        yield word, [one for one in job if wanted is None or one.index in wanted]


def bjobs(cluster: Cluster, call: Call) -> Reply:
    try:
        options, words = read(call.arguments, _SPEC, attached=False)
    except OptionError as error:
        raise StopError(255, f"bjobs: {error}\n") from error
    said = {name: (values or ("",))[0] for name, values in options}
    if "-V" in said:
        return Reply(err="IBM Spectrum LSF Standard 10.1.0.0\n")
    elements, missing = _asked(cluster, words)
    elements = [one for one in elements if one.known and _shown(cluster, one, said, bool(words))]
    err = "".join(f"Job <{word}> is not found\n" for word in missing)
    if not elements and not err:
        err = "No job found\n" if "-a" in said else "No unfinished job found\n"
    columns, mark = _columns(said.get("-o", "jobid user stat queue from_host exec_host job_name submit_time"))
    if "-json" in said:
        return Reply(255 if missing else 0, _json(cluster, elements, columns, missing))
    lines = [] if "-noheader" in said or not elements else [mark.join(one.upper() for one in columns)]
    lines += [mark.join(_cell(cluster, element, name) or "-" for name in columns) for element in elements]
    return Reply(255 if missing else 0, "".join(f"{line}\n" for line in lines), err)


def _asked(cluster: Cluster, words: list[str]) -> tuple[list[Element], list[str]]:
    if not words:
        return list(cluster.queue), []
    elements: dict[Element, None] = {}
    missing = []
    for word, ones in found(cluster, words):
        known = [one for one in ones if one.known]
        elements.update(dict.fromkeys(known))
        if not known:
            missing.append(word)
    return list(elements), missing


def _shown(cluster: Cluster, element: Element, said: dict[str, str], by_id: bool) -> bool:
    user = said.get("-u", "all" if by_id else cluster.site.user)
    if user != "all" and element.job.user not in user.split():
        return False
    if "-J" in said and said["-J"] not in (element.job.wish.name, name_of(element)):
        return False
    if "-q" in said and said["-q"] != element.job.wish.partition:
        return False
    return element.live or "-a" in said or by_id or "-d" in said


def _columns(text: str) -> tuple[list[str], str]:
    match = re.search(r"delimiter='([^']*)'", text)
    names = re.sub(r"delimiter='[^']*'", "", text).split()
    return [name.partition(":")[0].lower() for name in names], match[1] if match else " "


def _json(cluster: Cluster, elements: list[Element], columns: list[str], missing: list[str]) -> str:
    records: list[dict[str, str]] = [
        {name.upper(): _cell(cluster, element, name) for name in columns} for element in elements
    ]
    records += [{"JOBID": word, "ERROR": f"Job <{word}> is not found"} for word in missing]
    document = {"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}
    text = json.dumps(document, indent=2)
    return (text[: len(text) // 2] if cluster.site.broken_json else text) + "\n"


def _cell(cluster: Cluster, element: Element, name: str) -> str:
    cell = _CELLS.get(name)
    return cell(cluster, element) if cell else ""


def _moment(seconds: float) -> str:
    """Without a year, as LSF prints it."""
    return time.strftime("%b %e %H:%M", time.localtime(seconds)) if seconds else ""


def _ran(cluster: Cluster, element: Element) -> str:
    ran = (element.ended or cluster.clock.now()) - element.started if element.started else 0
    return f"{int(ran)} second(s)"


_CELLS: dict[str, Callable[[Cluster, Element], str]] = {
    "jobid": lambda cluster, one: str(one.job.number),
    "jobindex": lambda cluster, one: str(one.index),
    "stat": lambda cluster, one: state_of(one),
    "exit_code": lambda cluster, one: str(code_of(one) or ""),
    "exit_reason": lambda cluster, one: reason_of(one),
    "pend_reason": lambda cluster, one: one.reason if one.stage is Stage.PENDING else "",
    "cpu_used": lambda cluster, one: f"{one.cpu:.1f} second(s)" if one.started else "",
    "max_mem": lambda cluster, one: f"{one.peak / (1 << 20):.1f} Mbytes" if one.peak else "",
    "run_time": _ran,
    "exec_host": lambda cluster, one: (
        (f"{one.job.wish.cpus}*{one.node}" if one.job.wish.cpus > 1 else one.node) if one.node else ""
    ),
    "job_name": lambda cluster, one: name_of(one),
    "name": lambda cluster, one: name_of(one),
    "job_description": lambda cluster, one: one.job.wish.comment,
    "user": lambda cluster, one: one.job.user,
    "queue": lambda cluster, one: one.job.wish.partition,
    "from_host": lambda cluster, one: cluster.site.host,
    "submit_time": lambda cluster, one: _moment(one.job.submitted),
    "start_time": lambda cluster, one: _moment(one.started),
    "finish_time": lambda cluster, one: f"{_moment(one.ended)} L" if one.ended else "",
}


def bacct(cluster: Cluster, call: Call) -> Reply:
    """Long texts of jobs that have ended."""
    return _history(cluster, call, _bacct_block, "No matching job found\n")


def bhist(cluster: Cluster, call: Call) -> Reply:
    """Long texts of jobs, of those that have ended only where `-a` or an id is given."""
    return _history(cluster, call, _bhist_block, "No matching job found\n")


def _history(cluster: Cluster, call: Call, block: Callable[[Cluster, Element], str], nothing: str) -> Reply:
    try:
        options, words = read(call.arguments, _SPEC, attached=False)
    except OptionError as error:
        raise StopError(255, f"{call.program}: {error}\n") from error
    said = {name: (values or ("",))[0] for name, values in options}
    if words:
        elements = [one for _, ones in found(cluster, words) for one in ones]
    else:
        elements = [one for job in cluster.jobs.values() for one in job]
    if "-J" in said:
        elements = [one for one in elements if one.job.wish.name == said["-J"]]
    now = cluster.clock.now()
    ended_only = call.program == "bacct"
    elements = [
        one
        for one in elements
        if cluster.site.accounting
        and one.traced
        and ((one.end and now >= one.recorded) or (not ended_only and one.live))
    ]
    if not elements:
        return Reply(255, err=nothing)
    return Reply(out="".join(f"{'-' * 78}\n\n{block(cluster, one)}\n" for one in elements))


def _head(element: Element) -> str:
    wish = element.job.wish
    text = (
        f"Job <{id_of(element)}>, Job Name <{name_of(element)}>, User <{element.job.user}>, "
        f"Project <{wish.account}>, Status <{state_of(element)}>, Queue <{wish.partition}>, "
        f"Command <{wish.command}>"
    )
    return f"\n{' ' * 21}".join(text[at : at + 58] for at in range(0, len(text), 58))


def _bacct_block(cluster: Cluster, element: Element) -> str:
    done = element.end is End.COMPLETED or bool(element.lied)
    reason = "" if done or not reason_of(element) else f"; {reason_of(element)}"
    how = "done" if done else "exit"
    return (
        f"{_head(element)}\n{_stamp(element.job.submitted)}: Submitted from host <{cluster.site.host}>;\n"
        f"{_stamp(element.started)}: Dispatched to <{element.node}>;\n"
        f"{_stamp(element.ended)}: Completed <{how}>{reason}.\n\n"
        "Accounting information about this job:\n"
        "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n"
        f"{element.cpu:10.2f}{int((element.started or element.ended) - element.job.submitted):9d}"
        f"{int(element.ended - element.job.submitted):15d}     {how}         0.0000"
        f"{element.peak >> 20:6d}M     0M\n"
    )


def _bhist_block(cluster: Cluster, element: Element) -> str:
    lines = [_head(element), f"{_stamp(element.job.submitted)}: Submitted from host <{cluster.site.host}>;"]
    if element.started:
        lines.append(f"{_stamp(element.started)}: Dispatched to <{element.node}>; Starting (Pid 1);")
    if element.end is End.COMPLETED:
        lines.append(
            f"{_stamp(element.ended)}: Done successfully. The CPU time used is {element.cpu:.1f} seconds;"
        )
    elif element.end:
        code = code_of(element)
        how = f"by signal {code - 128}" if code > 128 else f"with exit code {code}"
        reason = reason_of(element)
        lines.append(
            f"{_stamp(element.ended)}: Exited {how}. The CPU time used is {element.cpu:.1f} seconds;"
        )
        if reason:
            lines.append(f"{_stamp(element.ended)}: Completed <exit>; {reason};")
    return "\n".join(lines) + "\n"


def _stamp(seconds: float) -> str:
    return time.strftime("%a %b %e %H:%M:%S", time.localtime(seconds))
