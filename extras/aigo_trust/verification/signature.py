"""Check that an attestation belongs to a result and has the required signature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aigo_bridge.access.opening import open_regular
from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.json_text import read_json
from aigo_trust.provenance.merkle import leaf_digest, tree_root
from aigo_trust.provenance.record import LARGEST, provenance_file
from aigo_trust.provenance.sigstore_bundles import bundle_file, envelope_in
from aigo_trust.provenance.statement import (
    attestation_file,
    disclosure_from,
    predicate_facts,
    read_document,
    statement_in,
    subject_digest,
)
from aigo_trust.provenance.texts import ResultTexts
from aigo_trust.verification.disclosures import sample_facts
from aigo_trust.verification.levels import Finding, Level, Verification, level
from aigo_trust.verification.materials import Signer
from aigo_trust.verification.numbers import same


def check_signature(
    texts: ResultTexts, result: Path, attestation: Path | None, signer: Signer, provenance: Path | None
) -> Level:
    """Return the level of the signature.

    Args:
        texts: content of the result.
        result: path of the result.
        attestation: path of the attestation; `None` for the files next to the result, if they exist.
        signer: required signer.
        provenance: path of the provenance; `None` for the file next to the result, if it exists.

    Raises:
        UsageError: a key or package for the check is missing or unreadable.
    """
    beside = (attestation_file(result), bundle_file(result))
    files = [file for file in beside if file.is_file()] if attestation is None else [attestation]
    if not files and signer.is_anyone:
        reason = f"the attestation is missing (expected next to it: {beside[0].name})"
        return level("signature", [], unchecked=reason)
    findings: list[Finding] = []
    signed, unchecked, documents = [], [], []
    for file in files:
        try:
            document = read_document(file)
            statement = statement_in(envelope_in(document))
        except (EvidenceError, ValueError) as error:
            findings.append(Finding(str(error), file=file.name))
            continue
        documents.append(document)
        missing = signer.missing(document)
        problem = None if missing is not None else signer.problem(document)
        if problem is not None:
            findings.append(Finding(problem, file=file.name))
        findings += _statement_findings(texts, statement, provenance or provenance_file(result), file.name)
        if missing is None:
            signed.append(signer.note(document))
        else:
            unchecked.append(f"{file.name}: {missing}" if len(files) > 1 else missing)
    failure = None
    if not findings and (lacking := signer.lacking(documents)) is not None:
        expected = beside[0 if signer.key is not None else 1].name
        findings.append(Finding(f"{lacking} (expected next to the result: {expected})"))
        failure = "no attestation was found for the signer that was asked for"
    # One valid signature is enough. A signature of the other kind is additional evidence.
    return level(
        "signature",
        findings,
        notes=[] if findings else [*signed, *(unchecked if signed else [])],
        unchecked=None if signed else "; ".join(unchecked) or None,
        failure=failure,
    )


def _statement_findings(
    texts: ResultTexts, statement: Mapping[str, Any], provenance: Path, file: str
) -> Iterator[Finding]:
    digest = texts.digest()
    if subject_digest(statement) != digest:
        yield Finding(f"it belongs to a file with another digest than the result ({digest:.16}…)", file=file)
    predicate = statement["predicate"]
    root = tree_root([leaf_digest(sample.text) for sample in texts.samples]).hex()
    samples = predicate["samples"]
    if samples["count"] != len(texts.samples):
        message = f"it covers {samples['count']} samples, the result has {len(texts.samples)}"
        yield Finding(message, ("evidence", "samples"), file=file)
    elif samples.get("root") != root:
        yield Finding(
            "its root does not match the samples: a sample was modified", ("evidence", "samples"), file=file
        )
    for name, fact in predicate_facts(texts).items():
        stated = predicate.get(name)
        if name == "metrics" and isinstance(stated, list) and len(stated) == len(fact):
            for number, (one, other) in enumerate(zip(stated, fact, strict=True)):
                if not same(one, other):
                    message = f"the attestation has {_short(one)}, the result {_short(other)}"
                    yield Finding(
                        message, ("evidence", "metrics", number), None, other["scorer"], other["name"], file
                    )
        elif not same(stated, fact):
            yield Finding(
                f"the attestation has {_short(stated)}, the result {_short(fact)}",
                (name,),
                field=name,
                file=file,
            )
    stated = predicate.get("provenance")
    if isinstance(stated, Mapping):
        yield from _provenance_findings(stated, provenance)


def _provenance_findings(stated: Mapping[str, Any], provenance: Path) -> Iterator[Finding]:
    try:
        with open_regular(provenance) as content:
            digest = hashlib.sha256(content.read(LARGEST)).hexdigest()
    except FileNotFoundError:
        yield Finding("the attested provenance is missing", file=provenance.name)
        return
    except OSError as error:
        yield Finding(f"the provenance cannot be read: {error}", file=provenance.name)
        return
    expected = stated.get("digest")
    if not isinstance(expected, Mapping) or expected.get("sha256") != digest:
        yield Finding("is not the provenance that was attested: its digest differs", file=provenance.name)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


def check_disclosure(path: Path, signer: Signer) -> Verification:
    """Check that a disclosed sample belongs to an attested result with the required signature.

    Raises:
        UsageError: the package or the keys for the check are missing.
    """
    try:
        document = read_document(path)
        disclosure = disclosure_from(document)
        statement = statement_in(envelope_in(disclosure.attestation))
        sample = read_json(disclosure.text)
    except (EvidenceError, ValueError) as error:
        return Verification(path, (level("signature", [Finding(str(error))], failure=_NOT_READ),))
    samples = statement["predicate"]["samples"]
    name = json.dumps(sample.get("sample_id") if isinstance(sample, Mapping) else None, ensure_ascii=False)
    findings = []
    root = disclosure.root
    if disclosure.count != samples["count"] or root is None or root.hex() != samples.get("root"):
        findings.append(
            Finding(
                "the sample does not belong to the attested result: sample or proof was altered", (), name
            )
        )
    place = f"number {disclosure.position + 1} of {disclosure.count}"
    notes = [f"sample {name} is {place} of the result with SHA-256 {subject_digest(statement)}"]
    lacking = signer.lacking([disclosure.attestation])
    missing = signer.missing(disclosure.attestation) if lacking is None else None
    if lacking is not None:
        findings.append(Finding(lacking))
    elif missing is None and (problem := signer.problem(disclosure.attestation)) is not None:
        findings.append(Finding(problem))
    elif missing is None:
        notes.append(signer.note(disclosure.attestation))
    failure = "the disclosed sample is not proved"
    checked = level(
        "signature", findings, notes=[] if findings else notes, unchecked=missing, failure=failure
    )
    return Verification(path, (replace(checked, is_asked=True),), tuple(sample_facts(statement, sample)))


_NOT_READ = "it cannot be read as a disclosed sample"
