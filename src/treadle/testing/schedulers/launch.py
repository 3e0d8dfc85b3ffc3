"""Jobs are started, whatever the scheduler: scripts from a spool, outputs brought to their places."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from treadle.testing.schedulers import processes
from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.processes import MARK
from treadle.testing.schedulers.voice import Launch, Voice
from treadle.testing.schedulers.work import Element, End

_PLAIN = ("HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TMPDIR", "USER", "LOGNAME")


def job_environment(cluster: Cluster, element: Element) -> dict[str, str]:
    """What every job has: a login's variables, and the mark by which leftovers are found."""
    plain = {name: os.environ[name] for name in _PLAIN if name in os.environ}
    return {"PATH": os.defpath, "HOME": "/", **plain, MARK: cluster.site.folder}


def script_argv(element: Element) -> list[str]:
    """The spooled script under its own interpreter, or the shell that was asked for."""
    job = element.job
    if job.wish.shell:
        return [*job.wish.shell, job.script]
    return [job.script] if job.wish.script.startswith(b"#!") else ["/bin/sh", job.script]


class Spool:
    """The launcher: it keeps the scripts as they were submitted, and outputs until a job has ended."""

    def __init__(self, cluster: Cluster, voice: Voice) -> None:
        self._cluster = cluster
        self._voice = voice
        self._folder = os.path.join(cluster.site.folder, "spool")
        self._running: dict[Element, Launch] = {}
        self._simulator: Callable[[dict[str, object]], None] | None = None
        os.makedirs(self._folder, exist_ok=True)

    def start(self, element: Element) -> int:
        job = element.job
        if not job.script:
            path = os.path.join(self._folder, f"{job.number}.sh")
            with open(path, "wb") as file:
                file.write(job.wish.script)
            os.chmod(path, 0o700)
            job.script = path
        launch = self._voice.launch(self._cluster, element)
        self._running[element] = launch
        return processes.start(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            out=launch.out,
            err=launch.err,
            append=launch.append,
        )

    def note(self, element: Element, how: End) -> None:
        text = self._voice.note(self._cluster, element, how)
        launch = self._running.get(element)
        if text and launch and launch.out:
            try:
                with open(launch.out, "a") as file:
                    file.write(text)
            except OSError:
                pass

    def ended(self, element: Element) -> End | None:
        launch = self._running.pop(element, None)
        for source, target in launch.copies if launch else ():
            processes.copy_out(source, target)
            os.unlink(source)
        return self._voice.ended(self._cluster, element)

    def simulated(self, element: Element) -> None:
        """Call the site's own function in the place of the job."""
        site = self._cluster.site
        if not site.simulator:
            return
        if self._simulator is None:
            sys.path[:0] = site.path
            module, _, name = site.simulator.partition(":")
            self._simulator = getattr(importlib.import_module(module), name)
        wish = element.job.wish
        self._simulator(
            {
                "name": wish.name,
                "index": element.index,
                "script": wish.script.decode(errors="surrogateescape"),
                "workdir": wish.workdir,
                "env": self._voice.launch(self._cluster, element).env,
                "start": element.started,
                "end": self._cluster.clock.now(),
            }
        )
