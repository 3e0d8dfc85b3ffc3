"""Where artifacts come from: what git knows, without a trace in the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.base.mask import Mask
from treadle.base.proc import output_of
from treadle.steps import provenance as module
from treadle.steps.provenance import Source, provenance, source_of


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_sources", {})


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True, env=clean_env()
    )
    return done.stdout.strip()


def clean_env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "re po:x"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("a = 1\n")
    (folder / ".gitignore").write_text("out/\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def ask(folder: Path) -> Source:
    module._sources.clear()
    return source_of(str(folder))


def tree_of_all(folder: Path) -> str:
    """The tree that a commit of everything would have, by a clone that may be written to."""
    git(folder, "add", "-A")
    return git(folder, "write-tree")


def test_a_clean_tree_is_that_of_its_commit(repository: Path) -> None:
    found = ask(repository)
    assert found == Source(git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD^{tree}"))
    assert not found.dirty


def test_changes_that_are_not_committed_are_in_the_tree(repository: Path) -> None:
    (repository / "a.py").write_text("a = 2\n")
    (repository / "new file.py").write_text("b = 1\n")
    (repository / "out").mkdir()
    (repository / "out" / "ignored").write_text("x")
    found = ask(repository)
    assert found.dirty
    assert found.commit == git(repository, "rev-parse", "HEAD")
    assert found.tree == tree_of_all(repository)


def test_a_file_that_was_removed_is_not_in_the_tree(repository: Path) -> None:
    (repository / "a.py").unlink()
    found = ask(repository)
    assert found.dirty
    assert found.tree == tree_of_all(repository)


def test_the_repository_is_not_touched(repository: Path) -> None:
    (repository / "a.py").write_text("a = 2\n")
    (repository / "b.py").write_text("b = 1\n")

    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in repository.rglob("*") if path.is_file()}

    before = state()
    assert ask(repository).dirty
    assert state() == before
    assert git(repository, "status", "--porcelain") == "M a.py\n?? b.py"


def test_large_files_that_git_does_not_know_are_data(repository: Path) -> None:
    clean = ask(repository)
    with open(repository / "data.bin", "wb") as file:
        file.truncate(module._SMALL + 1)
    assert ask(repository) == clean


def test_from_a_folder_within_it_the_whole_tree_counts(repository: Path) -> None:
    (repository / "deep").mkdir()
    (repository / "a.py").write_text("a = 3\n")
    assert ask(repository / "deep") == ask(repository)
    assert ask(repository / "deep").dirty


def test_a_repository_without_a_commit_has_a_tree_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("a = 1\n")
    found = ask(tmp_path)
    assert found.commit == ""
    assert found.dirty
    assert found.tree == tree_of_all(tmp_path)


def test_a_linked_work_tree_is_a_repository_too(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "side")
    (tmp_path / "other" / "a.py").write_text("a = 9\n")
    found = ask(tmp_path / "other")
    assert found.dirty
    assert found.tree == tree_of_all(tmp_path / "other")


def test_variables_of_a_git_hook_make_no_difference(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = ask(repository)
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert ask(repository) == clean


def test_without_a_repository_git_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # and it could not be
    assert ask(tmp_path) == Source()


def test_without_git_nothing_is_known(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert ask(repository) == Source()


def test_a_broken_repository_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert ask(tmp_path) == Source()


def test_git_is_asked_once(repository: Path) -> None:
    first = source_of(str(repository))
    (repository / "a.py").write_text("a = 2\n")
    assert source_of(str(repository)) is first


def test_the_command_line_is_told_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["pipeline.py", "--token=hunter2"])
    mask = Mask()
    mask.add("hunter2")
    found = provenance(str(tmp_path), mask)
    assert found.argv == ("pipeline.py", "--token=***")
    assert provenance(str(tmp_path)).argv == ("pipeline.py", "--token=hunter2")
    assert found.user
    assert found.host


def test_what_a_program_prints_is_had_unless_it_fails_or_hangs(tmp_path: Path) -> None:
    def ask(*argv: str, data: bytes = b"", timeout: float = 60.0) -> bytes | None:
        return output_of(argv, env=dict(os.environ), cwd=str(tmp_path), data=data, timeout=timeout)

    assert ask("sh", "-c", "cat; pwd; echo no >&2", data=b"in\n") == f"in\n{tmp_path}\n".encode()
    assert ask("sh", "-c", "echo no; exit 3") is None
    assert ask("no-such-program-here") is None
    assert ask("sleep", "60", timeout=0.1) is None
