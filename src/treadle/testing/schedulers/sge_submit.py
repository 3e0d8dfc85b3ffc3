"""`qsub` of Grid Engine."""

from __future__ import annotations

import os
import re

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import clock_seconds, size
from treadle.testing.schedulers.options import OptionError, directives, indices, read
from treadle.testing.schedulers.voice import Call, StopError
from treadle.testing.schedulers.work import Wish

_VALUED = (
    "-a -A -ar -b -binding -c -ckpt -dc -e -hold_jid -hold_jid_ad -i -j -jc -js -l -m -M -masterq -mods -N "
    "-o -P -p -q -r -S -shell -sync -t -tc -v -w -wd -ac -sc -now"
)
_FLAGS = "-cwd -h -hard -soft -notify -R -terse -V -verify -help"
SPEC = {**dict.fromkeys(_VALUED.split(), 1), **dict.fromkeys(_FLAGS.split(), 0), "-pe": 2}
_KNOWN = frozenset(
    [
        "h_rt",
        "s_rt",
        "h_vmem",
        "s_vmem",
        "mem_free",
        "virtual_free",
        "mem",
        "m_mem_free",
        "h_rss",
        "gpu",
        "gpus",
        "ngpus",
        "hostname",
        "h",
        "arch",
        "qname",
        "q",
        "h_cpu",
        "h_fsize",
        "h_data",
        "h_stack",
        "num_proc",
        "tmp_free",
        "exclusive",
        "slots",
    ]
)


def refusal(reason: str) -> StopError:
    return StopError(1, f"Unable to run job: {reason}\nExiting.\n")


class Asked:
    """The command line and the script's directives together; the command line wins."""

    def __init__(self, call: Call) -> None:
        arguments = [word for word in call.arguments if word != "-@"]
        try:
            found, words = read(arguments, SPEC, attached=False, mixed=False)
        except OptionError as error:
            raise refusal(str(error)) from error
        self.values: dict[str, str] = {}
        self.resources: dict[str, str] = {}
        self.slots = 1
        self.environment = ""
        self.words = words
        said = dict(found)
        self.binary = (said.get("-b") or ("n",))[0][:1] == "y"
        self.script = b"" if "-help" in said else self._script(call)
        written = [] if self.binary else directives(self.script, "#$", everywhere=True)
        try:
            before = read(written, SPEC, attached=False)[0]
        except OptionError as error:
            raise refusal(str(error)) from error
        for name, values in [*before, *found]:
            self._take(name, values)

    def _script(self, call: Call) -> bytes:
        if self.binary:
            return f"#!/bin/sh\nexec {' '.join(self.words)}\n".encode()
        if not self.words:
            return call.stdin
        try:
            with open(os.path.join(call.cwd, self.words[0]), "rb") as file:
                return file.read()
        except OSError as error:
            reason = f"error opening {self.words[0]}: {error.strerror}"
            raise StopError(14, f"Unable to read script file because of error: {reason}\n") from error

    def _take(self, name: str, values: tuple[str, ...]) -> None:
        match name:
            case "-l":
                for part in values[0].split(","):
                    key, _, value = part.partition("=")
                    if key not in _KNOWN:
                        raise refusal(f'unknown resource "{key}"')
                    self.resources[key] = value
            case "-pe":
                if values[0] not in ("smp", "threads", "openmp", "make", "mpi"):
                    text = f'job rejected: the requested parallel environment "{values[0]}" does not exist'
                    raise refusal(text)
                self.slots = int(values[1].partition("-")[0])
                self.environment = values[0]
            case _:
                self.values[name] = values[0] if values else ""

    def text(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)


def wish_of(cluster: Cluster, asked: Asked, call: Call) -> Wish:
    """The job that is asked for. Raises `StopError`, with the words of a refusal."""
    site = cluster.site
    queue = asked.text("-q").partition("@")[0]
    if queue and site.partitions and queue not in site.partitions:
        raise refusal(f'Job was rejected because job requests unknown queue "{queue}"')
    default = os.path.basename(asked.words[0].split()[0]) if asked.words else "STDIN"
    name = asked.text("-N") or default
    if name[:1].isdigit():
        raise refusal(f'denied: "{name}" is not a valid object name (cannot start with a digit)')
    if asked.text("-w") == "e" and asked.slots > site.slots:
        raise refusal("error: no suitable queues")
    home = os.path.expanduser("~")
    workdir = asked.text("-wd") or (call.cwd if "-cwd" in asked.values else home)
    shell = asked.text("-S").partition(":")[2] if ":" in asked.text("-S") else asked.text("-S")
    memory = _size(asked.resources) * asked.slots
    return Wish(
        name=name,
        script=asked.script,
        cwd=call.cwd,
        workdir=os.path.join(call.cwd, workdir),
        env=_environment(asked, call),
        arguments=_category(asked),
        command=" ".join(asked.words),
        shell=(shell,) if shell and not asked.binary else (),
        out=_path(asked.text("-o"), call.cwd),
        err=_path(asked.text("-e"), call.cwd),
        join=asked.text("-j", "n")[:1] == "y",
        append=True,
        cpus=asked.slots,
        memory=memory,
        limit=_limit(asked.resources.get("h_rt", "")),
        partition=queue or site.partition,
        account=asked.text("-P"),
        held="-h" in asked.values,
        requeue=asked.text("-r", "n")[:1] == "y",
        indices=_array(asked.text("-t"), site.array_bound),
        array=asked.text("-t"),
        throttle=int(asked.text("-tc", "0")),
        after=_after(cluster, asked.text("-hold_jid")),
        select=asked.environment,
    )


def _size(resources: dict[str, str]) -> int:
    text = next((resources[name] for name in ("h_vmem", "mem_free", "m_mem_free") if name in resources), "0")
    try:
        return size(text)
    except ValueError as error:
        raise refusal('attribute "h_vmem" is not a memory value') from error


def _limit(text: str) -> float:
    try:
        return clock_seconds(text) if text else 0.0
    except ValueError as error:
        raise refusal('attribute "h_rt" is not a time value') from error


def _array(text: str, bound: int) -> tuple[int, ...] | None:
    if not text:
        return None
    try:
        elements = indices(text)
    except ValueError as error:
        raise refusal(f'invalid task range "{text}"') from error
    if len(elements) > bound:
        raise refusal(f"job rejected: you can not submit an array with more than {bound} tasks")
    return elements


def _category(asked: Asked) -> str:
    """What accounting calls the category: the requests in words."""
    asked_for = ",".join(f"{name}={value}" for name, value in sorted(asked.resources.items()))
    parts = [f"-l {asked_for}"] if asked_for else []
    if asked.environment:
        parts.append(f"-pe {asked.environment} {asked.slots}")
    return " ".join(parts) or "NONE"


def _path(text: str, cwd: str) -> str:
    """`host:/path`; one that ends as a folder stays one."""
    return os.path.join(cwd, re.sub(r"\A[\w.-]*:", "", text)) if text else ""


def _after(cluster: Cluster, text: str) -> tuple[tuple[str, int], ...]:
    """Jobs by number or by name; it is enough that they end."""
    found = []
    for word in filter(None, text.split(",")):
        if word.isdigit():
            found.append(("afterany", int(word)))
        else:
            found += [("afterany", job.number) for job in cluster.jobs.values() if job.wish.name == word]
    return tuple(found)


def _environment(asked: Asked, call: Call) -> dict[str, str]:
    env = dict(call.env) if "-V" in asked.values else {}
    for part in filter(None, asked.text("-v").split(",")):
        name, equals, value = part.partition("=")
        env[name] = value if equals else call.env.get(name, "")
    return {**env, "SGE_O_WORKDIR": call.cwd, "SGE_O_HOST": "localhost"}
