"""Secrets: never in a plan, a record, a script or a log that is shown."""

from __future__ import annotations

import json

SECRET = "s3cr3t-'quoted\"-$value"
HEAD = """[workflow]
name = "story"
strict_shell = true
[config]
token = { type = "string", required = true, sensitive = true }
"""
FLOW = """
[[rules]]
name = "good"
output = ["good.txt"]
log = "good.log"
shell = "echo token {config.token} >&2; printf %s {config.token} | wc -c > {output}"

[[rules]]
name = "bad"
output = ["bad.txt"]
shell = "echo token {config.token}; false"
"""


def everything(folder) -> bytes:
    """All bytes of all files of the work folder and its state."""
    files = (path for path in folder.path.rglob("*") if path.is_file() and path.name != "main.oxoflow")
    return b"\0".join(path.read_bytes() for path in sorted(files))


def test_the_job_gets_the_value_and_no_file_of_ours_keeps_it(folder):
    folder.flow(FLOW, head=HEAD)
    done = folder.treadle("run", "-k", "--config", f"token={SECRET}", exits=1)
    assert folder.read("good.txt").split() == [str(len(SECRET))]
    kept = everything(folder)
    for part in (SECRET, "s3cr3t"):
        assert part.encode() not in kept
        assert part not in done.stdout + done.stderr


def test_logs_are_masked_and_their_owner_s_alone(folder):
    folder.flow(FLOW, head=HEAD)
    folder.treadle("run", "-k", f"token={SECRET}", exits=1)
    for task in ("good", "bad"):
        assert folder.treadle("logs", task).stdout == "token ***\n"
    assert folder.read("good.log") == "token ***\n"
    assert (folder / "good.log").stat().st_mode & 0o777 == 0o600


def test_another_token_runs_nothing_again(folder):
    folder.flow(FLOW.split('[[rules]]\nname = "bad"')[0], head=HEAD)
    folder.treadle("run", f"token={SECRET}")
    assert folder.will_run("token=another") == set()


def test_a_command_that_is_named_to_go_on_does_not_hold_it(folder):
    up = '[[rules]]\nname = "up"\ninput = ["good.txt"]\noutput = ["up.txt"]\n'
    folder.flow(FLOW + up + 'shell = "cat {input} > {output}"\n', head=HEAD)
    folder.treadle("run", "up", f"token={SECRET}")
    (folder / "good.txt").unlink()
    done = folder.treadle("plan", "up", f"token={SECRET}")
    assert "treadle evict good.txt --config" in done.stderr
    assert "s3cr3t" not in done.stderr
    assert "s3cr3t" not in folder.treadle("run", "bad", f"token={SECRET}", exits=1).stderr


def test_what_was_no_secret_once_is_not_shown_as_an_old_value(folder):
    rule = '[[rules]]\nname = "r"\noutput = ["o.txt"]\nshell = "echo {config.token} > {output}"\n'
    folder.flow(rule, head=HEAD.replace(", sensitive = true", ""))
    folder.treadle("run", "token=hush-hush")
    folder.flow(rule, head=HEAD)
    shown = folder.treadle("why", "r", "token=hush-hush").stdout
    assert "-echo *** > o.txt" in shown
    assert '+echo "${TREADLE_SECRET_TOKEN}" > o.txt' in shown
    for args in (("why", "r", "--json"), ("plan", "--json")):
        assert "hush" not in folder.treadle(*args, "token=hush-hush").stdout


def test_a_secret_that_is_a_number_spoils_no_record(folder):
    head = HEAD.replace('type = "string"', 'type = "int"')
    rule = '[[rules]]\nname = "r"\noutput = ["o.txt"]\nresources = { threads = 2 }\n'
    folder.flow(rule + 'shell = "echo pin {config.token} > {output}"\n', head=head)
    folder.treadle("run", "token=2")
    assert folder.read("o.txt") == "pin 2\n"
    (task,) = json.loads(folder.read(".treadle/runs/latest/plan.json"))["tasks"]
    assert task["resources"] == {"threads": 2}
    assert folder.will_run("token=2") == set()
    assert json.loads(folder.treadle("status", "--json").stdout)["counts"]["succeeded"] == 1


def test_plans_and_reasons_show_the_variable_not_the_value(folder):
    folder.flow(FLOW, head=HEAD)
    for command in (["plan", "--json"], ["plan", "--tasks"], ["why", "good"], ["exec", "--print", "good"]):
        done = folder.treadle(*command, f"token={SECRET}")
        assert "s3cr3t" not in done.stdout + done.stderr


def test_each_item_of_a_sensitive_list_is_a_secret(folder):
    head = HEAD.replace(
        "token = {", 'keys = { default = ["firstkey", "otherkey"], sensitive = true }\ntoken = {'
    )
    folder.flow(
        """
        [[rules]]
        name = "each"
        output = ["each.txt"]
        shell = "for key in $KEYS; do echo got $key; done; echo > {output}"
        envvars = { KEYS = "{config.keys}" }
        """,
        head=head,
    )
    folder.treadle("run", f"token={SECRET}", "--config", "keys=thirdkey,lastkey")
    assert folder.treadle("logs", "each").stdout == "got ***\ngot ***\n"
    assert b"thirdkey" not in everything(folder)


SCRATCH = """
[[rules]]
name = "r"
output = ["r.txt"]
scratch = true
log = "r.log"
shell = "echo token {config.token} >&2; pwd; printf %s {config.token} | wc -c > {output}; FAIL"
"""


def test_a_private_folder_keeps_no_secret_of_its_own(folder):
    folder.flow(SCRATCH.replace("FAIL", "false"), head=HEAD)
    done = folder.treadle("run", f"token={SECRET}", "--set", "r.threads=1", exits=1)
    assert "its private folder is kept" in folder.treadle("logs", "r").stdout
    folder.flow(SCRATCH.replace("FAIL", ":"), head=HEAD)
    folder.treadle("run", f"token={SECRET}", "--set", "r.account=s3cr3t-account")
    assert folder.read("r.txt").split() == [str(len(SECRET))]
    assert folder.read("r.log").startswith("token ***\n")
    for text in (SECRET, "s3cr3t-'"):
        assert text.encode() not in everything(folder)
        assert text not in done.stdout + done.stderr


def test_a_gather_that_lacks_inputs_reads_its_secret_from_the_environment(folder):
    folder.flow(
        """
        [[values]]
        name = "s"
        values = ["a", "b"]

        [[rules]]
        name = "one"
        output = ["{s}.txt"]
        shell = "test {s} = b && echo {s} > {output}"

        [[rules]]
        name = "all"
        input = ["{s}.txt"]
        output = ["all.txt"]
        allow_missing = 1
        shell = "cat {input} > {output}; echo {config.token}; printf %s {config.token} | wc -c >> {output}"
        """,
        head=HEAD,
    )
    folder.treadle("run", f"token={SECRET}", exits=1)
    assert folder.read("all.txt").split() == ["b", str(len(SECRET))]
    assert b"s3cr3t" not in everything(folder)


def test_a_secret_that_is_set_by_an_option_of_its_name_is_masked_as_well(folder):
    folder.flow(FLOW, head=HEAD)
    done = folder.treadle("run", "-k", "--token", SECRET, exits=1)
    assert "s3cr3t" not in done.stdout + done.stderr
    assert b"s3cr3t" not in everything(folder)
