"""Reader of samples files. A document has one line for each filter, and these lines are far apart in the
file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage
from aigo_bridge.importing.places import FileLocation
from aigo_bridge.text.json_text import read_json_once, without_depths
from aigo_formats.lines import line_at, numbered_lines, object_of

Json = dict[str, Any]
_FIRST = re.compile(rb'\s*\{"doc_id": (\d{1,18}),')
"""Start of a line as the harness writes it."""
_HASHES = ("doc_hash", "prompt_hash", "target_hash")


@dataclass(frozen=True)
class HarnessDocument:
    """Document with its answers for each filter."""

    sample_id: str
    """Document id, with a number added if another document has the same id."""
    rows: list[Json]
    """Lines of the document in file order, one for each filter."""


class SamplesFile:
    """Samples of one task.

    Args:
        location: path or URL of the file.
        filters: names of the task's filters, for releases that do not store them in the samples.
        bounds: limits for reading.
        tell: callback for each unreadable line.
    """

    def __init__(self, location: str, filters: Sequence[str], bounds: Bounds, tell: Callable[[Damage], None]):
        self._location = location
        self._filters = filters or ("none",)
        self._bounds = bounds
        self._tell = tell
        self.renamed = 0
        """Number of documents with the id of another document."""
        self._digest = hashlib.sha256()
        self._all_hashed = True

    @property
    def digest(self) -> str | None:
        """Return the checksum that the harness stores in `task_hashes` for these samples.

        It is `None` if a line cannot be read or does not contain hashes. It is complete after all documents
        were read.
        """
        return self._digest.hexdigest() if self._all_hashed else None

    def documents(self) -> Iterator[HarnessDocument]:
        """Yield the documents in file order.

        Raises:
            EvidenceError: the file cannot be read, or it exceeds the bounds.
        """
        place = FileLocation.of(self._location)
        try:
            place.check_size(self._bounds.member_bytes)
            with place.open() as file:
                if file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
                    yield from self._of_list(place)
                    return
                file.seek(0)
                yield from self._of_lines(file)
        except OSError as error:
            raise EvidenceError(f"cannot read the samples: {error}", code=Code.UNREADABLE_LOG) from error

    def _of_lines(self, file: Any) -> Iterator[HarnessDocument]:
        """Yield the documents in two passes: the first finds the lines of each document, the second reads
        them.
        """
        lines: dict[str, list[tuple[int, int]]] = {}
        for start, number, line in numbered_lines(file, self._bounds):
            doc_id = self._doc_id(line, number, start)
            if doc_id is not None:
                lines.setdefault(doc_id, []).append((start, number))
        for doc_id, places in lines.items():
            rows = []
            for start, number in places:
                row = self._row(line_at(file, start, self._bounds), number, start)
                if row is not None:
                    rows.append(row)
            yield from self._split(doc_id, rows)

    def _doc_id(self, line: bytes, number: int, start: int) -> str | None:
        """Return the document id of a line, and update the checksum in file order."""
        match = _FIRST.match(line)
        row: Json | None = None
        hashes = [_hash_in(line, name) for name in _HASHES]
        if match is None or None in hashes:
            row = self._row(line, number, start)
            if row is None:
                return None
            hashes = [row.get(name) if isinstance(row.get(name), str) else None for name in _HASHES]
        self._hash(hashes)
        if match is not None:
            return match[1].decode()
        assert row is not None
        return str(row.get("doc_id"))

    def _hash(self, hashes: list[Any]) -> None:
        if all(isinstance(value, str) for value in hashes):
            self._digest.update("".join(hashes).encode("utf-8", "surrogatepass"))
        else:
            self._all_hashed = False

    def _row(self, line: bytes, number: int, start: int) -> Json | None:
        where = f"{self._location}: line {number}"
        try:
            row = object_of(line, where, self._bounds)
        except EvidenceError as error:
            self._damaged(Damage(where, start, str(error)))
            return None
        if "doc_id" not in row:
            self._damaged(Damage(where, start, "not an lm-evaluation-harness sample: 'doc_id' is missing"))
            return None
        return row

    def _damaged(self, damage: Damage) -> None:
        self._all_hashed = False
        self._tell(damage)

    def _of_list(self, place: FileLocation) -> Iterator[HarnessDocument]:
        """Yield the documents of a file from releases before 0.4.3, which is one JSON document."""
        data = place.read(self._bounds.member_bytes)
        self._bounds.check_document(self._location, data)
        try:
            content = read_json_once(data)
        except (ValueError, RecursionError) as error:
            raise EvidenceError(f"the samples are not JSON: {error}", code=Code.DAMAGED_LOG) from error
        self._all_hashed = False
        documents: dict[str, list[Json]] = {}
        for number, row in enumerate(content if isinstance(content, list) else []):
            where = f"{self._location}: sample {number}"
            if not isinstance(row, dict) or "doc_id" not in row:
                self._tell(Damage(where, None, "not an lm-evaluation-harness sample: 'doc_id' is missing"))
            elif without_depths(row):
                self._tell(Damage(where, None, "nested too deeply"))
            else:
                documents.setdefault(str(row["doc_id"]), []).append(row)
        for doc_id, rows in documents.items():
            yield from self._split(doc_id, rows)

    def _split(self, doc_id: str, rows: list[Json]) -> Iterator[HarnessDocument]:
        """Yield the documents with one id. A repeated filter starts another document."""
        current: list[Json] = []
        number = 1
        seen: set[str] = set()
        for row in rows:
            # Releases before 0.4.8 do not store the filter. Their lines follow the order of the filters.
            name = str(row.setdefault("filter", self._filters[len(current) % len(self._filters)]))
            if name in seen:
                yield HarnessDocument(doc_id if number == 1 else f"{doc_id}-{number}", current)
                number, current, seen = number + 1, [], set()
                self.renamed += 1
            seen.add(name)
            current.append(row)
        if current:
            yield HarnessDocument(doc_id if number == 1 else f"{doc_id}-{number}", current)


def _hash_in(line: bytes, name: str) -> str | None:
    """Return a checksum in a line without parsing it, if exactly one text has its form."""
    pattern = re.compile(rb'"' + name.encode() + rb'": "([0-9a-f]{64})"')
    matches = pattern.findall(line)
    return matches[0].decode() if len(matches) == 1 else None
