"""`sbatch`."""

from __future__ import annotations

import os
import re
import shlex

from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.figures import clock_seconds, size
from treadle.testing.schedulers.options import OptionError, directives, indices, read
from treadle.testing.schedulers.voice import Call, StopError
from treadle.testing.schedulers.work import Wish

# The long name of every option that takes a value, and its letter.
_VALUED = (
    "account:A array:a begin:b bell chdir:D clusters:M comment constraint:C container-image core-spec:S "
    "cpu-freq cpus-per-gpu cpus-per-task:c deadline delay-boot dependency:d error:e exclude:x export "
    "export-file extra-node-info:B gid gpu-bind gpu-freq gpus:G gpus-per-node gpus-per-socket gpus-per-task "
    "gres gres-flags hint input:i job-name:J licenses:L mail-type mail-user mem mem-bind mem-per-cpu "
    "mem-per-gpu mincpus network nodefile:F nodelist:w nodes:N ntasks:n ntasks-per-core ntasks-per-node "
    "ntasks-per-socket open-mode output:o partition:p prefer priority qos:q reservation signal "
    "sockets-per-node switches threads-per-core time:t time-min tmp uid wait-all-nodes wckey wrap"
)
_FLAGS = (
    "contiguous exclusive get-user-env hold:H ignore-pbs kill-on-invalid-dep no-kill:k no-requeue "
    "overcommit:O oversubscribe:s parsable quiet:Q reboot requeue spread-job test-only use-min-nodes "
    "verbose:v wait:W version:V"
)


def _spec() -> tuple[dict[str, int], dict[str, str]]:
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for words, count in ((_VALUED, 1), (_FLAGS, 0)):
        for word in words.split():
            name, _, letter = word.partition(":")
            for option in (f"--{name}", f"-{letter}" if letter else ""):
                if option:
                    counts[option] = count
                    names[option] = name
    return counts, names


SPEC, NAMES = _spec()


class Asked:
    """What the command line, the environment and the script's directives say together, in that order."""

    def __init__(self, call: Call) -> None:
        try:
            found, words = read(call.arguments, SPEC, mixed=False)
        except OptionError as error:
            raise StopError(1, f'sbatch: {error}\nTry "sbatch --help" for more information\n') from error
        self.options = {NAMES[name]: (values or ("",))[0] for name, values in found}
        self.words = words
        self.script = b"" if self.flag("version") else _script(self, call)
        lines = directives(self.script, "#SBATCH") if "wrap" not in self.options else []
        try:
            written = {NAMES[name]: (values or ("",))[0] for name, values in read(lines, SPEC)[0]}
        except OptionError as error:
            raise StopError(1, f'sbatch: {error}\nTry "sbatch --help" for more information\n') from error
        for name in NAMES.values():  # the last of a pair of flags counts
            variable = f"SBATCH_{name.upper().replace('-', '_')}"
            if name not in self.options and call.env.get(variable):
                self.options[name] = call.env[variable]
        if "no-requeue" in self.options or "requeue" in self.options:
            written.pop("requeue", None)
            written.pop("no-requeue", None)
        self.options = {**written, **self.options}

    def flag(self, name: str) -> bool:
        return name in self.options

    def text(self, name: str, default: str = "") -> str:
        return self.options.get(name, default)


def _script(asked: Asked, call: Call) -> bytes:
    if "wrap" in asked.options:
        return f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{asked.options['wrap']}\n".encode()
    if not asked.words:
        script = call.stdin
    else:
        try:
            with open(os.path.join(call.cwd, asked.words[0]), "rb") as file:
                script = file.read()
        except OSError as error:
            raise StopError(1, f"sbatch: error: Unable to open file {asked.words[0]}\n") from error
    if not script.startswith(b"#!"):
        raise StopError(
            1,
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh\n",
        )
    return script


def failed(reason: str, before: str = "") -> StopError:
    return StopError(1, f"{before}sbatch: error: Batch job submission failed: {reason}\n")


def wish_of(cluster: Cluster, asked: Asked, call: Call) -> Wish:
    """The job that is asked for. Raises `StopError`, with the words of a refusal."""
    site = cluster.site
    partition = asked.text("partition")
    if partition and site.partitions and partition not in site.partitions:
        raise failed(
            "Invalid partition name specified", f"sbatch: error: invalid partition specified: {partition}\n"
        )
    elements, throttle = _array(asked, site.array_bound)
    workdir = os.path.join(call.cwd, asked.text("chdir", call.cwd))
    cpus = _number(asked, "cpus-per-task", 1) * max(
        _number(asked, "ntasks", 1), _number(asked, "ntasks-per-node", 1)
    )
    name = "wrap" if asked.flag("wrap") else os.path.basename(asked.words[0]) if asked.words else "sbatch"
    default = "slurm-%j.out" if elements is None else "slurm-%A_%a.out"
    return Wish(
        name=asked.text("job-name") or name,
        script=asked.script,
        cwd=call.cwd,
        workdir=workdir,
        env=call.env,
        arguments=shlex.join(call.arguments),
        command="" if asked.flag("wrap") else " ".join(asked.words),
        out=os.path.join(workdir, asked.text("output") or default),
        err=os.path.join(workdir, asked.text("error")) if asked.text("error") else "",
        append=asked.text("open-mode") == "append",
        cpus=cpus,
        memory=_memory(cluster, asked, cpus),
        limit=_limit(asked),
        partition=partition or site.partition,
        account=asked.text("account"),
        qos=asked.text("qos", "normal"),
        comment=asked.text("comment"),
        gpus=_gpus(asked.text("gres") or asked.text("gpus")),
        held=asked.flag("hold"),
        requeue=not asked.flag("no-requeue"),
        indices=elements,
        throttle=throttle,
        begin=_begin(asked, cluster.clock.now()),
        after=_after(asked.text("dependency")),
        exclude=frozenset(filter(None, asked.text("exclude").split(","))),
        signal=_signal(asked.text("signal")),
    )


def _array(asked: Asked, bound: int) -> tuple[tuple[int, ...] | None, int]:
    if not asked.flag("array"):
        return None, 0
    text, _, throttle = asked.text("array").partition("%")
    try:
        elements = indices(text)
        if max(elements) >= bound:
            raise ValueError(text)
        return elements, int(throttle or 0)
    except ValueError as error:
        raise failed("Invalid job array specification") from error


def _number(asked: Asked, name: str, default: int) -> int:
    text = asked.text(name)
    if not text:
        return default
    if not text.isdigit() or int(text) == 0:
        raise StopError(255, f'sbatch: error: Invalid numeric value "{text}" for --{name}.\n')
    return int(text)


def _memory(cluster: Cluster, asked: Asked, cpus: int) -> int:
    try:
        whole = size(asked.text("mem") or "0", 1 << 20)
        total = whole or size(asked.text("mem-per-cpu") or "0", 1 << 20) * cpus
    except ValueError as error:
        raise StopError(255, "sbatch: error: Invalid --mem specification\n") from error
    if cluster.site.memory and total > cluster.site.memory:
        raise failed(
            "Requested node configuration is not available",
            "sbatch: error: Memory specification can not be satisfied\n",
        )
    return total


def _limit(asked: Asked) -> float:
    """Counted in whole minutes, rounded up; 0 is no limit."""
    try:
        seconds = clock_seconds(asked.text("time") or "0", 60)
    except ValueError as error:
        raise StopError(255, "sbatch: error: Invalid --time specification\n") from error
    return -(-seconds // 60) * 60


def _gpus(text: str) -> int:
    last = text.rpartition(":")[2]
    return int(last) if last.isdigit() else int(bool(text))


def _begin(asked: Asked, now: float) -> float:
    match = re.fullmatch(r"now\+(\d+)(minute|hour|day|second)?s?", asked.text("begin"))
    unit = {"minute": 60, "hour": 3600, "day": 86400}
    return now + int(match[1]) * unit.get(match[2] or "", 1) if match else 0.0


def _after(text: str) -> tuple[tuple[str, int], ...]:
    return tuple(
        (how, int(number))
        for part in text.replace("?", ",").split(",")
        for how, _, numbers in [part.partition(":")]
        for number in numbers.split(":")
        if number.partition("_")[0].isdigit()
        for number in [number.partition("_")[0]]
    )


def _signal(text: str) -> tuple[int, float]:
    """`B:TERM@30`: the signal to the script, so many seconds before its limit; (0, 0): none."""
    match = re.fullmatch(r"(?:[BR]+:)?(?:SIG)?(\w+)(?:@(\d+))?", text)
    if not match:
        return 0, 0.0
    known = {"TERM": 15, "INT": 2, "USR1": 10, "USR2": 12, "HUP": 1}
    number = int(match[1]) if match[1].isdigit() else known.get(match[1], 15)
    return number, float(match[2] or 60)
