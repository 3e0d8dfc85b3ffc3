"""`bsub` (by LSF's public manuals; none of it was recorded)."""

from __future__ import annotations

import os
import re

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import size
from treadle.testing.schedulers.options import OptionError, directives, indices, read
from treadle.testing.schedulers.voice import Call, StopError
from treadle.testing.schedulers.work import Wish

_VALUED = (
    "-J -Jd -n -R -W -We -wa -wt -M -q -P -o -oo -e -eo -w -gpu -app -g -m -env -cwd -sp -U -G -E -Ep "
    "-L -u -b -t -C -c -D -F -S -v -T -k -a -i -is -f -ti -sla -ext -network -jsdl -outdir -Zs -data"
)
_FLAGS = "-H -K -r -rn -N -B -x -I -Is -Ip -h -V"
SPEC = {**dict.fromkeys(_VALUED.split(), 1), **dict.fromkeys(_FLAGS.split(), 0)}
_NAME = re.compile(r"(.*?)(?:\[([\d,:-]+)\](?:%(\d+))?)?\Z", re.DOTALL)


def refusal(reason: str) -> StopError:
    return StopError(255, f"{reason}. Job not submitted.\n")


class Asked:
    """The command line and the directives of a script that came by standard input; the first wins."""

    def __init__(self, call: Call) -> None:
        try:
            found, words = read(call.arguments, SPEC, attached=False, mixed=False)
            self.words = words
            self.version = ("-V", ()) in found
            self.script = b"" if self.version else self._script(call)
            lines = [] if words else directives(self.script, "#BSUB", everywhere=True)
            written = read(lines, SPEC, attached=False)[0]
        except OptionError as error:
            raise refusal(f"{error}") from error
        self.values: dict[str, str] = {}
        self.requirements: list[str] = []
        for name, values in [*written, *found]:
            if name == "-R":
                self.requirements.append(values[0])
            self.values[name] = values[0] if values else ""

    def _script(self, call: Call) -> bytes:
        if self.words:
            return f"#!/bin/sh\n{' '.join(self.words)}\n".encode()
        return call.stdin

    def text(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)


def wish_of(cluster: Cluster, asked: Asked, call: Call) -> Wish:
    """The job that is asked for. Raises `StopError`, with the words of a refusal."""
    site = cluster.site
    queue = asked.text("-q")
    if queue and site.partitions and queue not in site.partitions:
        raise refusal(f"{queue}: No such queue")
    match = _NAME.match(asked.text("-J"))
    name, array, throttle = (match[1], match[2], match[3]) if match else ("", "", "")
    elements = _array(array, site.array_bound)
    workdir = os.path.join(call.cwd, asked.text("-cwd", call.cwd))
    first = asked.script.decode(errors="replace").splitlines()
    out = asked.text("-oo") or asked.text("-o")
    err = asked.text("-eo") or asked.text("-e")
    return Wish(
        name=name or " ".join(asked.words) or (first[0] if first else ""),
        script=asked.script,
        cwd=call.cwd,
        workdir=workdir,
        env=call.env,
        command=" ".join(asked.words),
        out=os.path.join(call.cwd, out) if out else "",
        err=os.path.join(call.cwd, err) if err else "",
        join=not err,
        append="-oo" not in asked.values,
        cpus=int(asked.text("-n", "1").split(",")[0]),
        memory=_memory(asked),
        limit=_limit(asked.text("-W")),
        partition=queue or site.partition,
        account=asked.text("-P", "default"),
        comment=asked.text("-Jd"),
        gpus=1 if "-gpu" in asked.values else 0,
        held="-H" in asked.values,
        requeue="-r" in asked.values,
        indices=elements,
        array=array or "",
        throttle=int(throttle or 0),
        after=_after(asked.text("-w")),
        exclude=frozenset(re.findall(r"hname!='([^']*)'", " ".join(asked.requirements))),
        signal=_signal(asked),
    )


def _array(text: str | None, bound: int) -> tuple[int, ...] | None:
    if not text:
        return None
    try:
        elements = indices(text)
    except ValueError as error:
        raise refusal("Bad job array index list") from error
    if len(elements) > bound:
        raise refusal("Job array index too large")
    return elements


def _memory(asked: Asked) -> int:
    """`-M`, in KB where it names no unit."""
    try:
        return size(asked.text("-M") or "0", 1024)
    except ValueError as error:
        raise refusal(f"{asked.text('-M')}: Illegal memory limit") from error


def _limit(text: str) -> float:
    """`[hours:]minutes`, with `/host` behind it."""
    parts = text.partition("/")[0].split(":")
    try:
        return (
            sum(int(part) * 60 ** (power + 1) for power, part in enumerate(reversed(parts))) if text else 0.0
        )
    except ValueError as error:
        raise refusal(f"{text}: Illegal run limit") from error


def _signal(asked: Asked) -> tuple[int, float]:
    """`-wa TERM -wt minutes`: a signal before the limit."""
    known = {"TERM": 15, "INT": 2, "USR1": 10, "USR2": 12}
    number = known.get(asked.text("-wa").removeprefix("SIG"), 0)
    return (number, _limit(asked.text("-wt"))) if number else (0, 0.0)


def _after(text: str) -> tuple[tuple[str, int], ...]:
    how = {"done": "afterok", "exit": "afternotok", "ended": "afterany", "started": "after"}
    return tuple(
        (how.get(word, "afterok"), int(number))
        for word, number in re.findall(r"(?:(\w+)\()?\"?(\d+)\"?\)?", text)
    )
