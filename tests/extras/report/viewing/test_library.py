"""Cache of prepared entries, and isolation of reader processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import viewing as support
from tests.support.results import metric, question, result, write_result

from aigo_report.viewing import library as module
from aigo_report.viewing.library import Library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path)
    yield library
    library.close()


def quiz(path: Path, accuracy: float) -> Path:
    return write_result(path, result([question(0, "a", "a")], [metric({"accuracy": accuracy})]))


def looked_at(library: Library, name: str) -> Any:
    """Return the current work and prepared content of an entry."""
    (entry,) = [entry for entry in library._folder.listing().entries.values() if entry.name == name]
    work = library.work(entry)
    return work, work.future.result(60)


def test_entry_is_prepared_once_and_again_when_its_file_changes(library: Library) -> None:
    log = quiz(library.root / "a.tasklog.json", 1.0)
    first, prepared = looked_at(library, "a.tasklog.json")
    assert looked_at(library, "a.tasklog.json")[0] is first

    folders = [prepared.folder]
    for number in range(3):
        quiz(log, 0.5 - number / 10)
        work, prepared = looked_at(library, "a.tasklog.json")
        assert work is not first
        folders.append(prepared.folder)
    # The last two are kept for pages that still show the previous version.
    assert [folder.exists() for folder in folders] == [False, False, True, True]
    assert library.prepared(folders[0].name.split("-")[0], first.number) is None


def test_least_recently_viewed_entry_is_deleted(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PREPARED", 2)
    folders = {}
    for name in "abc":
        quiz(library.root / f"{name}.tasklog.json", 1.0)
        folders[name] = looked_at(library, f"{name}.tasklog.json")[1].folder
    assert [name for name, folder in folders.items() if folder.exists()] == ["b", "c"]
    assert looked_at(library, "a.tasklog.json")[1].problem is None


def test_file_that_kills_its_reader_does_not_affect_others(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiz(library.root / "a.tasklog.json", 1.0)
    quiz(library.root / "b.tasklog.json", 1.0)
    monkeypatch.setattr(module, "prepare", support.ended_by_the_kernel)
    work, prepared = looked_at(library, "a.tasklog.json")
    assert prepared.problem.startswith("the process that read it was ended")
    assert looked_at(library, "a.tasklog.json")[0] is work

    monkeypatch.undo()
    assert looked_at(library, "b.tasklog.json")[1].problem is None


def test_closed_library_deletes_its_private_folder(tmp_path: Path) -> None:
    quiz(tmp_path / "a.tasklog.json", 1.0)
    library = Library(tmp_path)
    (entry,) = library.listing().entries.values()
    library.work(entry)
    library.close()
    assert not library.private.exists()
