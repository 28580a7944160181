"""Parquet, read in batches through pyarrow (an optional extra)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aigo_bridge.datasets.json_tables import ObjectTable
from aigo_bridge.datasets.plain import plain
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.extras import install_command

_BATCH = 1_000


def parquet_table(path: Path) -> ObjectTable:
    """The rows of a Parquet file. Raises `DatasetError` when it is none, or pyarrow is not installed."""
    try:
        pa: Any = importlib.import_module("pyarrow")
        pq: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        message = f"reading Parquet needs pyarrow; run: {install_command('parquet')}"
        raise DatasetError([Issue(message, str(path))]) from error
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError([Issue(f"not a Parquet file: {error}", str(path))]) from error

    def objects() -> Iterator[dict[str, Any]]:
        try:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    yield {name: plain(value) for name, value in row.items()}
        except (pa.ArrowException, OSError) as error:
            raise DatasetError([Issue(f"the Parquet file is damaged: {error}", str(path))]) from error
        finally:
            file.close()

    return ObjectTable(objects())
