"""Profiles and included files together: overrides by full names and patterns, defaults, config in layers."""

from __future__ import annotations

import pathlib

import pytest

from treadle.base.errors import WorkflowError
from treadle.rules.expand.expand import expand
from treadle.rules.file.read import ReadOptions, read
from treadle.rules.pattern.listing import PathListing
from treadle.rules.schema import Rule, Workflow

MADE = '[[rules]]\nname = "{0}"\noutput = ["{1}{0}"]\nshell = "echo {{config.level}} > {{output}}"\n'
GIB = 1 << 30


class World:
    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def put(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def read(
        self,
        profile: str = "",
        main: str = "",
        module: str = "",
        head: str = "",
        settings: tuple[tuple[str, str, str], ...] = (),
    ) -> Workflow:
        self.put(
            "main.oxoflow",
            f'[workflow]\nname = "w"\nstrict_shell = true\n{head}\n[[include]]\npath = "qc.oxoflow"\n'
            f'namespace = "qc"\nparams = {{ level = "params" }}\n{main}\n' + MADE.format("trim", "m/"),
        )
        self.put("qc.oxoflow", f"{module}\n" + MADE.format("trim", "") + MADE.format("count", ""))
        self.put("profiles/p.toml", profile)
        options = ReadOptions(profiles=("p",), settings=settings)
        return read(str(self.root / "main.oxoflow"), options)

    def rules(self, *args: str, **options) -> dict[str, Rule]:
        return {rule.name: rule for rule in self.read(*args, **options).rules}

    def levels(self, *args: str, **options) -> dict[str, str]:
        drafts = expand(self.read(*args, **options), PathListing([])).drafts
        return {draft.rule: draft.command.text.split()[1] for draft in drafts}


@pytest.fixture
def world(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    return World(tmp_path)


def test_overrides_name_rules_by_their_full_names_and_by_patterns(world):
    found = world.rules(
        '[rules."qc::*".resources]\nmemory = "2G"\n[rules."qc::trim".resources]\nthreads = 3\n'
        "[rules.trim.resources]\nthreads = 5\n"
    )
    asked = {name: (rule.resources.threads, rule.resources.memory) for name, rule in found.items()}
    assert asked == {"trim": (5, None), "qc::trim": (3, 2 * GIB), "qc::count": (1, 2 * GIB)}


def test_a_name_without_its_namespace_is_told_with_the_full_one(world):
    (warning,) = world.read("[rules.count.resources]\nthreads = 2\n").warnings
    assert (warning.code, warning.hint) == ("unknown-rule", "did you mean 'qc::count'?")


def test_a_setting_for_one_run_takes_full_names_and_beats_the_profile(world):
    settings = (("qc::trim", "memory", "9G"), ("qc::c*", "threads", "2"))
    found = world.rules('[rules."*".resources]\nmemory = "2G"\nthreads = 7\n', settings=settings)
    assert found["qc::trim"].resources.memory == 9 * GIB
    assert found["qc::count"].resources.threads == 2
    with pytest.raises(WorkflowError) as caught:
        world.read(settings=(("count", "memory", "9G"),))
    assert caught.value.diagnostics[0].code == "unknown-rule"


def test_such_a_setting_can_be_typed():
    from treadle.cli.options import _override

    assert _override("qc::trim.memory=9G") == ("qc::trim", "memory", "9G")
    assert _override("qc::*.extra_args=--a.b=c") == ("qc::*", "extra_args", "--a.b=c")


def test_a_profile_that_fills_stands_below_the_defaults_of_all_files(world):
    profile = '[defaults]\nthreads = 2\nmemory = "1G"\nshell_prelude = "set -u"\n'
    found = world.rules(profile, main="[defaults]\nthreads = 3\n", module='[defaults]\nmemory = "4G"\n')
    asked = {name: (rule.resources.threads, rule.resources.memory) for name, rule in found.items()}
    assert asked == {"trim": (3, GIB), "qc::trim": (3, 4 * GIB), "qc::count": (3, 4 * GIB)}
    assert {rule.policy.shell.prelude for rule in found.values()} == {"set -u"}


def test_a_profile_that_overrides_stands_above_them(world):
    profile = '[defaults]\nthreads = 2\nmemory = "1G"\n'
    found = world.rules(
        profile,
        head='profile_mode = "override"',
        main="[defaults]\nthreads = 3\n",
        module='[defaults]\nmemory = "4G"\n',
    )
    assert {(rule.resources.threads, rule.resources.memory) for rule in found.values()} == {(2, GIB)}


@pytest.mark.parametrize(
    ("profile", "main", "head", "level"),
    [
        ("", "", "", "params"),
        ('[config]\nlevel = "profile"\n', "", "", "profile"),
        ('[config]\nlevel = "profile"\n', '[config]\nlevel = "main"\n', "", "main"),
        ('[config]\nlevel = "profile"\n', '[config.level]\ndefault = "main"\n', "", "profile"),
        (
            '[config]\nlevel = "profile"\n',
            '[config]\nlevel = "main"\n',
            'profile_mode = "override"',
            "profile",
        ),
    ],
)
def test_a_profile_counts_before_params_and_what_the_file_itself_says(world, profile, main, head, level):
    module = '[config]\nlevel = "module"\n'
    found = world.levels(profile, main=main, head=head, module=module)
    assert set(found.values()) == {level}


def test_a_ceiling_of_the_site_binds_rules_of_included_files(world):
    from treadle.rules.profile.partitions import beyond_site

    world.put("etc/treadle/site.toml", "[ceilings]\nthreads = 4\n")
    profile = (
        '[cluster]\nbackend = "slurm"\n[partitions.small]\nthreads = 8\n[partitions.tiny]\nthreads = 1\n'
    )
    profile += '[rules."qc::count".resources]\nthreads = 9\n'
    workflow = world.read(profile)
    assert workflow.cluster is not None
    found = [one for rule in workflow.rules for one in beyond_site(rule, workflow.cluster)]
    assert [one.code for one in found] == ["beyond-site", "no-partition"]
    assert all("rule qc::count" in one.message for one in found)
