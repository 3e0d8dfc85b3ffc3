"""`checksum`: md5 or sha256 of outputs, recorded by whoever made them, shown by `status --json`."""

from __future__ import annotations

import hashlib
import json

import pytest

from cluster_runs import fake_site

FLOW = """
    [[rules]]
    name = "make"
    output = ["a b.txt", "made"]
    checksum = "sha256"
    shell = "echo one > 'a b.txt'; mkdir -p made/in; echo two > made/in/x; ln -s x made/l; touch made/empty"
"""


def sums(folder):
    """The checksums of the last run."""
    jobs = json.loads(folder.treadle("status", "--json").stdout)["jobs"]
    return {path: told for job in jobs for path, told in job.get("checksums", ())}


def wanted(algorithm):
    files = {"a b.txt": b"one\n", "made/in/x": b"two\n", "made/empty": b""}
    return {path: f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}" for path, data in files.items()}


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_checksums_of_all_files_are_recorded(folder, algorithm):
    folder.flow(FLOW.replace("sha256", algorithm))
    folder.treadle("run")
    assert sums(folder) == wanted(algorithm)


def test_asking_for_them_runs_nothing_again_and_what_is_recorded_stays(folder):
    folder.flow(FLOW.replace('checksum = "sha256"\n', ""))
    folder.treadle("run")
    assert sums(folder) == {}
    folder.flow(FLOW)
    assert folder.will_run() == set()
    folder.treadle("run", "--force")
    (folder / "a b.txt").touch()
    folder.treadle("run")
    recorded = (folder / ".treadle" / "checkpoint.jsonl").read_text().splitlines()
    assert wanted("sha256")["a b.txt"] in recorded[-1], "the stat is another, and the content is the same"


def test_large_outputs_are_summed_too_whatever_the_digest_limit(folder):
    text = """
        [[rules]]
        name = "make"
        output = ["big"]
        checksum = "md5"
        shell = "head -c 1000000 /dev/zero > {output}"
        [defaults]
        digest_limit = "1K"
    """
    folder.flow(text)
    folder.treadle("run")
    assert sums(folder) == {"big": f"md5:{hashlib.md5(bytes(1000000)).hexdigest()}"}


def test_on_a_scheduler_the_job_takes_them_itself(folder, fake_cluster):
    site = fake_site(fake_cluster("slurm", slots=2))
    folder.write("profiles/there.toml", site.profile())
    folder.flow(FLOW)
    folder.treadle("run", "--profile", "there", env=folder.env(**site.env))
    assert sums(folder) == wanted("sha256")
    exits = [path.read_text() for path in (folder / ".treadle" / "runs").rglob("exit*.json")]
    assert any(wanted("sha256")["a b.txt"].removeprefix("sha256:") in text for text in exits)


def test_one_that_is_not_known_is_refused(folder):
    folder.flow(FLOW.replace("sha256", "sha265"))
    refused = folder.treadle("plan", exits=2)
    assert "[rules.make.checksum]: 'sha265' is no checksum that is known here" in refused.stderr
    assert "did you mean 'sha256'?" in refused.stderr
