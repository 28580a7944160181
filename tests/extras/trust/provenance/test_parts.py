"""Altered parts of a sample are reported with their path."""

from __future__ import annotations

import orjson
import pytest
from tests.support.results import message, sample, score, trial

from aigo_trust.provenance.parts import differences, frame_parts, packed, sample_parts, unpacked

SAMPLE = sample(
    trial(
        7,
        [message("user", "2 + 2?"), message("assistant", "4")],
        scores=[score("equals", {"correct": 1.0, "length": 12}), score("judge", {"grade": 3})],
        data={"question": "2 + 2?", "answer": 4},
    )
)
TEXT = orjson.dumps(SAMPLE)


def changed(old: bytes, new: bytes) -> list[tuple[str, str]]:
    parts = sample_parts(TEXT.replace(old, new))
    return [
        (".".join(map(str, d.path)), d.kind) for d in differences(parts, unpacked(packed(sample_parts(TEXT))))
    ]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b'"correct":1.0', b'"correct":0.0', "trials.0.scores.0.values.correct"),
        (b'"grade":3', b'"grade":4', "trials.0.scores.1.values.grade"),
        (b'"answer":4', b'"answer":5', "trials.0.sample.data.answer"),
        (b'"text":"4"', b'"text":"5"', "trials.0.solver.output.trace.items"),
        (b'"total_time":1.25', b'"total_time":1.26', "trials.0.solver.output.trace.metadata"),
        (b'"scorer_key":"judge"', b'"scorer_key":"judgf"', "trials.0.scores.1.scorer_key"),
        (b'"length":12', b'"width":12', "trials.0.scores.0.values.width"),
    ],
)
def test_altered_part_is_reported_with_its_path(old: bytes, new: bytes, place: str) -> None:
    assert old in TEXT
    assert changed(old, new) == [(place, "altered")]


def test_removed_and_added_parts_are_reported() -> None:
    assert changed(b',"length":12', b"") == [("trials.0.scores.0.values.correct", "removed")]
    assert changed(b'"length":12', b'"length":12,"more":1') == [("trials.0.scores.0.values.more", "added")]
    assert changed(b"no such text", b"") == []


def test_a_changed_frame_value_is_located() -> None:
    frame = {"status": "success", "evidence": {"metrics": [{"values": {"Accuracy": 0.75}}]}, "errors": []}
    altered = {**frame, "evidence": {"metrics": [{"values": {"Accuracy": 0.76}}]}}
    (difference,) = differences(frame_parts(altered), [part.checksum for part in frame_parts(frame)])
    assert difference.path == ("evidence", "metrics", 0, "values", "Accuracy")


def test_unpaired_surrogate_in_a_part_is_supported() -> None:
    text = TEXT.replace(b'"text":"4"', b'"text":"\\ud800"')
    assert len(sample_parts(text)) == len(sample_parts(TEXT))
    assert differences(sample_parts(text), [part.checksum for part in sample_parts(text)]) == []


def test_damaged_checksums_are_reported() -> None:
    for text in ("…", "AAA", "AAAA"):
        with pytest.raises(ValueError, match="checksums"):
            unpacked(text)
