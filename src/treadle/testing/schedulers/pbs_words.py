"""How PBS calls jobs, and what it knows of each (recorded with OpenPBS 23.06.06; Torque by its manuals)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import ctime, hms
from treadle.testing.schedulers.options import ranges
from treadle.testing.schedulers.work import Element, End, Job, Stage

Value = str | int | dict[str, str | int]
Entry = dict[str, Value]

_STAGES = {Stage.PENDING: "Q", Stage.RUNNING: "R", Stage.SUSPENDED: "S", Stage.ENDING: "E", Stage.ENDED: "F"}
_FINISHED = 92
_FAILED = 93
_DELETED = 91
_SAID = {
    End.COMPLETED: "finished",
    End.CANCELLED: "terminated",
    End.TIMEOUT: "exceeded resource walltime",
    End.OOM: "exceeded resource mem",
}


def id_of(cluster: Cluster, element: Element) -> str:
    job = element.job
    index = f"[{element.index}]" if job.is_array else ""
    return f"{job.number}{index}.{cluster.site.host}"


def array_id(cluster: Cluster, job: Job) -> str:
    return f"{job.number}[].{cluster.site.host}"


def found(cluster: Cluster, word: str) -> tuple[Job, list[Element] | None] | None:
    """The job that `12`, `12.host`, `12[3]` or `12[]` names; the elements, None: the array itself.

    None: there is none. Raises `ValueError`: it is no id.
    """
    match = re.fullmatch(r"(\d+)(?:\[(\d*)\])?(?:\.[\w.-]+)?(?:@[\w.-]+)?", word)
    if not match:
        raise ValueError(word)
    job = cluster.jobs.get(int(match[1]))
    if job is None or (match[2] is None) is job.is_array:
        return None
    if match[2] is None:
        element = job.elements[0]
        return (job, [element]) if element.end is not End.VANISHED else None
    if match[2] == "":
        return (job, None) if any(one.end is not End.VANISHED for one in job) else None
    one = job.elements.get(int(match[2]))
    return (job, [one]) if one else None


def state_of(cluster: Cluster, element: Element) -> str:
    if element.shown:
        return element.shown
    if element.stage is Stage.PENDING and (element.held or cluster.waits_for_others(element.job)):
        return "H"
    if element.stage is Stage.ENDED and element.job.is_array and element.job.unfinished:
        return "X"
    return _STAGES[element.stage]


def array_state(job: Job) -> str:
    if not job.unfinished:
        return "F"
    return "B" if any(one.started for one in job) else "Q"


def exit_status(element: Element) -> int | None:
    """None: a job that was deleted, or could not run, before it began."""
    if not element.started:
        return 0 if element.job.is_array and element.end is End.CANCELLED else None
    if element.lied:
        return None
    match element.end:
        case None:
            return None
        case End.FAILED | End.COMPLETED:
            return element.code
        case End.SIGNALLED:
            return 128 + (element.signal or 9)
        case End.CANCELLED:
            return 271
        case End.TIMEOUT:
            return -29
        case End.OOM:
            return -27
        case End.NODE_FAIL | End.PREEMPTED:
            return -20
        case _:
            return -1


def torque_status(element: Element) -> int | None:
    status = exit_status(element)
    return {-29: -11, -27: -10, -20: -4}.get(status, status) if status is not None else None


def _comment(cluster: Cluster, element: Element) -> str:
    if not element.started and not element.runs:
        if element.end is End.CANCELLED:
            return "Subjob finished" if element.job.is_array else "Job deleted"
        if element.reason:
            return f"Can Never Run: {element.reason}"
        if cluster.hopeless(element.job.wish):
            return "Can Never Run: Insufficient amount of resource: ncpus"
        return "Not Running: Not enough free nodes available" if element.live else ""
    if not element.started:
        return "Not Running: Not enough free nodes available"
    begun = time.strftime("%a %b %d at %H:%M", time.localtime(element.started))
    text = f"Job run at {begun} on ({element.node}:ncpus={element.job.wish.cpus})"
    if element.end in (None, End.NODE_FAIL):
        return text
    return f"{text} and {_SAID.get(element.end, 'failed') if element.end else ''}"


def _substate(cluster: Cluster, element: Element) -> int:
    if element.live:
        waits = 22 if cluster.waits_for_others(element.job) else 20 if element.held else 10
        return {Stage.PENDING: waits, Stage.ENDING: 51, Stage.SUSPENDED: 43}.get(element.stage, 42)
    if element.end is End.CANCELLED and (element.started or not element.job.is_array):
        return _DELETED
    return _FINISHED if element.end is End.COMPLETED else _FAILED


def _resources(element: Element) -> dict[str, str | int]:
    wish = element.job.wish
    asked: dict[str, str | int] = {"ncpus": wish.cpus, "nodect": 1, "place": "free", "select": wish.select}
    if wish.memory:
        asked["mem"] = f"{wish.memory >> 20}mb"
    if wish.limit:
        asked["walltime"] = hms(wish.limit)
    return asked


def _used(cluster: Cluster, element: Element) -> dict[str, str | int]:
    ran = (element.ended or cluster.clock.now()) - element.started
    return {
        "cpupercent": 0,
        "cput": hms(element.cpu),
        "mem": f"{element.peak >> 10}kb",
        "ncpus": element.job.wish.cpus,
        "vmem": f"{element.peak >> 10}kb",
        "walltime": hms(ran),
    }


def entry_of(cluster: Cluster, element: Element, torque: bool) -> Entry:
    """All that is known of a job or an element, in the order in which it is printed."""
    job, wish, host = element.job, element.job.wish, cluster.site.host
    late = element.end is not None and cluster.clock.now() < element.recorded
    state = "E" if late else state_of(cluster, element)
    entry: Entry = {"Job_Name": wish.name, "Job_Owner": f"{job.user}@{host}"}
    if element.started:
        entry["resources_used"] = _used(cluster, element)
    entry |= {
        "job_state": "C" if torque and state in "FX" else state,
        "queue": wish.partition,
        "server": host,
        "ctime": ctime(job.submitted),
        "Error_Path": f"{host}:{wish.err or wish.cwd}",
    }
    if element.node:
        entry["exec_host"] = f"{element.node}/0" + (f"*{wish.cpus}" if wish.cpus > 1 else "")
    entry |= {
        "Hold_Types": "u" if element.held else "s" if cluster.waits_for_others(job) else "n",
        "Join_Path": "oe" if wish.join else "n",
        "mtime": ctime(element.ended or element.started or job.submitted),
        "Output_Path": f"{host}:{wish.out or wish.cwd}",
        "Priority": 0,
        "qtime": ctime(job.submitted),
        "Rerunable": "True" if wish.requeue else "False",
        "Resource_List": _resources(element),
    }
    if element.started:
        entry["start_time" if torque else "stime"] = ctime(element.started)
    if element.ended and (element.started or job.is_array):
        entry["comp_time" if torque else "obittime"] = ctime(element.ended)
    if not torque:
        entry["substate"] = _substate(cluster, element)
    entry["Variable_List"] = {name: value for name, value in wish.env.items() if name.startswith("PBS_O_")}
    if job.is_array and (element.started or torque):
        entry["job_array_id" if torque else "array_id"] = job.number if torque else array_id(cluster, job)
        entry["job_array_index" if torque else "array_index"] = element.index
    if comment := _comment(cluster, element):
        entry["comment"] = comment
    runs = len(element.runs) + (1 if element.started else 0)
    if runs:
        entry["run_count"] = runs
    status = torque_status(element) if torque else exit_status(element)
    if status is not None and not late:
        entry["exit_status" if torque else "Exit_status"] = status
    elif element.runs and element.live and element.runs[-1].end is End.NODE_FAIL:
        entry["Exit_status"] = -20
    if wish.arguments:
        entry["Submit_arguments" if not torque else "submit_args"] = wish.arguments
    return entry


def _times(job: Job, state: str) -> Entry:
    """When the first element began, and the last one ended."""
    begun = min((one.started for one in job if one.started), default=0.0)
    times: Entry = {"stime": ctime(begun)} if begun else {}
    if state == "F":
        times["obittime"] = ctime(max(one.ended for one in job))
    return times


def array_entry(cluster: Cluster, job: Job) -> Entry:
    """What is known of an array as a whole; its own exit status does not say that an element failed."""
    wish, host = job.wish, cluster.site.host
    waiting = [one.index for one in job if one.stage is Stage.PENDING]
    state = array_state(job)
    good = all(one.end is End.COMPLETED for one in job)
    counts = {
        "Queued": len(waiting),
        "Running": sum(one.stage in (Stage.RUNNING, Stage.SUSPENDED) for one in job),
        "Exiting": sum(one.stage is Stage.ENDING for one in job),
        "Expired": sum(not one.live for one in job),
    }
    entry: Entry = {
        "Job_Name": wish.name,
        "Job_Owner": f"{job.user}@{host}",
        "job_state": state,
        "queue": wish.partition,
        "server": host,
        "ctime": ctime(job.submitted),
        "Output_Path": f"{host}:{wish.out or wish.cwd}",
        "Resource_List": _resources(next(iter(job))),
        "Hold_Types": "n",
        **_times(job, state),
        "substate": {"B": 70, "Q": 10}.get(state, _FINISHED if good else _FAILED),
        "array": "True",
        "array_state_count": " ".join(f"{name}:{count}" for name, count in counts.items()),
        "array_indices_submitted": wish.array,
        "array_indices_remaining": ranges(waiting) or "-",
    }
    if state == "F":
        entry |= {"Exit_status": 0, "comment": f"Job Array Began and {'finished' if good else 'failed'}"}
    return entry


def text_lines(entries: Iterable[tuple[str, Entry]], fold: bool) -> Iterator[str]:
    """As `qstat -f` prints; long lines go on after a tab, unless they are asked for whole."""
    for job, entry in entries:
        yield f"Job Id: {job}"
        for name, value in entry.items():
            if name == "Variable_List" and isinstance(value, dict):
                value = ",".join(f"{key}={one}" for key, one in value.items())
            pairs = (
                [(f"{name}.{key}", one) for key, one in value.items()]
                if isinstance(value, dict)
                else [(name, value)]
            )
            for key, one in pairs:
                line = f"    {key} = {one}"
                yield _folded(line) if fold else line
        yield ""


def _folded(line: str) -> str:
    parts = [line[:79]]
    rest = line[79:]
    while rest:
        parts.append(rest[:71])
        rest = rest[71:]
    return "\n\t".join(parts)
