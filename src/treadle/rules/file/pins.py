"""Git pins: the files of one commit of a repository, kept for all workflows of the user.

A commit is made aside, under a lock, and renamed when it is whole; what is there is never made again, and
needs no repository. A tag or a branch is asked for each time a workflow is read; where nobody answers, the
commit that it was when last asked counts, and that is said.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from treadle.base.disk import disk_error
from treadle.base.files import remove, write_whole
from treadle.base.layout import PinFolder
from treadle.base.proc import answer_of
from treadle.plan.tokens import pin
from treadle.rules.toml.section import Findings, Section, clip

_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_REF = re.compile(r"(?!.*(?:\.\.|//|/\.|\.lock(?:/|\Z)))[A-Za-z0-9_][A-Za-z0-9_.+@=/-]*(?<![/.])\Z")
_REPO = re.compile(
    r"(?:(?:https?|ssh|git|file)://[^\s]+|[A-Za-z0-9_][\w.-]*@[\w.-]+:[^\s-][^\s]*|/[^\s].*)\Z"
)
_ASKING, _FETCHING = 60.0, 1800.0  # seconds
# Nothing is asked at the terminal, nothing that the repository says is run, and no other transports.
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file", "LC_ALL": "C"}
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


class _GitError(Exception):
    """Git did not do it; the message is what it said."""


def checked_out(section: Section, repo: str, ref: str) -> tuple[Findings, str, str] | None:
    """The findings of a file of this pin, with its folder; the pin as text; its commit.

    None, and an error at the include, where it cannot be had. Raises DiskError where it cannot be kept.
    """
    if not _REPO.match(repo):
        hint = "write a URL (https://, ssh://, file://), user@host:path, or an absolute path"
        section.error("bad-value", f"'{_shown(repo)}' is no repository", "repo", hint=hint)
        return None
    if not _REF.match(ref):
        section.error("bad-value", f"'{clip(ref)}' is no tag, branch or commit id", "ref")
        return None
    kept = PinFolder.of(repo)
    try:
        commit = ref if _COMMIT.match(ref) else _asked(repo, ref, kept, section)
        if commit is None:
            return None
        if not os.path.isdir(kept.commit(commit)):
            _fetch(repo, commit, kept)
    except _GitError as error:
        hint = "a pin that was read once by its full commit id needs no repository"
        section.error("cannot-fetch", f"{_shown(repo)} at {clip(ref)}: {error}", "repo", hint=hint)
        return None
    findings = section.findings.beside("", kept.commit(commit), pin(kept.key, commit))
    return findings, f"{_shown(repo)}@{ref}", commit


def _asked(repo: str, ref: str, kept: PinFolder, section: Section) -> str | None:
    """The commit that a tag or branch is; a tag before a branch of its name."""
    try:
        names = _names(repo)
    except _GitError as error:
        commit = _remembered(kept, ref)
        if commit is None:
            raise
        message = (
            f"nobody could be asked what '{clip(ref)}' is now ({error}): it was {commit[:12]} when last asked"
        )
        section.warn("pin-not-asked", message, "ref")
        return commit
    for name in (f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", f"refs/heads/{ref}"):
        if name in names:
            _remember(kept, ref, names[name])
            return names[name]
    known = sorted({name.split("/", 2)[2].removesuffix("^{}") for name in names})
    hint = section.findings.guess(ref, known)
    if re.fullmatch(r"[0-9a-f]{7,}", ref):
        hint = "a commit is named by all 40 digits of its id"
    section.error(
        "unknown-ref", f"there is no tag or branch '{clip(ref)}' in {_shown(repo)}", "ref", hint=hint
    )
    return None


@lru_cache(maxsize=64)
def _names(repo: str) -> dict[str, str]:
    """All tags and branches with their commits; asked once, so that a run has one answer to the end."""
    lines = _git("ls-remote", "--heads", "--tags", "--", repo, seconds=_ASKING).splitlines()
    pairs = (line.split("\t", 1) for line in lines if "\t" in line)
    return {name: commit for commit, name in pairs if _COMMIT.match(commit)}


def _remembered(kept: PinFolder, ref: str) -> str | None:
    try:
        with open(kept.ref(ref), encoding="ascii") as file:
            commit = file.read().strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.match(commit) and os.path.isdir(kept.commit(commit)) else None


def _remember(kept: PinFolder, ref: str, commit: str) -> None:
    if _remembered(kept, ref) == commit:
        return
    with _on_disk(kept):
        os.makedirs(kept.root, exist_ok=True)
        write_whole(kept.ref(ref), f"{commit}\n".encode())


def _fetch(repo: str, commit: str, kept: PinFolder) -> None:
    """Get the files of a commit."""
    with _on_disk(kept), _locked(kept):
        if os.path.isdir(kept.commit(commit)):  # somebody else got them meanwhile
            return
        for name in os.listdir(kept.root):
            if name.endswith(".part"):  # of a process that was killed: the lock is ours
                remove(os.path.join(kept.root, name))
        aside = kept.unfinished(os.getpid())
        _git("clone", "--quiet", "--no-checkout", "--", repo, aside, seconds=_FETCHING)
        try:
            _check_out(aside, commit)
        except _GitError as error:
            remove(aside)
            raise _GitError(f"there is no commit {commit[:12]} ({error})") from error
        remove(os.path.join(aside, ".git"))
        os.rename(aside, kept.commit(commit))


def _check_out(clone: str, commit: str) -> None:
    """The files of a commit into its clone; one that is on no branch and no tag is asked for by itself."""
    command = ("-C", clone, *_SAFE, "checkout", "--quiet", "--detach", commit)
    try:
        _git(*command, seconds=_FETCHING)
    except _GitError:
        _git("-C", clone, "fetch", "--quiet", "origin", commit, seconds=_FETCHING)
        _git(*command, seconds=_FETCHING)


@contextmanager
def _on_disk(kept: PinFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error("keep a git pin in", kept.root, error) from error


@contextmanager
def _locked(kept: PinFolder) -> Iterator[None]:
    """Alone at the repository's folder; a lock of the kernel, which goes with the process that holds it."""
    os.makedirs(kept.root, exist_ok=True)
    with open(kept.lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _git(*args: str, seconds: float) -> str:
    """What git prints. Raises `_GitError` with what it says where it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    keep = {
        name: os.environ[name] for name in ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS") if name in os.environ
    }
    try:
        code, out, err = answer_of(("git", *args), env={**env, **keep, **_QUIET}, cwd="/", timeout=seconds)
    except OSError as error:
        raise _GitError(f"git cannot be started: {error.strerror or error}") from None
    if code is None:
        raise _GitError(f"git took longer than {seconds:g} s")
    if code:
        lines = [line.strip() for line in err.splitlines() if line.strip()]
        said = next(
            (line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else ""
        )
        raise _GitError(_shown(said.removeprefix("fatal: ")) or f"git ended with exit code {code}")
    return out


def _shown(text: str) -> str:
    """A repository, or what git says of one, for a reader: without names and passwords that stand in URLs."""
    return clip(re.sub(r"://[^/@\s]*@", "://", text), 200)
