"""Wheel and sdist: what is in them, and that an installed copy works away from the repository.

Dependencies are those of this environment. `.ci/packaging` does the same in clean ones.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with a wheel and an sdist; the wheel is made from the sdist."""
    pytest.importorskip("build", reason="the package build is missing: pip install build hatchling")
    pytest.importorskip("hatchling", reason="hatchling is missing: pip install build hatchling")
    folder = tmp_path_factory.mktemp("dist")
    words = ["-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.packaging
def test_wheel_has_the_library_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"craftmaps-{PROJECT['version']}-py3-none-any.whl"  # no compiler needed
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
        information = f"craftmaps-{PROJECT['version']}.dist-info"
        entry_points = archive.read(f"{information}/entry_points.txt").decode()
    source = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*.py")}
    assert {name for name in inside if name.endswith(".py")} == source
    assert "craftmaps/py.typed" in inside
    assert {name.split("/")[0] for name in inside} == {"craftmaps", information}
    assert "craftmaps = craftmaps.cli.main:main" in entry_points


@pytest.mark.packaging
def test_package_index_accepts_the_files(built):
    pytest.importorskip("twine", reason="twine is missing: pip install twine")
    words = ["-m", "twine", "check", "--strict", *map(str, built.iterdir())]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.packaging
def test_sdist_can_be_tested(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/oracles.py"}
    assert needed <= inside
    outside = ("docs", ".venv", "benchmarks", "reproduction", "tests/reproduction")
    assert not [name for name in inside if name.startswith(outside)]


@pytest.mark.packaging
def test_installed_copy_works_away_from_the_repository(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    own = {"base": str(tmp_path / "env"), "platbase": str(tmp_path / "env")}
    site = Path(sysconfig.get_path("purelib", vars=own))
    install = ["-m", "pip", "--python", str(python), "install", "--no-deps", "--quiet", str(wheel)]
    subprocess.run([sys.executable, *install], check=True)
    # dependencies come from here, after what is installed there
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    smoke = ROOT / "tests" / "smoke.py"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, smoke], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"craftmaps {PROJECT['version']} in {site}" in done.stdout


def test_classifiers_agree_with_the_least_python():
    versions = [
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    least = PROJECT["requires-python"].removeprefix(">=")
    assert min(versions, key=lambda v: int(v.split(".")[1])) == least


def test_versions_agree():
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert latest is not None
    assert latest[1] in (version, "Unreleased")


def test_conda_recipe_agrees_with_pyproject():
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing: pip install pyyaml")
    path = ROOT / "packaging" / "conda" / "recipe.yaml"
    if not path.exists():
        pytest.skip("the sdist has no conda recipe")
    recipe = yaml.safe_load(path.read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    python, *needed = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert sorted(line.replace(" ", "") for line in needed) == sorted(PROJECT["dependencies"])
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == f"craftmaps = {PROJECT['scripts']['craftmaps']}"


def test_modules_are_there_without_an_import_of_their_own():
    """As the README writes them, in a program that has imported nothing but the package."""
    code = (
        "import craftmaps, sys\n"
        "assert 'craftmaps.scale.blocks' not in sys.modules\n"
        "assert callable(craftmaps.scale.blocks.read)\n"
        "assert {'blocks', 'dask', 'spark'} <= set(dir(craftmaps.scale))\n"
        "try:\n    craftmaps.scale.abacus\n"
        "except AttributeError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "module 'craftmaps.scale' has no attribute 'abacus'", done.stderr
