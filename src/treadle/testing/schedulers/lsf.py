"""LSF, played by its public manuals; none of it was recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.launch import job_environment, script_argv
from treadle.testing.schedulers.lsf_show import bacct, bhist, bjobs, found, name_of
from treadle.testing.schedulers.lsf_submit import Asked, refusal, wish_of
from treadle.testing.schedulers.voice import Call, Command, Launch, Reply, submit
from treadle.testing.schedulers.work import Element, End, Job


class LsfVoice:
    """The words of LSF."""

    @property
    def commands(self) -> Mapping[str, Command]:
        return {
            "bsub": self._bsub,
            "bjobs": bjobs,
            "bacct": bacct,
            "bhist": bhist,
            "bkill": _each(lambda cluster, one: cluster.cancel([one]), "is being terminated"),
            "bstop": _each(_stopped, "is being stopped"),
            "bresume": _each(_resumed, "is being resumed"),
            "brequeue": _each(lambda cluster, one: cluster.stop(one, End.REQUEUED), "is being requeued"),
            "bparams": _bparams,
            "lsid": _lsid,
        }

    def _bsub(self, cluster: Cluster, call: Call) -> Reply:
        asked = Asked(call)
        if asked.version:
            return Reply(err="IBM Spectrum LSF Standard 10.1.0.0\n")
        wish = wish_of(cluster, asked, call)
        call.arguments = ["-q"] if asked.text("-q") else []
        return submit(self, cluster, wish, call)

    def accepted(self, job: Job, call: Call) -> Reply:
        default = "" if call.arguments else "default "
        return Reply(out=f"Job <{job.number}> is submitted to {default}queue <{job.wish.partition}>.\n")

    def refused(self, words: str) -> Reply:
        return refusal(words or "Bad resource requirement syntax").reply

    def limited(self) -> Reply:
        return refusal("User <user>: Pending job threshold reached. Retrying in 60 seconds").reply

    def unanswered(self) -> Reply:
        return Reply(255, err="Failed in receiving message: communication time out. Job not submitted.\n")

    def down(self, call: Call) -> Reply | None:
        if call.program in ("bacct", "bhist"):
            return None
        return Reply(255, err="LSF is down. Please wait ...\nCannot connect to LSF. Please wait ...\n")

    def launch(self, cluster: Cluster, element: Element) -> Launch:
        wish = element.job.wish
        return Launch(
            argv=script_argv(element),
            env=self._environment(cluster, element),
            cwd=wish.workdir,
            out=_filled(wish.out, element) if wish.out else os.devnull,
            err=_filled(wish.err, element) if wish.err else "",
            append=wish.append,
        )

    def _environment(self, cluster: Cluster, element: Element) -> dict[str, str]:
        job, wish = element.job, element.job.wish
        return {
            **wish.env,
            **job_environment(cluster, element),
            "PATH": wish.env.get("PATH", os.defpath),
            "LSB_JOBID": str(job.number),
            "LSB_JOBINDEX": str(element.index),
            "LSB_JOBNAME": name_of(element),
            "LSB_QUEUE": wish.partition,
            "LSB_HOSTS": " ".join([element.node] * wish.cpus),
            "LSB_DJOB_NUMPROC": str(wish.cpus),
            "LSB_RESTART": "Y" if element.restarts else "N",
            "LS_SUBCWD": wish.cwd,
        }

    def note(self, cluster: Cluster, element: Element, how: End) -> str:
        words = {
            End.TIMEOUT: "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
            End.OOM: "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
            End.CANCELLED: "TERM_OWNER: job killed by owner.",
        }
        return f"\n{words[how]}\n" if how in words else ""

    def ended(self, cluster: Cluster, element: Element) -> End | None:
        return None


def _filled(path: str, element: Element) -> str:
    return path.replace("%J", str(element.job.number)).replace("%I", str(element.index))


def _stopped(cluster: Cluster, element: Element) -> None:
    cluster.suspend(element)
    cluster.hold(element)


def _resumed(cluster: Cluster, element: Element) -> None:
    cluster.resume(element)
    cluster.release(element)


def _each(verb: Callable[[Cluster, Element], None], said: str) -> Command:
    """A command over ids, each answered by a line."""

    def command(cluster: Cluster, call: Call) -> Reply:
        out, err = "", ""
        words, skip = [], False
        for word in call.arguments:
            if skip or word.startswith("-"):
                skip = word in ("-s", "-J", "-u", "-q", "-m")
                continue
            words.append(word)
        for word, elements in found(cluster, words):
            live = [one for one in elements if one.live]
            for element in live:
                verb(cluster, element)
            if live:
                out += f"Job <{word}> {said}\n"
            elif elements:
                err += f"Job <{word}>: Job has already finished\n"
            else:
                err += f"Job <{word}>: No matching job found\n"
        return Reply(255 if err else 0, out, err)

    return command


def _bparams(cluster: Cluster, call: Call) -> Reply:
    site = cluster.site
    return Reply(
        out=f"Default Queues:  {site.partition}\n    MAX_JOB_ARRAY_SIZE = {site.array_bound}\n"
        f"    CLEAN_PERIOD = {int(site.kept)}\n"
    )


def _lsid(cluster: Cluster, call: Call) -> Reply:
    return Reply(
        out="IBM Spectrum LSF Standard 10.1.0.0\nMy cluster name is fake\n"
        f"My master name is {cluster.site.host}\n"
    )
