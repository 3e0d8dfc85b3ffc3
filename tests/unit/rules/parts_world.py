"""Workflows with a rule that is written out as several, and what they become."""

from __future__ import annotations

import pytest
from rules_world import expanded

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.rules.file.read import read_text
from treadle.rules.schema import Rule

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
MAPPED = """
[[rules]]
name = "call"
input = ["in/{sample}.bam"]
output = ["out/{sample}.vcf"]
"""
CALL = (
    MAPPED
    + """
[rules.transform]
map = "call {chr} {input} > {output}"
split = { by = "chr", values = ["chr1", "chr2"] }
combine = { shell = "join {chunks:each=-I } > {output}" }
"""
)
NUMBERED = """
[[rules]]
name = "up"
input = ["in/{sample}.txt"]
output = ["out/{sample}.txt"]
[rules.transform]
map = "tr a b < {input} > {output}"
split = { by = "chunk", n = 3 }
combine = { aggregate = true }
"""
GLOB = """
[[rules]]
name = "up"
input = ["parts/*.txt"]
output = ["all.txt"]
[rules.transform]
map = "tr a b < {input} > {output}"
split = { by = "part", glob = "parts/*.txt" }
combine = { shell = "cat {chunks} > {output}" }
"""
SCATTER = """
[[rules]]
name = "call"
input = ["in/{sample}.bam"]
output = ["v/{sample}.{chr}.vcf"]
scatter = { variable = "chr", values = ["chr1", "chr2"], gather = "merge" }
shell = "call {chr} {input} > {output}"
[[rules]]
name = "merge"
output = ["v/{sample}.vcf"]
shell = "cat {input} > {output}"
"""
DISK = ["in/S1.bam", "in/S2.bam", "in/S3.bam"]


def rules(text: str) -> dict[str, Rule]:
    return {rule.name: rule for rule in read_text(HEAD + text).rules}


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        expanded(text, ["in/a", "in/b.txt"])
    return list(caught.value.diagnostics)


def warnings(text: str) -> list[str]:
    return [one.code for one in read_text(HEAD + text).warnings]


def call(**fields: str) -> dict[str, Rule]:
    """The rules of `CALL` with further fields."""
    more = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return rules(CALL.replace("[rules.transform]", f"{more}[rules.transform]", 1))
