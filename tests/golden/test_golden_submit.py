"""What a run would send to each scheduler, held to files: settings, directives and commands."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable

import msgspec
import pytest

from treadle.api.pipe import Request, look
from treadle.api.submit_preview import sendings_of
from treadle.backends.cluster.configured import settings_of

_ORDERS = ("#SBATCH", "#PBS", "#$", "#BSUB")
FLOW = """
[workflow]
name = "golden"
strict_shell = true

[[sample_groups]]
name = "cohort"
samples = ["S 1", "S'2"]

[[rules]]
name = "align"
output = ["out dir/{sample}.bam"]
shell = "touch {output}"
restartable = true
signal_before_end = "5m"
resources = { threads = 8, memory = "30G", time_limit = "1d2h", gpu_spec = { count = 2 } }

[[rules]]
name = "merge"
input = ["out dir/{sample}.bam"]
output = ["merged"]
shell = "cat {input} > {output}"
resources = { memory = "1500M", partition = "short", account = "other", extra_args = ["-l feature=fast"] }

[[rules]]
name = "here"
input = ["merged"]
output = ["here"]
shell = "touch here"
localrule = true
"""
PROFILES = {
    "slurm": 'qos = "normal"\nconstraint = "avx2"\nmax_running = 1\nextra_args = ["--mail-type=FAIL"]\n',
    "pbs": 'dialect = "pbspro"\n',
    "torque": 'dialect = "torque"\n',
    "sge": 'parallel_env = "threads"\nmemory_resource = "mem_free"\ngpu_resource = "cuda"\n',
    "lsf": 'memory_unit = "GB"\n',
}
COMMON = 'partition = "main"\naccount = "lab"\nwalltime = "2h"\njob_prefix = "me"\nmax_submitted = 50\n'


def shown(folder: pathlib.Path, kind: str) -> str:
    """Settings, then each submission: its command and the lines at the top of its script."""
    backend = "pbs" if kind == "torque" else kind
    (folder / "profiles").mkdir()
    (folder / "profiles" / "p.toml").write_text(f'[cluster]\nbackend = "{backend}"\n{COMMON}{PROFILES[kind]}')
    (folder / "main.oxoflow").write_text(FLOW)
    view = look(Request(file=str(folder / "main.oxoflow"), profiles=("p",)))
    assert view.workflow.cluster is not None
    settings = json.loads(msgspec.json.encode(settings_of(view.workflow.cluster)))
    lines = [f"{key} = {json.dumps(value)}" for key, value in sorted(settings.items())]
    found = sendings_of(view)
    for one in found.sent:
        lines += ["", f"$ {one.command}"]
        lines += [line for line in one.script.splitlines() if line.startswith(_ORDERS)]
    lines += ["", f"here: {', '.join(found.here)}"]
    return "\n".join(lines).replace(str(folder), "/work") + "\n"


@pytest.mark.parametrize("kind", PROFILES)
def test_what_is_sent_is_as_it_was(
    kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    folder = tmp_path / "w"
    folder.mkdir()
    golden(f"submit/{kind}.txt", shown(folder, kind))
