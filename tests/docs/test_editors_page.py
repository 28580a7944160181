"""Editors page: the settings are valid and start the existing command."""

from __future__ import annotations

import json
import re
import tomllib

from tests.support.commands import REPOSITORY
from tests.support.pages import Page

from aigo_bridge.cli import VERBS
from aigo_editor import analysis, project, worker
from aigo_editor.server import PROMPT, SHOW_PROMPT

PATH = REPOSITORY / "docs" / "guides" / "use-an-editor.md"
PAGE = Page(PATH, PATH.read_text("utf-8"))
BLOCKS = {block.kind: block.text for block in PAGE.blocks}


def test_helix_starts_the_server_for_yaml() -> None:
    settings = tomllib.loads(BLOCKS["toml"])
    server = settings["language-server"]["aigo-bridge"]
    (language,) = settings["language"]
    assert [server["command"], *server["args"]] == ["aigo-bridge", "lsp"]
    assert language["name"] == "yaml"
    assert "aigo-bridge" in language["language-servers"]


def test_vs_code_has_the_setting() -> None:
    manifest = json.loads((REPOSITORY / "editors" / "vscode" / "package.json").read_text("utf-8"))
    properties = manifest["contributes"]["configuration"]["properties"]
    for name, value in json.loads(BLOCKS["json"]).items():
        assert properties[name]["type"] == "array"
        assert value[-1] == "lsp"


def test_neovim_starts_the_server_for_yaml() -> None:
    assert re.search(r'cmd = \{ "aigo-bridge", "lsp" \}', BLOCKS["lua"])
    assert re.search(r'filetypes = \{ "yaml" \}', BLOCKS["lua"])
    assert BLOCKS["lua"].count('"aigo_bridge"') == 2


def test_limits_and_names_match_the_server() -> None:
    assert "lsp" in VERBS
    assert f"`{PROMPT}`" in PAGE.text
    assert f"`{SHOW_PROMPT}`" in PAGE.text
    assert f"more than {analysis.DEADLINE:g} seconds" in PAGE.text
    assert f"{project.MOST_FILES} YAML files" in PAGE.text
    assert f"up to {worker.ROWS_MIB} MiB (`AIGO_BRIDGE_ROWS_MIB`)" in PAGE.text
