"""Where artifacts come from: the state of the source in git, who runs this, where, and by which command.

The hash of the tree covers what is not committed: all changes of files that git knows, and files that it
does not know yet (ignored ones never) as far as they are small and few. It is reckoned in an index and an
object store of our own, so that nothing in the repository is touched.
"""

from __future__ import annotations

import os
import sys
from threading import Lock

from msgspec import Struct

from treadle.base.mask import Mask
from treadle.base.proc import host, output_of
from treadle.steps.owner import user_name
from treadle.steps.record import Provenance

_SMALL = 1 << 20  # bytes: larger files that git does not know are data
_FEW = 1000  # more such files than these are data, too
_PATIENCE = 20.0  # seconds for each question to git


class Source(Struct, frozen=True):
    """A work tree in git: commit and tree as hex, empty where there are none; `dirty`: they differ."""

    commit: str = ""
    tree: str = ""
    dirty: bool = False


_sources: dict[str, Source] = {}
_lock = Lock()


def provenance(workdir: str, mask: Mask | None = None) -> Provenance:
    """What is known of where the artifacts of a run in `workdir` come from, without times and attempt.

    git is asked once per process and folder, and not at all where there is no repository. Secrets that
    `mask` knows are masked in the command line.
    """
    source = source_of(workdir)
    argv = tuple(sys.argv)
    return Provenance(
        commit=source.commit,
        tree=source.tree,
        dirty=source.dirty,
        user=user_name(),
        host=host(),
        argv=tuple(mask.text(word) for word in argv) if mask else argv,
    )


def source_of(workdir: str) -> Source:
    """The state of the repository that `workdir` belongs to, as it was when it was first asked for."""
    with _lock:
        found = _sources.get(workdir)
        if found is None:
            found = _sources[workdir] = _ask(workdir) if _in_repository(workdir) else Source()
    return found


def _in_repository(workdir: str) -> bool:
    folder = os.path.abspath(workdir)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True


def _ask(workdir: str) -> Source:
    words = ("rev-parse", "--show-toplevel", "--git-path", "index", "--git-path", "objects")
    told = _git(workdir, *words)
    if told is None or len(lines := os.fsdecode(told).split("\n")) != 4:  # the last one is empty
        return Source()
    top = lines[0]
    index, objects = (os.path.join(workdir, line) for line in lines[1:3])
    head = _hash(_git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
    committed = _hash(_git(top, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")) if head else ""
    tree = _tree_with_changes(top, index, objects)
    return Source(head, tree, dirty=tree != committed if tree else False)


def _tree_with_changes(top: str, index: str, objects: str) -> str:
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="treadle-tree-") as own:
        env = {
            "GIT_INDEX_FILE": os.path.join(own, "index"),
            "GIT_OBJECT_DIRECTORY": own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{objects}"' if ":" in objects else objects,
        }
        try:
            shutil.copyfile(index, env["GIT_INDEX_FILE"])  # with what git remembers of unchanged files
        except FileNotFoundError:
            pass  # a repository without any commit
        except OSError:
            return ""
        if _git(top, "add", "--update", env=env) is None:
            return ""
        names = _unknown_files(top, env)
        if names and _git(top, "update-index", "--add", "-z", "--stdin", env=env, data=names) is None:
            return ""
        return _hash(_git(top, "write-tree", env=env))


def _unknown_files(top: str, env: dict[str, str]) -> bytes:
    """NUL-ended names of files that git neither knows nor ignores: the small ones, if they are few."""
    told = _git(top, "ls-files", "--others", "--exclude-standard", "-z", env=env) or b""
    names = told.split(b"\0")[:-1]
    if len(names) > _FEW:
        return b""
    return b"".join(name + b"\0" for name in names if _is_small(os.path.join(os.fsencode(top), name)))


def _is_small(path: bytes) -> bool:
    try:
        return os.lstat(path).st_size <= _SMALL and (os.path.isfile(path) or os.path.islink(path))
    except OSError:
        return False


def _git(folder: str, *words: str, env: dict[str, str] | None = None, data: bytes = b"") -> bytes | None:
    around = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    around |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(env or {})}
    argv = ["git", "-c", "core.fsmonitor=false", "-c", "advice.addEmbeddedRepo=false", *words]
    return output_of(argv, env=around, cwd=folder, data=data, timeout=_PATIENCE)


def _hash(told: bytes | None) -> str:
    return os.fsdecode(told).strip() if told else ""
