"""`qsub` of PBS: OpenPBS and PBS Pro, and Torque."""

from __future__ import annotations

import os
import re
import shlex

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import clock_seconds, size
from treadle.testing.schedulers.options import OptionError, directives, indices, read
from treadle.testing.schedulers.voice import Call, StopError
from treadle.testing.schedulers.work import Wish

_VALUED = "aAceEjJkKlmMNopPqrRSuvWCdwtZ"
_FLAGS = "VhzfIXx"
_KNOWN = frozenset(
    [
        "ncpus",
        "mem",
        "vmem",
        "pmem",
        "pvmem",
        "walltime",
        "cput",
        "pcput",
        "select",
        "place",
        "nodes",
        "ngpus",
        "gpus",
        "mpiprocs",
        "ompthreads",
        "host",
        "vnode",
        "file",
        "procs",
        "nice",
        "software",
        "arch",
        "qos",
        "feature",
        "naccesspolicy",
        "nodect",
    ]
)


class Asked:
    """The command line and the script's directives together; the command line wins."""

    def __init__(self, call: Call, torque: bool) -> None:
        spec = {**{f"-{letter}": 1 for letter in _VALUED}, **{f"-{letter}": 0 for letter in _FLAGS}}
        if not torque:
            spec.pop("-t")
        else:
            spec.pop("-J")
        spec["--version"] = 0
        command = call.arguments[call.arguments.index("--") + 1 :] if "--" in call.arguments else []
        before = call.arguments[: len(call.arguments) - len(command)]
        try:
            found, words = read([word for word in before if word != "--"], spec, mixed=False)
        except OptionError as error:
            raise StopError(2, f"qsub: {error}\nusage: qsub [-a date_time] [-A account_string]\n") from error
        self.values: dict[str, str] = {}
        self.resources: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.words = words
        self.version = ("--version", ()) in found
        self.script = b"" if self.version else _script(words, command, call)
        self.command = command
        try:
            written = read(directives(self.script, "#PBS"), spec)[0]
        except OptionError as error:
            raise StopError(2, f"qsub: directive error: {error}\n") from error
        for name, values in [*written, *found]:
            value = values[0] if values else ""
            if name == "-l":
                self.resources |= dict(_pairs(value))
            elif name == "-W":
                self.attributes |= dict(_pairs(value))
            else:
                self.values[name] = value

    def text(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    return [(name, value) for name, _, value in pairs]


def _script(words: list[str], command: list[str], call: Call) -> bytes:
    if command:
        return f"#!/bin/sh\nexec {shlex.join(command)}\n".encode()
    if not words:
        return call.stdin
    try:
        with open(os.path.join(call.cwd, words[0]), "rb") as file:
            return file.read()
    except OSError as error:
        raise StopError(1, f"qsub: script file:: {error.strerror}\n") from error


def wish_of(cluster: Cluster, asked: Asked, call: Call, torque: bool) -> Wish:
    """The job that is asked for. Raises `StopError`, with the words of a refusal."""
    site = cluster.site
    queue = asked.text("-q").partition("@")[0]
    if queue and site.partitions and queue not in site.partitions:
        raise StopError(170, "qsub: Unknown queue\n")
    default = "STDIN" if not asked.words else os.path.basename(asked.words[0])
    name = asked.text("-N") or default[:15]
    if re.search(r"\s", name):
        raise StopError(2, "qsub: illegal -N value\nusage: qsub [-a date_time] [-A account_string]\n")
    elements, throttle = _array(asked, site.array_bound, torque)
    cpus, memory, gpus = _chunk(asked, torque)
    shell = asked.text("-S").split(",")[0].partition("@")[0]
    return Wish(
        name=name,
        script=asked.script,
        cwd=call.cwd,
        workdir=os.path.expanduser("~"),
        env=_environment(asked, call, torque),
        arguments=" ".join(call.arguments),
        shell=(shell,) if shell else (),
        out=_path(asked.text("-o"), call.cwd),
        err=_path(asked.text("-e"), call.cwd),
        join=asked.text("-j", "n") in ("oe", "eo"),
        cpus=cpus,
        memory=memory,
        gpus=gpus,
        limit=_limit(asked.resources.get("walltime", "")),
        partition=queue or site.partition,
        account=asked.text("-A"),
        held="-h" in asked.values,
        requeue=asked.text("-r", "y") != "n",
        indices=elements,
        array=(asked.text("-t" if torque else "-J")).partition("%")[0],
        throttle=throttle,
        after=_after(asked.attributes.get("depend", "")),
        select=asked.resources.get("select", "") or f"1:ncpus={cpus}",
    )


def _array(asked: Asked, bound: int, torque: bool) -> tuple[tuple[int, ...] | None, int]:
    text, _, throttle = asked.text("-t" if torque else "-J").partition("%")
    if not text:
        return None, 0
    try:
        elements = indices(text)
        if (not torque and len(elements) < 1 + (":" not in text)) or len(elements) > bound:
            raise ValueError(text)
    except ValueError as error:
        raise StopError(
            2, "qsub: illegal -J value\n" if not torque else "qsub: Bad Job Array Request\n"
        ) from error
    return elements, int(throttle or 0)


def _chunk(asked: Asked, torque: bool) -> tuple[int, int, int]:
    """CPUs, bytes and GPUs of a job: of `select`, or of the older single resources."""
    resources = dict(asked.resources)
    if "select" in resources:
        count, _, rest = resources["select"].partition(":")
        many = int(count) if count.isdigit() else 1
        parts = dict(_pairs(rest.replace(":", ",")))
    else:
        many, parts = 1, resources
        for part in resources.get("nodes", "").split(":"):
            key, _, value = part.partition("=")
            parts = {
                **parts,
                **({"ncpus": value} if key == "ppn" else {"ngpus": value} if key == "gpus" else {}),
            }
    for name in [*asked.resources, *(parts if "select" in resources else ())]:
        if name not in _KNOWN:
            raise StopError(187, f"qsub: Unknown resource: {name}\n")
    try:
        memory = size(parts.get("mem", "0"))
        return int(parts.get("ncpus", "1")) * many, memory * many, int(parts.get("ngpus", "0"))
    except ValueError as error:
        raise StopError(166, "qsub: Illegal attribute or resource value Resource_List.mem\n") from error


def _limit(text: str) -> float:
    try:
        return clock_seconds(text) if text else 0.0
    except ValueError as error:
        raise StopError(166, "qsub: Illegal attribute or resource value Resource_List.walltime\n") from error


def _path(text: str, cwd: str) -> str:
    """`host:/path`, relative to where it was submitted."""
    return os.path.join(cwd, re.sub(r"\A[\w.-]*:", "", text)) if text else ""


def _after(text: str) -> tuple[tuple[str, int], ...]:
    how, _, rest = text.partition(":")
    found = [re.match(r"\d+", word) for word in rest.split(":")]
    return tuple((how, int(match[0])) for match in found if match)


def _environment(asked: Asked, call: Call, torque: bool) -> dict[str, str]:
    """What the job gets of the submission's variables: all with -V, those named with -v."""
    env = dict(call.env) if "-V" in asked.values else {}
    for name, value in _pairs(asked.text("-v")):
        env[name] = value or call.env.get(name, "")
    for name in ("HOME", "LANG", "PATH", "SHELL"):
        if name in call.env:
            env[f"PBS_O_{name}"] = call.env[name]
    return {**env, "PBS_O_WORKDIR": call.cwd, "PBS_O_HOST": "localhost"}
