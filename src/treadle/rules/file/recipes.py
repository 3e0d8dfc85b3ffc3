"""The ways to build a reference that have a name: what each tool is told, and all that it makes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

_BWA = (".amb", ".ann", ".bwt", ".pac", ".sa")


class Recipe(Struct, frozen=True, kw_only=True):
    """Functions of source and output, with config values filled in.

    `outputs` gives all declared outputs, `shell` the command (it is told whether a memory was asked for).
    `wrong` says why the output cannot be the tool's. `own`: the command is the author's.
    """

    outputs: Callable[[str, str], tuple[str, ...]]
    shell: Callable[[str, str, bool], str]
    wrong: Callable[[str, str], str] | None = None
    own: bool = False


def _faidx_outputs(source: str, output: str) -> tuple[str, ...]:
    """Of a file packed by bgzip there is an index of its blocks, too."""
    if not source.endswith(".gz"):
        return (output,)
    return output, f"{source}.gzi" if output == f"{source}.fai" else f"{output.removesuffix('.fai')}.gzi"


def _faidx(source: str, output: str, limited: bool) -> str:
    if output == f"{source}.fai":
        return "samtools faidx {input}"
    blocks = " --gzi-idx {output[1]}" if source.endswith(".gz") else ""
    return "samtools faidx --fai-idx {output[0]}" + blocks + " {input}"


def _bwa_outputs(source: str, output: str) -> tuple[str, ...]:
    """`bwa index -p` makes five files; the output is one of them or what they begin with."""
    ending = next((one for one in _BWA if output.endswith(one)), "")
    prefix = output.removesuffix(ending)
    return tuple(dict.fromkeys((*([output] if ending else []), *(f"{prefix}{one}" for one in _BWA))))


def _star(source: str, output: str, limited: bool) -> str:
    """STAR writes its log beside where it runs, unless told otherwise; its own limit of memory is 31 GB."""
    memory = " --limitGenomeGenerateRAM $(({effective_memory_mb} * 1048576))" if limited else ""
    return (
        "mkdir -p {output} && STAR --runMode genomeGenerate --runThreadN {threads}"
        + memory
        + " --genomeDir {output} --genomeFastaFiles {input} --outFileNamePrefix {output}/"
    )


def _beside(source: str, output: str) -> str:
    wanted = f"{source.rstrip('/')}/Bisulfite_Genome"
    return "" if output.rstrip("/") == wanted else f"Bismark writes to {wanted}, in the folder that it reads"


_BISMARK = """\
if [ {threads} -gt 1 ]; then set -- --parallel {threads}; else set --; fi
bismark_genome_preparation "$@" {input}"""

# Picard does not write over a file.
RECIPES = {
    "samtools_faidx": Recipe(outputs=_faidx_outputs, shell=_faidx),
    "picard_dict": Recipe(
        outputs=lambda source, output: (output,),
        shell=lambda source, output, limited: (
            "rm -f {output} && picard CreateSequenceDictionary -R {input} -O {output}"
        ),
    ),
    "bwa_index": Recipe(
        outputs=_bwa_outputs,
        shell=lambda source, output, limited: 'first={output[0]} && bwa index -p "${first%.*}" {input}',
    ),
    "star_index": Recipe(outputs=lambda source, output: (output,), shell=_star),
    "bismark_index": Recipe(
        outputs=lambda source, output: (output,),
        shell=lambda source, output, limited: _BISMARK,
        wrong=_beside,
    ),
}
