"""Profiles: where they are found, what stands above what, and what is wrong with them told with its place."""

from __future__ import annotations

import pathlib

import pytest

from treadle.base.errors import OptionError, WorkflowError
from treadle.rules.file.read import ReadOptions, read
from treadle.rules.schema import Workflow

FLOW = """
[workflow]
name = "w"
strict_shell = true
{head}
[config]
mine = "workflow"
[config.declared]
default = "default"
type = "string"
{tables}
[[rules]]
name = "align"
output = ["a"]
shell = "echo {{config.mine}} {{config.declared}} {{config.other}} {{threads}} {{memory}} > a"
{resources}
[[rules]]
name = "sort"
output = ["b"]
shell = "touch b"
"""


class World:
    """A workflow's folder, a home and a site."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "home"))
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(root / "etc"))

    def put(self, where: str, text: str) -> None:
        """A profile: `flow/NAME`, `home/NAME`, `etc/NAME`."""
        place, name = where.split("/")
        folder = {"flow": "flow/profiles", "home": "home/treadle", "etc": "etc/treadle"}[place]
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / folder / f"{name}.toml").write_text(text)

    def read(
        self,
        *profiles: str,
        head: str = "",
        tables: str = "",
        resources: str = "",
        backend: str = "",
        config: tuple[tuple[str, str], ...] = (("other", "o"),),
        settings: tuple[tuple[str, str, str], ...] = (),
    ) -> Workflow:
        folder = self.root / "flow"
        folder.mkdir(exist_ok=True)
        (folder / "main.oxoflow").write_text(FLOW.format(head=head, tables=tables, resources=resources))
        options = ReadOptions(config=config, profiles=profiles, backend=backend, settings=settings)
        return read(str(folder / "main.oxoflow"), options)

    def refused(self, *profiles: str, **given: object) -> list[str]:
        """Code and place of each error."""
        with pytest.raises(WorkflowError) as caught:
            self.read(*profiles, **given)  # type: ignore[arg-type]
        return [
            f"{one.code} {pathlib.Path(one.place.file).name}:{one.place.line}"
            for one in caught.value.diagnostics
        ]


@pytest.fixture
def world(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def values(workflow: Workflow) -> dict[str, object]:
    assert workflow.cluster is not None
    return workflow.cluster.values


def test_the_profile_nearest_to_the_workflow_is_the_one(world: World) -> None:
    for where in ("etc", "home", "flow"):
        world.put(f"{where}/p", f'[cluster]\nbackend = "slurm"\naccount = "{where}"\n')
        assert values(world.read("p"))["account"] == where


def test_a_missing_profile_is_an_error_that_lists_those_there_are(world: World) -> None:
    world.put("flow/near", "")
    world.put("home/mine", "")
    world.put("etc/site", "")
    with pytest.raises(OptionError) as caught:
        world.read("nera")
    text = str(caught.value)
    assert "no profile 'nera'" in text
    assert "there are: mine, near" in text
    assert "'near'?" in text


@pytest.mark.parametrize("name", ["../p", "", ".", "a/b"])
def test_a_profile_is_named_not_a_path(world: World, name: str) -> None:
    world.put("flow/p", "")
    with pytest.raises(OptionError, match="no profile"):
        world.read(name)


def test_a_profile_fills_keys_that_have_no_value(world: World) -> None:
    world.put("flow/p", '[config]\nmine = "profile"\ndeclared = "profile"\nother = "profile"\n')
    assert world.read("p", config=()).config == {
        "mine": "workflow",
        "declared": "profile",  # a default is no value
        "other": "profile",
    }


def test_a_profile_replaces_keys_in_override_mode(world: World) -> None:
    world.put("flow/p", '[config]\nmine = "profile"\nother = "profile"\n')
    found = world.read("p", head='profile_mode = "override"', config=()).config
    assert found == {"mine": "profile", "declared": "default", "other": "profile"}


@pytest.mark.parametrize("mode", ["fill", "override"])
def test_the_command_line_stands_above_all(world: World, mode: str) -> None:
    world.put("flow/p", '[config]\nmine = "profile"\nother = "profile"\n')
    given = (("mine", "line"), ("other", "line"))
    found = world.read("p", head=f'profile_mode = "{mode}"', config=given).config
    assert (found["mine"], found["other"]) == ("line", "line")


def test_the_last_of_several_profiles_counts_most(world: World) -> None:
    world.put("flow/a", '[config]\nother = "a"\n[cluster]\nbackend = "slurm"\nqos = "a"\naccount = "a"\n')
    world.put("flow/b", '[config]\nother = "b"\n[cluster]\nqos = "b"\n')
    found = world.read("a", "b", config=())
    assert found.config["other"] == "b"
    assert values(found) == {"backend": "slurm", "qos": "b", "account": "a"}


@pytest.mark.parametrize(("mode", "partition"), [("fill", "workflow"), ("override", "profile")])
def test_the_cluster_table_follows_the_mode(world: World, mode: str, partition: str) -> None:
    world.put("flow/p", '[cluster]\nbackend = "slurm"\npartition = "profile"\n')
    found = world.read(
        "p", head=f'profile_mode = "{mode}"', tables='[cluster]\npartition = "workflow"\nqos = "low"\n'
    )
    assert values(found) == {"backend": "slurm", "partition": partition, "qos": "low"}


def test_the_workflows_own_cluster_acts_with_a_backend_alone(world: World) -> None:
    table = '[cluster]\nbackend = "slurm"\npartition = "long"\n'
    local = world.read(tables=table)
    assert local.cluster is None
    assert [one.code for one in local.warnings] == ["no-effect"]
    chosen = world.read(tables=table, backend="sge")
    assert chosen.cluster is not None
    assert chosen.cluster.backend == "sge"
    assert chosen.cluster.values["partition"] == "long"
    assert not chosen.warnings


def test_fields_for_schedulers_work_where_there_is_one(world: World) -> None:
    resources = 'localrule = true\ngroup = "g"\npack = "30m"\nresources = { partition = "p" }'
    assert [one.code for one in world.read(resources=resources).warnings] == ["no-effect"] * 4
    found = world.read(resources=resources, backend="slurm")
    assert not found.warnings
    policy = found.rules[0].policy
    assert (policy.localrule, policy.group, policy.pack, policy.pack_time) == (True, "g", 0, 1800)
    assert world.read(resources=resources, backend="local").warnings


def test_defaults_of_a_profile_fill_those_of_the_workflow(world: World) -> None:
    world.put("flow/p", '[defaults]\nthreads = 3\nmemory = "2G"\n')
    found = world.read("p", tables="[defaults]\nthreads = 2\n").rules[1]
    assert (found.resources.threads, found.resources.memory, found.memory_text) == (2, 2 * 1024**3, "2G")


def test_resources_of_a_profile_stand_above_those_of_the_rule(world: World) -> None:
    world.put(
        "flow/p",
        '[rules.align.resources]\nmemory = "9G"\n[rules."*".resources]\nmemory = "5G"\nthreads = 5\n',
    )
    align, sort = world.read("p", resources='resources = { memory = "1G", time_limit = "1h" }').rules
    assert (align.resources.memory, align.memory_text) == (9 * 1024**3, "9G")  # the name beats the pattern
    assert (align.resources.threads, align.resources.time_limit) == (5, 3600)
    assert (sort.resources.memory, sort.resources.threads) == (5 * 1024**3, 5)


def test_a_setting_stands_above_the_profile(world: World) -> None:
    world.put("flow/p", '[rules.align.resources]\nmemory = "9G"\n')
    found = world.read("p", settings=(("align", "memory", "64G"), ("*", "threads", "7")))
    assert found.rules[0].resources.memory == 64 * 1024**3
    assert found.rules[0].memory_text == "64G"
    assert [rule.resources.threads for rule in found.rules] == [7, 7]


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        (("algin", "memory", "1G"), "unknown-rule"),
        (("align", "memroy", "1G"), "unknown-key"),
        (("align", "memory", "lots"), "bad-measure"),
        (("align", "threads", "many"), "wrong-type"),
        (("align", "groups", "db"), "bad-value"),
    ],
)
def test_a_wrong_setting_is_told(world: World, setting: tuple[str, str, str], code: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        world.read(settings=(setting,))
    assert [one.code for one in caught.value.diagnostics] == [code]
    assert "the command line" in str(caught.value)


def test_a_rule_that_a_profile_names_and_nobody_has(world: World) -> None:
    text = "[rules.algin.resources]\nthreads = 2\n"
    world.put("home/far", text)
    world.put("flow/near", text)
    assert not world.read("far").warnings  # it serves other workflows, too
    (warning,) = world.read("near").warnings
    assert warning.code == "unknown-rule"
    assert "align" in warning.hint


def test_all_that_is_wrong_with_a_profile_is_told_at_once_with_its_place(world: World) -> None:
    world.put(
        "flow/p",
        """
[cluster]
backend = "slurn"
walltime = "10:00"
max_submitted = 0
poll_intervall = 3
poll_interval = 0
[rules.align]
threads = 2
[rules.sort.resources]
memory = "big"
[config]
mine = { default = 1 }
[partitions.short]
time = "1h"
[workflow]
name = "x"
""",
    )
    assert world.refused("p") == [
        "unknown-backend p.toml:3",
        "bad-measure p.toml:4",
        "out-of-range p.toml:5",
        "unknown-key p.toml:6",
        "out-of-range p.toml:7",
        "unknown-key p.toml:9",
        "bad-measure p.toml:11",
        "wrong-type p.toml:13",
        "unknown-key p.toml:15",
        "unknown-table p.toml:16",
    ]


def test_a_profile_that_is_no_toml_is_told(world: World) -> None:
    world.put("flow/p", "[cluster\n")
    assert world.refused("p") == ["toml-syntax p.toml:1"]


def test_the_sites_file_takes_part_in_every_run_on_a_backend_and_counts_least(world: World) -> None:
    world.put("etc/site", '[cluster]\naccount = "site"\nqos = "site"\n')
    assert values(world.read(backend="slurm")) == {"account": "site", "qos": "site"}
    world.put("home/p", '[cluster]\nbackend = "slurm"\nqos = "p"\n')
    for mode in ("fill", "override"):
        found = world.read("p", head=f'profile_mode = "{mode}"', tables='[cluster]\naccount = "workflow"\n')
        assert values(found) == {"backend": "slurm", "account": "workflow", "qos": "p"}
    assert world.read().cluster is None


def test_the_site_sets_ceilings_and_a_floor(world: World) -> None:
    world.put("etc/site", "[ceilings]\nmax_submitted = 50\n[floors]\npoll_interval = 30\n")
    table = '[cluster]\nbackend = "slurm"\nmax_submitted = 500\npoll_interval = "2s"\n'
    world.put("home/p", table)
    found = world.read("p")
    assert values(found)["max_submitted"] == 50
    assert values(found)["poll_interval"] == 30
    assert [one.code for one in found.warnings] == ["cut-by-site", "cut-by-site"]
    silent = world.read(backend="slurm")  # who says nothing is not told that it was cut
    assert values(silent) == {"max_submitted": 50, "poll_interval": 30}
    assert not silent.warnings


def test_bounds_in_a_persons_own_profile_bind_nobody(world: World) -> None:
    world.put("home/p", '[cluster]\nbackend = "slurm"\n[ceilings]\nmax_submitted = 5\n')
    found = world.read("p")
    assert "max_submitted" not in values(found)
    assert [one.code for one in found.warnings] == ["no-effect"]


def test_partitions_are_kept_in_their_order(world: World) -> None:
    world.put(
        "flow/p",
        '[cluster]\nbackend = "slurm"\n'
        '[partitions.short]\ntime_limit = "1h"\n[partitions.big]\nmemory = "1T"\n',
    )
    cluster = world.read("p").cluster
    assert cluster is not None
    assert [one.name for one in cluster.partitions] == ["short", "big"]
    assert cluster.partitions[0].time_limit == 3600
