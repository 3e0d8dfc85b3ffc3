"""Rules that only name files, such as `all`: they are settled, and nothing is started for them anywhere."""

from __future__ import annotations

import pytest

from treadle.testing.schedulers import FakeCluster

FLOW = """
    [defaults]
    threads = 700
    memory = "9000T"
    shell_prelude = "echo prelude >> preludes"

    [[rules]]
    name = "make"
    output = ["made.txt"]
    shell = "echo > {output}"
    resources = { threads = 1, memory = "10M" }

    [[rules]]
    name = "all"
    input = ["made.txt"]
    benchmark = "all.tsv"
    target = true
"""


def ways(folder) -> dict[str, tuple[str, str]]:
    """The backend of each task that was attempted, and what it calls its job."""
    events = folder.events()
    backends = {one["task"]: one["backend"] for one in events if one["event"] == "attempt_submitted"}
    return {
        one["task"]: (backends[one["task"]], one["job"])
        for one in events
        if one["event"] == "attempt_started"
    }


def test_no_process_is_started_for_a_rule_without_a_command(folder):
    folder.flow(FLOW)
    done = folder.treadle("run", "--strict")
    assert "all" not in done.stderr.replace("done all", ""), "it takes nothing, so nothing of it is cut"
    backend, job = ways(folder)["all"]
    assert (backend, job.isdigit()) == ("local", False)
    assert folder.read("preludes") == "prelude\n", "of `make` alone"
    assert folder.read("all.tsv").splitlines()[1].split() == ["0.0", "0.0", "NA"]
    assert folder.will_run() == set()


def test_it_goes_on_being_decided_by_what_it_names(folder):
    folder.flow(FLOW)
    folder.treadle("run")
    folder.flow(FLOW.replace("echo >", "echo more >"))
    assert folder.run_as_previewed() == {"make", "all"}
    assert folder.will_run() == set()


def test_its_hooks_are_a_command(folder):
    folder.flow(FLOW + 'on_success = "echo {input} > said.txt"\nthreads = 1\nmemory = "10M"')
    folder.treadle("run")
    assert folder.read("said.txt") == "made.txt\n"


def test_in_front_it_ends_well_at_once(folder):
    folder.flow(FLOW)
    folder.treadle("run")
    assert folder.treadle("exec", "all").stdout == ""
    assert "exec true" in folder.treadle("exec", "--print", "all").stdout


@pytest.mark.parametrize("kind", ["slurm", "sge"])
def test_a_scheduler_never_hears_of_it(folder, kind):
    fake = FakeCluster(kind, folder / "fake")
    fake.start()
    try:
        folder.write(
            "profiles/lab.toml",
            f'[cluster]\nbackend = "{kind}"\nbin_dir = "{fake.bin}"\npoll_interval = "0.2s"\n',
        )
        folder.flow(FLOW)
        sent = folder.treadle("plan", "--profile", "lab", "--show", "submit").stdout
        assert "make" in sent
        assert "all, attempt" not in sent
        folder.treadle("run", "--profile", "lab")
    finally:
        fake.close()
    found = ways(folder)
    assert found["make"][0] == kind
    assert found["all"] == ("local", "nothing-2")
