"""A workflow whose checkpoint finds parts, what it finds, and what was made since this was asked last."""

from __future__ import annotations

import json

FIND = """
[[rules]]
name = "find"
input = ["names.toml"]
output = ["found.toml"]
checkpoint = true
checkpoint_manifest = "found.toml"
checkpoint_extends = ["values.part"]
shell = "cp {input} {output}"
"""

PARTS = """
[[rules]]
name = "make"
output = ["parts/{part}"]
shell = "echo {part} >> made && echo {part} > {output}"
"""

GATHER = """
[[rules]]
name = "all"
input = ["parts/{part}"]
output = ["all.txt"]
shell = "echo all >> made && cat {input} > {output}"

[[rules]]
name = "last"
input = ["all.txt"]
output = ["last.txt"]
shell = "echo last >> made && cp {input} {output}"
"""

FLOW = FIND + PARTS + GATHER
SAMPLES = """
[[sample_groups]]
name = "first"
samples = ["A", "B"]

[[rules]]
name = "align"
output = ["align/{sample}"]
shell = "echo {sample} | tee -a made > {output}"

[[rules]]
name = "look"
input = ["align/{sample}", "more.toml"]
output = ["look.toml"]
checkpoint = true
checkpoint_manifest = "look.toml"
shell = "echo look >> made && cp more.toml {output}"

[[rules]]
name = "all"
input = ["align/{sample}"]
output = ["all.txt"]
shell = "echo all >> made && cat {input} > {output}"
"""


def found(folder, *names: str) -> None:
    """What the next run of the checkpoint finds."""
    folder.write("names.toml", f"[reentry.values]\npart = {json.dumps(names)}\n")


def made(folder) -> list[str]:
    """What ran since this was asked last, sorted."""
    path = folder / "made"
    lines = sorted(path.read_text().split()) if path.exists() else []
    path.write_text("")
    return lines
