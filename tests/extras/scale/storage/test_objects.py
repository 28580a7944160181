"""Storage objects over the S3 protocol: atomic uploads and retries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.storage import BUCKET, S3, faulty, reached

from aigo_bridge.access.object_addresses import StorageError, StoredObject, parse
from aigo_scale.storage import objects
from aigo_scale.storage.objects import find, look, put, put_bytes, remove, take


def test_object_content_survives_upload_and_download(s3: S3, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 100)
    address = parse(f"s3://{BUCKET}/a/b")
    put(address, tmp_path / "file")
    taken = take(address, tmp_path / "new" / "copy")
    assert (tmp_path / "new" / "copy").read_bytes() == s3.get("a/b") == (tmp_path / "file").read_bytes()
    assert taken.size == 25600
    assert taken.modified > 1e9
    remove(address)
    remove(address)  # deleting a missing object is not an error
    assert look(address) is None


def test_multipart_upload_is_visible_only_when_complete(s3: S3, tmp_path: Path) -> None:
    content = b"0123456789abcdef" * (40 << 16)  # 40 MiB: three parts
    (tmp_path / "large").write_bytes(content)
    begun: list[list[str]] = []

    def watched(method: str, path: str, number: int) -> str | None:
        if method == "PUT":
            begun.append(s3.names())
        return None

    with faulty(s3.address, watched) as address:
        _with_endpoint(address, lambda: put(parse(f"s3://{BUCKET}/large"), tmp_path / "large"))
    assert begun == [[], [], []]
    assert s3.get("large") == content


def _with_endpoint(address: str, work: Callable[[], object]) -> None:
    with pytest.MonkeyPatch.context() as patch, reached(address, patch):
        work()


def test_folder_is_listed_without_downloading_objects(s3: S3) -> None:
    for key in ("x/one", "x/below/two", "xy/other", "x/empty/"):
        s3.put(key, b"" if key.endswith("/") else b"12")
    asked: list[str] = []

    def watched(method: str, path: str, number: int) -> str | None:
        asked.append(method + path.partition("?")[0])
        return None

    with faulty(s3.address, watched) as address:
        found: list[StoredObject] = []
        _with_endpoint(address, lambda: found.extend(find(parse(f"s3://{BUCKET}/x"))))
    assert [(one.key, one.size) for one in found] == [(f"{BUCKET}/x/below/two", 2), (f"{BUCKET}/x/one", 2)]
    assert not [one for one in asked if one.startswith("GET") and "x/" in one]
    assert [one.key for one in find(parse(f"s3://{BUCKET}/x"), depth=1)] == [f"{BUCKET}/x/one"]
    assert [one.key for one in find(parse(f"s3://{BUCKET}/x*/o*"))] == [
        f"{BUCKET}/x/one",
        f"{BUCKET}/xy/other",
    ]
    assert find(parse(f"s3://{BUCKET}/nothing")) == []


@pytest.mark.parametrize("fault", ["error", "slow-down", "cut"])
def test_transient_errors_are_retried(
    s3: S3, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    content = bytes(range(256)) * 4000
    (tmp_path / "file").write_bytes(content)
    with faulty(s3.address, lambda method, path, number: fault if number % 2 else None) as address:

        def work() -> None:
            put(parse(f"s3://{BUCKET}/k/file"), tmp_path / "file")
            take(parse(f"s3://{BUCKET}/k/file"), tmp_path / "copy")
            assert [one.size for one in find(parse(f"s3://{BUCKET}/k"))] == [len(content)]

        _with_endpoint(address, work)
    assert (tmp_path / "copy").read_bytes() == s3.get("k/file") == content


def test_permanent_errors_are_reported_immediately(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    with pytest.raises(StorageError, match="bucket 'elsewhere' does not exist"):
        put_bytes(parse("s3://elsewhere/x"), b"x")
    assert slept == []


def test_exhausted_retries_are_reported_with_the_reason(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr(objects, "TRIES", 2)
    with faulty(s3.address, lambda method, path, number: "error") as address:

        def work() -> None:
            with pytest.raises(
                StorageError, match=rf"s3://{BUCKET}/x cannot be written \(2 tries\): .*try again"
            ):
                put_bytes(parse(f"s3://{BUCKET}/x"), b"x")

        _with_endpoint(address, work)
    assert slept
    assert s3.names() == []


@pytest.mark.parametrize("where", ["folder", "folder/*.json", "fol*/*", "fol*/**"])
def test_failed_listing_raises_instead_of_returning_an_empty_folder(s3: S3, where: str) -> None:
    for name in ("folder/a.json", "folder/b.json", "folder/in/c.json", "other/d.json"):
        s3.put(name, "{}")
    # Requests that are answered before the one that fails.
    answered = iter([False])
    with (
        faulty(s3.address, lambda method, path, count: None if next(answered, True) else "error") as address,
        pytest.MonkeyPatch.context() as patch,
        reached(address, patch),
    ):
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        for depth in (1, 2, None):
            answered = iter([])
            whole = find(parse(f"s3://{BUCKET}/{where}"), depth=depth)
            assert {one.key for one in whole} >= {f"{BUCKET}/folder/a.json", f"{BUCKET}/folder/b.json"}
            for number in range(4):
                answered = iter([True] * number + [False])
                assert find(parse(f"s3://{BUCKET}/{where}"), depth=depth) == whole
