"""What containers see: the folders where files really are, each once."""

from __future__ import annotations

from pathlib import Path

from treadle.engine.containers import container_words, seen_folders
from treadle.plan.environment import Environment
from treadle.plan.task import Command, ScheduledTask
from treadle.plan.tokens import WORKDIR


def seen(folder: Path, *paths: str) -> set[str]:
    return set(seen_folders(paths, str(folder), str(folder)))


def test_the_work_folder_covers_all_that_lies_in_it(tmp_path):
    (tmp_path / "a").mkdir()
    assert seen(tmp_path, "a/x.txt", "y.txt") == {str(tmp_path)}


def test_links_are_followed_to_the_end_and_each_folder_on_the_way_is_seen(tmp_path):
    work, one, two = (tmp_path / name for name in ("work", "one", "two"))
    for folder in (work, one, two):
        folder.mkdir()
    (two / "x").write_text("")
    (one / "x").symlink_to("../two/x")
    (work / "x").symlink_to(one / "x")
    assert seen(work, "x") == {str(work), str(one), str(two)}


def test_a_work_folder_behind_a_link_is_seen_under_both_names(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert seen(tmp_path / "link") == {str(tmp_path / "real"), str(tmp_path / "link")}


def test_links_in_a_circle_and_into_nowhere_are_no_trouble(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "c").symlink_to("/nowhere/at/all")
    assert seen(tmp_path, "a", "c") == {str(tmp_path)}


def test_urls_and_the_root_are_not_bound(tmp_path):
    assert seen(tmp_path, "s3://bucket/x", "/x") == {str(tmp_path)}


def test_a_folder_directly_below_the_root_is_bound_itself(tmp_path):
    assert "/usr" in seen(tmp_path, "/usr")


def words(folder: Path, program: str, bound: tuple[str, ...] = (), **command: object) -> dict[str, str]:
    task = ScheduledTask(id="a", rule="a", command=Command(**command))  # type: ignore[arg-type]
    environment = Environment(kind="docker", said=(), entry="", container=program, bound=bound)
    return container_words(task, environment, str(folder), str(folder), ())


def test_colons_and_commas_in_paths_take_the_longer_option(tmp_path):
    folder = tmp_path / 'a:b, "c"'
    folder.mkdir()
    for program in ("docker", "apptainer"):
        binds = words(folder, program)["binds"]
        assert binds.startswith("--mount 'type=bind,\"source=")
        assert 'a:b, ""c""' in binds


def test_variables_are_named_and_their_values_are_not(tmp_path):
    found = words(tmp_path, "docker", env=(("A", "secret"),), secrets=("TREADLE_SECRET_KEY",))
    assert found["variables"] == "--env TREADLE_ATTEMPT --env A --env TREADLE_SECRET_KEY"
    assert words(tmp_path, "apptainer", env=(("A", "b"),))["variables"] == ""


def test_what_is_no_container_needs_none_of_this(tmp_path):
    assert words(tmp_path, "") == {}


def test_what_the_author_binds_is_not_bound_a_second_time(tmp_path):
    assert words(tmp_path, "docker")["binds"] == f"--volume {tmp_path}:{tmp_path}"
    assert words(tmp_path, "docker", bound=(str(tmp_path),))["binds"] == ""
    assert words(tmp_path, "docker", bound=(WORKDIR,))["binds"] == ""
