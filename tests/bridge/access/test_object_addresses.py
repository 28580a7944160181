"""Object storage addresses: parsing, and errors for invalid ones."""

from __future__ import annotations

import pytest

from aigo_bridge.access.object_addresses import Scheme, is_address, is_collapsed, parse, require_package
from aigo_bridge.errors import UsageError


@pytest.mark.parametrize(
    "text", ["s3://bucket", "S3://bucket/a/b.yaml", "hf://datasets/org/name/x", "az://c/k/"]
)
def test_valid_object_address_is_parsed(text: str) -> None:
    assert is_address(text)
    address = parse(text)
    assert address.key == text.partition("://")[2].rstrip("/")
    assert str(parse(str(address))) == str(address)


@pytest.mark.parametrize(
    "text",
    [
        "s3://",
        "s3:///key",
        "s3://bucket//key",
        "s3://bucket/../other",
        "s3://bucket/./x",
        "ftp://x/y",
        "s4://x",
        "x",
    ],
)
def test_invalid_object_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        parse(text)


def test_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="environment") as error:
        parse("s3://AKIA123:geheim-geheim@bucket/key")
    assert "geheim" not in str(error.value)


def test_collapsed_addresses_are_recognized() -> None:
    assert is_collapsed("s3:/bucket/x")
    assert not is_collapsed("s3x/bucket")
    assert not is_collapsed("s3://bucket/x")


def test_the_missing_extra_is_named() -> None:
    absent = Scheme("s3", "s3", "no_such_package_s3fs", "s3")
    with pytest.raises(UsageError, match=r"needs no_such_package_s3fs.*extra 's3'.*run: pip install 's3fs>="):
        require_package(absent)
