"""Files of new projects fit together and the release that writes them."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from packaging.requirements import Requirement

from aigo_bridge import __version__
from aigo_bridge.cli.verbs.init import NAMES
from aigo_bridge.projects import PARTS, TEMPLATES, part_files, project_files
from aigo_bridge.projects.files import Template

COMMON = {
    ".gitignore",
    ".github/workflows/evaluation.yaml",
    ".vscode/settings.json",
    "README.md",
    "requirements.txt",
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_new_project_has_all_listed_files(template: Template) -> None:
    files = project_files(template)

    assert {*COMMON, "aigo-bridge.toml"} <= set(files)
    assert ("run.yaml" in files) == (template != "jsonl")
    assert not [name for name in files if "dot-" in name or "__pycache__" in name]
    assert all(content.decode("utf-8").endswith("\n") and b"\r" not in content for content in files.values())
    named = re.findall(r"^\| (`[^|]+`) \|", files["README.md"].decode(), re.MULTILINE)
    listed = {name for names in named for name in re.findall(r"`([^`]+)`", names)}
    assert listed <= set(files), "the page of the project names files that are not there"


def test_help_lists_all_templates() -> None:
    assert tuple(NAMES.split("|")) == tuple(TEMPLATES)


def test_requirements_install_this_release() -> None:
    lines = project_files("chat")["requirements.txt"].decode().splitlines()
    (requirement,) = [Requirement(line) for line in lines if not line.startswith("#")]

    assert requirement.name == "aigo-bridge"
    assert requirement.specifier.contains(__version__)


def test_editor_settings_refer_to_existing_schemas() -> None:
    files = project_files("chat")
    settings = json.loads(files[".vscode/settings.json"])

    assert set(settings["yaml.schemas"]) <= set(files)
    assert json.loads(files[".vscode/schemas/task.json"])["title"] == "TaskSpec"


@pytest.mark.parametrize("part", PARTS)
def test_new_part_uses_its_name_in_every_file(part: str) -> None:
    files = part_files(part, "my_own-part")  # type: ignore[arg-type]  # one of them

    assert files
    assert all("my_own-part" in name or name.endswith("answers.jsonl") for name in files)
    assert not [name for name, content in files.items() if b"part-name" in content or b"Part name" in content]
    (spec,) = [content for name, content in files.items() if name.endswith(".yaml")]
    assert yaml.load(spec.replace(b"!include", b""), yaml.SafeLoader)["key"] == "my_own-part"
