"""Comparison of a result with its provenance, and with the user's own task, config, rows and code."""

from __future__ import annotations

import json
import mmap
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.results.specification import specification_of
from aigo_bridge.text.json_text import read_json
from aigo_bridge.text.plurals import plural
from aigo_trust.provenance.definitions import rows_digest, specification_digests
from aigo_trust.provenance.merkle import leaf_digest, tree_root
from aigo_trust.provenance.parts import (
    ChangedPart,
    ResultPart,
    differences,
    frame_parts,
    sample_parts,
    unpacked,
)
from aigo_trust.provenance.record import row_of, sample_id
from aigo_trust.provenance.texts import ResultTexts, SampleText
from aigo_trust.verification.levels import Finding
from aigo_trust.verification.numbers import same

if TYPE_CHECKING:
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_trust.verification.user_plan import OwnTask

_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*+"|(?P<digits>\d++\.\d++)(?![eE])', re.DOTALL)


def provenance_findings(texts: ResultTexts, record: Mapping[str, Any]) -> list[Finding]:
    """Return the differences between a result and an intact provenance."""
    result = record["result"]
    findings = [*_sample_findings(texts, result), *_frame_findings(texts, result["frame"])]
    root = tree_root([leaf_digest(sample.text) for sample in texts.samples]).hex()
    if root != result["root"] and not findings:
        findings.append(
            Finding(f"the samples' digest is {root:.16}…, the provenance says {result['root']:.16}…")
        )
    if not findings and texts.digest() != result["sha256"]:
        message = "the file was rewritten, although all values are equal"
        reason = _other_digits(texts.content) or "another layout, or a duplicate key"
        findings.append(Finding(f"{message} ({reason})", file=texts.path.name))
    findings += _digest_findings(texts, record)
    return findings


def unaltered_samples(texts: ResultTexts, record: Mapping[str, Any]) -> int:
    """Return the number of unmodified samples."""
    stored = Counter(record["result"]["leaves"])
    leaves = Counter(leaf_digest(sample.text).hex() for sample in texts.samples)
    return (stored & leaves).total()


def _other_digits(content: bytes | mmap.mmap) -> str | None:
    """Return the first number that aigo-bridge would write differently: it uses the fewest digits that keep
    the value.
    """
    for match in _STRING_OR_NUMBER.finditer(content):
        if match["digits"] is None:
            continue
        digits = match["digits"].decode()
        shortest = repr(float(digits))
        if digits != shortest and "e" not in shortest:
            return f"byte {match.start()}: {digits} is {shortest}"
    return None


def _sample_findings(texts: ResultTexts, result: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each sample that was modified, added, removed or moved."""
    stored: Sequence[str] = result["leaves"]
    ids: Sequence[str] = result["ids"]
    leaves = [leaf_digest(sample.text).hex() for sample in texts.samples]
    if leaves == list(stored):
        return
    gone, new = Counter(stored), Counter(leaves)
    missing = {  # positions of the recorded samples by ID
        place: ids[place] for place, leaf in enumerate(stored) if not new[leaf]
    }
    changed = [place for place, leaf in enumerate(leaves) if not gone[leaf]]
    by_id: dict[str, list[int]] = {}
    for place, name in missing.items():
        by_id.setdefault(name, []).append(place)
    for place in changed:
        sample = texts.samples[place]
        name = sample_id(sample)
        if (place in missing and missing[place] == name) or not by_id.get(name):
            origin = place if place in missing else None
        else:
            origin = by_id[name][0]
        if origin is None:
            yield Finding("was added", sample.path, name)
            continue
        was = missing.pop(origin)
        by_id[was].remove(origin)
        yield from _altered(sample, name, result["parts"][origin])
    for place, name in missing.items():
        yield Finding(
            f"was removed (it was number {place + 1} of {len(stored)})", ("evidence", "samples"), name
        )
    if not changed and not missing:
        yield from _moved(texts, leaves, stored)


def _changes(parts: Sequence[ResultPart], checksums: str) -> list[ChangedPart]:
    """Return the modified parts. The list is empty if an untrusted provenance lacks checksums."""
    try:
        return differences(parts, unpacked(checksums))
    except ValueError:
        return []


def _altered(sample: SampleText, name: str, checksums: str) -> Iterator[Finding]:
    changes = _changes(sample_parts(sample.text), checksums)
    if not changes:
        yield Finding("was altered", sample.path, name)
    data = read_json(bytes(sample.text)) if changes else {}
    for change in changes:
        path = (*sample.path, *change.path)
        message = {
            "altered": "was altered",
            "added": "was added",
            "removed": "a later part was removed",
        }
        yield Finding(message[change.kind], path, name, _scorer(data, change.path), _field(change.path))


def _scorer(sample: Any, path: Sequence[str | int]) -> str | None:
    """Return the scorer whose score contains a location."""
    value = sample
    for number, step in enumerate(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
        if number and path[number - 1] == "scores" and isinstance(value, Mapping):
            key = value.get("scorer_key")
            return key if isinstance(key, str) else None
    return None


def _field(path: Sequence[str | int]) -> str | None:
    names = [step for step in path if isinstance(step, str)]
    if "values" in names[:-1]:
        return names[-1]
    return ".".join(name for name in names if name not in ("trials", "scores")) or None


def _moved(texts: ResultTexts, leaves: Sequence[str], stored: Sequence[str]) -> Iterator[Finding]:
    if len(leaves) != len(stored):
        yield Finding(
            f"{plural(len(leaves), 'sample is', 'samples are')} present, {len(stored)} were recorded: one"
            " is repeated"
        )
        return
    for place, (leaf, was) in enumerate(zip(leaves, stored, strict=True)):
        if leaf != was:
            sample = texts.samples[place]
            message = f"is in another position (it was number {stored.index(leaf) + 1})"
            yield Finding(message, sample.path, sample_id(sample))


def _frame_findings(texts: ResultTexts, checksums: str) -> Iterator[Finding]:
    for change in _changes(frame_parts(texts.frame), checksums):
        scorer = _metric_scorer(texts.frame, change.path)
        message = {
            "altered": "was altered",
            "added": "was added",
            "removed": "a later part was removed",
        }
        names = [step for step in change.path if isinstance(step, str)]
        yield Finding(message[change.kind], change.path, None, scorer, names[-1] if names else None)


def _metric_scorer(frame: Mapping[str, Any], path: Sequence[str | int]) -> str | None:
    if "metrics" not in path:
        return None
    value: Any = frame
    for step in path[: path.index("metrics") + 2]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    key = value.get("scorer_key") if isinstance(value, Mapping) else None
    return key if isinstance(key, str) else None


def _digest_findings(texts: ResultTexts, record: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each digest (such as the task's) that differs from the result's content."""
    specification = texts.frame.get("specification")
    own = specification_digests(specification if isinstance(specification, Mapping) else {})
    own["data"] = rows_digest(row_of(sample) for sample in texts.samples if sample.run in (None, 0))
    for name, digest in own.items():
        if record.get(name) != digest:
            message = f"the digest of the {name} does not match the provenance"
            yield Finding(
                message, ("specification", name) if name != "data" else ("evidence", "samples"), field=name
            )


def compare_task(
    texts: ResultTexts, own: OwnTask, engine: str | None, record: Mapping[str, Any] | None
) -> tuple[list[Finding], str | None]:
    """Compare a result with the user's own task. Return findings, and the reason why rows cannot be compared.

    Args:
        texts: content of the result.
        own: user's own task.
        engine: name of the engine in the result.
        record: provenance of the result; `None` if not provided.
    """
    plan = own.plan
    specification = texts.frame.get("specification")
    specification = specification if isinstance(specification, Mapping) else {}
    expected = specification_of(plan, model=None, engine=engine or "")
    findings: list[Finding] = []
    for name in ("task", "config"):
        value: Any = getattr(expected, name)
        mine = orjson.loads(orjson.dumps(value.model_dump(mode="json") if name == "task" else dict(value)))
        findings += unequal(mine, _without_nulls_of(specification.get(name), mine), ("specification", name))
    if own.rows is not plan:  # tags also describe the kind of rows
        findings = [finding for finding in findings if finding.path[1:3] != ("task", "tags")]
    planned = None if record is None else record.get("plan")
    if isinstance(planned, Mapping) and planned.get("sha256") not in (None, plan.digest):
        message = "the plan of the current task and the plan of the run have different digests"
        findings.append(Finding(message, ("plan",), file="provenance"))
    if own.rows is None:
        return findings, own.elsewhere
    of_rows = list(_row_findings(texts, own.rows, complete=own.complete))
    if own.elsewhere is None:
        return [*findings, *of_rows], None
    return findings, own.elsewhere if of_rows else None


def _without_nulls_of(stored: Any, mine: Any) -> Any:
    """Return a stored value without null fields that the writer omits."""
    if isinstance(stored, Mapping) and isinstance(mine, Mapping):
        filled = {name: None for name, value in mine.items() if value is None}
        return {
            **filled,
            **{name: _without_nulls_of(value, mine.get(name)) for name, value in stored.items()},
        }
    if isinstance(stored, list) and isinstance(mine, list) and len(stored) == len(mine):
        return [_without_nulls_of(one, other) for one, other in zip(stored, mine, strict=True)]
    return stored


def unequal(mine: Any, stored: Any, path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Yield a finding for each difference between the result and the expected content."""
    if isinstance(mine, Mapping) and isinstance(stored, Mapping):
        for name in dict.fromkeys([*mine, *stored]):
            if name not in stored or name not in mine:
                if (stored if name in stored else mine)[name] is not None:
                    where = "result" if name in stored else "task"
                    yield Finding(f"is only in the {where}", (*path, name), field=str(name))
            else:
                yield from unequal(mine[name], stored[name], (*path, name))
    elif isinstance(mine, list) and isinstance(stored, list) and len(mine) == len(stored):
        for number, (one, other) in enumerate(zip(mine, stored, strict=True)):
            yield from unequal(one, other, (*path, number))
    elif not same(mine, stored):
        message = f"the result has {_short(stored)}, the task {_short(mine)}"
        names = [step for step in path if isinstance(step, str)]
        yield Finding(message, path, field=names[-1] if names else None)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _row_findings(texts: ResultTexts, plan: TaskPlan, *, complete: bool) -> Iterator[Finding]:
    if plan.entity == "system":
        return
    solver = plan.benchmark.solver
    if solver is not None and solver.postprocessor is not None:
        return  # rows are generated during the run
    rows = {json.dumps(sample.id, ensure_ascii=False): sample.data for sample in plan.samples}
    seen: set[str] = set()
    for sample in texts.samples:
        name = json.dumps(read_json(sample_id(sample)), ensure_ascii=False)
        if name not in rows:
            yield Finding("the dataset of the task does not have this row", sample.path, name)
            continue
        seen.add(name)
        row = row_of(sample)
        own = orjson.loads(orjson.dumps(dict(rows[name]), default=str))
        for column in dict.fromkeys([*own, *(row if isinstance(row, Mapping) else ())]):
            value = row.get(column) if isinstance(row, Mapping) else None
            if not same(own.get(column), value):
                message = f"the result has {_short(value)}, the dataset {_short(own.get(column))}"
                yield Finding(message, (*sample.path, "sample", "data", column), name, field=column)
    for name in (name for name in rows if complete and name not in seen):
        yield Finding("the result lacks the sample of this row", ("evidence", "samples"), name)
