"""Comparison of a cassette with the digests in a result's provenance."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.text.plurals import plural
from aigo_trust.recording.container import cassette_lines
from aigo_trust.recording.digests import LineDigests, task_of_line
from aigo_trust.verification.levels import Finding

NO_DIGEST = "the provenance does not name the cassette of the run"

_CHECKSUM = 8
"""Number of hexadecimal digits in a checksum."""
_MOST_COMPARED = 2_000
"""Maximum number of lines between the first and the last difference for a detailed comparison.

Telling moved, added and removed lines apart takes quadratic time, and the file may be untrusted.
"""


@dataclass(frozen=True)
class CassetteCheck:
    """Outcome of the cassette check."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    unchecked: str | None = None
    """Reason why the cassette cannot be matched with the result; `None` if it was checked."""


@dataclass
class _Lines:
    """Lines of a cassette."""

    digests: LineDigests = field(default_factory=LineDigests)
    places: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Positions of the lines of each plan."""


def check_cassette(path: Path, record: Mapping[str, Any] | None) -> CassetteCheck:
    """Compare a cassette with the provenance of a result.

    Args:
        path: path of the cassette.
        record: provenance of the result; `None` if missing.
    """
    lines = _Lines()
    issues: list[Issue] = []
    try:
        for line, content in cassette_lines(path, issues.append):
            task = task_of_line(line)
            if task is not None:
                lines.digests.add(task, content)
                place = next(value for value in line.values() if isinstance(value, Mapping))
                lines.places.setdefault(task, []).append(place)
    except EvidenceError as error:
        issues += error.issues
    findings = [
        Finding(f"line {issue.line}: {issue.message}" if issue.line else issue.message, file=path.name)
        for issue in issues
    ]
    cassette = None if record is None else record.get("cassette")
    tasks = cassette.get("tasks") if isinstance(cassette, Mapping) else None
    if not isinstance(tasks, list) or not tasks:
        return CassetteCheck(tuple(findings), unchecked=None if record is None else NO_DIGEST)
    assert isinstance(cassette, Mapping)
    for task in tasks:
        if isinstance(task, Mapping) and isinstance(task.get("name"), str):
            findings += _task_findings(task, lines, path.name)
    num_lines = sum(len(lines.digests.checksums(str(task["name"]))) for task in tasks if "name" in task)
    use = "the run was recorded in" if cassette.get("use") == "recorded" else "the run was answered from"
    notes = () if findings else (f"{path.name} is the cassette that {use}: {plural(num_lines, 'line')}",)
    return CassetteCheck(tuple(findings), notes)


def _task_findings(task: Mapping[str, Any], lines: _Lines, file: str) -> Iterator[Finding]:
    name = str(task["name"])
    now = lines.digests.checksums(name)
    then = _unpacked(task.get("checksums"))
    if lines.digests.sha256(name) == task.get("sha256"):
        return
    places = lines.places.get(name, [])
    start = next((at for at, (one, other) in enumerate(zip(then, now, strict=False)) if one != other), None)
    start = min(len(then), len(now)) if start is None else start
    most = min(len(then), len(now)) - start
    end = next((at for at in range(most) if then[-1 - at] != now[-1 - at]), most)
    inner = max(len(then), len(now)) - start - end
    findings = list(_changes(then, now, places, file, start, end)) if inner <= _MOST_COMPARED else []
    if findings:
        yield from findings
        return
    message = f"its lines of {name!r} differ from the run: {len(now)} now, {task.get('lines')} in the run"
    yield Finding(message, file=file)


def _unpacked(checksums: Any) -> list[int]:
    text = checksums if isinstance(checksums, str) else ""
    try:
        return [int(text[at : at + _CHECKSUM], 16) for at in range(0, len(text), _CHECKSUM)]
    except ValueError:
        return []


def _changes(
    then: Sequence[int],
    now: Sequence[int],
    places: Sequence[Mapping[str, Any]],
    file: str,
    start: int,
    end: int,
) -> Iterator[Finding]:
    """Yield a finding for each line that was modified, added, removed or moved. Equal lines at both ends are
    skipped.
    """
    checksums_then, checksums_now = set(then), set(now)
    old, new = then[start : len(then) - end], now[start : len(now) - end]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, start_then, stop_then, begin, stop in matcher.get_opcodes():
        if kind == "equal":
            continue
        num_gone = sum(checksum not in checksums_now for checksum in old[start_then:stop_then])
        for number in range(start + begin, start + stop):
            if now[number] in checksums_then:
                message = f"is in another position (it was number {then.index(now[number]) + 1})"
            elif num_gone:
                num_gone -= 1
                message = "was altered"
            else:
                message = "was added"
            yield _finding(places[number], message, file)
        if num_gone:
            behind = places[start + stop - 1] if start + stop else {}
            number = start + stop_then - num_gone + 1
            message = (
                f"after this line, {num_gone} of {plural(len(then), 'line')} were removed (number {number})"
            )
            yield _finding(behind, message, file)


def _finding(place: Mapping[str, Any], message: str, file: str) -> Finding:
    sample, by = place.get("sample"), place.get("by")
    scorer = by.rpartition("/")[0] if isinstance(by, str) and "/" in by else None
    return Finding(
        message,
        sample=None if sample is None else json.dumps(sample, ensure_ascii=False),
        scorer=scorer,
        field=None if scorer is not None or not isinstance(by, str) else by,
        file=file,
    )
