"""Looking at files and changing them."""

from __future__ import annotations

import os
import stat

import pytest

from treadle.base import files
from treadle.base.errors import DiskError


def test_a_look_tells_size_time_and_inode(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    os.utime(path, ns=(1, 1_700_000_000_123_456_789))
    found = files.look(str(path))
    assert found == files.Stat(5, 1_700_000_000_123_456_789, os.stat(path).st_ino, False)
    assert files.look(str(tmp_path)).folder


def test_a_look_follows_links(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    assert files.look(str(tmp_path / "link")) == files.look(str(tmp_path / "a"))


def test_what_is_missing_looks_like_nothing(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("missing", "a/below", "dangling", "loop", "missing/deeper"):
        assert files.look(str(tmp_path / name)) is None


def test_what_stands_somewhere_is_there_even_when_it_leads_nowhere(tmp_path):
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "file").touch()
    assert files.is_there(f"{tmp_path}")
    assert files.is_there(f"{tmp_path}/file")
    assert files.is_there(f"{tmp_path}/nowhere")
    for name in ("gone", "gone/under", "file/under", "nul\0", "long" * 100):
        assert not files.is_there(f"{tmp_path}/{name}")


def test_a_name_that_cannot_be_is_refused_by_name(tmp_path):
    for name in ("a\0b", "\ud800"):
        with pytest.raises(DiskError, match="UTF-8") as caught:
            files.look(str(tmp_path / name))
        assert repr(name)[1:-1] in str(caught.value)
        assert caught.value.diagnostics[0].code == "bad-name"


def test_a_look_without_permission_is_an_error_with_the_path(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    if os.access(closed, os.X_OK):
        pytest.skip("this user may look everywhere")
    with pytest.raises(DiskError, match="closed/a"):
        files.look(str(closed / "a"))


def test_a_name_that_is_too_long_is_an_error_with_a_way_out(tmp_path):
    with pytest.raises(DiskError, match="shorter name"):
        files.look(str(tmp_path / ("x" * 300)))


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    files.write_whole(str(path), b"new", durable=True)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_the_mode_of_a_written_file_is_narrowed_by_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        files.write_whole(str(tmp_path / "a"), b"")
        files.write_whole(str(tmp_path / "secret"), b"", 0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o640
    assert stat.S_IMODE(os.stat(tmp_path / "secret").st_mode) == 0o600


def test_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / "a").symlink_to("target")
    files.write_whole(str(tmp_path / "a"), b"new")
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert not (tmp_path / "a").is_symlink()


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_bytes(b"")
    with pytest.raises(DiskError, match="a folder stands there"):
        files.write_whole(str(tmp_path / "folder"), b"new")
    with pytest.raises(DiskError, match="cannot write"):
        files.write_whole(str(tmp_path / "missing" / "a"), b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_full_disk_is_told_with_its_own_code():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    error = files.disk_error("write", "out.txt", OSError(28, os.strerror(28)))
    assert error.diagnostics[0].code == "disk-full"
    assert "make room" in str(error)


def test_what_is_set_aside_gets_the_first_free_number(tmp_path):
    names = []
    for content in (b"1", b"2", b"3"):
        (tmp_path / "a").write_bytes(content)
        names.append(os.path.basename(files.set_aside(str(tmp_path / "a"))))
    assert names == ["a.failed", "a.failed.2", "a.failed.3"]
    assert [(tmp_path / name).read_bytes() for name in names] == [b"1", b"2", b"3"]
    assert not (tmp_path / "a").exists()


def test_setting_aside_never_overwrites(tmp_path):
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "a.failed").mkdir()
    (tmp_path / "a.failed.2").symlink_to("nowhere")
    assert files.set_aside(str(tmp_path / "a")).endswith("a.failed.3")
    assert (tmp_path / "a.failed").is_dir()
    assert (tmp_path / "a.failed.2").is_symlink()


def test_folders_and_links_are_set_aside_as_they_are(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_bytes(b"x")
    (tmp_path / "link").symlink_to("folder")
    assert files.set_aside(str(tmp_path / "link")).endswith("link.failed")
    assert os.readlink(tmp_path / "link.failed") == "folder"
    assert files.set_aside(str(tmp_path / "folder")).endswith("folder.failed")
    assert (tmp_path / "folder.failed" / "x").read_bytes() == b"x"


def test_setting_nothing_aside_does_nothing(tmp_path):
    assert files.set_aside(str(tmp_path / "missing")) == ""
    assert os.listdir(tmp_path) == []


def test_a_failed_setting_aside_leaves_no_placeholder(tmp_path):
    name = "x" * 250
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DiskError, match="shorter name"):
        files.set_aside(str(tmp_path / name))
    assert os.listdir(tmp_path) == [name]


def test_files_links_and_trees_are_removed_and_what_is_missing_is_fine(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"")
    tree = tmp_path / "tree"
    (tree / "deep" / "deeper").mkdir(parents=True)
    (tree / "deep" / "x").write_bytes(b"")
    (tree / "deep" / "out").symlink_to(outside)
    (tmp_path / "link").symlink_to(outside)
    for name in ("tree", "link", "missing", "outside/kept/below"):
        files.remove(str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["outside"]
    assert os.listdir(outside) == ["kept"]


def test_a_read_only_tree_is_removed(tmp_path):
    inner = tmp_path / "tree" / "inner"
    inner.mkdir(parents=True)
    (inner / "x").write_bytes(b"")
    inner.chmod(0o555)
    files.remove(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == []


def test_a_deep_tree_is_removed_without_recursion(tmp_path):
    deep = os.path.join(str(tmp_path), *["d"] * 1500, "file")
    files.make_parents(deep)
    files.write_whole(deep, b"")
    assert files.digest_folder(str(tmp_path))
    files.remove(str(tmp_path / "d"))
    assert os.listdir(tmp_path) == []


def test_parents_are_made_and_a_file_in_the_way_is_named(tmp_path):
    files.make_parents(str(tmp_path / "a" / "b" / "c"))
    files.make_parents(str(tmp_path / "a" / "b" / "c"))
    assert os.listdir(tmp_path / "a" / "b") == []
    (tmp_path / "a" / "b" / "file").write_bytes(b"")
    for name in ("a/b/file/c", "a/b/file/c/d"):
        with pytest.raises(DiskError, match="a file stands where a folder is needed"):
            files.make_parents(str(tmp_path / name))
    files.make_parents("plain-name")


def test_free_space_is_told_for_what_is_not_there_yet(tmp_path):
    here, below = files.free_bytes(str(tmp_path)), files.free_bytes(str(tmp_path / "not" / "yet"))
    assert here > 0
    assert abs(here - below) < 1 << 30


def test_a_name_that_was_set_aside_tells_where_it_comes_from(tmp_path):
    path = tmp_path / "a.failed.txt"
    for _ in range(3):
        path.write_text("x")
        aside = files.set_aside(str(path))
        assert files.set_aside_from(os.path.basename(aside)) == "a.failed.txt"
    for name in ("a", "a.2", "a.failed.txt", "a.failed.x", ".failedx"):
        assert files.set_aside_from(name) == ""
