"""New files next to existing ones: all or none, and never overwriting."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from aigo_bridge.errors import SpecError
from aigo_bridge.projects import create_files

FILES = {"a.txt": b"a", "deep/er/b.txt": b"b"}


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_files_are_written_next_to_existing_files(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("mine")

    written = create_files(tmp_path, FILES)

    assert [path.read_bytes() for path in written] == [b"a", b"b"]
    assert (tmp_path / "own.txt").read_text() == "mine"


def test_missing_parent_folders_are_created(tmp_path: Path) -> None:
    create_files(tmp_path / "x" / "y", FILES)

    assert tree(tmp_path / "x" / "y") == {"a.txt", "deep", "deep/er", "deep/er/b.txt"}


def test_existing_files_are_reported_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "b.txt").write_text("mine")
    (tmp_path / "a.txt").symlink_to(tmp_path / "nowhere")
    before = tree(tmp_path)

    with pytest.raises(SpecError) as error:
        create_files(tmp_path, {**FILES, "c.txt": b"c"})

    assert [Path(issue.file or "").name for issue in error.value.issues] == ["a.txt", "b.txt"]
    assert tree(tmp_path) == before
    assert (tmp_path / "deep" / "er" / "b.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [("file", "is not a folder"), ("out", "is outside the folder"), ("nothing", "is a broken link")],
)
def test_file_or_link_in_place_of_a_folder_is_reported(tmp_path: Path, obstacle: str, message: str) -> None:
    folder, place = tmp_path / "p", tmp_path / "p" / "deep"
    folder.mkdir()
    (tmp_path / "out").mkdir()
    if obstacle == "file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "out" if obstacle == "out" else folder / "gone")

    with pytest.raises(SpecError, match=message):
        create_files(folder, FILES)

    assert tree(folder) == {"deep"}
    assert tree(tmp_path / "out") == set()


def test_a_failed_write_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    calls: list[int] = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space"):
        create_files(tmp_path, FILES)

    assert tree(tmp_path) == {"deep"}


def test_file_created_in_the_meantime_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meddle(descriptor: int) -> None:
        (tmp_path / "deep" / "er").mkdir(parents=True, exist_ok=True)
        (tmp_path / "deep" / "er" / "b.txt").write_text("mine")

    monkeypatch.setattr(os, "fsync", meddle)

    with pytest.raises(FileExistsError):
        create_files(tmp_path, FILES)

    assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "deep" / "er" / "b.txt").read_text() == "mine"
