"""Digests of files and folders, here and on the nodes."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess

import pytest

from treadle.base.errors import DiskError
from treadle.base.files import DIGEST_FOLDER_SH, digest_file, digest_folder
from treadle.base.layout import ArtifactPlaces
from treadle.decide.folder import folder_stat

NODE_TOOLS = ("bash", "find", "sort", "sed", "xargs", "b2sum", "iconv")
needs_node_tools = pytest.mark.skipif(
    not all(map(shutil.which, NODE_TOOLS)), reason="needs the GNU tools that nodes have"
)


def blake(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def by_node(folder, limit: str = "", cwd=None) -> subprocess.CompletedProcess[str]:
    text = DIGEST_FOLDER_SH + '\ntreadle_digest_folder "$@"'
    words = [str(folder), limit] if limit else [str(folder)]
    return subprocess.run(["bash", "-c", text, "bash", *words], capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 3 * 1024 * 1024 + 1])
def test_the_digest_of_a_file_is_blake2b_of_256_bits(tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)
    assert digest_file(str(tmp_path / "a")) == blake(content)


@needs_node_tools
def test_the_digest_of_a_file_is_what_b2sum_prints(tmp_path):
    (tmp_path / "a").write_bytes(b"reads\n")
    told = subprocess.run(["b2sum", "-l", "256", tmp_path / "a"], capture_output=True, text=True, check=True)
    assert told.stdout.split()[0] == digest_file(str(tmp_path / "a"))


def test_a_pipe_does_not_hang_the_digest(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert digest_file(str(tmp_path / "pipe")) == blake(b"") == digest_file("/dev/zero")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DiskError, match=r"cannot read '.*missing'"):
        digest_file(str(tmp_path / "missing"))
    with pytest.raises(DiskError, match=r"cannot read '.*missing'"):
        digest_folder(str(tmp_path / "missing"))


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    for name in (
        "a",
        "a b/c",
        "a.b",
        "sub/deep/x",
        "ümlaut/été",
        "new\nline",
        "-n",
        "quote'\"$(x)",
        "sub//y",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 3)
    (root / "empty").mkdir()
    (root / "zero").write_bytes(b"")
    (root / "big").write_bytes(os.urandom(200_000))
    (root / "loop").symlink_to(".")
    (root / "sub" / "up").symlink_to("../../tree")
    (root / "gone").symlink_to("no//where")
    os.mkfifo(root / "pipe")
    return root


@needs_node_tools
def test_nodes_digest_a_folder_to_the_same_figure(tree):
    here = digest_folder(str(tree))
    assert by_node(tree).stdout.strip() == here
    assert by_node("tree", cwd=tree.parent).stdout.strip() == here


@needs_node_tools
def test_nodes_take_the_same_limit(tree):
    os.utime(tree / "big", ns=(5, 1_700_000_000_000_000_042))
    limited = digest_folder(str(tree), limit=100_000)
    assert limited != digest_folder(str(tree))
    assert by_node(tree, "100000").stdout.strip() == limited
    os.utime(tree / "big", ns=(5, 1_700_000_000_000_000_043))
    assert digest_folder(str(tree), limit=100_000) != limited


@needs_node_tools
def test_a_folder_with_an_odd_name_can_be_digested_on_a_node(tmp_path):
    for name in ("-", "--help", "$HOME"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"x")
        assert by_node(name, cwd=tmp_path).stdout.strip() == digest_folder(str(tmp_path / name))


@needs_node_tools
def test_an_empty_folder_has_a_digest(tmp_path):
    assert by_node(tmp_path).stdout.strip() == digest_folder(str(tmp_path)) == blake(b"")


@needs_node_tools
def test_a_node_that_cannot_read_it_all_says_so_by_its_code(tmp_path):
    told = by_node(tmp_path / "missing")
    assert told.returncode != 0
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
    assert by_node(tmp_path).returncode != 0


def test_a_name_that_is_not_utf8_is_refused_by_name(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / os.fsdecode(b"caf\xe9")).write_bytes(b"")
    with pytest.raises(DiskError, match=r"caf\\xe9"):
        digest_folder(str(tmp_path))


def test_every_change_inside_a_folder_changes_its_digest(tree):
    def changed(deed) -> bool:
        before = digest_folder(str(tree))
        deed()
        return digest_folder(str(tree)) != before

    assert changed(lambda: (tree / "a").write_bytes(b"other"))
    assert changed(lambda: (tree / "a").rename(tree / "b"))
    assert changed(lambda: (tree / "sub" / "new").write_bytes(b""))
    assert changed(lambda: (tree / "loop").unlink())
    assert changed(lambda: (tree / "loop").write_bytes(b"."))
    assert not changed(lambda: os.utime(tree / "b", (1, 1)))
    assert not changed(lambda: (tree / "b").chmod(0o600))


def test_where_a_folder_stands_does_not_count(tree):
    before = digest_folder(str(tree))
    tree.rename(tree.parent / "moved")
    assert digest_folder(str(tree.parent / "moved")) == before
    (tree.parent / "link").symlink_to("moved")
    assert digest_folder(str(tree.parent / "link")) == before


def test_a_socket_in_a_folder_is_only_noted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s")
        assert digest_folder(".") == blake(b"s//x\0")


def test_what_stands_beside_artifacts_does_not_count(tree):
    before, stat = digest_folder(str(tree)), folder_stat(str(tree))
    for folder in (tree, tree / "sub/deep"):
        beside = ArtifactPlaces(str(folder / "model"))
        os.makedirs(beside.folder)
        for path in (beside.record, beside.lease(1)):
            with open(path, "w") as file:
                file.write("{}")
    assert digest_folder(str(tree)) == before
    assert folder_stat(str(tree)) == stat


@needs_node_tools
def test_nodes_leave_out_what_stands_beside_artifacts_too(tree):
    before = digest_folder(str(tree))
    os.makedirs(tree / "sub/.treadle-artifacts/work")
    (tree / "sub/.treadle-artifacts/model.json").write_text("{}")
    assert by_node(tree).stdout.strip() == before
