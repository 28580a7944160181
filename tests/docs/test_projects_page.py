"""`docs/guides/set-up-a-project.md`: commands print the shown output, and the table lists every template."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.consoles import squeezed
from tests.support.pages import page

from aigo_bridge.projects import TEMPLATES

PAGE = page(REPOSITORY / "docs" / "guides" / "set-up-a-project.md")


def test_commands_print_the_shown_output(aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, which has loaded the engine already."""
    for block in PAGE.blocks:
        for command, shown in block.commands:
            folder, _, words = command.rpartition(" && ")
            monkeypatch.chdir(tmp_path / folder.removeprefix("cd "))
            done = aigo(*shlex.split(words.removeprefix("aigo-bridge ")))
            printed = squeezed(done.out)
            assert done.code == 0, done.err
            assert [line for line in squeezed(shown) if line not in printed] == [], command


def test_every_template_is_in_the_table() -> None:
    table = PAGE.text[PAGE.text.index("| `--template`") :].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z][\w-]+)`", table, re.MULTILINE) == list(TEMPLATES)
