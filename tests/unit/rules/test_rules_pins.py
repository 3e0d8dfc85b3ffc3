"""Git pins: a commit of a repository, its files kept, and what cannot be one."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from treadle.api.pipe import Request, plan_of
from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.decide.identity import identity
from treadle.decide.look import look_at, place_of
from treadle.rules.file import pins
from treadle.rules.file.read import read
from treadle.rules.schema import Workflow

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
MODULE = """
[config]
level = 1
[[rules]]
name = "make"
output = ["made"]
script = "scripts/make.sh {output}"
"""


class Repo:
    """A repository with a module, and a workflow that pins it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.path = root / "repo"
        self.flow = root / "flow" / "main.oxoflow"
        self.path.mkdir()
        self.flow.parent.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.first = self.commit({"rules/m.oxoflow": MODULE, "scripts/make.sh": "echo one > $1\n"})

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *args], cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files: dict[str, str]) -> str:
        for name, text in files.items():
            (self.path / name).parent.mkdir(exist_ok=True)
            (self.path / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")
        return self.git("rev-parse", "HEAD")

    def pin(self, ref: str, path: str = "rules/m.oxoflow", repo: str = "", more: str = "") -> str:
        """The workflow with this pin; gives its file."""
        self.flow.write_text(
            f'{HEAD}[[include]]\nrepo = "{repo or self.url}"\nref = "{ref}"\npath = "{path}"\n{more}\n'
        )
        pins._names.cache_clear()
        return str(self.flow)

    def read(self, *args: str, **options: str) -> Workflow:
        return read(self.pin(*args, **options))

    def error(self, *args: str, **options: str) -> Diagnostic:
        with pytest.raises(WorkflowError) as caught:
            self.read(*args, **options)
        (found,) = caught.value.diagnostics
        return found

    def task_identity(self, ref: str) -> str:
        planned = plan_of(Request(file=self.pin(ref)))
        (task,) = planned.plan.tasks.values()
        path = task.command.script_file
        return identity(task, look_at(path, workdir=planned.workdir, flowdir=planned.workflow.folder))


@pytest.fixture
def repo(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Repo(tmp_path)


def kept(repo: Repo) -> list[str]:
    """What of the cache is a whole checkout."""
    found = [path.name for path in (repo.root / "cache/treadle/pins").glob("*/*") if path.is_dir()]
    return sorted(found)


def test_a_tag_a_branch_and_a_commit_id_are_refs(repo):
    repo.git("tag", "v1")
    repo.git("tag", "--annotate", "--message", "x", "v1a")
    second = repo.commit({"rules/m.oxoflow": MODULE.replace("level = 1", "level = 2")})
    levels = {ref: repo.read(ref).config["level"] for ref in ("v1", "v1a", "main", repo.first, second)}
    assert levels == {"v1": 1, "v1a": 1, "main": 2, repo.first: 1, second: 2}
    assert kept(repo) == sorted([repo.first, second])


def test_the_commit_is_known_and_the_file_is_named_by_its_pin(repo):
    workflow = repo.read("main")
    assert (workflow.includes[1].pinned, workflow.includes[1].commit) == (f"{repo.url}@main", repo.first)
    assert workflow.rules[0].place.file == f"{repo.url}@main:rules/m.oxoflow"


def test_a_commit_that_is_there_needs_no_repository(repo):
    repo.read(repo.first)
    shutil.rmtree(repo.path)
    assert repo.read(repo.first).config["level"] == 1


def test_a_branch_is_what_it_was_when_nobody_answers_and_that_is_said(repo):
    repo.read("main")
    os.rename(repo.path, repo.root / "gone")
    (warning,) = repo.read("main").warnings
    assert (warning.code, warning.place.key) == ("pin-not-asked", "ref")
    assert repo.first[:12] in warning.message
    assert repo.error("other").code == "cannot-fetch"


def test_a_branch_that_moved_is_another_commit(repo):
    repo.read("main")
    repo.commit({"rules/m.oxoflow": MODULE.replace("level = 1", "level = 2")})
    assert repo.read("main").config["level"] == 2


def test_a_commit_on_no_branch_is_found_where_the_repository_gives_it(repo):
    lost = repo.commit({"rules/m.oxoflow": MODULE.replace("level = 1", "level = 3")})
    repo.git("reset", "--quiet", "--hard", repo.first)
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    assert repo.read(lost).config["level"] == 3


def test_scripts_of_a_pin_are_those_of_its_commit(repo):
    planned = plan_of(Request(file=repo.pin(repo.first)))
    (task,) = planned.plan.tasks.values()
    place = place_of(task.command.script_file, planned.workdir, planned.workflow.folder)
    assert pathlib.Path(place).read_text() == "echo one > $1\n"
    assert str(repo.root) not in repr(task.command)


def test_which_commit_it_is_bears_no_identity_but_what_stands_in_it_does(repo):
    second = repo.commit({"README": "nothing that runs"})
    third = repo.commit({"scripts/make.sh": "echo three > $1\n"})
    one, two, three = map(repo.task_identity, (repo.first, second, third))
    assert one == two
    assert two != three
    local = repo.root / "flow"
    shutil.copytree(repo.path / "scripts", local / "scripts")
    shutil.copytree(repo.path / "rules", local / "rules")
    repo.flow.write_text(f'{HEAD}[[include]]\npath = "rules/m.oxoflow"\n')
    planned = plan_of(Request(file=str(repo.flow)))
    (task,) = planned.plan.tasks.values()
    script = look_at(task.command.script_file, workdir=planned.workdir, flowdir=planned.workflow.folder)
    assert identity(task, script) == three


def test_what_a_pinned_file_includes_and_its_sheets_come_from_the_checkout(repo):
    ref = repo.commit(
        {
            "rules/m.oxoflow": '[workflow]\nsample_groups_file = "samples.tsv"\n'
            '[[include]]\npath = "rules/n.oxoflow"\n',
            "rules/n.oxoflow": '[[rules]]\nname = "n"\noutput = ["{sample}"]\nshell = "touch {output}"\n',
            "samples.tsv": "group\tsample\ng\tA\n",
        }
    )
    planned = plan_of(Request(file=repo.pin(ref)))
    assert list(planned.plan.tasks) == ["n/sample=A"]
    assert planned.workflow.rules[0].place.file == f"{repo.url}@{ref}:rules/n.oxoflow"


@pytest.mark.parametrize("path", ["../flow/x.oxoflow", "/etc/hostname", "rules/link.oxoflow", "rules/../.."])
def test_a_path_cannot_lead_out_of_the_repository(repo, path):
    (repo.path / "rules/link.oxoflow").symlink_to("/etc/hostname")
    ref = repo.commit({"x": "x"})
    found = repo.error(ref, path)
    assert (found.code, found.place.key) == ("bad-value", "path")


@pytest.mark.parametrize(
    "ref", ["--upload-pack=touch x", "-x", "a..b", "a b", "main^{tree}", "a/", "@{1}", "x.lock", "a:b", "."]
)
def test_what_is_no_ref_never_reaches_git(repo, ref):
    assert (repo.error(ref).code, kept(repo)) == ("bad-value", [])


@pytest.mark.parametrize(
    "address",
    ["--upload-pack=x", "ext::sh -c x", "repo", "../repo", "-oProxyCommand=x@host:path", "host:path"],
)
def test_what_is_no_repository_never_reaches_git(repo, address):
    assert (repo.error("main", repo=address).code, kept(repo)) == ("bad-value", [])


def test_a_ref_that_is_not_there_is_an_error_with_the_nearest(repo):
    repo.git("tag", "v1.20")
    found = repo.error("v1.2O")
    assert (found.code, found.hint) == ("unknown-ref", "did you mean 'v1.20'?")
    short = repo.error(repo.first[:10])
    assert "all 40 digits" in short.hint
    assert repo.error("0" * 40).code == "cannot-fetch"
    assert kept(repo) == []


def test_a_repository_that_is_not_there_is_an_error_in_git_s_words_without_a_password(repo):
    found = repo.error("main", repo=f"file://me:secret@localhost{repo.root}/nowhere")
    assert found.code == "cannot-fetch"
    assert "secret" not in found.message


def test_what_a_killed_process_left_is_cleared_by_the_next(repo):
    folder = pins.PinFolder.of(repo.url)
    left = pathlib.Path(folder.unfinished(1))
    left.mkdir(parents=True)
    (left / "half").write_text("x")
    repo.read(repo.first)
    assert kept(repo) == [repo.first]


def test_hooks_and_variables_of_git_have_no_say(repo, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(repo.root / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repo.root))
    assert repo.read(repo.first).config["level"] == 1


def test_two_who_want_one_commit_at_once_fetch_it_once(repo, monkeypatch):
    real, clones = pins._git, []

    def git(*args: str, seconds: float) -> str:
        clones.extend(arg for arg in args if arg == "clone")
        return real(*args, seconds=seconds)

    monkeypatch.setattr(pins, "_git", git)
    file = repo.pin(repo.first)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: read(file).includes[1].commit, range(4)))
    assert (found, clones) == ([repo.first] * 4, ["clone"])


def test_without_git_a_pin_is_an_error_and_no_crash(repo, monkeypatch):
    monkeypatch.setenv("PATH", str(repo.root))
    found = repo.error("main")
    assert found.code == "cannot-fetch"
    assert "git cannot be started" in found.message


def test_python_steps_of_a_pin_are_loaded_from_the_checkout(repo):
    steps = "from treadle import StepSpec\nall = [StepSpec('one', fn=lambda: 1)]\n"
    ref = repo.commit(
        {"rules/m.oxoflow": '[[steps]]\nmodule = "steps.py"\nname = "all"\n', "steps.py": steps}
    )
    (found,) = repo.read(ref).modules
    assert pathlib.Path(found.module).read_text() == steps
