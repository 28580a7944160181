"""Logs for lakes (small Inspect logs with their own runs) and commands that import them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.inspect_logs.small import log

from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_scale.lake.importing import ImportTotals, import_into
from aigo_scale.lake.pieces import pieces_at
from aigo_scale.lake.tables import TABLES


def make_log(
    path: Path,
    *,
    run: str,
    samples: int = 2,
    task: str = "sums",
    model: str = "m/one",
    status: str = "success",
    **spec: Any,
) -> Path:
    """Write an Inspect log with some samples, each scored 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = {"task": task, "task_id": run, "model": model}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in log(samples).items():
            archive.writestr(name, _changed(name, content, samples, status, names | spec))
    return path


def _changed(name: str, content: bytes, samples: int, status: str, spec: Mapping[str, Any]) -> bytes:
    value: Any = json.loads(content)
    if name.startswith("samples/"):
        value["scores"] = {"match": {"value": 1, "answer": "t"}}
    if name in ("header.json", "_journal/start.json"):
        ids = [f"s{number}" for number in range(samples)]
        value["eval"] |= {**spec, "dataset": {"sample_ids": ids}}
    if name == "header.json":
        totals = {"total_samples": samples, "completed_samples": samples}
        value |= {"status": status, "results": totals}
    return json.dumps(value).encode()


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    """Return all rows of a table, read like any Delta program."""
    from deltalake import DeltaTable

    found = DeltaTable(str(lake / table)).to_pyarrow_table().drop_columns(["by_task", "by_model"])
    return list(found.to_pylist())


def contents(lake: Path) -> dict[str, list[str]]:
    """Return all rows of all tables in a fixed order."""
    return {table: sorted(map(repr, rows(lake, table))) for table in TABLES}


def imported(
    lake: object, *logs: object, jobs: int = 1, **settings: Any
) -> tuple[ImportTotals, list[ImportReport]]:
    """Import logs into a lake in this process."""
    reports: list[ImportReport] = []
    tally = import_into(
        str(lake), pieces_at(map(str, logs)), ImportOptions(jobs=jobs), reports.append, **settings
    )
    return tally, reports
