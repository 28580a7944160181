"""Install commands in messages name packages, which works for wheels and editable installations."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import tomllib

import pytest
from tests.support.commands import REPOSITORY

from aigo_bridge.process import core_command, install_command, pip_install

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split("[<>=!~]", each)[0].lower().replace("_", "-") for each in requirements}


@pytest.mark.parametrize("extra", sorted(set(PROJECT["optional-dependencies"]) - {"test"}))
def test_install_command_names_the_packages_of_an_extra(extra: str) -> None:
    command = install_command(extra)

    assert command is not None
    assert command.startswith("pip install ")
    assert names(shlex.split(command)[2:]) == names(PROJECT["optional-dependencies"][extra])


def test_unknown_extra_has_no_install_command() -> None:
    """Inspect is installed with the core, and third-party engines have their own packages."""
    assert install_command("inspect") is None


def test_core_package_is_named_with_a_compatible_version() -> None:
    assert core_command("inspect_ai").startswith("pip install 'inspect-ai")
    assert "<0.4" in core_command("inspect-ai")
    assert core_command("pyarrow") == "pip install pyarrow"  # only required by an extra


def test_without_an_installation_no_command_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert install_command("parquet") is None
    assert core_command("sacrebleu") == "pip install sacrebleu"


def test_requirements_are_quoted_for_a_shell() -> None:
    assert pip_install("a>=1", "b") == "pip install 'a>=1' b"


def test_no_message_installs_aigo_bridge_from_a_package_index() -> None:
    """aigo-bridge is on no index, and installing it from one would replace an editable installation."""
    asking = [
        path.relative_to(REPOSITORY)
        for folder in ("bridge", "adapters", "extras", "tasks", "docs")
        for path in (REPOSITORY / folder).rglob("*")
        if path.suffix in (".py", ".md")
        and any(
            text in path.read_text("utf-8")
            for text in ("install aigo-bridge", "install 'aigo-bridge", 'install "aigo-bridge')
        )
    ]

    # This module explains the reason.
    assert [str(path) for path in asking] == ["bridge/aigo_bridge/process/__init__.py"]
