"""Statements: valid for the in-toto library, and single samples verifiable without the others."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Message
from tests.support.results import metric, question, result, write_result

from aigo_bridge.engine.provenance import ResultOrigin
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_trust.provenance.envelope import make_key, private_key
from aigo_trust.provenance.record import write_provenance
from aigo_trust.provenance.statement import attestation_file, disclosure_from
from aigo_trust.verification.attestations import attest_result, disclose_sample
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.opening import verify_any


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key(tmp_path / "k.pem")
    return tmp_path / "k.pem"


def attested(count: int, key: Path) -> Path:
    samples = [question(number, "a", "a") for number in range(count)]
    log = result(samples, [metric({"accuracy": 1.0})] if samples else None)
    path = write_result(key.with_name("r.tasklog.json"), log)
    write_provenance(path, ResultOrigin("run", "inspect"))
    attest_result(path, private_key(key))
    return path


def test_statement_is_valid_in_the_in_toto_library(key: Path) -> None:
    path = attested(3, key)
    envelope = json.loads(attestation_file(path).read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    message = ParseDict(statement, Message())
    Statement.copy_from_pb(message).validate()
    assert statement["predicate"]["metrics"][0]["value"] == "1.0"
    assert statement["predicate"]["samples"]["count"] == 3


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_one_sample_is_verified_without_the_others(count: int, key: Path) -> None:
    path = attested(count, key)
    public = key.with_name("k.pub.pem")
    for number in {0, count // 2, count - 1}:
        file = disclose_sample(path, str(number), None)
        assert verify_any(file, Materials(key=public)).exit_code == 0
        assert verify_any(file, Materials()).exit_code == 3
        text = file.read_text()
        assert all(f"Question {other}?" not in text for other in range(count) if other != number)
        altered = text.replace(f"Question {number}?", f"Question {number}!")
        assert altered != text
        file.write_text(altered)
        assert verify_any(file, Materials(key=public)).exit_code == 1


def test_unknown_sample_is_not_disclosed(key: Path) -> None:
    path = attested(0, key)
    assert verify_any(path, Materials(key=key.with_name("k.pub.pem"))).exit_code == 0
    with pytest.raises(UsageError, match="no sample"):
        disclose_sample(path, "0", None)


def test_altered_result_is_not_signed(key: Path) -> None:
    path = attested(2, key)
    path.write_bytes(path.read_bytes().replace(b'"accuracy":1.0', b'"accuracy":0.9'))
    with pytest.raises(EvidenceError, match="altered"):
        attest_result(path, private_key(key))
    with pytest.raises(EvidenceError, match="another file"):
        disclose_sample(path, "0", None)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"format": "aigo-bridge/disclosure/v1", "proof": []},
        {"format": "aigo-bridge/disclosure/v1", "position": 0, "count": 1, "sample": "{}", "proof": ["zz"]},
        {"format": "aigo-bridge/disclosure/v1", "position": 0, "count": 1, "sample": "{}", "proof": []},
    ],
)
def test_an_invalid_disclosure_is_reported(document: object) -> None:
    with pytest.raises(ValueError, match=r"disclosure|missing|digests|envelope"):
        disclosure_from(document)
