"""Grid Engine, played (recorded with Son of Grid Engine 8.1.9)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.launch import job_environment, script_argv
from treadle.testing.schedulers.options import indices
from treadle.testing.schedulers.sge_show import qacct, qstat
from treadle.testing.schedulers.sge_submit import Asked, refusal, wish_of
from treadle.testing.schedulers.voice import Call, Command, Launch, Reply, StopError, submit
from treadle.testing.schedulers.work import Element, End, Job, Stage

_RESCHEDULE = 99
_ERROR = 100
_SEND = 'unable to send message to qmaster using port 6444 on host "localhost": got send error'
_COMMLIB = "error: commlib error: got select error (Connection refused)"


class SgeVoice:
    """The words of Grid Engine: what has ended is gone from the queue at once."""

    def __init__(self) -> None:
        self._user = "user"

    @property
    def commands(self) -> Mapping[str, Command]:
        return {
            "qsub": self._qsub,
            "qstat": qstat,
            "qacct": qacct,
            "qdel": self._qdel,
            "qhold": self._qhold,
            "qrls": self._qhold,
            "qmod": self._qmod,
            "qconf": _qconf,
        }

    def _qsub(self, cluster: Cluster, call: Call) -> Reply:
        self._user = cluster.site.user
        asked = Asked(call)
        if "-help" in asked.values:
            return Reply(out="SGE 8.1.9\nusage: qsub [options]\n")
        wish = wish_of(cluster, asked, call)
        call.arguments = ["-terse"] if "-terse" in asked.values else []
        return submit(self, cluster, wish, call)

    def accepted(self, job: Job, call: Call) -> Reply:
        number, tasks = str(job.number), list(job.elements)
        if job.is_array:
            step = tasks[1] - tasks[0] if len(tasks) > 1 else 1
            number += f".{tasks[0]}-{tasks[-1]}:{step}"
        if call.arguments:
            return Reply(out=f"{number}\n")
        kind = "job-array" if job.is_array else "job"
        return Reply(out=f'Your {kind} {number} ("{job.wish.name}") has been submitted\n')

    def refused(self, words: str) -> Reply:
        return refusal(words or "job rejected").reply

    def limited(self) -> Reply:
        return refusal(
            f'job rejected: only 10 jobs are allowed per user (current job count: 10) "{self._user}"'
        ).reply

    def unanswered(self) -> Reply:
        return refusal("Error reading answer list from qmaster").reply

    def down(self, call: Call) -> Reply | None:
        match call.program:
            case "qacct":
                return None
            case "qsub":
                return Reply(1, err=f"{_COMMLIB}\nUnable to run job: {_SEND}\nExiting.\n")
            case "qdel":
                return Reply(1, out=f"{_SEND}\n", err=f"{_COMMLIB}\n")
            case "qstat":
                return Reply(1, err=f"{_COMMLIB}\nerror: {_SEND}\n")
            case _:
                return Reply(1, err=f"{_COMMLIB}\n{_SEND}\n")

    def _qdel(self, cluster: Cluster, call: Call) -> Reply:
        words = [word for word in call.arguments if not word.startswith("-")]
        force = "-f" in call.arguments
        tasks = call.arguments[call.arguments.index("-t") + 1] if "-t" in call.arguments else ""
        if tasks:
            words.remove(tasks)
        lines, code = [], 0
        for word in (part for text in words for part in text.split(",")):
            number, _, own = word.partition(".")
            said, well = self._delete(cluster, number, own or tasks, force)
            lines.append(said)
            code = code if well else 1
        return Reply(code, "".join(f"{line}\n" for line in lines))

    def _delete(self, cluster: Cluster, number: str, tasks: str, force: bool) -> tuple[str, bool]:
        user = cluster.site.user
        if not number.isdigit():
            return f"The job {number} of user(s) {user} does not exist", False
        job = cluster.jobs.get(int(number))
        live = [one for one in job if one.live and one.known] if job else []
        if not live:
            return f'denied: job "{number}" does not exist', False
        if tasks:
            wanted = set(indices(tasks))
            live = [one for one in live if one.index in wanted]
            if not live:
                return f'job "{number}" task "{tasks}" does not exist', False
        running = any(one.stage is not Stage.PENDING for one in live)
        cluster.cancel(live)
        name = f"job-array task {number}.{tasks}" if tasks else f"job {number}"
        if force:
            return f"{user} forced the deletion of {name}", True
        return f"{user} has {'registered the ' if running else 'deleted '}{name}" + (
            " for deletion" if running else ""
        ), True

    def _qhold(self, cluster: Cluster, call: Call) -> Reply:
        verb = cluster.hold if call.program == "qhold" else cluster.release
        lines, code = [], 0
        for word in [word for word in call.arguments if re.fullmatch(r"[\d.,]+", word)]:
            job = cluster.jobs.get(int(word.partition(".")[0]))
            live = [one for one in job if one.live] if job else []
            for element in live:
                verb(element)
            lines.append(f"modified hold of job {word}" if live else f'denied: job "{word}" does not exist')
            code = code if live else 3
        return Reply(code, "".join(f"{line}\n" for line in lines))

    def _qmod(self, cluster: Cluster, call: Call) -> Reply:
        """`-cj` exits 1 though it does what it is asked for."""
        verb, words = call.arguments[0], call.arguments[1:]
        lines, code = [], 0
        for word in words:
            job = cluster.jobs.get(int(word)) if word.isdigit() else None
            live = [one for one in job if one.live] if job else []
            if not live:
                lines.append(f'invalid queue or job "{word}"')
                code = 1
                continue
            said, code = _modify(cluster, verb, live, word)
            lines.append(said)
        return Reply(code, "".join(f"{line}\n" for line in lines))

    def launch(self, cluster: Cluster, element: Element) -> Launch:
        wish = element.job.wish
        argv = script_argv(element) if wish.shell else ["/bin/sh", element.job.script]
        out = self._place(wish.out, "o", element)
        return Launch(
            argv=argv,
            env=self._environment(cluster, element),
            cwd=wish.workdir,
            out=out,
            err="" if wish.join else self._place(wish.err, "e", element),
            append=True,
        )

    def _place(self, asked: str, letter: str, element: Element) -> str:
        job, wish = element.job, element.job.wish
        task = str(element.index) if job.is_array else "undefined"
        values = {"JOB_ID": str(job.number), "TASK_ID": task, "JOB_NAME": wish.name, "USER": job.user}
        path = re.sub(r"\$(JOB_ID|TASK_ID|JOB_NAME|USER)", lambda found: values[found[1]], asked)
        default = f"{wish.name}.{letter}{job.number}" + (f".{task}" if job.is_array else "")
        path = path or os.path.join(wish.workdir, default)
        return os.path.join(path, default) if os.path.isdir(path) else path

    def _environment(self, cluster: Cluster, element: Element) -> dict[str, str]:
        job, wish = element.job, element.job.wish
        tasks = list(job.elements) if job.is_array else []
        step = tasks[1] - tasks[0] if len(tasks) > 1 else 1
        return {
            **job_environment(cluster, element),
            **wish.env,
            "JOB_ID": str(job.number),
            "JOB_NAME": wish.name,
            "NSLOTS": str(wish.cpus),
            "NHOSTS": "1",
            "QUEUE": wish.partition,
            "REQUEST": wish.name,
            "RESTARTED": "1" if element.restarts else "0",
            "SGE_TASK_ID": str(element.index) if tasks else "undefined",
            "SGE_TASK_FIRST": str(tasks[0]) if tasks else "undefined",
            "SGE_TASK_LAST": str(tasks[-1]) if tasks else "undefined",
            "SGE_TASK_STEPSIZE": str(step) if tasks else "undefined",
        }

    def note(self, cluster: Cluster, element: Element, how: End) -> str:
        return ""

    def ended(self, cluster: Cluster, element: Element) -> End | None:
        """Two exit codes are orders: 99 to run again, 100 to wait in an error state."""
        if element.ending or element.code not in (_RESCHEDULE, _ERROR):
            return None
        if element.code == _ERROR:
            element.held, element.error = True, "application error returned"
        return End.REQUEUED


def _modify(cluster: Cluster, verb: str, live: list[Element], word: str) -> tuple[str, int]:
    user = cluster.site.user
    match verb:
        case "-cj":
            for element in live:
                cluster.release(element)
            return f"{user}@localhost cleared error state of job {word}", 1
        case "-rj":
            for element in live:
                cluster.stop(element, End.REQUEUED)
            return f"Pushed rescheduling of job {word} on host localhost", 0
        case "-sj":
            for element in live:
                cluster.suspend(element)
            return f"{user} - suspended job {word}", 0
        case "-usj":
            for element in live:
                cluster.resume(element)
            return f"{user} - unsuspended job {word}", 0
        case _:
            raise StopError(1, f'error: ERROR! invalid option argument "{verb}"\n')


def _qconf(cluster: Cluster, call: Call) -> Reply:
    site = cluster.site
    match call.arguments:
        case ["-sconf", *_]:
            return Reply(
                out=f"#global:\nmax_aj_tasks                 {site.array_bound}\n"
                f"max_u_jobs                   {site.max_submitted}\nmax_jobs                     0\n"
            )
        case ["-sql"]:
            return Reply(out="".join(f"{name}\n" for name in site.partitions or (site.partition,)))
        case ["-spl"]:
            return Reply(out="make\nsmp\n")
        case _:
            return Reply(out="")
