"""What the tests of whole runs on schedulers share: a work folder whose workflow goes to one of them, fake or
real, and the one workflow that must come out the same everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from treadle.base.layout import RunFolder, StateFolder
from treadle.records.event import Evidence
from treadle.records.job import JobRecord, jobs_of
from treadle.records.journal import read_journal
from treadle.records.line import Settled, read_checkpoint

TREADLE = str(Path(sys.executable).with_name("treadle"))
PROFILE = "there"
FAST = 0.1  # seconds between two polls of a fake one


class Site:
    """Where tasks run: `backend` with its settings, and what the environment needs for it."""

    def __init__(self, backend: str, *, env: dict[str, str] | None = None, **settings: object) -> None:
        self.backend = backend
        self.env = env or {}
        self.settings = settings

    def profile(self, **more: object) -> str:
        """The text of a profile: settings of the test's own come last."""
        settings = {"backend": self.backend, **self.settings, **more}
        return "[cluster]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in settings.items())


HERE = Site("local")


def fake_site(cluster: Any, **settings: object) -> Site:
    """A site of a `FakeCluster`."""
    kind = cluster.site.kind.value
    dialect = {"torque": {"dialect": "torque"}, "pbs": {"dialect": "openpbs"}}.get(kind, {})
    backend = "pbs" if kind == "torque" else kind
    asked = {"bin_dir": cluster.bin, "poll_interval": FAST, "latency_wait": 1, **dialect, **settings}
    return Site(backend, **asked)


def real_site(scheduler: Any, **settings: object) -> Site:
    """A site of a real scheduler that the tests have started."""
    asked = {"poll_interval": 0.5, "latency_wait": 5, **settings}
    if scheduler.bin_dir:
        asked["bin_dir"] = scheduler.bin_dir
    return Site(scheduler.kind, env=scheduler.env, **asked)


def _toml(value: object) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)


class Place:
    """A work folder, with words for what a person does in it."""

    def __init__(self, path: Path, site: Site = HERE, **settings: object) -> None:
        self.path = path
        self.site = site
        path.mkdir(parents=True, exist_ok=True)
        if site is not HERE:
            self.write(f".config/treadle/{PROFILE}.toml", site.profile(**settings))

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def write(self, name: str, text: str) -> Path:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def env(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("TREADLE_")}
        return {**clean, "NO_COLOR": "1", "HOME": str(self.path), **self.site.env}

    def there(self) -> list[str]:
        """The options that send a run, or its preview, to the site."""
        return [] if self.site is HERE else ["--profile", PROFILE]

    def start(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Start the command and do not wait for it."""
        options.setdefault("env", self.env())
        argv = [TREADLE, *args, *(self.there() if args[0] in ("run", "plan") else ())]
        return subprocess.Popen(
            argv,
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def treadle(self, *args: str, exits: int | None = 0, seconds: float = 60, **options: Any) -> str:
        """Run the command, which must end with `exits` (None: whatever): what it prints, stderr last."""
        process = self.start(*args, **options)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"it did not end\n{out}\n{err}") from None
        assert "Traceback" not in err, err
        if exits is not None:
            assert process.returncode == exits, f"exit {process.returncode}\n{out}\n{err}"
        return out + err

    def plan(self, *args: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.treadle("plan", "--json", *args))
        return found

    def will_run(self, *args: str) -> tuple[set[str], set[str]]:
        """Ids of the tasks that the preview says will run, and of those that equal outputs may spare."""
        tasks = [task for task in self.plan(*args)["tasks"] if task["will_run"]]
        return {task["id"] for task in tasks}, {task["id"] for task in tasks if task["may_cut_off"]}

    def runs(self) -> list[str]:
        """Ids of the runs that are recorded, the oldest first."""
        folder = self / ".treadle" / "runs"
        names = [entry.name for entry in folder.iterdir()] if folder.exists() else []
        return sorted(name for name in names if name != "latest")

    def run_folder(self, run: str = "") -> RunFolder:
        return StateFolder(str(self.path)).run(run or self.runs()[-1])

    def events(self, run: str = "") -> list[dict[str, Any]]:
        """The journal of a run, as far as it is there."""
        path = Path(self.run_folder(run).events)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def jobs(self, run: str = "") -> list[JobRecord]:
        """The attempts of a run, in an order that does not hang on time."""
        found = jobs_of(read_journal(self.run_folder(run).events).events)
        return sorted(found, key=lambda job: (job.task, job.attempt))

    def evidence(self) -> dict[str, tuple[object, ...]]:
        """What the checkpoint file has of each task, but for times and inodes, and for whether a later run
        has looked again at files that were young."""
        lines = read_checkpoint(StateFolder(str(self.path)).checkpoint) or []
        return {line.key: _of_line(line) for line in lines if isinstance(line, Settled)}

    def outputs(self) -> dict[str, bytes]:
        """Every file that is not ours, with its content."""
        hidden = (".treadle", ".config")
        found = [path.relative_to(self.path) for path in self.path.rglob("*") if path.is_file()]
        return {str(path): (self / str(path)).read_bytes() for path in found if path.parts[0] not in hidden}

    def starts(self) -> dict[str, int]:
        """How often each task was begun, by the file that the tasks of a test write to."""
        path = self / "starts"
        words = path.read_text().splitlines() if path.exists() else []
        return {word: words.count(word) for word in words}

    def job_folders(self) -> list[Path]:
        """Folders of all submissions of all runs."""
        return sorted((self / ".treadle" / "runs").glob("[0-9]*/jobs/*"))


def _of_line(line: Settled) -> tuple[object, ...]:
    found = msgspec.json.decode(line.evidence, type=Evidence)
    files = [
        tuple((file.path, file.size, file.digest, file.folder) for file in some)
        for some in (found.inputs, found.outputs)
    ]
    own = (found.identity, found.text, found.stale, found.foreign, found.note, found.env, found.hooks)
    return (line.task, line.paths(), *own, *files)


# One workflow: arrays, a chain for each sample, odd names, params, a temporary output, a condition, a retry,
# a failure that does not matter and one that does.
SAMPLES = ("plain", "two words", 'it\'s "$HOME"', "ü;&|<a>", "-x%j", "[b]\\{{c}}")
FLOW = """
[workflow]
name = "equal"
strict_shell = true

[config]
word = "50 %s; more"
extra = true

[[tables]]
name = "samples"
file = "samples.json"

[[rules]]
name = "prepare"
input = ["raw/{sample}.txt"]
output = ["prepared/{sample}.txt"]
temporary = true
shell = "tr a-z A-Z < {input} > {output}"

[[rules]]
name = "measure"
input = ["prepared/{sample}.txt"]
output = ["measured/{sample}.txt"]
params = { word = "{config.word}", also = 2 }
threads = 2
shell = '''
printf '%s\\n' {sample} '{params.word}' {params.also} {threads} > {output}
wc -c < {input} >> {output}
'''

[[rules]]
name = "gather"
input = ["measured/{sample}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}"

[[rules]]
name = "extra"
input = ["all.txt"]
output = ["extra/a b.txt", "extra/log"]
when = "config.extra"
retries = 1
retry_delay = "0s"
shell = '''
echo {output[0]} > extra/log
test -e tried || { touch tried; exit 7; }
tail -n 1 {input} > {output[0]}
'''

[[rules]]
name = "left_out"
output = ["never.txt"]
when = "!config.extra"
shell = "touch {output}"

[[rules]]
name = "broken"
input = ["raw/plain.txt"]
output = ["broken.txt"]
required = false
shell = "echo half > {output}; exit 3"

[[rules]]
name = "gate"
input = ["gate.txt"]
output = ["gated.txt"]
shell = "grep -q open {input}; cp {input} {output}"

[[rules]]
name = "behind"
input = ["gated.txt"]
output = ["behind.txt"]
shell = "wc -l < {input} > {output}"
"""


def lay_out(place: Place) -> None:
    """The workflow and its sources."""
    place.write("main.oxoflow", FLOW)
    place.write("samples.json", json.dumps([{"sample": name} for name in SAMPLES]))
    for number, name in enumerate(SAMPLES):
        place.write(f"raw/{name}.txt", "word\n" * (number + 1))
    place.write("gate.txt", "open\n")


def _changed_input(place: Place) -> None:
    place.write(f"raw/{SAMPLES[1]}.txt", "something else\n")


def _changed_command(place: Place) -> None:
    place.write("main.oxoflow", place.read("main.oxoflow").replace("wc -c <", "wc -w <"))


def _deleted_output(place: Place) -> None:
    (place / f"measured/{SAMPLES[2]}.txt").unlink()
    (place / "all.txt").unlink()


def _shut(place: Place) -> None:
    place.write("gate.txt", "shut\n")


def _opened(place: Place) -> None:
    place.write("gate.txt", "open again\n")


def _all_changed(place: Place) -> None:
    for name in SAMPLES[:4]:
        place.write(f"raw/{name}.txt", "once more\n")


STEPS: dict[str, tuple[Callable[[Place], None], tuple[str, ...], int]] = {
    "fresh": (lay_out, (), 0),
    "nothing changed": (lambda place: None, (), 0),
    "changed input": (_changed_input, (), 0),
    "changed command": (_changed_command, (), 0),
    "deleted output": (_deleted_output, (), 0),
    "failed": (_shut, ("--keep-going",), 1),
    "then fixed": (_opened, (), 0),
    "forced": (lambda place: None, ("main.oxoflow", "gather", "--force"), 0),
    "subset": (_all_changed, ("main.oxoflow", f"measured/{SAMPLES[0]}.txt", "gate"), 0),
    "the rest": (lambda place: None, (), 0),
}


class Told:
    """What came of one step of the workflow's life."""

    def __init__(self, place: Place, step: str) -> None:
        change, args, exits = STEPS[step]
        change(place)
        self.step = step
        self.previewed, self.spared = place.will_run(*(one for one in args if one != "--keep-going"))
        before = place.runs()
        place.treadle("run", *args, exits=exits)
        new = [run for run in place.runs() if run not in before]
        self.jobs = place.jobs(new[-1]) if new else []
        self.outputs = place.outputs()
        self.evidence = place.evidence()

    @property
    def ran(self) -> set[str]:
        return {job.task for job in self.jobs}


def live(place: Place, steps: tuple[str, ...] = tuple(STEPS)) -> list[Told]:
    """Take the workflow through its life in a folder; what ran is what was previewed."""
    told = []
    for step in steps:
        told.append(one := Told(place, step))
        assert one.ran <= one.previewed, step
        if step != "failed":
            assert one.previewed - one.ran <= one.spared, step
    return told


def same(found: list[Told], wanted: list[Told]) -> None:
    """Two lives are equal: what was previewed and ran, how attempts ended, outputs, and evidence."""
    for one, other in zip(found, wanted, strict=True):
        assert (one.previewed, one.spared) == (other.previewed, other.spared), one.step
        assert one.jobs == other.jobs, one.step
        assert one.outputs == other.outputs, one.step
        assert one.evidence == other.evidence, one.step
