"""Local copies of storage folders: downloads, uploads and rejected objects."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.storage import BUCKET, S3

from aigo_bridge.access.display_paths import address_of, display_path, refuse_address, with_addresses
from aigo_bridge.access.object_addresses import Address, StorageError, parse
from aigo_scale.storage.mirror import LARGEST, StorageMirror


@pytest.fixture
def mirror() -> Iterator[StorageMirror]:
    """Return the mirror of one command."""
    own = StorageMirror()
    yield own
    own.close()
    assert not own.folder.exists()


def at(key: str) -> Address:
    return parse(f"s3://{BUCKET}/{key}")


def test_only_written_files_are_uploaded_in_order(s3: S3, mirror: StorageMirror) -> None:
    s3.put("in/rows.jsonl", "{}\n")
    s3.put("out/old", "old")
    mirror.take_folder(at("in"))
    mirror.take_folder(at("out"))
    folder = mirror.path(at("out"))
    mirror.open_target(folder)
    assert not mirror.has_changes
    now = time.time()
    for number, name in enumerate(("b", "below/c", "a", ".x.0123456789ab.draft", ".shard.lock")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
        os.utime(folder / name, (now + number, now + number))
    (folder / "link").symlink_to("/etc/passwd")
    mirror.path(at("in/rows.jsonl")).write_text("changed")
    assert [address.key for address in mirror.publish()] == [
        f"{BUCKET}/out/{name}" for name in ("b", "below/c", "a")
    ]
    assert mirror.publish() == []
    (folder / "b").unlink()
    assert mirror.has_changes
    (folder / "a").write_text("anew")
    mirror.publish()
    assert s3.names() == ["in/rows.jsonl", "out/a", "out/below/c", "out/old"]
    assert (s3.get("out/a"), s3.get("in/rows.jsonl")) == (b"anew", b"{}\n")


def test_file_being_written_is_uploaded_later(
    s3: S3, mirror: StorageMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mirror.path(at("out"))
    folder.mkdir(parents=True)
    mirror.open_target(folder)
    for name in ("log.eval", ".answers-1.jsonl"):
        (folder / name).write_text("one\n")
    copy = mirror._copied

    def copied_while_written(path: Path, seen: object) -> Path | None:
        with path.open("a") as file:
            file.write("two\n")
        return copy(path, seen)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(mirror, "_copied", copied_while_written)
    mirror.publish(growing=True)
    assert s3.names() == ["out/.answers-1.jsonl"]
    monkeypatch.undo()
    mirror.publish()
    assert s3.get("out/log.eval") == b"one\ntwo\n"


@pytest.mark.parametrize("key", ["task/../../outside", "task//x", "task/./x"])
def test_object_key_outside_its_folder_is_rejected(s3: S3, mirror: StorageMirror, key: str) -> None:
    s3.put(key, "x")
    with pytest.raises(StorageError, match="is not a path in its folder"):
        mirror.take_folder(at("task"))
    assert not (mirror.folder / "outside").exists()


def test_object_that_is_also_a_folder_is_rejected(s3: S3, mirror: StorageMirror) -> None:
    s3.put("task/x", "x")
    s3.put("task/x/y", "y")
    with pytest.raises(StorageError, match=r"and a folder|cannot be read"):
        mirror.take_folder(at("task"))


def test_download_size_is_limited(s3: S3, mirror: StorageMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LARGEST.variable, "0.001")
    s3.put("task/large", b"x" * 2000)
    with pytest.raises(StorageError, match=f"set the environment variable {LARGEST.variable}"):
        mirror.take_folder(at("task"))


def test_local_copies_are_displayed_as_storage_addresses(mirror: StorageMirror) -> None:
    path = mirror.path(at("a/task.yaml"))
    assert address_of(path) == display_path(str(path)) == f"s3://{BUCKET}/a/task.yaml"
    assert address_of("/tmp/a") is None
    assert display_path("a/b") == "a/b"
    assert with_addresses(f"{path}:3:4: error") == f"s3://{BUCKET}/a/task.yaml:3:4: error"
    assert mirror.address(path) == at("a/task.yaml")


def test_files_not_uploaded_are_kept_locally(
    s3: S3, mirror: StorageMirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = mirror.path(at("out"))
    folder.mkdir(parents=True)
    mirror.open_target(folder)
    assert mirror.keep() is None
    (folder / "result").write_text("dear")
    kept = mirror.keep()
    assert kept is not None
    assert (kept / "s3" / BUCKET / "out" / "result").read_text() == "dear"


@pytest.mark.parametrize("path", ["s3://bucket/x", "s3:/bucket/x", "gs://b", "http://x/y"])
def test_storage_address_is_rejected_for_local_paths(path: str) -> None:
    with pytest.raises(ValueError, match=r"out: found .*, expected a path of this machine"):
        refuse_address(path, "out")
    refuse_address("./s3:/x", "out")
