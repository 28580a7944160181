"""VS Code extension: bundle build, grammar, and consistency with the language server.

The extension is not run in VS Code. `tests/extras/editor` tests its requests.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY
from tests.support.frontend import REQUIRED

from aigo_bridge.version import __version__
from aigo_editor.completion import VARIABLES
from aigo_editor.server import PROMPT, SHOW_PROMPT

EXTENSION = REPOSITORY / "editors" / "vscode"


def node(*parts: str) -> str:
    """Return the Node command if npm has installed the given packages."""
    command = shutil.which("node")
    missing = [part for part in parts if not (EXTENSION / "node_modules" / part).exists()]
    if command is None or missing:
        reason = f"not installed: {', '.join(missing) or 'Node'}; `make editors` installs the parts of the extension"
        assert not REQUIRED, reason
        pytest.skip(reason)
    return command


def manifest() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    return content


def test_extension_has_the_version_and_commands_of_the_server() -> None:
    source = (EXTENSION / "src" / "extension.js").read_text("utf-8")
    assert manifest()["version"] == __version__
    assert f'"{PROMPT}"' in source
    assert SHOW_PROMPT in {command["command"] for command in manifest()["contributes"]["commands"]}
    assert f'registerCommand("{SHOW_PROMPT}"' in source


def test_declared_commands_and_settings_match_the_source() -> None:
    source = (EXTENSION / "src" / "extension.js").read_text("utf-8")
    contributed = manifest()["contributes"]
    registered = set(re.findall(r'registerCommand\("([\w.]+)"', source))
    assert {command["command"] for command in contributed["commands"]} == registered
    settings = set(re.findall(r'settings\.get\("(\w+)"\)', source))
    assert {f"aigoBridge.{name}" for name in settings} == contributed["configuration"]["properties"].keys()


def test_untrusted_workspace_cannot_set_the_command() -> None:
    setting = manifest()["contributes"]["configuration"]["properties"]["aigoBridge.command"]
    assert setting["scope"] == "machine"
    assert (
        "aigoBridge.command" in manifest()["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    )


def test_grammar_lists_all_template_variables() -> None:
    (grammar,) = manifest()["contributes"]["grammars"]
    rules = json.loads((EXTENSION / grammar["path"]).read_text("utf-8"))
    assert rules["scopeName"] == grammar["scopeName"]
    (names,) = (
        rule["match"]
        for rule in rules["repository"]["jinja-inside"]["patterns"]
        if "sample|" in rule.get("match", "")
    )
    assert set(re.findall(r"[a-z_]{5,}", names)) == set(VARIABLES)


def test_package_lock_contains_no_registry_addresses() -> None:
    assert '"resolved"' not in (EXTENSION / "package-lock.json").read_text("utf-8")


def test_bundle_build_is_reproducible_and_includes_third_party_licenses(tmp_path: Path) -> None:
    command = node("esbuild", "vscode-languageclient")
    for name in ("one", "two"):
        subprocess.run(
            [command, "build.mjs", str(tmp_path / name)], cwd=EXTENSION, check=True, capture_output=True
        )

    bundle = (tmp_path / "one" / "extension.js").read_bytes()
    assert bundle == (tmp_path / "two" / "extension.js").read_bytes()
    assert PROMPT.encode() in bundle
    notices = (tmp_path / "one" / "NOTICES.txt").read_text("utf-8")
    assert notices.startswith("balanced-match ")
    assert "\nvscode-languageclient " in notices
    assert all(len(notice.strip().split("\n")) > 5 for notice in notices.split("\n----\n"))


def grammar_test(file: Path) -> subprocess.CompletedProcess[str]:
    command = node("vscode-tmgrammar-test", "tm-grammars")
    grammars = [
        EXTENSION / "node_modules" / "tm-grammars" / "grammars" / f"{name}.json"
        for name in ("yaml", "python")
    ]
    words = [word for grammar in grammars for word in ("--grammar", str(grammar))]
    runner = EXTENSION / "node_modules" / "vscode-tmgrammar-test" / "dist" / "unit.js"
    return subprocess.run(
        [command, str(runner), *words, str(file)], cwd=EXTENSION, capture_output=True, text=True
    )


def test_jinja_parameters_and_python_are_highlighted_in_yaml(tmp_path: Path) -> None:
    text = (EXTENSION / "test" / "grammar" / "task.yaml").read_text("utf-8")
    done = grammar_test(EXTENSION / "test" / "grammar" / "task.yaml")
    assert done.returncode == 0, done.stdout + done.stderr

    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text.replace("variable.parameter.aigo", "variable.other.aigo"), encoding="utf-8")
    done = grammar_test(wrong)
    assert done.returncode != 0
    assert "variable.other.aigo" in done.stdout
