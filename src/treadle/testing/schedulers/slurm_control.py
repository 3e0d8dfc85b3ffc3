"""`scancel`, `scontrol`, `sinfo`."""

from __future__ import annotations

from collections.abc import Callable

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import clock_seconds, hms
from treadle.testing.schedulers.options import OptionError, read
from treadle.testing.schedulers.slurm_words import exit_of, moment, named, reason_of, rows, state_of
from treadle.testing.schedulers.voice import Call, Reply, StopError
from treadle.testing.schedulers.work import Element, End, Stage

_CANCEL = {
    **dict.fromkeys(("-b", "--batch", "-f", "--full", "-Q", "--quiet", "-v", "--verbose", "--me", "-H"), 0),
    **dict.fromkeys(("-n", "--name", "--jobname", "-u", "--user", "-t", "--state", "-s", "--signal"), 1),
    **dict.fromkeys(("-M", "--clusters", "-p", "--partition", "-A", "--account"), 1),
}


def scancel(cluster: Cluster, call: Call) -> Reply:
    """Silent and content, also of jobs that are unknown or have ended."""
    try:
        found, words = read(call.arguments, _CANCEL)
    except OptionError as error:
        raise StopError(1, f"scancel: {error}\n") from error
    options = {name: (values or ("",))[0] for name, values in found}
    chosen: list[tuple[str, list[Element]]] = []
    try:
        chosen += named(cluster, words)
    except ValueError as error:
        raise StopError(1, f"scancel: error: Invalid job id {error}\n") from error
    names = options.get("-n") or options.get("--name") or options.get("--jobname")
    if not words and (names or options.keys() & {"-u", "--user", "--me"}):
        wanted = set(names.split(",")) if names else None
        own = [one for one in cluster.queue if one.job.user == cluster.site.user]
        chosen.append(("", [one for one in own if wanted is None or one.job.wish.name in wanted]))
    denied = ""
    for word, elements in chosen:
        if any(one.job.user != cluster.site.user for one in elements):
            denied += f"scancel: error: Kill job error on job id {word}: Access/permission denied\n"
            continue
        _cancel(cluster, word, elements)
    return Reply(210 if denied else 0, err=denied)


def _cancel(cluster: Cluster, word: str, elements: list[Element]) -> None:
    single = [one for one in elements if "_" in word and one.stage is Stage.PENDING and not one.runs]
    cluster.cancel(elements)
    for one in single:  # an element that was picked out while it waited leaves no trace
        cluster.forget(one)
        one.traced = False


def scontrol(cluster: Cluster, call: Call) -> Reply:
    words = [word for word in call.arguments if not word.startswith("-")]
    oneline = any(word in ("-o", "--oneliner") for word in call.arguments)
    match words:
        case ["show", "config", *_]:
            return Reply(out=_config(cluster))
        case ["show", "job" | "jobs", *ids]:
            return _show(cluster, [part for word in ids for part in word.split(",")], oneline, call.env)
        case ["ping"]:
            return Reply(out=f"Slurmctld(primary) at {cluster.site.host} is UP\n")
        case ["update", *settings]:
            return _update(cluster, settings)
        case [verb, *ids] if verb in _VERBS and ids:
            return _each(cluster, verb, [part for word in ids for part in word.split(",")])
        case _:
            raise StopError(1, f"invalid keyword: {' '.join(words)}\n")


def _requeue(cluster: Cluster, element: Element) -> None:
    cluster.stop(element, End.REQUEUED)


def _requeue_held(cluster: Cluster, element: Element) -> None:
    element.held = True
    cluster.stop(element, End.REQUEUED)


_VERBS: dict[str, Callable[[Cluster, Element], None]] = {
    "hold": Cluster.hold,
    "release": Cluster.release,
    "suspend": Cluster.suspend,
    "resume": Cluster.resume,
    "requeue": _requeue,
    "requeuehold": _requeue_held,
}


def _each(cluster: Cluster, verb: str, ids: list[str]) -> Reply:
    complaints = ""
    for word, elements in named(cluster, ids):
        live = [one for one in elements if one.live]
        if not live:
            complaints += f"Invalid job id specified for job {word}\n"
        elif verb.startswith("requeue") and all(one.stage is Stage.PENDING for one in live):
            complaints += f"Job is pending execution for job {word}\n"
        else:
            for element in live:
                _VERBS[verb](cluster, element)
    return Reply(1 if complaints else 0, err=complaints)


def _update(cluster: Cluster, settings: list[str]) -> Reply:
    values = {key.lower(): value for key, _, value in (word.partition("=") for word in settings)}
    if node := values.get("nodename"):
        if values.get("state", "").lower() in ("down", "drain", "fail"):
            cluster.fail_node(node, values.get("reason", ""))
        else:
            cluster.mend_node(node)
        return Reply()
    found = [one for _, elements in named(cluster, [values.get("jobid", "")]) for one in elements if one.live]
    if not found:
        raise StopError(1, "slurm_update error: Invalid job id specified\n")
    for element in found:
        if values.get("endtime") == "now":
            cluster.stop(element, End.TIMEOUT)
        if "timelimit" in values:
            element.job.wish.limit = clock_seconds(values["timelimit"], 60)
    return Reply()


def _config(cluster: Cluster) -> str:
    site = cluster.site
    storage = "accounting_storage/slurmdbd" if site.accounting else "accounting_storage/none"
    values = {
        "AccountingStorageType": storage,
        "ClusterName": "fake",
        "JobRequeue": "1",
        "KillWait": f"{int(site.kill_wait)} sec",
        "MaxArraySize": str(site.array_bound),
        "MaxJobCount": "100000",
        "MinJobAge": f"{int(site.kept)} sec",
        "SLURM_VERSION": "22.05.8",
        "SlurmctldHost[0]": site.host,
    }
    lines = [f"{key:<23} = {value}" for key, value in values.items()]
    head = f"Configuration data as of {moment(cluster, cluster.clock.now(), {})}"
    return "\n".join([head, *lines, "", f"Slurmctld(primary) at {site.host} is UP", ""])


def _show(cluster: Cluster, ids: list[str], oneline: bool, env: dict[str, str]) -> Reply:
    elements = list(cluster.queue)
    if ids:
        elements = [one for _, found in named(cluster, ids) for one in found]
        if not elements:
            if "_" in ids[0] and int(ids[0].partition("_")[0]) in cluster.jobs:
                raise StopError(1, out=f"Job {ids[0]} not found\n")
            raise StopError(1, "slurm_load_jobs error: Invalid job id specified\n")
    blocks = [_block(cluster, element, index, env) for element, index in rows(elements, False)]
    if oneline:
        return Reply(out="".join(" ".join(" ".join(block).split()) + "\n" for block in blocks))
    return Reply(out="".join("\n   ".join(block) + "\n\n" for block in blocks))


def _block(cluster: Cluster, element: Element, index: str, env: dict[str, str]) -> list[str]:
    job, wish = element.job, element.job.wish
    array = f" ArrayJobId={job.number} ArrayTaskId={index.strip('[]')}" if job.is_array else ""
    code = "0:15" if element.end in (End.TIMEOUT, End.CANCELLED) and element.started else exit_of(element)
    ended = element.ended or (element.started + wish.limit if element.started and wish.limit else 0)
    begun = element.started or element.ended
    ran = (element.ended or cluster.clock.now()) - element.started if element.started else 0
    reason = reason_of(cluster, element).replace(" ", "_")
    host = [f"BatchHost={element.node}"] if element.node else []
    return [
        f"JobId={element.number}{array} JobName={wish.name}",
        f"UserId={job.user}({cluster.site.uid}) GroupId={job.user}({cluster.site.uid}) MCS_label=N/A",
        f"Priority=1 Nice=0 Account={wish.account or '(null)'} QOS={wish.qos}",
        f"JobState={state_of(element)} Reason={reason} Dependency=(null)",
        f"Requeue={int(wish.requeue)} Restarts={element.restarts} BatchFlag=1 Reboot=0 ExitCode={code}",
        f"RunTime={hms(ran)} TimeLimit={hms(wish.limit) if wish.limit else 'UNLIMITED'} TimeMin=N/A",
        f"SubmitTime={moment(cluster, element.submitted, env)} EligibleTime={moment(cluster, begun, env)}",
        f"StartTime={moment(cluster, begun, env)} EndTime={moment(cluster, ended, env)} Deadline=N/A",
        f"Partition={wish.partition} AllocNode:Sid={cluster.site.host}:1",
        f"NodeList={element.node}",
        *host,
        f"NumNodes=1 NumCPUs={wish.cpus} NumTasks=1 CPUs/Task={wish.cpus} ReqB:S:C:T=0:0:*:*",
        f"MinCPUsNode={wish.cpus} MinMemoryNode={wish.memory >> 20}M MinTmpDiskNode=0",
        f"Command={wish.command or '(null)'}",
        f"WorkDir={wish.workdir}",
        f"Comment={wish.comment or '(null)'}",
        f"StdOut={wish.out}",
    ]


def sinfo(cluster: Cluster, call: Call) -> Reply:
    """Partitions and nodes: the default table, or one line a node for `-N`."""
    site, arguments = cluster.site, call.arguments
    partitions = site.partitions or (site.partition,)
    noheader = any(word in ("-h", "--noheader") for word in arguments)
    lines = []
    if any(word in ("-N", "--Node") for word in arguments):
        lines = [] if noheader else ["NODELIST STATE REASON"]
        for node in site.names:
            lines.append(f"{node} {_node_state(cluster, node)} {cluster.nodes.down.get(node, 'none')}")
        return Reply(out="".join(f"{line}\n" for line in lines))
    if not noheader:
        lines.append("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST")
    for number, partition in enumerate(partitions):
        star = "*" if number == 0 else ""
        for node in site.names:
            state = _node_state(cluster, node)
            lines.append(f"{partition + star:<9} {'up':>5} {'infinite':>10} {1:>6} {state:>6} {node}")
    return Reply(out="".join(f"{line}\n" for line in lines))


def _node_state(cluster: Cluster, node: str) -> str:
    if node in cluster.nodes.down:
        return "down"
    free = cluster.nodes.free[node]
    return "idle" if free == cluster.site.slots else "alloc" if free == 0 else "mixed"
