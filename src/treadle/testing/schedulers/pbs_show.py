"""`qstat`, `qselect`, `tracejob`, `pbsnodes` of PBS."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import hms
from treadle.testing.schedulers.options import OptionError, read
from treadle.testing.schedulers.pbs_words import (
    Entry,
    array_entry,
    array_id,
    array_state,
    entry_of,
    exit_status,
    found,
    id_of,
    state_of,
    text_lines,
    torque_status,
)
from treadle.testing.schedulers.site import Kind
from treadle.testing.schedulers.voice import Call, Reply, StopError
from treadle.testing.schedulers.work import Element, Job

VERSION = "23.06.06"
_SPEC = {
    **{f"-{letter}": 0 for letter in "fxtawpJTEHriQqBn1Ge"},
    "-s": 0,
    "-F": 1,
    "-u": 1,
    "-D": 1,
    "--version": 0,
}
_CONFLICT = "qstat: conflicting options.\nusage: \nqstat [-f] [-J] [-p] [-t] [-x] [-E] [-F format | -w]\n"
_HEAD = (
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n"
)
Item = Job | Element  # a job that stands for its whole array


def qstat(cluster: Cluster, call: Call) -> Reply:
    torque = cluster.site.kind is Kind.TORQUE
    try:
        options, words = read(call.arguments, _SPEC)
    except OptionError as error:
        raise StopError(2, f"qstat: {error}\nusage: \nqstat [-f] [-J] [-p] [-t] [-x]\n") from error
    said = {name: (values or ("",))[0] for name, values in options}
    if "--version" in said:
        return (
            Reply(err="Version: 6.1.3\nCommit: unknown\n")
            if torque
            else Reply(out=f"pbs_version = {VERSION}\n")
        )
    if "-B" in said:
        return _server(cluster, "-f" in said)
    if "-F" in said and ("-f" not in said or torque):
        return Reply(0 if not torque else 2, err=_CONFLICT)
    if "-x" in said and not torque and not cluster.site.accounting:
        raise StopError(15, "qstat: PBS is not configured to maintain job history\n")
    items, complaints, code = _items(cluster, words, past="-x" in said and not torque, split="-t" in said)
    if "-u" in said:
        users = said["-u"].split(",")
        items = [one for one in items if (one.user if isinstance(one, Job) else one.job.user) in users]
    if "-f" in said:
        entries = [_entry(cluster, one, torque) for one in items]
        whole = "-w" in said or "-1" in said
        out = _json(cluster, entries) if said.get("-F") == "json" else _text(entries, not whole)
        return Reply(code, out, complaints)
    lines = "".join(_line(cluster, one, torque) for one in items)
    return Reply(code, _HEAD + lines if lines else "", complaints)


def _items(cluster: Cluster, words: list[str], *, past: bool, split: bool) -> tuple[list[Item], str, int]:
    """What is asked for; complaints about what is not there, and their exit code."""
    torque = cluster.site.kind is Kind.TORQUE
    if not words:
        jobs = list(cluster.jobs.values()) if past else list(dict.fromkeys(one.job for one in cluster.queue))
        everything = [item for job in jobs for item in _parts(cluster, job, split, torque, past)]
        return everything, "", 0
    items: list[Item] = []
    complaints, code = "", 0
    for word in words:
        try:
            hit = found(cluster, word)
        except ValueError:
            complaints, code = f"{complaints}qstat: Unknown queue destination {word}\n", 170
            continue
        full = word if "." in word else f"{word}.{cluster.site.host}"
        if hit is None or not any(one.known and (one.traced or not past) for one in hit[1] or hit[0]):
            complaints, code = f"{complaints}qstat: Unknown Job Id {full}\n", 153
            continue
        job, elements = hit
        if not past and not torque and not any(one.live for one in (elements or job)):
            hint = "Job has finished, use -x or -H to obtain historical job information"
            complaints, code = f"{complaints}qstat: {full} {hint}\n", 35
            continue
        items += elements if elements else _parts(cluster, job, split, torque, past)
    return items, complaints, code


def _parts(cluster: Cluster, job: Job, split: bool, torque: bool, past: bool) -> Iterator[Item]:
    told = [one for one in job if one.known and (one.traced or not past)]
    if not told or (not past and not torque and not job.unfinished):
        return
    if job.is_array and not (torque and split):
        yield job
    if split or not job.is_array:
        yield from told


def _entry(cluster: Cluster, item: Item, torque: bool) -> tuple[str, Entry]:
    if isinstance(item, Job):
        return array_id(cluster, item), array_entry(cluster, item)
    return id_of(cluster, item), entry_of(cluster, item, torque)


def _text(entries: list[tuple[str, Entry]], fold: bool) -> str:
    return "".join(f"{line}\n" for line in text_lines(entries, fold))


def _json(cluster: Cluster, entries: list[tuple[str, Entry]]) -> str:
    document: dict[str, object] = {
        "timestamp": int(cluster.clock.now()),
        "pbs_version": VERSION,
        "pbs_server": cluster.site.host,
    }
    if entries:
        document["Jobs"] = dict(entries)
    text = json.dumps(document, indent="\t", separators=(",", ":\t"), ensure_ascii=False)
    if cluster.site.broken_json:  # as of variables whose values look like numbers, and quotes inside of them
        text = text.replace(
            '"Job_Owner":\t', '"Version":\t1.2.3e,\n\t\t\t"Odd":\t"a "b" c",\n\t\t\t"Job_Owner":\t'
        )
    return text + "\n"


def _line(cluster: Cluster, item: Item, torque: bool) -> str:
    if isinstance(item, Job):
        job, name, state, used = item, array_id(cluster, item), array_state(item), "0"
    else:
        job, name, state = item.job, id_of(cluster, item), state_of(cluster, item)
        state = "C" if torque and state in "FX" else state
        used = hms(item.cpu) if item.started else "0"
    wish = job.wish
    return f"{name:<17.17} {wish.name:<16.16} {job.user:<16.16}  {used:>8} {state} {wish.partition:<16}\n"


def _server(cluster: Cluster, full: bool) -> Reply:
    site = cluster.site
    if not full:
        return Reply(
            out="Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"
            "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n"
            f"{site.host:<16} {0:>5} {cluster.unfinished:>5}     0     0     0     0     0     0 Active\n"
        )
    bound = f"    max_queued = [u:PBS_GENERIC={site.max_submitted}]\n" if site.max_submitted else ""
    return Reply(
        out=f"Server: {site.host}\n    server_state = Active\n    scheduling = True\n"
        f"    default_queue = {site.partition}\n    max_array_size = {site.array_bound}\n"
        f"{bound}    pbs_version = {VERSION}\n"
    )


def qselect(cluster: Cluster, call: Call) -> Reply:
    """Ids of jobs by name, user and state; arrays as a whole."""
    try:
        options, _ = read(
            call.arguments,
            {**dict.fromkeys(("-N", "-u", "-s", "-q", "-l", "-A"), 1), "-x": 0, "-T": 0, "-J": 0},
        )
    except OptionError as error:
        raise StopError(2, f"qselect: {error}\n") from error
    said = {name: (values or ("",))[0] for name, values in options}
    lines = []
    for job in cluster.jobs.values():
        if "-x" in said and not cluster.site.accounting:
            raise StopError(15, "qselect: PBS is not configured to maintain job history\n")
        live = any(
            one.known and (one.live or "-x" in said or cluster.site.kind is Kind.TORQUE) for one in job
        )
        if not live or ("-N" in said and job.wish.name != said["-N"]):
            continue
        if "-u" in said and job.user not in said["-u"].split(","):
            continue
        lines.append(array_id(cluster, job) if job.is_array else id_of(cluster, next(iter(job))))
    return Reply(out="".join(f"{line}\n" for line in lines))


def tracejob(cluster: Cluster, call: Call) -> Reply:
    """What the server's logs say of a job; they are read also while the server is away."""
    words = [
        word
        for at, word in enumerate(call.arguments)
        if not word.startswith("-") and call.arguments[at - 1] not in ("-n", "-m", "-w", "-p")
    ]
    if not words:
        raise StopError(2, "tracejob: usage: tracejob [-a|s|l|m|v] [-n days] jobid\n")
    word = words[-1]
    full = word if "." in word else f"{word}.{cluster.site.host}"
    lines = [f"\nJob: {full}\n"]
    try:
        hit = found(cluster, word)
    except ValueError:
        hit = None
    for element in (hit[1] or []) if hit and cluster.site.accounting else []:
        lines += _traced(cluster, element)
    return Reply(out="\n".join(lines) + "\n")


def _traced(cluster: Cluster, element: Element) -> Iterator[str]:
    wish, user = element.job.wish, element.job.user
    yield f"{_stamp(element.job.submitted)}  S    enqueuing into {wish.partition}, state Q hop 1"
    if element.started:
        yield f"{_stamp(element.started)}  S    Job Run at request of Scheduler@{cluster.site.host}"
    torque = cluster.site.kind is Kind.TORQUE
    status = torque_status(element) if torque else exit_status(element)
    if element.ended and status is not None and element.traced and cluster.clock.now() >= element.recorded:
        yield (
            f"{_stamp(element.ended)}  A    user={user} group={user} jobname={wish.name} "
            f"queue={wish.partition} ctime={int(element.job.submitted)} start={int(element.started)} "
            f"end={int(element.ended)} exec_host={element.node}/0 Exit_status={status} "
            f"resources_used.cput={hms(element.cpu)} "
            f"resources_used.mem={element.peak >> 10}kb "
            f"resources_used.walltime={hms(element.ended - element.started)}"
        )


def _stamp(moment: float) -> str:
    return time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(moment))


def pbsnodes(cluster: Cluster, call: Call) -> Reply:
    lines = []
    for node in cluster.site.names:
        state = "down" if node in cluster.nodes.down else "free" if cluster.nodes.free[node] else "job-busy"
        lines.append(f"{node}\n     state = {state}\n     pcpus = {cluster.site.slots}\n")
    return Reply(out="\n".join(lines))
