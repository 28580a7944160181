"""Unsaved editor text replaces a file inside the block that sets it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aigo_bridge.access.in_memory import editing, unsaved
from aigo_bridge.errors import SpecError
from aigo_bridge.reading import read
from aigo_bridge.spec.datasets import DatasetSpec

TEXT = "key: rows\ndisplay_name: {name}\nsource: {{type: local, file_path: rows.csv}}\n"


def test_unsaved_text_is_found_by_every_path_of_its_file_only_inside_the_block(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    file = tmp_path.resolve() / "folder" / "a.yaml"
    with editing({str(file): "typed"}):
        assert unsaved(file) == unsaved(tmp_path / "link" / "a.yaml") == "typed"
        assert unsaved(tmp_path / "b.yaml") is None
        with editing({}):
            assert unsaved(file) is None
        assert unsaved(file) == "typed"
    assert unsaved(file) is None


def test_unsaved_text_is_invisible_to_other_threads(tmp_path: Path) -> None:
    seen: list[str | None] = []
    with editing({str(tmp_path.resolve() / "a.yaml"): "typed"}):
        thread = threading.Thread(target=lambda: seen.append(unsaved(tmp_path / "a.yaml")))
        thread.start()
        thread.join()
    assert seen == [None]


def test_unsaved_text_of_an_included_file_is_used(tmp_path: Path) -> None:
    file = tmp_path.resolve() / "rows.yaml"
    file.write_text(TEXT.format(name="!include name.md"), encoding="utf-8")
    with pytest.raises(SpecError, match="does not exist"):
        read(DatasetSpec, file)
    with editing({str(tmp_path.resolve() / "name.md"): "Typed\r\n"}):
        assert read(DatasetSpec, file).spec.display_name == "Typed"
    with editing({str(file): TEXT.format(name="Whole")}):
        assert read(DatasetSpec, file).spec.display_name == "Whole"
