"""The command line itself: what is said where, wrong words, options of the workflow's own, pipes."""

from __future__ import annotations

import json
import re
import subprocess

import pexpect
import pytest
from story_folder import TREADLE

FLOW = """
[config]
word = "hello"
[config.database]
default = "refs/none"
help = "where the sequences are"

[[values]]
name = "part"
values = ["a", "b"]

[[rules]]
name = "say"
output = ["out/{part}.txt"]
shell = "echo {config.word} {config.database} > {output}"
"""


def test_no_arguments_print_the_commands_to_stderr_and_exit_2(folder):
    done = folder.treadle(exits=2)
    assert done.stdout == ""
    for command in ("init", "run", "plan", "why", "status", "logs", "exec", "check", "evict", "clean"):
        assert re.search(rf"^  {command} ", done.stderr, re.M)


def test_help_is_data_and_exits_0(folder):
    assert "treadle COMMAND --help" in folder.treadle("--help").stdout
    shown = folder.treadle("run", "--help").stdout
    assert "--keep-going" in shown
    assert "KEY=VALUE" in shown


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_one_line(folder, option):
    assert re.fullmatch(r"treadle \d+\.\d+\S*\n", folder.treadle(option).stdout)


def test_a_mistyped_command_names_the_nearest(folder):
    done = folder.treadle("statsu", exits=2)
    assert "no command 'statsu'" in done.stderr
    assert "did you mean 'status'?" in done.stderr


@pytest.mark.parametrize(
    ("args", "near"),
    [
        (("plan", "--taks"), "--tasks"),
        (("status", "--rnus"), "--runs"),
        (("run", "--keep-goign"), "--keep-going"),
        (("unlock", "--froce"), "--force"),
        (("clean", "--faield"), "--failed"),
    ],
)
def test_a_mistyped_option_names_the_nearest(folder, args, near):
    folder.flow(FLOW)
    done = folder.treadle(*args, exits=2)
    assert args[1] in done.stderr
    assert f"did you mean '{near}'?" in done.stderr
    assert not (folder / "out").exists()


def test_an_option_without_its_value_is_an_error_with_a_way_out(folder):
    folder.flow(FLOW)
    assert "--help lists the options" in folder.treadle("run", "-j", exits=2).stderr


@pytest.mark.parametrize(
    "options",
    [
        ("-j", "none"),
        ("-j", "0"),
        ("-j", ""),
        ("--memory", "lots"),
        ("--max-failures", "0"),
        ("--grace", "soon"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_before_anything_runs(folder, options):
    folder.flow(FLOW)
    assert folder.treadle("run", *options, exits=2).stderr.startswith("error: ")
    assert not (folder / ".treadle").exists()


@pytest.mark.parametrize("how", [("word=moin",), ("--config", "word=moin"), ("main.oxoflow", "word=moin")])
def test_a_config_value_is_set_with_and_without_the_option(folder, how):
    folder.flow(FLOW)
    folder.treadle("run", *how)
    assert folder.read("out/a.txt").startswith("moin ")


@pytest.mark.parametrize("how", [("--database", "refs/nt"), ("--database=refs/nt",), ("database=refs/nt",)])
def test_a_declared_key_is_an_option(folder, how):
    folder.flow(FLOW)
    folder.treadle("run", *how)
    assert folder.read("out/b.txt") == "hello refs/nt\n"


def test_an_option_that_the_workflow_does_not_declare_is_an_error_with_the_nearest_key(folder):
    folder.flow(FLOW)
    done = folder.treadle("run", "--databse", "refs/nt", exits=2)
    assert "--databse" in done.stderr
    assert "did you mean 'database'?" in done.stderr
    assert not (folder / "out").exists()


DECLARED = """
    [config]
    samples = { default = "all", help = "which ones" }
    depth = { default = 1, type = "int", range = "-9..9" }
    quick = { default = false, type = "bool" }
    mode = { default = "fast", choices = ["fast", "slow"] }
    reference = { default = "main.oxoflow", type = "path", must_exist = true }
    word = { required = true }

    [[rules]]
    name = "r"
    output = ["r.txt"]
    shell = "echo {config.samples} {config.depth} {config.quick} {config.mode} {config.word} > {output}"
"""


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["--word", "hi"], "all 1 false fast hi"),
        (["--word=hi", "--depth", "-3", "--quick"], "all -3 true fast hi"),
        (["--quick", "--mode=slow", "word=a=b"], "all 1 true slow a=b"),
        (["word=hi", "samples=x", "--config", "depth=2"], "x 2 false fast hi"),
    ],
)
def test_declared_keys_are_set_in_every_way(folder, words, made):
    folder.flow(DECLARED)
    folder.treadle("run", *words)
    assert folder.read("r.txt") == f"{made}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--word"], "--word sets the config key 'word', and has no value"),
        (["--word", "--quick"], "--word sets the config key 'word', and has no value"),
        (["--word=hi", "--depth=10"], "the whole number 10 of 'depth' is not within -9..9"),
        (["--word=hi", "--depth=1.5"], "'1.5' is not a whole number"),
        (["--word=hi", "--mode=quick"], "the text 'quick' of 'mode' is not one of: fast, slow"),
        (["--word=hi", "--reference=none"], "the text 'none' of 'reference' does not exist"),
        (["--word=hi", "--samples", "x"], "--config samples=VALUE"),
        ([], "the config key 'word' is required"),
    ],
)
def test_a_declared_key_that_does_not_fit_is_told(folder, words, told):
    folder.flow(DECLARED)
    assert told in folder.treadle("run", *words, exits=2).stderr
    assert not (folder / "r.txt").exists()


def test_an_option_of_ours_that_is_a_key_too_is_ours_where_the_key_is_set_otherwise(folder):
    folder.flow(DECLARED)
    told = folder.treadle("run", "--word=hi", "samples=x", "--samples", "s1", exits=2).stderr
    assert "there is no sample 's1'" in told


def test_a_plain_key_is_no_option(folder):
    folder.flow(FLOW)
    folder.treadle("run", "--word", "moin", exits=2)


def test_an_unknown_config_key_is_an_error(folder):
    folder.flow(FLOW)
    assert "wrod" in folder.treadle("plan", "--config", "wrod=x", exits=2).stderr


def test_a_setting_without_a_key_is_an_error(folder):
    folder.flow(FLOW)
    assert "KEY=VALUE" in folder.treadle("plan", "--config", "moin", exits=2).stderr


def test_an_unknown_target_names_the_nearest(folder):
    folder.flow(FLOW)
    done = folder.treadle("run", "sya", exits=2)
    assert "did you mean 'say'?" in done.stderr


def test_the_only_workflow_of_a_folder_is_taken_and_of_two_none(folder):
    folder.flow(FLOW, name="one.oxoflow")
    assert folder.plan()["name"] == "story"
    folder.flow(FLOW, name="two.oxoflow")
    done = folder.treadle("plan", exits=2)
    assert "one.oxoflow" in done.stderr
    assert "two.oxoflow" in done.stderr


def test_without_a_workflow_the_way_to_one_is_named(folder):
    assert "treadle init" in folder.treadle("plan", exits=2).stderr


def test_errors_are_json_on_wish_and_words_on_stderr_still(folder):
    folder.flow(FLOW.replace("output =", "outptu ="))
    done = folder.treadle("plan", "--json", exits=2)
    found = json.loads(done.stdout)
    assert found["exit_code"] == 2
    error = next(one for one in found["errors"] if one["code"] == "unknown-key")
    assert error["place"]["line"] > 1
    assert error["hint"] == "did you mean 'output'?"
    assert "outptu" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("plan", "--json"),
        ("why", "say", "--json"),
        ("graph", "--json"),
        ("check", "--json"),
        ("run", "--json"),
        ("touch", "--json", "-h"),
    ],
)
def test_a_run_and_what_leads_to_it_print_one_json_object(folder, args):
    folder.flow(FLOW)
    done = folder.treadle(*args)
    if "-h" not in args:
        assert json.loads(done.stdout)["schema"] == 1


def test_what_follows_a_run_prints_one_json_object_each(folder):
    folder.flow(FLOW)
    folder.treadle("run")
    for args in (
        ("status",),
        ("status", "--runs"),
        ("logs", "say"),
        ("exec", "say/part=a", "--print"),
        ("touch",),
        ("evict", "say/part=a", "-y"),
        ("clean", "-y"),
        ("unlock",),
    ):
        assert json.loads(folder.treadle(*args, "--json").stdout)["schema"] == 1, args


ERRORS = [
    ("init", "--template", "nothing"),
    ("run", "nothing"),
    ("plan", "nothing"),
    ("why",),
    ("status",),
    ("logs", "nothing"),
    ("exec", "say/part=a"),
    ("graph", "--format", "nothing"),
    ("touch",),
    ("evict", "nothing"),
    ("clean", "nothing"),
    ("unlock", "--workdir", "nothing"),
    ("completion", "nothing"),
    ("nothing",),
]


@pytest.mark.parametrize("args", ERRORS, ids=[args[0] for args in ERRORS])
def test_an_error_of_any_command_is_one_json_object(folder, args):
    folder.flow(FLOW)
    done = folder.treadle(*args, "--json", exits=2)
    found = json.loads(done.stdout)
    assert (found["schema"], found["exit_code"]) == (1, 2)
    assert found["errors"][0]["code"]
    assert found["errors"][0]["message"] in done.stderr


def test_a_run_as_json_tells_its_id_and_counts_what_it_left_alone(folder):
    folder.flow(
        FLOW + '\n[[rules]]\nname = "never"\noutput = ["never.txt"]\nwhen = "1 == 2"\nshell = "exit 1"\n'
    )
    found = json.loads(folder.treadle("run", "say/part=a", "never", "--json").stdout)
    assert found["run"] == folder.runs()[-1]
    assert (found["counts"]["succeeded"], found["counts"]["skipped"]) == (1, 1)
    found = json.loads(folder.treadle("run", "--json").stdout)
    assert (found["counts"]["succeeded"], found["counts"]["up_to_date"], found["counts"]["skipped"]) == (
        1,
        1,
        1,
    )
    found = json.loads(folder.treadle("run", "--json").stdout)
    assert found["run"] == ""
    assert (found["counts"]["succeeded"], found["counts"]["up_to_date"], found["counts"]["skipped"]) == (
        0,
        2,
        1,
    )
    told = json.loads(folder.treadle("status", "--json").stdout)
    assert (told["counts"]["tasks"], told["counts"]["up_to_date"], told["counts"]["skipped"]) == (3, 1, 1)
    assert "1 done, 1 up to date, 1 skipped" in folder.treadle("status").stdout


def test_quiet_says_nothing_when_all_is_well(folder):
    folder.flow(FLOW)
    for args in (("run",), ("touch",), ("check",), ("clean", "-y"), ("unlock",)):
        done = folder.treadle(*args, "--quiet")
        assert done.stderr == "", args


def test_quiet_still_says_errors(folder):
    folder.flow(FLOW)
    assert folder.treadle("run", "nothing-of-that-name", "--quiet", exits=2).stderr.startswith("error: ")


def test_data_goes_to_stdout_and_talk_to_stderr(folder):
    folder.flow(FLOW)
    done = folder.treadle("plan", "--tasks")
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["say/part=a:", "say/part=b:"]
    assert "2 tasks of 2 will run" in done.stderr


def test_a_pipe_gets_no_colour_and_a_terminal_does(folder):
    folder.flow(FLOW)
    env = {key: value for key, value in folder.env(TERM="xterm").items() if key != "NO_COLOR"}
    assert "\x1b" not in folder.treadle("plan", "--tasks", env=env).stdout
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        found = pexpect.run(f"{TREADLE} plan --tasks", cwd=folder.path, env={**env, **more}, timeout=120)
        assert (b"\x1b[" in found) is coloured


def test_colour_can_be_forced_into_a_pipe(folder):
    folder.flow(FLOW)
    env = {key: value for key, value in folder.env(FORCE_COLOR="1").items() if key != "NO_COLOR"}
    assert "\x1b[" in folder.treadle("plan", "--tasks", env=env).stdout


def test_a_reader_that_goes_away_is_no_error(folder):
    names = ", ".join(f'"p{number}"' for number in range(3000))
    folder.flow(FLOW.replace('"a", "b"', names))
    done = subprocess.run(
        ["bash", "-c", f"'{TREADLE}' plan --tasks | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=folder.path,
        env=folder.env(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    first, status = done.stdout.splitlines()
    assert first.startswith("will run")
    assert status in ("0", "141")


def test_a_work_folder_elsewhere_takes_outputs_and_records(folder):
    folder.flow(FLOW)
    (folder / "there").mkdir()
    folder.treadle("run", "--workdir", "there")
    assert (folder / "there/out/a.txt").exists()
    assert (folder / "there/.treadle").is_dir()
    assert not (folder / ".treadle").exists()
    assert "done" in folder.treadle("status", "--workdir", "there").stdout


def test_a_work_folder_that_is_not_there_is_an_error(folder):
    folder.flow(FLOW)
    assert "does not exist" in folder.treadle("plan", "--workdir", "nowhere", exits=2).stderr
