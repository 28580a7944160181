"""What was prepared is kept while it is current; what ends a process that reads ends nothing else."""

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
    """What is prepared of an entry now."""
    (entry,) = [entry for entry in library._folder.listing().entries.values() if entry.name == name]
    work = library.work(entry)
    return work, work.future.result(60)


def test_what_a_page_is_of_is_made_once_and_anew_when_the_file_changes(library: Library) -> None:
    log = quiz(library.root / "a.tasklog.json", 1.0)
    first, prepared = looked_at(library, "a.tasklog.json")
    assert looked_at(library, "a.tasklog.json")[0] is first

    folders = [prepared.folder]
    for number in range(3):
        quiz(log, 0.5 - number / 10)
        work, prepared = looked_at(library, "a.tasklog.json")
        assert work is not first
        folders.append(prepared.folder)
    # The last two are kept, for pages that are about to change.
    assert [folder.exists() for folder in folders] == [False, False, True, True]
    assert library.prepared(folders[0].name.split("-")[0], first.number) is None


def test_beyond_its_bounds_what_was_looked_at_longest_ago_goes(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PREPARED", 2)
    folders = {}
    for name in "abc":
        quiz(library.root / f"{name}.tasklog.json", 1.0)
        folders[name] = looked_at(library, f"{name}.tasklog.json")[1].folder
    assert [name for name, folder in folders.items() if folder.exists()] == ["b", "c"]
    assert looked_at(library, "a.tasklog.json")[1].problem is None


def test_a_file_that_ends_the_process_that_reads_it_ends_nothing_else(
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


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    quiz(tmp_path / "a.tasklog.json", 1.0)
    library = Library(tmp_path)
    (entry,) = library.listing().entries.values()
    library.work(entry)
    library.close()
    assert not library.private.exists()
