"""The variants example with the real bowtie2, samtools and bcftools; its variants are checked for sense."""

from __future__ import annotations

import gzip
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path("/usr/share/doc/bowtie2/examples")
TREADLE = str(pathlib.Path(sys.executable).with_name("treadle"))
NEEDED = ("bowtie2", "samtools", "bcftools")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not DATA.exists() or any(shutil.which(program) is None for program in NEEDED),
        reason="needs the Debian packages bowtie2, bowtie2-examples, samtools and bcftools",
    ),
]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The example, run once."""
    folder = tmp_path_factory.mktemp("variants") / "variants"
    shutil.copytree(ROOT / "examples" / "variants", folder, ignore=shutil.ignore_patterns(".treadle"))
    subprocess.run([TREADLE, "run"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return folder


def sites(folder: pathlib.Path) -> list[list[str]]:
    return [line.split("\t") for line in (folder / "results/sites.tsv").read_text().splitlines()]


def reference() -> str:
    with gzip.open(DATA / "reference" / "lambda_virus.fa.gz", "rt") as fasta:
        return "".join(line.strip() for line in fasta if not line.startswith(">"))


def test_every_reference_allele_is_what_stands_in_the_reference(done: pathlib.Path) -> None:
    genome = reference()
    assert len(genome) == 48502
    for position, allele, *_ in sites(done):
        start = int(position) - 1
        assert genome[start : start + len(allele)].upper() == allele.upper()


def test_the_samples_come_from_one_genome_so_most_variants_are_shared(done: pathlib.Path) -> None:
    called = [[genotype == "1" for genotype in row[3:]] for row in sites(done)]
    assert 50 <= len(called) <= 150
    shared = sum(sum(calls) >= 2 for calls in called)
    assert shared / len(called) > 0.6
    assert sum(all(calls) for calls in called) >= 30


def test_most_reads_of_every_sample_were_mapped(done: pathlib.Path) -> None:
    for sample in ("alpha", "beta", "gamma"):
        text = (done / "qc" / f"{sample}.flagstat.txt").read_text()
        mapped = float(text.split("mapped (", 1)[1].split("%", 1)[0])
        assert mapped > 85


def test_the_summary_says_what_the_sites_say(done: pathlib.Path) -> None:
    assert f"{len(sites(done))} sites" in (done / "results/summary.md").read_text()


def test_a_second_run_has_nothing_to_do_and_a_higher_threshold_runs_only_what_is_below(
    done: pathlib.Path,
) -> None:
    again = subprocess.run([TREADLE, "run"], cwd=done, capture_output=True, text=True, check=True)
    assert "nothing to do" in again.stderr
    before = len(sites(done))
    subprocess.run([TREADLE, "run", "min_quality=200"], cwd=done, check=True, stdin=subprocess.DEVNULL)
    assert 0 < len(sites(done)) < before
    journal = (done / ".treadle/runs/latest/events.jsonl").read_text()
    assert '"task":"call/sample=alpha"' in journal
    assert '"task":"align/sample=alpha"' not in journal
