"""PBS, played: OpenPBS and PBS Pro (recorded with 23.06.06), and Torque (by its manuals)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.launch import job_environment, script_argv
from treadle.testing.schedulers.pbs_show import VERSION, pbsnodes, qselect, qstat, tracejob
from treadle.testing.schedulers.pbs_submit import Asked, wish_of
from treadle.testing.schedulers.pbs_words import array_id, found, id_of
from treadle.testing.schedulers.voice import Call, Command, Launch, Reply, StopError, submit
from treadle.testing.schedulers.work import Element, End, Job


class PbsVoice:
    """The words of PBS; an array's elements have the array's number."""

    def __init__(self, torque: bool) -> None:
        self._torque = torque
        self._host = "localhost"

    @property
    def commands(self) -> Mapping[str, Command]:
        return {
            "qsub": self._qsub,
            "qstat": qstat,
            "qselect": qselect,
            "tracejob": tracejob,
            "pbsnodes": pbsnodes,
            "qdel": self._qdel,
            "qhold": self._each(Cluster.hold),
            "qrls": self._each(Cluster.release),
            "qrerun": self._each(lambda cluster, one: cluster.stop(one, End.REQUEUED)),
            "qsig": self._qsig,
        }

    def _qsub(self, cluster: Cluster, call: Call) -> Reply:
        self._host = cluster.site.host
        asked = Asked(call, self._torque)
        if asked.version:
            return Reply(out=f"pbs_version = {VERSION}\n")
        return submit(self, cluster, wish_of(cluster, asked, call, self._torque), call)

    def accepted(self, job: Job, call: Call) -> Reply:
        return Reply(out=f"{job.number}{'[]' if job.is_array else ''}.{self._host}\n")

    def refused(self, words: str) -> Reply:
        return Reply(166, err=f"qsub: {words or 'Job violates queue and/or server resource limits'}\n")

    def limited(self) -> Reply:
        if self._torque:
            return Reply(171, err="qsub: Maximum number of jobs already in queue for user\n")
        return Reply(38, err="qsub: would exceed limit on number of jobs for user in server\n")

    def unanswered(self) -> Reply:
        return Reply(162, err="qsub: End of File\n")

    def down(self, call: Call) -> Reply | None:
        lost = f"cannot connect to server {self._host} (errno=15010)"
        match call.program:
            case "tracejob":
                return None
            case "qdel":
                return Reply(162, err=f"Connection refused\nCouldn't connect to cluster: {self._host}\n")
            case "qsub":
                return Reply(162, err=f"Connection refused\nqsub: {lost}\n")
            case program:
                return Reply(255, err=f"Connection refused\n{program}: {lost}\n")

    def _chosen(self, cluster: Cluster, call: Call, word: str) -> list[Element]:
        """The elements that an id names, of those that have not ended. Raises `StopError`."""
        full = word if "." in word else f"{word}.{cluster.site.host}"
        try:
            hit = found(cluster, word)
        except ValueError as error:
            raise StopError(1, f"{call.program}: illegally formed job identifier: {word}\n") from error
        if hit is None:
            known = word.partition("[")[0]
            if "[" in word and known.isdigit() and int(known) in cluster.jobs:
                raise StopError(156, f"{call.program}: Invalid request {full}\n")
            raise StopError(153, f"{call.program}: Unknown Job Id {full}\n")
        elements = [one for one in (hit[1] or hit[0]) if one.live]
        if not elements:
            raise StopError(35, f"{call.program}: Job has finished {full}\n")
        return elements

    def _each(self, verb: Callable[[Cluster, Element], None], skip: int = 0) -> Command:
        def command(cluster: Cluster, call: Call) -> Reply:
            code, err = 0, ""
            for word in [word for word in call.arguments[skip:] if not word.startswith("-")]:
                try:
                    for element in self._chosen(cluster, call, word):
                        verb(cluster, element)
                except StopError as stop:
                    code, err = stop.reply.code, err + stop.reply.err
            return Reply(code, err=err)

        return command

    def _qdel(self, cluster: Cluster, call: Call) -> Reply:
        skip = 2 if call.arguments[:1] == ["-W"] else 0
        return self._each(lambda cluster, one: cluster.cancel([one]), skip)(cluster, call)

    def _qsig(self, cluster: Cluster, call: Call) -> Reply:
        asked = call.arguments[1] if call.arguments[:1] == ["-s"] else ""
        verb = {"suspend": Cluster.suspend, "resume": Cluster.resume}.get(asked)
        if verb is None:
            raise StopError(1, "qsig: unknown signal\n")
        return self._each(verb, 2)(cluster, call)

    def launch(self, cluster: Cluster, element: Element) -> Launch:
        job, wish = element.job, element.job.wish
        spool = os.path.join(cluster.site.folder, "spool", f"{job.number}.{element.index}")
        argv = script_argv(element) if wish.shell else ["/bin/sh", job.script]
        if not wish.shell and wish.script.startswith(b"#!"):
            argv = [job.script]
        copies = [(f"{spool}.OU", self._place(wish.out, "o", element))]
        if not wish.join:
            copies.append((f"{spool}.ER", self._place(wish.err, "e", element)))
        home = wish.workdir if os.path.isdir(wish.workdir) else "/"
        return Launch(
            argv=argv,
            env=self._environment(cluster, element),
            cwd=home,
            out=f"{spool}.OU",
            err="" if wish.join else f"{spool}.ER",
            copies=tuple(copies),
        )

    def _place(self, asked: str, letter: str, element: Element) -> str:
        """Where an output goes; Torque adds the index to whatever path was asked for."""
        job, wish = element.job, element.job.wish
        default = f"{wish.name}.{letter}{job.number}"
        path = asked or os.path.join(wish.cwd, default)
        if os.path.isdir(path):
            path = os.path.join(path, default)
        if not job.is_array:
            return path
        if self._torque:
            return f"{path}-{element.index}"
        filled = path.replace("^array_index^", str(element.index))
        return filled if filled != path or asked else f"{path}.{element.index}"

    def _environment(self, cluster: Cluster, element: Element) -> dict[str, str]:
        job, wish = element.job, element.job.wish
        env = {
            **job_environment(cluster, element),
            **wish.env,
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_JOBID": id_of(cluster, element),
            "PBS_JOBNAME": wish.name,
            "PBS_QUEUE": wish.partition,
            "PBS_NODENUM": "0",
            "NCPUS": str(wish.cpus),
        }
        if job.is_array and self._torque:
            env["PBS_ARRAYID"] = str(element.index)
        elif job.is_array:
            env |= {"PBS_ARRAY_INDEX": str(element.index), "PBS_ARRAY_ID": array_id(cluster, job)}
        return env

    def note(self, cluster: Cluster, element: Element, how: End) -> str:
        wish = element.job.wish
        ran = int(cluster.clock.now() - element.started)
        if how is End.TIMEOUT:
            return f"=>> PBS: job killed: walltime {ran} exceeded limit {int(wish.limit)}\n"
        if how is End.OOM:
            used = max(element.peak, wish.memory + 1024) >> 10
            return f"=>> PBS: job killed: mem {used}kb exceeded limit {wish.memory >> 10}kb\n"
        return ""

    def ended(self, cluster: Cluster, element: Element) -> End | None:
        return None
