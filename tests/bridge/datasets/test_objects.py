"""Rows in object storage: valid addresses, and addresses that are refused before any request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aigo_bridge.access.addresses import STORAGES, check_allowed, is_object_allowed
from aigo_bridge.access.grants import granted, granting
from aigo_bridge.access.object_addresses import SCHEMES
from aigo_bridge.datasets.objects import is_object, object_address, object_copy
from aigo_bridge.errors import DatasetError, UsageError

URL = "s3://team/data/rows.csv"


def refusal(url: str, folder: Path, *allowed: str, network: bool = True) -> str:
    with (
        granting(replace(granted(), network=network, addresses=allowed)),
        pytest.raises(DatasetError) as caught,
    ):
        object_copy(url, folder, largest=1000)
    assert list(folder.iterdir()) == []
    return str(caught.value)


def test_supported_storages_match_the_commands() -> None:
    assert tuple(SCHEMES) == STORAGES


@pytest.mark.parametrize("url", ["s3://a/b.csv", "gs://a/b.csv", "az://a/b.csv", "hf://datasets/a/b/c.jsonl"])
def test_object_storage_addresses_differ_from_other_urls(url: str) -> None:
    assert is_object(url)
    assert str(object_address(url)) == url
    assert not is_object(url.replace("://", "x://"))


@pytest.mark.parametrize("url", ["https://a/b.csv", "rows.csv", "http://[a", ""])
def test_other_addresses_are_not_objects(url: str) -> None:
    assert not is_object(url)


@pytest.mark.parametrize(
    "url", ["s3://", "s3://a/../b.csv", "s3://a//b.csv", "s3://k:v@a/b.csv", "s3://a/*.csv", "s3:/a/b.csv"]
)
def test_address_without_an_object_or_with_wildcards_is_refused(url: str) -> None:
    with pytest.raises(DatasetError) as caught:
        object_address(url)
    assert "k:v" not in str(caught.value)
    assert caught.value.code == "AB310"


def test_storage_address_that_the_user_did_not_allow_is_refused(tmp_path: Path) -> None:
    told = refusal(URL, tmp_path)
    assert told == (
        "'s3://team/data/rows.csv' is in object storage; a task may only read addresses that you allow"
        " (to allow it, use --allow-url s3://team/data)"
    )
    assert refusal(URL, tmp_path, "s3://team/dat", "gs://team", "team", "https://team") == told


def test_object_is_not_fetched_without_network_access(tmp_path: Path) -> None:
    assert "must be downloaded" in refusal(URL, tmp_path, "s3://team", network=False)


def test_object_that_is_not_a_row_file_is_refused_before_any_request(tmp_path: Path) -> None:
    assert "rows.exe" in refusal("s3://team/rows.exe", tmp_path, "s3://team")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("s3://team", True),
        ("s3://team/", True),
        ("s3://team/data", True),
        (URL, True),
        ("s3://team/dat", False),
        ("s3://tea", False),
        ("gs://team", False),
        ("team", False),
    ],
)
def test_an_allowed_prefix_allows_its_objects(entry: str, expected: bool) -> None:
    assert is_object_allowed(URL, [entry]) is expected


@pytest.mark.parametrize("entry", ["s3://", "s3:///x", "s3://a/../b", "s3://a//b", "s3://k:v@a", "s3://a/*"])
def test_invalid_storage_prefix_is_refused(entry: str) -> None:
    with pytest.raises(UsageError, match="expected a host or an origin"):
        check_allowed(entry)


@pytest.mark.parametrize("entry", ["s3://team", "gs://team/data/", "hf://datasets/org/name"])
def test_storage_prefix_can_be_allowed(entry: str) -> None:
    check_allowed(entry)
