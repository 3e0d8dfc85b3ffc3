"""Contracts of `[[include]]`: the files that its rules are to read and to make."""

from __future__ import annotations

import pytest
from include_world import include, rule

CONTRACT = {
    "main.oxoflow": '[config]\nout = "res"\n[[sample_groups]]\nname = "g"\nsamples = ["A", "B"]\n'
    + rule("get", "raw/{sample}.fq"),
    "m.oxoflow": rule("trim", "t/{sample}.fq", 'input = ["raw/{sample}.fq"]')
    + rule("qc", "{config.out}/{sample}.qc", 'input = ["t/{sample}.fq"]'),
}


def with_contract(contract: str, more: str = "") -> dict[str, str]:
    return {
        **CONTRACT,
        "main.oxoflow": CONTRACT["main.oxoflow"] + include("m.oxoflow", contract) + more,
    }


def test_a_contract_that_is_kept_says_nothing(world):
    files = with_contract('inputs = ["raw/{sample}.fq"]\noutputs = ["{config.out}/{sample}.qc", "res/A.qc"]')
    assert not world.expand(files).notes


@pytest.mark.parametrize(
    ("contract", "code", "hint"),
    [
        (
            'inputs = ["raw/{sample}.fastq"]',
            "contract-input",
            "its rules read raw/{sample}.fq, t/{sample}.fq",
        ),
        ('outputs = ["qc/{sample}.qc"]', "contract-output", "its rules make t/{sample}.fq, res/{sample}.qc"),
        ('outputs = ["res/C.qc"]', "contract-output", "its rules make t/{sample}.fq, res/{sample}.qc"),
    ],
)
def test_a_contract_that_is_not_kept_is_an_error(world, contract, code, hint):
    found = world.error(with_contract(contract))
    assert (found.code, found.hint) == (code, hint)
    assert world.where(found) == f"main.oxoflow:16 [include[0].{contract.partition(' ')[0]}[0]]"


def test_reading_a_file_that_a_contract_does_not_name_is_a_warning(world):
    more = rule("look", "look", 'input = ["t/A.fq"]')
    (note,) = world.expand(with_contract('outputs = ["res/{sample}.qc"]', more)).notes
    assert note.code == "contract-hidden"
    assert "t/A.fq" in note.message
