"""`treadle exec`: one task in front, as a run would run it, with a terminal and without a trace."""

from __future__ import annotations

import json
import os
import subprocess

import pexpect
import pytest
from story_folder import TREADLE

FLOW = """
[config.token]
default = "hunter2-hunter2"
sensitive = true

[[values]]
name = "part"
values = ["a", "b"]

[[rules]]
name = "make"
input = ["in.txt"]
output = ["deep/down/{part}.txt"]
envvars = { COLOUR = "blue {part}" }
shell = '''
[ -t 0 ] && echo a terminal || echo no terminal
echo "$COLOUR in $PWD"
cat {input} > {output}
'''

[[rules]]
name = "secret"
output = ["secret.txt"]
shell = "printf %s {config.token} > {output}"

[[rules]]
name = "join"
input = ["deep/down/{part}.txt"]
output = ["all.txt"]
shell = "cat {input} > {output}; exit 5"
"""


@pytest.fixture
def flow(folder):
    folder.flow(FLOW)
    folder.write("in.txt", "in\n")
    return folder


def test_a_task_runs_as_in_a_run_and_nothing_is_recorded(flow):
    done = flow.treadle("exec", "make/part=a")
    assert done.stdout == f"no terminal\nblue a in {flow.path}\n"
    assert "nothing of it is recorded" in done.stderr
    assert flow.read("deep/down/a.txt") == "in\n"
    assert not (flow / ".treadle").exists()
    assert "make/part=a" in flow.will_run()


def test_records_of_earlier_runs_stay_as_they_are(flow):
    flow.treadle("run", "make")
    before = flow.snapshot()
    flow.treadle("exec", "make/part=b")
    assert flow.snapshot() == before


def test_it_has_the_terminal(flow):
    found, status = pexpect.run(
        f"{TREADLE} exec make/part=a", cwd=flow.path, env=flow.env(), withexitstatus=True, timeout=120
    )
    assert b"a terminal" in found
    assert status == 0


def test_its_exit_code_is_that_of_the_task(flow):
    flow.treadle("run", "make")
    flow.treadle("exec", "join", exits=5)
    assert flow.read("all.txt") == "in\nin\n"


def test_the_process_becomes_the_task(flow):
    flow.flow('[[rules]]\nname = "pid"\noutput = ["pid.txt"]\nshell = "echo $$ > {output}"\n')
    process = flow.start("exec", "pid")
    process.communicate(timeout=60)
    assert flow.read("pid.txt") == f"{process.pid}\n"


def test_it_is_no_attempt_of_a_run_and_stays_one_of_the_run_it_is_called_in(flow):
    flow.flow(
        '[[rules]]\nname = "r"\noutput = ["o"]\nshell = "echo attempt=${TREADLE_ATTEMPT-none} > {output}"\n'
    )
    flow.treadle("exec", "r")
    assert flow.read("o") == "attempt=none\n"
    flow.treadle("exec", "r", env=flow.env(TREADLE_ATTEMPT="outer.1"))
    assert flow.read("o") == "attempt=outer.1\n"


def test_it_is_run_from_anywhere_in_the_work_folder_of_its_workflow(flow):
    (flow / "elsewhere").mkdir()
    done = flow.treadle("exec", "../main.oxoflow", "make/part=a", cwd=flow / "elsewhere")
    assert f"in {flow.path}\n" in done.stdout


def test_several_tasks_are_refused_and_listed(flow):
    done = flow.treadle("exec", "make", exits=2)
    assert "make/part=a, make/part=b" in done.stderr
    assert not (flow / "deep").exists()


def test_no_task_is_refused(flow):
    assert "treadle plan --tasks" in flow.treadle("exec", exits=2).stderr


def test_an_output_path_names_its_task(flow):
    flow.treadle("exec", "deep/down/b.txt")
    assert flow.read("deep/down/b.txt") == "in\n"


def test_missing_inputs_are_all_named_with_who_makes_them(flow):
    done = flow.treadle("exec", "join", exits=2)
    for part in "ab":
        assert f"deep/down/{part}.txt" in done.stderr
        assert f"make/part={part} makes it" in done.stderr
    (flow / "in.txt").unlink()
    done = flow.treadle("exec", "make/part=a", exits=2)
    assert "the input in.txt of make/part=a does not exist" in done.stderr
    assert "no task makes it" in done.stderr


def test_a_script_that_is_not_there_is_named(folder):
    folder.flow(
        """
        [[values]]
        name = "part"
        values = ["a"]
        [[rules]]
        name = "r"
        output = ["{part}.txt"]
        script = "{part}.py {output}"
        """
    )
    assert (
        "the script {flowdir}/a.py of r/part=a does not exist" in folder.treadle("exec", "r", exits=2).stderr
    )


def test_a_skipped_task_is_refused(flow):
    flow.flow(FLOW.replace('name = "secret"', 'name = "secret"\nwhen = "false"'))
    assert "treadle why secret" in flow.treadle("exec", "secret", exits=2).stderr


def test_a_secret_goes_through_the_environment_and_is_never_shown(flow):
    done = flow.treadle("exec", "secret", "--print")
    assert "hunter2" not in done.stdout + done.stderr
    assert flow.treadle("exec", "secret").stderr.count("hunter2") == 0
    assert flow.read("secret.txt") == "hunter2-hunter2"


def test_the_script_is_printed_and_does_the_same_by_hand(flow):
    script = flow.treadle("exec", "make/part=a", "--print").stdout
    assert not (flow / "deep").exists()
    (flow / "deep/down").mkdir(parents=True)
    by_hand = subprocess.run(["sh"], input=script, capture_output=True, text=True, cwd="/")
    assert by_hand.stdout == f"no terminal\nblue a in {flow.path}\n"
    found = json.loads(flow.treadle("exec", "make/part=a", "--print", "--json").stdout)
    assert found == {"schema": 1, "task": "make/part=a", "script": script}


def test_json_without_print_is_refused(flow):
    assert "--print" in flow.treadle("exec", "make/part=a", "--json", exits=2).stderr


def test_a_shell_opens_in_the_environment_of_the_task(flow):
    child = pexpect.spawn(
        TREADLE, ["exec", "make/part=b", "--shell"], cwd=flow.path, env=flow.env(), timeout=120
    )
    child.expect("nothing of it is recorded")
    child.sendline('echo "<$COLOUR>" in "$PWD"')
    child.expect_exact(f"<blue b> in {flow.path}")
    child.sendline("exit 4")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 4
    assert not (flow / ".treadle").exists()


def test_a_shell_has_the_prelude_and_needs_no_inputs(flow):
    flow.flow('[defaults]\nshell_prelude = "export PRELUDE=yes"\n' + FLOW)
    (flow / "in.txt").unlink()
    child = pexpect.spawn(TREADLE, ["exec", "make/part=b", "-i"], cwd=flow.path, env=flow.env(), timeout=120)
    child.expect("nothing of it is recorded")
    child.sendline("echo prelude:$PRELUDE")
    child.expect("prelude:yes")
    child.sendline("exit")
    child.expect(pexpect.EOF)
    child.close()


def test_a_program_that_is_not_there_is_named(flow):
    flow.flow('[[rules]]\nname = "r"\noutput = ["o"]\nscript = "s.odd"\ninterpreter = "no-such-program"\n')
    flow.write("s.odd", "")
    done = flow.treadle("exec", "r", exits=3)
    assert "no-such-program" in done.stderr


def test_a_text_that_is_too_long_for_an_argument_runs_from_a_file(flow):
    lines = "\n".join(f": {'x' * 90} {number}" for number in range(2000))
    flow.flow(f"[[rules]]\nname = 'long'\noutput = ['o']\nshell = '''\n{lines}\necho $0 > {{output}}\n'''\n")
    flow.treadle("exec", "long")
    text = flow.read("o").strip()
    assert len(text) > 1
    assert os.stat(os.path.dirname(text)).st_mode & 0o077 == 0, "nobody else can read it"
    os.unlink(text)
    os.rmdir(os.path.dirname(text))


def test_a_list_of_inputs_is_a_file(flow):
    flow.flow(FLOW.replace('"cat {input} > {output}; exit 5"', '"xargs cat < {input.list} > {output}"'))
    flow.treadle("run", "make")
    flow.treadle("exec", "join")
    assert flow.read("all.txt") == "in\nin\n"


SLOW = """
[[rules]]
name = "slow"
output = ["s"]
shell = "touch up; while [ ! -e go ]; do sleep 0.02; done; touch s"
"""


def test_a_run_that_is_at_work_is_told(flow):
    flow.flow(FLOW + SLOW)
    process = flow.start("run", "slow")
    try:
        flow.until("up")
        assert "in use by" in flow.treadle("exec", "make/part=a").stderr
    finally:
        flow.write("go", "")
        process.communicate(timeout=60)
    assert process.returncode == 0
