"""The wrapper of commands for schedulers, run for real by the shells that nodes have: words, files, ends."""

from __future__ import annotations

import os
import subprocess

import pytest
from cluster_jobs import RUN, SHELLS, Job
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.backends.cluster.exit_file import Written, look_for_exit
from treadle.backends.cluster.script import JobElement, render_job
from treadle.base.files import digest_file, digest_folder
from treadle.plan.task import Policy

ODD = [
    "a b",
    "it's",
    'say "x"',
    "$HOME",
    "`id`",
    "line\nbreak",
    "été–雪",
    "-rf",
    "-",
    "a\\b",
    "*",
    "#$ x",
    "!",
    "~",
]


def test_a_job_says_how_it_ended(job):
    (job.work / "in").write_text("abc")
    assert job.alone("sh", "-c", "cat in >out; echo told", inputs=["in"], outputs=["out"]) == 0
    end = job.end()
    assert (end.exit_code, end.signal, end.done, end.start_number) == (0, 0, True, 1)
    assert (end.attempt, end.job) == (f"{RUN}.1", "4711")
    assert end.host == os.uname().nodename
    assert 0 <= end.end - end.start < 60
    assert end.cpu is not None
    assert 0 <= end.cpu < 60
    seen = os.stat(job.work / "in")
    assert end.inputs == (Written(0, "f", 3, seen.st_mtime_ns),)
    made = os.stat(job.work / "out")
    assert end.outputs == (Written(0, "f", 3, made.st_mtime_ns, digest_file(str(job.work / "out"))),)
    assert job.log() == "told\n"


@pytest.mark.parametrize(("code", "of_the_job"), [(3, 3), (99, 1), (100, 1), (127, 127), (255, 255)])
def test_the_exit_code_is_told_and_is_no_order_to_sge(tmp_path, code, of_the_job):
    job = Job(tmp_path / "w")
    assert job.alone("sh", "-c", f"exit {code}") == of_the_job
    assert (job.end().exit_code, job.end().done) == (code, False)


def test_a_killed_command_tells_its_signal(job):
    assert job.alone("sh", "-c", "kill -9 $$") == 137
    assert (job.end().exit_code, job.end().signal) == (137, 9)


def test_exit_0_without_an_output_fails_the_job_and_names_it_by_index(job):
    assert job.alone("sh", "-c", "echo >a", outputs=["a", "b"]) == 1
    end = job.end()
    assert (end.exit_code, end.done) == (0, False)
    assert [one.kind for one in end.outputs] == ["f", "-"]


def test_stdin_is_empty_and_the_work_folder_is_the_one_asked_for(job):
    assert job.alone("sh", "-c", 'cat; printf "%s" "$PWD"') == 0
    assert job.log() == str(job.work)


def test_a_work_folder_that_is_not_there_is_a_problem_of_the_node(job):
    assert job.alone("true", cwd=str(job.work / "gone")) == 74
    assert job.end().problem == "workdir"


def test_a_log_that_cannot_be_written_is_a_problem_of_the_node(job):
    assert job.alone("true", log=str(job.work / "gone" / "log")) == 74
    assert job.end().problem == "log"


def test_odd_names_arrive_as_they_are(job):
    outputs = [*ODD, *(f"d/{name}" for name in ODD)]
    (job.work / "d").mkdir()
    for name in ODD:
        (job.work / name).write_text(name)
    text = 'for one do printf %s "$one" >"./d/$one"; done; printf %s "$ODD" >odd'
    code = job.alone("sh", "-c", text, "sh", *ODD, inputs=ODD, outputs=outputs, env={"ODD": ODD[5] + ODD[1]})
    assert code == 0, job.said() + job.log()
    end = job.end()
    assert [one.size for one in end.inputs] == [len(name.encode()) for name in ODD]
    assert [one.digest for one in end.outputs] == [digest_file(str(job.work / name)) for name in outputs]
    assert (job.work / "odd").read_text() == ODD[5] + ODD[1]


words = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(argv=st.lists(words, max_size=4), value=words, name=words)
def test_any_words_and_values_pass_through_any_shell(tmp_path_factory, argv, value, name):
    for shell in SHELLS:
        job = Job(tmp_path_factory.mktemp("any") / "w", shell)
        odd = "".join(one for one in name if one not in "/=")
        env = {"VALUE": value, "not a name " + odd: value}
        text = 'printf "%s\\0" "$VALUE" "$@" >out; tr "\\0" "\\n" </proc/self/environ >env'
        assert job.alone("sh", "-c", text, "sh", *argv, env=env, outputs=["out"]) == 0, job.log()
        assert (job.work / "out").read_bytes() == b"".join(one.encode() + b"\0" for one in [value, *argv])
        assert f"not a name {odd}={value}".encode() in (job.work / "env").read_bytes()


trees = st.dictionaries(
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0/"), min_size=1, max_size=8)
    .filter(lambda name: name not in (".", "..", ".treadle-artifacts")),
    st.binary(max_size=300),
    max_size=6,
)  # fmt: skip


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees, limit=st.sampled_from([None, 0, 100]))
def test_digests_of_nodes_are_those_of_the_driver(tmp_path_factory, tree, limit):
    job = Job(tmp_path_factory.mktemp("tree") / "w")
    folder = job.work / "made"
    (folder / "below").mkdir(parents=True)
    for number, (name, content) in enumerate(tree.items()):
        if len(name.encode()) < 200:
            (folder / ("below" if number % 2 else ".") / name).write_bytes(content)
            (job.work / f"file{number}").write_bytes(content)
    files = [f"file{number}" for number in range(len(tree)) if (job.work / f"file{number}").exists()]
    code = job.alone("true", outputs=["made", *files], policy=Policy(digest_limit=limit))
    assert code == 0, job.said()
    first, *others = job.end().outputs
    assert (first.kind, first.digest) == ("d", digest_folder(str(folder), limit))
    for name, one in zip(files, others, strict=True):
        read = limit is None or one.size <= limit
        assert one.digest == (digest_file(str(job.work / name)) if read else "")


def test_many_inputs_are_noted_in_one_go_and_gaps_keep_their_index(tmp_path):
    job = Job(tmp_path / "w")
    for number in range(450):
        if number != 250:
            (job.work / f"f{number}").write_text("x" * number)
    inputs = [f"f{number}" for number in range(450)]
    inputs[300] = "s3://bucket/key"
    assert job.alone("true", inputs=inputs, script_file="f7") == 0
    noted = {one.index: one for one in job.end().inputs}
    assert sorted(noted) == [*range(300), *range(301, 451)]
    assert noted[250].kind == "-"
    assert (noted[449].size, noted[450].size) == (449, 7)


def test_an_element_of_an_array_is_chosen_by_its_index(job):
    elements = [JobElement(submissions=(job.submission(n, "sh", "-c", f"exit {n}"),)) for n in (1, 2, 3)]
    text = job.write(*elements, array=True)
    assert text.startswith("#!/bin/sh\n#FAKE --name=t1\n#FAKE --array=1-3\n")
    assert [job.run(index) for index in (3, 1, 2)] == [3, 1, 2]
    assert [job.end(n).exit_code for n in (1, 2, 3)] == [1, 2, 3]
    assert job.run(4) == 74
    assert "no element has the index '4'" in job.said()


def test_a_text_that_holds_an_order_of_a_scheduler_stands_in_a_file_of_its_own(job):
    order = "echo a\n#$ -l h_rt=1\n#BSUB -q x\n# PBS -q y\necho b"
    one = JobElement(submissions=(job.submission(1, "sh", "-c", order),))
    two = JobElement(submissions=(job.submission(2, "sh", "-c", "echo " + "x" * 100_000),))
    text = job.write(one, two, array=True)
    assert "h_rt" not in text
    assert "xxx" not in text
    assert [job.run(1), job.run(2)] == [0, 0]
    assert job.log(1) == "a\nb\n"
    os.unlink(job.folder.part(1))
    assert job.run(1) == 74


@pytest.mark.parametrize(("independent", "codes"), [(True, [3, 0]), (False, [3, 1])])
def test_a_pack_goes_on_after_a_failure_and_a_group_does_not(job, independent, codes):
    bad = job.submission(1, "sh", "-c", "export LEAK=1; exit 3", env={"ONE": "1"})
    good = job.submission(2, "sh", "-c", '[ -z "$ONE$LEAK" ]; echo ran', outputs=[])
    job.write(JobElement(submissions=(bad, good), independent=independent))
    assert job.run() == 3
    assert [job.end(n).exit_code for n in (1, 2)] == codes
    assert job.end(2).skipped is not independent


def test_secrets_stand_in_a_private_file_and_not_in_the_script(job):
    value = "s3cr3t 'x'\n$y"
    log = job.run_folder.private_log(1)
    one = job.submission(
        1, "sh", "-c", 'printf %s "$KEY"', secrets=("KEY",), env={"KEY": value}, log=log, private_log=True
    )
    assert "s3cr3t" not in job.write(JobElement(submissions=(one,)))
    assert os.stat(job.folder.secrets(1)).st_mode & 0o777 == 0o600
    assert job.run() == 0
    assert os.stat(log).st_mode & 0o777 == 0o600
    with open(log) as told:
        assert told.read() == value
    assert "s3cr3t" not in job.said()


def test_a_file_of_secrets_that_is_gone_is_a_problem_of_the_node(job):
    one = job.submission(1, "true", secrets=("KEY",), env={"KEY": "x"})
    job.write(JobElement(submissions=(one,)))
    os.unlink(job.folder.secrets(1))
    assert job.run() == 74
    assert job.end().problem == "secrets"


def test_a_full_disk_is_no_success(tiny):
    job = Job(tiny / "w")
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", "cat /dev/zero >fill; true"),)))
    assert job.run() == 73
    witness = look_for_exit(job.folder, 1)
    assert (witness.exit, witness.starts) == (None, 1)


def test_a_folder_that_cannot_be_written_is_no_success(tiny):
    job = Job(tiny / "w")
    job.write(JobElement(submissions=(job.submission(1, "sh", "-c", "true"),)))
    with open("/dev/null", "r+") as nothing:
        subprocess.run(["mount", "-o", "remount,ro", tiny], check=True)
        process = subprocess.run([*job.shell, job.folder.script], stderr=nothing)
    assert process.returncode == 74


@pytest.mark.parametrize(
    ("lines", "below", "events", "peak"),
    [
        ("0::/slurm/job_4711/step_batch", "", "memory.events", "memory.peak"),
        ("9:cpu:/\n4:memory:/slurm/job_4711", "memory/", "memory.oom_control", "memory.max_usage_in_bytes"),
    ],
)
def test_its_own_cgroup_tells_kills_for_memory_and_the_peak(tmp_path, lines, below, events, peak):
    job = Job(tmp_path / "w")
    job.root = str(tmp_path / "node")
    group = tmp_path / "node/sys/fs/cgroup" / below / lines.rpartition(":/")[2]
    group.mkdir(parents=True)
    (tmp_path / "node/proc/self").mkdir(parents=True)
    (tmp_path / "node/proc/self/cgroup").write_text(lines + "\n")
    (group / events).write_text("oom 7\noom_kill 2\n")
    (group / peak).write_text("123456\n")
    assert job.alone("sh", "-c", f"echo 'oom_kill 5' >'{group / events}'") == 0
    assert (job.end().oom_kills, job.end().memory) == (3, 123456)


@pytest.mark.parametrize(
    "path",
    [
        "user.slice",
        "slurm/job_14711",
        "docker/63d747b6fd22c2e4711a0003f78a44e44",
        "user.slice/user-4711.slice/user@4711.service/app.slice",
        "user.slice/user-0.slice/session-4711.scope",
    ],
)
def test_a_cgroup_that_is_shared_tells_nothing(tmp_path, path):
    job = Job(tmp_path / "w")
    job.root = str(tmp_path / "node")
    (tmp_path / "node/proc/self").mkdir(parents=True)
    (tmp_path / "node/proc/self/cgroup").write_text(f"0::/{path}\n")
    group = tmp_path / "node/sys/fs/cgroup" / path
    group.mkdir(parents=True)
    (group / "memory.events").write_text("oom_kill 2\n")
    (group / "memory.peak").write_text("123456\n")
    assert job.alone("true") == 0
    assert (job.end().oom_kills, job.end().memory) == (None, None)


def test_a_cgroup_that_cannot_be_read_tells_nothing(tmp_path):
    job = Job(tmp_path / "w")
    job.root = str(tmp_path / "node")
    (tmp_path / "node/proc/self").mkdir(parents=True)
    (tmp_path / "node/proc/self/cgroup").write_text("4:memory:/job_4711\n")
    assert job.alone("true") == 0
    assert (job.end().oom_kills, job.end().memory) == (None, None)


def test_a_number_of_elements_that_does_not_fit_the_request_is_an_error(tmp_path):
    job = Job(tmp_path / "w")
    with pytest.raises(ValueError, match="2 elements"):
        render_job([JobElement(submissions=(job.submission(1, "true"),))] * 2, None, None, job.folder)
