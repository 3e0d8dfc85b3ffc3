"""The package as users get it: an sdist and a wheel, installed in an environment of its own."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the sdist, and the wheel that was built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], check=True, capture_output=True
    )
    return out


@pytest.mark.xdist_group("package")
def test_the_sdist_has_what_a_packager_needs(built: pathlib.Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "Makefile"} <= names
    assert any(name.startswith("tests/") for name in names)


@pytest.mark.xdist_group("package")
def test_the_wheel_has_the_templates_the_types_and_the_licence(built: pathlib.Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "treadle/py.typed" in names
    assert "treadle/cli/templates/samples/samples.tsv" in names
    assert "treadle/cli/codes/file.toml" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "docs/")) for name in names)


@pytest.mark.xdist_group("package")
def test_the_wheel_runs_in_a_clean_environment(built: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    treadle = str(home / "bin" / "treadle")
    flow = tmp_path / "flow"
    subprocess.run([treadle, "init", str(flow), "--template", "samples"], check=True)
    done = subprocess.run([treadle, "run"], cwd=flow, capture_output=True, text=True, check=True)
    assert (flow / "results/summary.tsv").read_text() == "S1\t3\nS2\t2\n", done.stderr
