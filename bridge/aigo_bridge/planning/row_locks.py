"""Digests of published rows that are missing in the dataset file. The first run on all rows stores them next
to the evidence, and later runs compare them.

`datasets.lock.json` in the results folder:

```json
{"openai/gsm8k main test@cc7b047b…": {"num_rows": 1319, "digest": "b037d1a8…"}}
```
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.plan.plan import PlannedDataset, TaskPlan
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.spec.base import ROWS_TAG, rows_tags

LOCK = "datasets.lock.json"
"""Name of the file."""

_NOTE = re.compile(
    r"(?P<source>.+): (?P<number>\d+) rows.*, digest not known(, found (?P<digest>[0-9a-f]{64}))?"
)


def compare_rows(plans: Iterable[TaskPlan], folder: Path) -> list[str]:
    """Compare the rows of plans with the rows of earlier runs in a folder, and store new digests.

    Only hub rows without a digest in the dataset file are compared. If a plan uses some of the rows, only
    the total number is compared.

    Returns:
        Notes for the user about stored and compared digests.

    Raises:
        DatasetError: the rows differ from the earlier ones, or the file cannot be read.
    """
    datasets = [plan.dataset for plan in plans if plan.dataset is not None]
    notes = dict.fromkeys(note for dataset in datasets for note in _notes(dataset))
    if not notes:
        return []
    file = folder / LOCK
    entries = _read(file)
    problems: list[Issue] = []
    notices: list[str] = []
    new = dict(entries)
    for source, number, digest in notes:
        entry = entries.get(source)
        if entry is None:
            if digest is not None:
                new[source] = {"num_rows": number, "digest": digest}
                notices.append(
                    f"the digest of {source} is stored in {file.name}; later runs in this folder "
                    "must use the same rows"
                )
            continue
        for name, value in (("num_rows", number), ("digest", digest)):
            if value is not None and entry.get(name) != value:
                expected = f"expected {entry.get(name)} as in an earlier run"
                text = f"the rows of {source} have the {name} {value}, {expected}"
                hint = f"use the same rows, or another --out; if the new rows are correct, delete {file.name}"
                problems.append(Issue(text, file=str(file), hint=hint, code=Code.CHANGED_ROWS))
        if digest is not None:
            notices.append(f"the rows of {source} match {file.name}")
    if problems:
        raise DatasetError(problems)
    if new != entries:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(new, indent=2, ensure_ascii=False, sort_keys=True)
        with open_for_replacing(file) as target:
            target.write(f"{text}\n".encode())
    return notices


def _notes(dataset: PlannedDataset) -> Iterable[tuple[str, int, str | None]]:
    """Yield the source, the total number of rows and their digest, if known, from the tags of a dataset."""
    for tag in rows_tags(dataset.tags):
        match = _NOTE.fullmatch(tag.removeprefix(ROWS_TAG))
        if match is not None:
            yield match["source"], int(match["number"]), match["digest"]


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"the digests of earlier runs cannot be read: {error}", file=str(file), code=Code.CHANGED_ROWS
        ) from error
    if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
        message = "found other JSON than digests of rows, expected {source: {num_rows, digest}}"
        raise DatasetError(
            message,
            file=str(file),
            hint="delete the file; the next run on all rows writes it again",
            code=Code.CHANGED_ROWS,
        )
    return content
