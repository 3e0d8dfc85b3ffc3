"""SLURM, played: what a job gets, and what is said when things go wrong (recorded with 22.05.8)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import iso
from treadle.testing.schedulers.launch import job_environment, script_argv
from treadle.testing.schedulers.slurm_accounts import sacct
from treadle.testing.schedulers.slurm_control import scancel, scontrol, sinfo
from treadle.testing.schedulers.slurm_queue import squeue
from treadle.testing.schedulers.slurm_submit import Asked, failed, wish_of
from treadle.testing.schedulers.voice import Call, Command, Launch, Reply, StopError, submit
from treadle.testing.schedulers.work import Element, End, Job

_LOST = "Unable to contact slurm controller (connect failure)"
_NOTES = {
    End.CANCELLED: "",
    End.TIMEOUT: " DUE TO TIME LIMIT",
    End.REQUEUED: " DUE TO JOB REQUEUE",
    End.PREEMPTED: " DUE TO PREEMPTION",
    End.NODE_FAIL: " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}


class SlurmVoice:
    """The words of SLURM."""

    @property
    def commands(self) -> Mapping[str, Command]:
        return {
            "sbatch": self._sbatch,
            "squeue": squeue,
            "sacct": sacct,
            "scancel": scancel,
            "scontrol": scontrol,
            "sinfo": sinfo,
        }

    def _sbatch(self, cluster: Cluster, call: Call) -> Reply:
        asked = Asked(call)
        if asked.flag("version"):
            return Reply(out="slurm 22.05.8\n")
        wish = wish_of(cluster, asked, call)
        if asked.flag("test-only"):
            start, node = iso(cluster.clock.now()), cluster.site.names[0]
            raise StopError(
                0,
                f"sbatch: Job {cluster.next_number} to start at {start} using {wish.cpus} processors "
                f"on nodes {node} in partition {wish.partition}\n",
            )
        call.arguments = ["--parsable"] if asked.flag("parsable") else []
        if name := asked.text("clusters"):
            call.arguments.append(name)
        return submit(self, cluster, wish, call)

    def accepted(self, job: Job, call: Call) -> Reply:
        match call.arguments:
            case ["--parsable"]:
                return Reply(out=f"{job.number}\n")
            case ["--parsable", cluster]:
                return Reply(out=f"{job.number};{cluster}\n")
            case [cluster]:
                return Reply(out=f"Submitted batch job {job.number} on cluster {cluster}\n")
            case _:
                return Reply(out=f"Submitted batch job {job.number}\n")

    def refused(self, words: str) -> Reply:
        return failed(words or "Requested node configuration is not available").reply

    def limited(self) -> Reply:
        """Of a site whose QOS says MaxSubmitJobsPerUser."""
        reason = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
        return failed(reason, "sbatch: error: QOSMaxSubmitJobPerUserLimit\n").reply

    def unanswered(self) -> Reply:
        return failed("Socket timed out on send/recv operation").reply

    def down(self, call: Call) -> Reply | None:
        match call.program:
            case "sacct":
                return None
            case "sbatch":
                return failed(_LOST).reply
            case "scancel":
                job = next((word for word in call.arguments if not word.startswith("-")), "")
                return Reply(8, err=f"scancel: error: Kill job error on job id {job}: {_LOST}\n")
            case "sinfo":
                return Reply(1, err=f"slurm_load_partitions: {_LOST}\n")
            case "scontrol" if call.arguments[:1] == ["ping"]:
                stars = "*" * 41
                text = "** RESTORE SLURMCTLD DAEMON TO SERVICE **"
                return Reply(1, f"Slurmctld(primary) at localhost is DOWN\n{stars}\n{text}\n{stars}\n")
            case _:
                return Reply(1, err=f"slurm_load_jobs error: {_LOST}\n")

    def launch(self, cluster: Cluster, element: Element) -> Launch:
        wish = element.job.wish
        gone = not os.path.isdir(wish.workdir)  # slurmd goes on in /tmp then
        return Launch(
            argv=script_argv(element),
            env=_environment(cluster, element),
            cwd="/tmp" if gone else wish.workdir,
            out=_filled(wish.out, element),
            err=_filled(wish.err, element) if wish.err else "",
            append=wish.append,
        )

    def note(self, cluster: Cluster, element: Element, how: End) -> str:
        if how is End.OOM:
            return (
                f"slurmstepd-{element.node}: error: Detected 1 oom-kill event(s) in "
                f"StepId={element.number}.batch. Some of your processes may have been killed by the "
                "cgroup out-of-memory handler.\n"
            )
        if how not in _NOTES:
            return ""
        time = iso(cluster.clock.now())
        return (
            f"slurmstepd-{element.node}: error: *** JOB {element.number} ON {element.node} "
            f"CANCELLED AT {time}{_NOTES[how]} ***\n"
        )

    def ended(self, cluster: Cluster, element: Element) -> End | None:
        return None


def _filled(pattern: str, element: Element) -> str:
    """A file name with its `%j`, `%A_%a` and the like filled in."""
    job = element.job
    values = {
        "%": "%",
        "j": str(element.number),
        "J": str(element.number),
        "A": str(job.number),
        "a": str(element.index) if job.is_array else "4294967294",
        "x": job.wish.name,
        "u": job.user,
        "N": element.node,
        "n": "0",
        "t": "0",
    }
    return re.sub(r"%(\d*)([%jJAaxuNnt])", lambda found: values[found[2]].zfill(int(found[1] or 0)), pattern)


def _environment(cluster: Cluster, element: Element) -> dict[str, str]:
    job, wish = element.job, element.job.wish
    env = {
        **wish.env,
        **job_environment(cluster, element),
        "SLURM_JOB_ID": str(element.number),
        "SLURM_JOBID": str(element.number),
        "SLURM_JOB_NAME": wish.name,
        "SLURM_JOB_PARTITION": wish.partition,
        "SLURM_JOB_USER": job.user,
        "SLURM_JOB_NODELIST": element.node,
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_CPUS_ON_NODE": str(wish.cpus),
        "SLURM_CPUS_PER_TASK": str(wish.cpus),
        "SLURM_SUBMIT_DIR": wish.cwd,
        "SLURM_CLUSTER_NAME": "fake",
        "SLURMD_NODENAME": element.node,
        "PATH": wish.env.get("PATH", os.defpath),
    }
    if wish.memory:
        env["SLURM_MEM_PER_NODE"] = str(wish.memory >> 20)
    if element.restarts:
        env["SLURM_RESTART_COUNT"] = str(element.restarts)
    if job.is_array:
        indices = list(job.elements)
        env |= {
            "SLURM_ARRAY_JOB_ID": str(job.number),
            "SLURM_ARRAY_TASK_ID": str(element.index),
            "SLURM_ARRAY_TASK_COUNT": str(len(indices)),
            "SLURM_ARRAY_TASK_MIN": str(min(indices)),
            "SLURM_ARRAY_TASK_MAX": str(max(indices)),
            "SLURM_ARRAY_TASK_STEP": str(indices[1] - indices[0] if len(indices) > 1 else 1),
        }
    return env
