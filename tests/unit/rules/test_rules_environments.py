"""`environment` tables: one kind each, files read, all that is wrong told with its place."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from treadle.base.errors import WorkflowError
from treadle.plan.environment import Environment
from treadle.rules.file.read import read_text

HEAD = '[workflow]\nname = "x"\nstrict_shell = true\n'


def flow(environment: str, more: str = "", rule: str = "") -> str:
    field = f"environment = {environment}\n" if environment else ""
    return f'{HEAD}{more}\n[[rules]]\nname = "a"\noutput = ["o"]\n{field}{rule}\nshell = "touch o"\n'


def read(environment: str, folder: Path, more: str = "", rule: str = "") -> Environment:
    workflow = read_text(flow(environment, more, rule), folder=str(folder))
    found = workflow.rules[0].policy.environment
    assert found is not None
    return found


def wrong(environment: str, folder: Path, more: str = "", rule: str = "") -> list[tuple[str, str]]:
    """(code, key) of each error."""
    with pytest.raises(WorkflowError) as caught:
        read_text(flow(environment, more, rule), folder=str(folder))
    return [(one.code, one.place.key) for one in caught.value.diagnostics]


REFUSED = [
    ("{ conda = 'x', docker = 'y' }", "several-environments", "environment.docker"),
    ("{ singularity = 'x', apptainer = 'y' }", "several-environments", "environment.apptainer"),
    ("{ args = ['x'] }", "no-environment", "environment.args"),
    ("{ conda = 'x', venv_requirements = 'r.txt' }", "misplaced-extra", "environment.venv_requirements"),
    ("{ venv = 'x', args = ['y'] }", "misplaced-extra", "environment.args"),
    ("{ conda = 'x', conda_prefix = 'y' }", "misplaced-extra", "environment.conda_prefix"),
    ("{ conda = 'nowhere.yml' }", "no-environment-file", "environment.conda"),
    ("{ venv = 'x', venv_requirements = 'nowhere' }", "no-environment-file", "environment.venv_requirements"),
    ("{ apptainer = 'nowhere.sif' }", "no-environment-file", "environment.apptainer"),
    ("{ pixi = 'nowhere' }", "no-environment-file", "environment.pixi"),
    ("{ docker = 'docker://x' }", "bad-image", "environment.docker"),
    ("{ docker = '--privileged' }", "bad-image", "environment.docker"),
    ("{ docker = 'x', binds = ['a:b:c:d'] }", "bad-bind", "environment.binds[0]"),
    ("{ docker = 'x', binds = ['/a', '/a:/b:no'] }", "bad-bind", "environment.binds[1]"),
    ("{ docker = 'x:{sample}' }", "bad-placeholder", "environment.docker"),
    ("{ docker = 'x:{config.nothing}' }", "unknown-config", "environment.docker"),
    ("{ docker = 'x:{config.key}' }", "secret-in-path", "environment.docker"),
    ("{ modules = [] }", "empty", "environment.modules"),
    ("{ modules = ['a', '-x'] }", "bad-name", "environment.modules[1]"),
    ("{ modules = 3 }", "wrong-type", "environment.modules"),
    ("{ condo = 'x' }", "unknown-key", "environment.condo"),
    ("'qc.yml'", "wrong-type", "environment"),
]


@pytest.mark.parametrize(("environment", "code", "key"), REFUSED)
def test_what_cannot_be_meant_is_an_error_at_its_key(tmp_path, environment, code, key):
    more = '[config]\nkey = { default = "s", sensitive = true }\n'
    assert (code, key) in wrong(environment, tmp_path, more)


def test_a_group_that_is_not_there_is_named_with_the_nearest(tmp_path):
    more = "[env_groups]\npython = { modules = 'python' }\n"
    with pytest.raises(WorkflowError) as caught:
        read_text(flow("", more, 'env_group = "pyhton"'), folder=str(tmp_path))
    (one,) = caught.value.diagnostics
    assert (one.code, one.place.key) == ("unknown-environment", "env_group")
    assert "did you mean 'python'?" in one.hint


def test_an_environment_and_a_group_are_one_too_many(tmp_path):
    more = "[env_groups]\nqc = { modules = 'm' }\n"
    assert wrong("{ modules = 'n' }", tmp_path, more, 'env_group = "qc"') == [
        ("several-environments", "env_group")
    ]


def test_groups_that_nobody_uses_are_checked_too(tmp_path):
    assert [
        code for code, _ in wrong("", tmp_path, "[env_groups]\nqc = { conda = 'gone.yml' }\nx = 3\n")
    ] == [
        "no-environment-file",
        "wrong-type",
    ]


def test_two_environments_in_one_place_are_refused(tmp_path):
    (tmp_path / "one.txt").write_text("a")
    (tmp_path / "two.txt").write_text("b")
    text = "".join(
        f'[[rules]]\nname = "{name}"\noutput = ["{name}"]\nshell = "touch {name}"\n'
        f'environment = {{ venv = "v", venv_requirements = "{name}.txt" }}\n'
        for name in ("one", "two")
    )
    with pytest.raises(WorkflowError) as caught:
        read_text(HEAD + text, folder=str(tmp_path))
    assert [one.code for one in caught.value.diagnostics] == ["environment-twice"]


def test_a_rule_takes_its_own_then_its_group_then_the_default(tmp_path):
    more = "[defaults]\nenvironment = { modules = 'default' }\n[env_groups]\nqc = { modules = 'group' }\n"
    assert read("", tmp_path, more).said == (("modules", "default"),)
    assert read("", tmp_path, more, 'env_group = "qc"').said == (("modules", "group"),)
    assert read("{ modules = 'own' }", tmp_path, more).said == (("modules", "own"),)
    assert read_text(flow("{}", more), folder=str(tmp_path)).rules[0].policy.environment is None


def test_a_target_without_a_command_has_no_environment(tmp_path):
    more = "[defaults]\nenvironment = { modules = 'm' }\n[[rules]]\nname = 'all'\ninput = ['o']\n"
    assert read_text(flow("", more), folder=str(tmp_path)).rules[0].policy.environment is None


def test_the_parts_of_a_transform_run_in_its_environment(tmp_path):
    more = """
[defaults]
environment = { modules = "m" }
[[rules]]
name = "t"
input = ["in.txt"]
output = ["t.txt"]
[rules.transform]
split = { by = "part", values = ["x", "y"] }
map = "grep {part} {input} > {output}"
combine = { aggregate = true, method = "concat" }
"""
    rules = read_text(flow("", more), folder=str(tmp_path)).rules
    assert len(rules) > 2
    assert {rule.policy.environment is None for rule in rules} == {False}


def test_rules_with_one_environment_share_its_making(tmp_path):
    (tmp_path / "e.yml").write_text("dependencies: []\n")
    more = '[[rules]]\nname = "b"\noutput = ["p"]\nenvironment = { conda = "e.yml" }\nshell = "touch p"\n'
    rules = read_text(flow("{ conda = 'e.yml' }", more), folder=str(tmp_path)).rules
    makings = [rule.policy.environment.making for rule in rules if rule.policy.environment]
    assert makings[0] is makings[1]
    assert makings[0].task == "env::e"


def test_environments_with_one_name_have_tasks_of_their_own(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "e.yml").write_text(f"# {folder}\n")
    more = '[[rules]]\nname = "b"\noutput = ["p"]\nenvironment = { conda = "y/e.yml" }\nshell = "touch p"\n'
    rules = read_text(flow("{ conda = 'x/e.yml' }", more), folder=str(tmp_path)).rules
    tasks = {rule.policy.environment.making.task for rule in rules if rule.policy.environment}
    assert len(tasks) == 2


def test_only_content_and_what_is_said_tell_environments_apart(tmp_path):
    (tmp_path / "e.yml").write_text("dependencies: []\n")
    one, other = (
        read(text, tmp_path)
        for text in ("{ conda = 'e.yml' }", "{ conda = 'e.yml', conda_prefix = '/elsewhere' }")
    )
    assert (one.said, one.content) == (other.said, other.content)
    (tmp_path / "e.yml").write_text("dependencies: [a]\n")
    assert read("{ conda = 'e.yml' }", tmp_path).content != one.content


def test_who_runs_an_image_is_not_of_its_identity(tmp_path):
    said = {
        read("{ docker = 'x:1' }", tmp_path, f'[defaults]\ncontainer_program = "{program}"\n').said
        for program in ("docker", "podman", "apptainer", "singularity")
    }
    assert len(said) == 1
    assert wrong("{ docker = 'x' }", tmp_path, '[defaults]\ncontainer_program = "dokcer"\n') == [
        ("bad-value", "container_program")
    ]


NASTY = 'it\'s $HOME; `x` "y" \\ (z)'


@pytest.mark.parametrize(
    "environment",
    [
        {"docker": "x:1", "args": [NASTY], "binds": [f"{NASTY}:/in"]},
        {"apptainer": f"docker://{NASTY}", "args": [NASTY]},
        {"conda": f"{NASTY}/prefix"},
        {"conda": NASTY.replace("/", "")},
        {"venv": NASTY},
        {"venv": NASTY, "venv_requirements": f"{NASTY}.txt"},
        {"mamba": f"{NASTY}.yml"},
        {"pixi": f"{NASTY}.toml", "pixi_environment": NASTY},
        {"modules": [NASTY]},
    ],
)
def test_the_texts_are_bash_whatever_characters_there_are(
    tmp_path: Path, environment: dict[str, Any]
) -> None:
    import json

    for ending in (".txt", ".yml", ".toml"):
        (tmp_path / f"{NASTY}{ending}").write_text("")
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in environment.items())
    found = read(f"{{ {table} }}", tmp_path, rule="resources = { gpu = 2 }")
    texts = [found.entry, *([found.making.text] if found.making else [])]
    for text in texts:
        plain = text.replace("\0", "_")
        done = subprocess.run(["bash", "-n", "-c", plain], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_gpus_are_handed_to_containers(tmp_path):
    gpu = "resources = { gpu = 2 }"
    assert "--gpus 2" in read("{ docker = 'x' }", tmp_path, rule=gpu).entry
    assert "--nv" in read("{ apptainer = 'docker://x' }", tmp_path, rule=gpu).entry
    assert "--gpus" not in read("{ docker = 'x' }", tmp_path).entry
    assert "--nv" not in read("{ apptainer = 'docker://x' }", tmp_path).entry
