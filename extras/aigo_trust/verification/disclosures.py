"""Description of a disclosed sample: task, model, metrics, question, answer and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.access.file_kinds import head_of
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.counts import trial_number, trials_of
from aigo_bridge.results.rows import items_of, outputs_of, text_of
from aigo_bridge.results.values import Json, mappings, member, value_text
from aigo_bridge.text.json_text import read_json
from aigo_report import Disclosures
from aigo_report.tables.trials import values_of

LONGEST = 2_000
"""Maximum number of characters in a text."""


def is_disclosure(path: Path) -> bool:
    """Return whether a file is a disclosed sample."""
    head = head_of(path)
    names = None if head is None else head.members
    return names is not None and {"format", "proof"} <= set(names)


def disclosed_facts(path: Path) -> list[tuple[str, str]]:
    """Return label and text of each fact in a disclosed sample. This does not check its proof.

    Raises:
        EvidenceError: the file is not a disclosed sample.
    """
    from aigo_trust.provenance.sigstore_bundles import envelope_in
    from aigo_trust.provenance.statement import disclosure_from, read_document, statement_in

    try:
        disclosure = disclosure_from(read_document(path))
        statement = statement_in(envelope_in(disclosure.attestation))
        return list(sample_facts(statement, read_json(disclosure.text)))
    except ValueError as error:
        raise EvidenceError(str(error), file=str(path), code=Code.BROKEN_ATTESTATION) from error


def sample_facts(statement: Mapping[str, Any], sample: Any) -> Iterator[tuple[str, str]]:
    """Yield label and text of each fact in a disclosed sample and its attestation."""
    predicate = statement["predicate"]
    for label, name in (("task", "task"), ("model", "entity")):
        names = member(predicate, name) if isinstance(member(predicate, name), dict) else {}
        shown, key = names.get("name"), names.get("key")
        if shown or key:
            yield label, f"{shown} ({key})" if shown and key and shown != key else str(shown or key)
    for metric in mappings(predicate.get("metrics")):
        scorer = metric.get("scorer")
        of_scorer = f" ({scorer})" if scorer else ""
        yield "metric", f"{metric.get('name')}{of_scorer}: {metric.get('value')}"
    if not isinstance(sample, dict):
        return
    yield "sample", str(sample.get("sample_id"))
    trials = trials_of(sample)
    for position, trial in enumerate(trials):
        if len(trials) > 1:
            yield "trial", str(trial_number(trial, position))
        yield from _trial_facts(trial)


def _trial_facts(trial: Json) -> Iterator[tuple[str, str]]:
    messages = [item for output in outputs_of(trial) for item in items_of(output)]
    for label, role in (("question", "user"), ("answer", "assistant")):
        texts = [text_of(item) for item in messages if item.get("role") == role]
        if texts:
            yield label, (texts[-1] or "")[:LONGEST]
    for score in mappings(trial.get("scores")):
        for name, value in values_of(score):
            yield "score", f"{name} ({score.get('scorer_key')}): {value_text(value, LONGEST)}"
    for error in mappings(trial.get("errors")):
        yield "error", f"{error.get('error_type')}: {error.get('message')}"


DISCLOSURES = Disclosures(is_disclosure, disclosed_facts)
