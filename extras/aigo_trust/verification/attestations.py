"""Attestations of results: signs a result, and writes the proof of one sample."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.results.log_files import open_for_replacing
from aigo_trust.provenance.envelope import signed
from aigo_trust.provenance.record import provenance_file, read_provenance, stem_of
from aigo_trust.provenance.sigstore_bundles import Sign, bundle_file, envelope_in
from aigo_trust.provenance.statement import (
    attestation_file,
    disclosure_of,
    payload,
    read_document,
    statement_in,
    statement_of,
    subject_digest,
)
from aigo_trust.provenance.texts import ResultTexts, read_texts
from aigo_trust.verification.contents import provenance_findings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def attest_result(result: Path, key: Ed25519PrivateKey) -> Path:
    """Sign a result with a key, and return the path of the attestation next to it.

    Raises:
        UsageError, EvidenceError, OSError: as for `attest_with`.
    """
    return attest_with(lambda content: signed(content, key), result, attestation_file(result))


def attest_with(sign: Sign, result: Path, target: Path) -> Path:
    """Sign a result, and return the path of the attestation.

    Args:
        sign: function that signs a payload.
        result: path of the result.
        target: path of the attestation, next to the result.

    Raises:
        UsageError: the result does not exist.
        EvidenceError: the result cannot be read, or does not match its provenance. Such a result should never
            be signed.
        OSError: the attestation cannot be written.
    """
    texts = _texts(result)
    file = provenance_file(result)
    provenance = None
    if file.is_file():
        findings = provenance_findings(texts, read_provenance(file))
        if findings:
            hint = "aigo-bridge verify tells all of it"
            raise EvidenceError(str(findings[0]), file=str(result), hint=hint, code=Code.BROKEN_ATTESTATION)
        provenance = (file.name, file.read_bytes())
    _write(target, sign(payload(statement_of(texts, provenance))))
    return target


def disclose_sample(result: Path, sample: str, out: Path | None, *, keyless: bool = False) -> Path:
    """Write one sample of an attested result with the proof that it belongs to the result, and return the
    file's path.

    Args:
        result: path of the result.
        sample: ID of the sample.
        out: path of the file; `None` for a file next to the result.
        keyless: whether to use the keyless attestation, signed with an identity.

    Raises:
        UsageError: the result or the sample does not exist.
        EvidenceError: the result is not attested, or the attestation belongs to another result.
        OSError: the file cannot be written.
    """
    texts = _texts(result)
    file = bundle_file(result) if keyless else attestation_file(result)
    if not file.is_file():
        hint = f"aigo-bridge attest RESULT {'--keyless' if keyless else '--key FILE'}"
        raise EvidenceError(
            "found no attestation of the result", file=str(file), hint=hint, code=Code.BROKEN_ATTESTATION
        )
    attestation = read_document(file)
    try:
        statement = statement_in(envelope_in(attestation))
    except ValueError as error:
        raise EvidenceError(str(error), file=str(file), code=Code.BROKEN_ATTESTATION) from error
    expected = statement_of(texts, None)
    if subject_digest(statement) != subject_digest(expected):
        raise EvidenceError(
            "it is the attestation of another file", file=str(file), code=Code.BROKEN_ATTESTATION
        )
    disclosure = disclosure_of(texts, attestation, sample)
    name = _OTHER.sub("-", sample).strip("-")[:60] or "sample"
    target = out or result.with_name(f"{stem_of(result)}.sample-{name}.json")
    _write(target, disclosure.to_json())
    return target


def _texts(result: Path) -> ResultTexts:
    if not result.is_file():
        raise UsageError(f"result {str(result)!r} does not exist", code=Code.NOTHING_THERE)
    return read_texts(result)


def _write(file: Path, content: Any) -> None:
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
    with open_for_replacing(file) as target:
        target.write(text)
