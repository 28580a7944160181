"""Attestations of results: written beside them, and one sample of them proved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.provenance.envelope import signed
from aigo_bridge.provenance.record import provenance_file, read_provenance, stem_of
from aigo_bridge.provenance.statement import (
    attestation_file,
    disclosure_of,
    payload,
    read_document,
    statement_in,
    statement_of,
    subject_digest,
)
from aigo_bridge.provenance.texts import ResultTexts, read_texts
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.verification.contents import provenance_findings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def attest_result(result: Path, key: Ed25519PrivateKey) -> Path:
    """Sign what a result says; returns the attestation, which stands beside it.

    Raises:
        UsageError: there is no such result.
        EvidenceError: it cannot be read, or is not the one that its provenance was written of: nobody should
            put a name to that.
        OSError: the attestation cannot be written.
    """
    texts = _texts(result)
    file = provenance_file(result)
    provenance = None
    if file.is_file():
        findings = provenance_findings(texts, read_provenance(file))
        if findings:
            hint = "aigo-bridge verify tells all of it"
            raise EvidenceError(
                [Issue(str(findings[0]), file=str(result), hint=hint, code=Code.BROKEN_ATTESTATION)]
            )
        provenance = (file.name, file.read_bytes())
    envelope = signed(payload(statement_of(texts, provenance)), key)
    target = attestation_file(result)
    _write(target, envelope)
    return target


def disclose_sample(result: Path, sample: str, out: Path | None) -> Path:
    """Write one sample of an attested result with what proves that it belongs to it; returns the file.

    Raises:
        UsageError: there is no such result or sample.
        EvidenceError: the result has no attestation, or not this one.
        OSError: the file cannot be written.
    """
    texts = _texts(result)
    file = attestation_file(result)
    if not file.is_file():
        hint = "aigo-bridge attest RESULT --key FILE"
        raise EvidenceError(
            [
                Issue(
                    "there is no attestation of the result",
                    file=str(file),
                    hint=hint,
                    code=Code.BROKEN_ATTESTATION,
                )
            ]
        )
    envelope = read_document(file)
    try:
        statement = statement_in(envelope)
    except ValueError as error:
        raise EvidenceError([Issue(str(error), file=str(file), code=Code.BROKEN_ATTESTATION)]) from error
    expected = statement_of(texts, None)
    if subject_digest(statement) != subject_digest(expected):
        raise EvidenceError(
            [Issue("it is the attestation of another file", file=str(file), code=Code.BROKEN_ATTESTATION)]
        )
    disclosure = disclosure_of(texts, envelope, sample)
    name = _OTHER.sub("-", sample).strip("-")[:60] or "sample"
    target = out or result.with_name(f"{stem_of(result)}.sample-{name}.json")
    _write(target, disclosure.to_json())
    return target


def _texts(result: Path) -> ResultTexts:
    if not result.is_file():
        raise UsageError(f"there is no result {str(result)!r}", code=Code.NOTHING_THERE)
    return read_texts(result)


def _write(file: Path, content: Any) -> None:
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
    with open_for_replacing(file) as target:
        target.write(text)
