"""Published packages: reproducible, complete and described by consistent files."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from tests.support.commands import REPOSITORY, Run

from aigo_bridge import __version__

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
PACKAGES = ("aigo_bridge", "aigo_inspect", "aigo_lighteval", "aigo_tasks")


def built(folder: Path, *kind: str, source: Path = REPOSITORY) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", *kind, "--no-isolation", "--outdir", folder, source],
        check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
    )  # fmt: skip
    (file,) = folder.iterdir()
    return file


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Source archive."""
    return built(tmp_path_factory.mktemp("sdist"), "--sdist")


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


@pytest.mark.timeout(600)
def test_builds_are_reproducible_from_checkout_and_source_archive(
    archive: Path, unpacked: Path, tmp_path: Path
) -> None:
    here, there = built(tmp_path / "a", "--wheel"), built(tmp_path / "b", "--wheel", source=unpacked)

    assert digest(here) == digest(there)
    assert digest(archive) == digest(built(tmp_path / "c", "--sdist", source=unpacked))
    with zipfile.ZipFile(here) as wheel:
        names = set(wheel.namelist())
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert f"aigo_bridge-{__version__}.data/data/share/man/man1/aigo-bridge.1" in names
    assert "aigo_bridge/projects/templates/common/dot-gitignore" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]


def test_source_archive_contains_the_files_for_its_tests(unpacked: Path) -> None:
    """Tests without an engine also run in the unpacked archive."""
    for name in (
        "Makefile",
        "constraints.txt",
        "CITATION.cff",
        "tests/conftest.py",
        "docs/README.md",
        "action.yml",
    ):
        assert (unpacked / name).is_file(), name
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "tests/bridge/text", "tests/bridge/projects"],
        cwd=unpacked,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (unpacked / "bridge", unpacked / "adapters", unpacked / "extras", unpacked / "tasks")))},
        capture_output=True, text=True, timeout=170,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


def test_files_that_name_the_version_agree() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text("utf-8"))
    recipe = yaml.safe_load((REPOSITORY / "packaging/conda/recipe.yaml").read_text("utf-8"))

    assert citation["version"] == recipe["context"]["version"] == __version__
    assert citation["license"] == recipe["about"]["license"] == PROJECT["project"]["license"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"] == PROJECT["project"]["authors"]


def test_conda_recipe_has_the_project_requirements() -> None:
    recipe = yaml.safe_load((REPOSITORY / "packaging/conda/recipe.yaml").read_text("utf-8"))
    other = {"msgspec-python": "msgspec"}
    listed = {
        other.get(line.split()[0], line.split()[0]): "".join(line.split()[1:])
        for line in recipe["requirements"]["run"]
    }
    wanted = {
        requirement.name.lower(): {str(each) for each in requirement.specifier}
        for requirement in map(Requirement, PROJECT["project"]["dependencies"])
    }

    assert {name: set(versions.split(",")) for name, versions in listed.items() if name != "python"} == wanted
    assert listed["python"] == PROJECT["project"]["requires-python"]


def test_packaging_files_contain_no_invented_address() -> None:
    """The repository address is unknown, so no file names one."""
    assert "urls" not in PROJECT["project"]
    for name in ("CITATION.cff", "packaging/conda/recipe.yaml", "Dockerfile", "action.yml"):
        assert not re.search(r"https?://", (REPOSITORY / name).read_text("utf-8")), name


def test_workflows_pin_actions_and_publish_without_a_token() -> None:
    text = (REPOSITORY / ".github/workflows/release.yaml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]

    assert all("@" in step["uses"] for step in steps if "uses" in step)
    assert workflow["jobs"]["publish"]["permissions"]["id-token"] == "write"
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    used = {
        word
        for step in steps
        for line in re.findall(r"make (.*)", step.get("run", ""))
        for word in line.split()
    }
    assert {"dist", "sbom", "check", "unit"} <= used & targets


# The container


def test_container_steps_can_be_followed(tmp_path: Path) -> None:
    """Without Docker: the copied files exist, are sufficient to build, and the container runs as an unprivileged user."""
    lines = (REPOSITORY / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    context = tmp_path / "context"
    for line in (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines():
        if line.startswith("!"):
            source = REPOSITORY / line[1:]
            target = context / line[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)

    wheel = built(tmp_path / "wheel", "--wheel", source=context)

    assert wheel.stat().st_size > 1_000_000
    words = [word for word, _ in steps]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(steps)["USER"] == "10001"
    assert ast.literal_eval(dict(steps)["ENTRYPOINT"]) == ["aigo-bridge"]
    assert all(value.startswith("python:3.12-slim") for word, value in steps if word == "FROM")
    (installed,) = [value for word, value in steps if word == "RUN" and "pip install" in value]
    assert "--constraint constraints.txt" in installed
    assert "lighteval" not in installed


# Hooks


def test_pre_commit_hooks_check_and_change_the_right_files(aigo: Run, tmp_path: Path) -> None:
    hooks = {
        hook["id"]: hook
        for hook in yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8"))
    }
    assert aigo("init", ".").code == 0
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    for name, wanted in {
        "aigo-bridge-validate": {"run.yaml", "tasks/capitals/task.yaml"},
        "aigo-bridge-upgrade": {"run.yaml", "tasks/capitals/task.yaml"},
    }.items():
        hook = hooks[name]
        chosen = sorted(file for file in files if re.search(hook["files"], file))
        assert set(chosen) == wanted
        program, *words = hook["entry"].split()
        assert (program, hook["language"]) == ("aigo-bridge", "python")
        assert aigo(*words, *chosen).code == 0
    assert aigo("upgrade", "run.yaml", "tasks/capitals/task.yaml").code == 2
