"""Signed statement of a result, and the proof of one sample.

The statement is an in-toto Statement (v1) with aigo-bridge's own predicate type. The predicate uses names
from the drafts of an evaluation predicate (in-toto/attestation#565, #575): `harness`, `evaluatedAt`,
`assuranceLevel`, and numbers as decimal texts. The drafts describe passed thresholds, but a result contains
metrics, so the type differs. All values come from the result and its provenance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.text.canonical_json import canonical_json
from aigo_bridge.text.json_text import read_json
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__
from aigo_trust.provenance.envelope import payload_of
from aigo_trust.provenance.merkle import inclusion_proof, leaf_digest, root_of_proof, tree_root
from aigo_trust.provenance.record import LARGEST, sample_id, stem_of
from aigo_trust.provenance.sigstore_bundles import envelope_in
from aigo_trust.provenance.texts import ResultTexts

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:aigo-bridge:evaluation-result:v1"
TREE = "rfc6962-sha256"
SUFFIX = ".intoto.json"
DISCLOSURE_FORMAT = "aigo-bridge/disclosure/v1"


def attestation_file(result: Path) -> Path:
    """Return the path of the attestation of a result."""
    return result.with_name(f"{stem_of(result)}{SUFFIX}")


def statement_of(texts: ResultTexts, provenance: tuple[str, bytes] | None) -> dict[str, Any]:
    """Return the statement of a result.

    Args:
        texts: content of the result.
        provenance: name and content of the provenance file; `None` if missing.
    """
    leaves = [leaf_digest(sample.text) for sample in texts.samples]
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": texts.path.name, "digest": {"sha256": texts.digest()}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            **predicate_facts(texts),
            "harness": {"name": "aigo-bridge", "version": __version__},
            "samples": {"count": len(leaves), "tree": TREE, "root": tree_root(leaves).hex()},
            "provenance": None
            if provenance is None
            else {"name": provenance[0], "digest": {"sha256": hashlib.sha256(provenance[1]).hexdigest()}},
            "assuranceLevel": "self_attested",
        },
    }


def predicate_facts(texts: ResultTexts) -> dict[str, Any]:
    """Return the facts about a result's content for the predicate."""
    frame = texts.frame
    specification, evidence = _mapping(frame.get("specification")), _mapping(frame.get("evidence"))
    task, entity = _mapping(specification.get("task")), _mapping(specification.get("evaluated_entity"))
    ended = _mapping(frame.get("execution")).get("ended_at")
    return {
        "evaluatedAt": _timestamp(ended),
        "status": frame.get("status"),
        "task": {"key": task.get("key"), "name": specification.get("display_name")},
        "entity": {"key": entity.get("key"), "name": entity.get("display_name")},
        "metrics": [
            {
                "scorer": metric.get("scorer_key"),
                "metric": metric.get("metric_key"),
                "name": name,
                # Written as text, so that JSON readers do not change the number.
                "value": orjson.dumps(value).decode(),
            }
            for metric in map(_mapping, evidence.get("metrics") or ())
            for name, value in _mapping(metric.get("values")).items()
        ],
        "failures": evidence.get("failures"),
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _timestamp(seconds: Any) -> str | None:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def payload(statement: Mapping[str, Any]) -> bytes:
    """Return a statement as canonical JSON, ready to be signed.

    Raises:
        EvidenceError: the result contains a value without canonical JSON.
    """
    try:
        return canonical_json(statement)
    except ValueError as error:
        raise EvidenceError(str(error), code=Code.BROKEN_ATTESTATION) from error


def read_document(file: Path) -> Any:
    """Read the JSON file of an attestation or a disclosure.

    Raises:
        EvidenceError: the file cannot be read.
    """
    try:
        with open_regular(file) as content:
            return read_json(content.read(LARGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise EvidenceError(
            f"cannot be read: {error}", file=str(file), code=Code.BROKEN_ATTESTATION
        ) from error


def statement_in(envelope: Any) -> dict[str, Any]:
    """Return the statement in an envelope without checking its signature.

    Raises:
        ValueError: the envelope does not contain a statement of a result.
    """
    statement = read_json(payload_of(envelope))
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE:
        raise ValueError("its payload is not an in-toto statement (v1)")
    if statement.get("predicateType") != PREDICATE_TYPE:
        raise ValueError(f"it states {statement.get('predicateType')!r:.80}, expected {PREDICATE_TYPE!r}")
    predicate = statement.get("predicate")
    samples = predicate.get("samples") if isinstance(predicate, Mapping) else None
    if not isinstance(samples, Mapping) or not isinstance(samples.get("count"), int):
        raise ValueError("its predicate contains no samples")  # noqa: TRY004  # wrong content, not a wrong argument type
    return statement


def subject_digest(statement: Mapping[str, Any]) -> str | None:
    """Return the SHA-256 of the result in a statement."""
    subjects = statement.get("subject")
    if not isinstance(subjects, list) or len(subjects) != 1:
        return None
    digest = _mapping(_mapping(subjects[0]).get("digest")).get("sha256")
    return digest if isinstance(digest, str) else None


# Disclosure of one sample


@dataclass(frozen=True)
class Disclosure:
    """Sample with the proof that it belongs to an attested result."""

    attestation: Mapping[str, Any]
    """Envelope, or sigstore bundle with an envelope."""
    text: bytes
    """Raw text of the sample in the result."""
    position: int
    count: int
    proof: tuple[bytes, ...]

    @property
    def root(self) -> bytes | None:
        """Return the root computed from the sample and its proof; `None` for an invalid proof."""
        return root_of_proof(leaf_digest(self.text), self.position, self.count, self.proof)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a disclosure file."""
        return {
            "format": DISCLOSURE_FORMAT,
            "position": self.position,
            "count": self.count,
            "proof": [digest.hex() for digest in self.proof],
            "sample": self.text.decode("utf-8", "surrogateescape"),
            "attestation": dict(self.attestation),
        }


def disclosure_of(texts: ResultTexts, attestation: Mapping[str, Any], wanted: str) -> Disclosure:
    """Return the proof of one sample.

    Args:
        texts: content of the attested result.
        attestation: envelope of its statement, or sigstore bundle with the envelope.
        wanted: ID of the sample.

    Raises:
        UsageError: no sample or several samples have this ID.
    """
    ids = [sample_id(sample) for sample in texts.samples]
    places = [place for place, name in enumerate(ids) if name == wanted or _text_of(name) == wanted]
    if len(places) > 1:
        exact = [place for place in places if ids[place] == wanted]
        places = exact or places
    if len(places) != 1:
        problem = (
            "found no sample" if not places else f"{plural(len(places), 'sample has', 'samples have')} the id"
        )
        raise UsageError(f"{problem} {wanted!r} in {texts.path.name!r}", code=Code.UNKNOWN_CHOICE)
    leaves = [leaf_digest(sample.text) for sample in texts.samples]
    (place,) = places
    text = bytes(texts.samples[place].text)
    return Disclosure(attestation, text, place, len(leaves), tuple(inclusion_proof(leaves, place)))


def _text_of(name: str) -> str:
    try:
        return str(read_json(name))
    except ValueError:
        return name


def disclosure_from(document: Any) -> Disclosure:
    """Return the disclosure in data from `Disclosure.to_json`.

    Raises:
        ValueError: the data is not a disclosure.
    """
    if not isinstance(document, Mapping) or document.get("format") != DISCLOSURE_FORMAT:
        raise ValueError(f"not a {DISCLOSURE_FORMAT}")
    proof: Sequence[Any] = document.get("proof") or ()
    position, count, text = (document.get(name) for name in ("position", "count", "sample"))
    if not isinstance(position, int) or not isinstance(count, int) or not isinstance(text, str):
        raise ValueError("its sample, position or count is missing")  # noqa: TRY004  # wrong content, not a wrong argument type
    try:
        digests = tuple(bytes.fromhex(digest) for digest in proof)
    except (TypeError, ValueError) as error:
        raise ValueError("its proof is not a list of digests") from error
    attestation = document.get("attestation")
    payload_of(envelope_in(attestation))
    assert isinstance(attestation, Mapping)
    return Disclosure(attestation, text.encode("utf-8", "surrogateescape"), position, count, digests)
