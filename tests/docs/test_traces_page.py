"""`docs/guides/score-recorded-traces.md`: commands print the shown output, Python runs, every source is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, squeezed
from tests.support.pages import page

from aigo_formats.traces.sources import SOURCES

PAGE = page(REPOSITORY / "docs" / "guides" / "score-recorded-traces.md")


@pytest.mark.timeout(400)
def test_commands_print_the_shown_output(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    reader = Reader(tmp_path)
    commands = [command for block in PAGE.blocks if block.kind == "console" for command in block.commands]

    for command, shown in commands:
        assert squeezed(reader.run(command)) == squeezed(shown), command
    assert len(commands) == 5


def test_python_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    (block,) = [block for block in PAGE.blocks if block.kind == "python"]
    exec(compile(block.text, "docs/guides/score-recorded-traces.md", "exec"), {})


def test_dataset_equals_the_example_file() -> None:
    (block,) = [block for block in PAGE.blocks if block.kind == "yaml"]
    assert yaml.safe_load(block.text) == yaml.safe_load(
        (REPOSITORY / "examples/traces/sessions.yaml").read_text()
    )


def test_every_source_is_named() -> None:
    assert [name for name in SOURCES if f"| `{name}`" not in PAGE.text] == []
