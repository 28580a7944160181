"""Configuration page: its examples work, and its tables are complete."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, TASKS, Run
from tests.support.consoles import Reader, squeezed
from tests.support.pages import page
from tools import manual

from aigo_bridge.cli import VERBS
from aigo_bridge.cli.defaults import ALLOWING
from aigo_bridge.datasets.rows import ROWS
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.models.connections.transports import ANSWER
from aigo_scale.storage.mirror import LARGEST

PAGE = page(REPOSITORY / "docs" / "reference" / "configuration.md")
VARIABLE = re.compile(r"\bAIGO_BRIDGE_[A-Z][A-Z_]*[A-Z]\b")


READ = re.compile(r'environ(?:\.get\(|\[)"([A-Z_]+)"')


def test_shown_settings_are_valid(aigo: Run, tmp_path: Path) -> None:
    (block,) = PAGE.section("Project defaults").blocks
    (tmp_path / "aigo-bridge.toml").write_text(block.text)

    assert aigo("validate", TASKS / "gsm8k").code == 0
    assert "file 'nothing.yaml' does not exist" in aigo("run", "nothing.yaml").err


def test_permission_options_are_listed() -> None:
    prose = PAGE.section("Project defaults").prose
    assert [name for name in ALLOWING if f"`--{name}`" not in prose] == []


def test_every_aigo_bridge_variable_is_listed() -> None:
    sources = (
        path for name in ("bridge", "adapters", "extras") for path in (REPOSITORY / name).rglob("*.py")
    )
    used = {name for path in sources for name in VARIABLE.findall(path.read_text("utf-8"))}
    listed = set(VARIABLE.findall(PAGE.text))
    assert len(used) > 5
    assert listed == used


def test_every_read_variable_is_listed() -> None:
    sources = (
        path for name in ("bridge", "adapters", "extras") for path in (REPOSITORY / name).rglob("*.py")
    )
    read = {name for path in sources for name in READ.findall(path.read_text("utf-8"))} - {"PATH"}
    assert len(read) > 5
    assert sorted(name for name in read if f"`{name}" not in PAGE.text) == []


def test_limits_have_the_listed_defaults() -> None:
    listed = re.findall(r"^\| `(AIGO_BRIDGE_\w+_MIB)` \| (\d+) \|", PAGE.text, re.MULTILINE)
    assert {name: int(value) for name, value in listed} == {
        bound.variable: bound.mebibytes for bound in (ROWS, ANSWER, LARGEST)
    }


def test_comparison_command_prints_the_shown_output(aigo: Run, tmp_path: Path) -> None:
    for folder in ("examples", "tasks"):
        (tmp_path / folder).symlink_to(REPOSITORY / folder)
    (block,) = PAGE.section("Compare variants in one run").blocks
    (echo, _), (command, shown) = block.commands

    Reader(tmp_path).run(echo)
    done = aigo(*shlex.split(command)[1:])

    assert [line for line in squeezed(shown) if line not in squeezed(done.out)] == []


def test_manual_page_is_current() -> None:
    """To fix: `make manual`."""
    assert manual.FILE.read_text("utf-8") == manual.manual()


def test_manual_page_lists_every_verb_and_exit_code() -> None:
    text = manual.FILE.read_text("utf-8")
    assert set(VERBS) <= set(re.findall(r"^\.SS (\S+)$", text, re.MULTILINE))
    assert set(manual.CODES) == set(ExitCode)


def test_manual_page_is_formatted_without_warnings(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed here: the page is made, and not set")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-K", "utf8", manual.FILE], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
