"""Ids, times and values in OTLP files and their variants."""

from __future__ import annotations

from typing import Any

import pytest

from aigo_formats.traces.otlp import any_value, span_id_of, time_of

TIME = 1_772_359_200_123_000_000


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("eee19b7ec3c1b174", "eee19b7ec3c1b174"),
        ("EEE19B7EC3C1B174", "eee19b7ec3c1b174"),
        ("0xeee19b7ec3c1b174", "eee19b7ec3c1b174"),
        ("7uGbfsPBsXQ=", "eee19b7ec3c1b174"),
        ("W4qlotLIcugyHPNzCNad8g==", "5b8aa5a2d2c872e8321cf37308d69df2"),
        ("fixture-1", "fixture-1"),
        ("0000000000000000", None),
        ("AAAAAAAAAAA=", None),
        ("", None),
        (7, None),
        ("x" * 1000, None),
    ],
)
def test_span_ids_are_converted(written: Any, key: str | None) -> None:
    assert span_id_of(written) == key


@pytest.mark.parametrize(
    ("written", "time"),
    [
        (TIME, TIME),
        (str(TIME), TIME),
        (TIME // 1000, TIME),
        (TIME // 10**6, TIME),
        (1_772_359_200, 1_772_359_200 * 10**9),
        ("2026-03-01T10:00:00.123Z", TIME),
        ("2026-03-01T11:00:00.123+01:00", TIME),
        ("2026-03-01T10:00:00.123", TIME),
        (0, None),
        ("0", None),
        (-5, None),
        (True, None),
        (1.5, None),
        (2**70, None),
        ("9" * 30, None),
        ("yesterday", None),
        (None, None),
        ({"a": 1}, None),
    ],
)
def test_timestamps_are_converted(written: Any, time: int | None) -> None:
    assert time_of(written) == time


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ({"stringValue": "x"}, "x"),
        ({"intValue": "9007199254740993"}, 9007199254740993),
        ({"intValue": 5}, 5),
        ({"intValue": "many"}, "many"),
        ({"doubleValue": 0.5}, 0.5),
        ({"boolValue": False}, False),
        ({"arrayValue": {"values": [{"stringValue": "x"}, {"intValue": "1"}]}}, ["x", 1]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}, {"key": 5}]}}, {"k": "v"}),
        ({"bytesValue": "AAE="}, "AAE="),
        ("plain", "plain"),
        ({"other": 1}, {"other": 1}),
        ({}, {}),
    ],
)
def test_attribute_values_are_converted(written: Any, value: Any) -> None:
    assert any_value(written) == value
