"""Table files: CSV, JSON lines, Parquet and XLSX, written atomically and without secrets.

In CSV and XLSX, untrusted text that looks like a formula gets a leading apostrophe.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process.extras import package
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.log_files import COMPRESSIONS, open_for_replacing
from aigo_bridge.results.values import json_line, number_text
from aigo_report.tables.results import ResultTable, batched

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""First characters of a cell that spreadsheets may treat as a formula."""
SHEET_ROWS = 1_048_576
"""Maximum number of rows in a sheet, including the header."""
CELL = 32_767
"""Maximum number of characters in a cell."""
_EXACT = 1 << 53
"""Integers above this limit lose digits in a spreadsheet."""


@dataclass(frozen=True)
class Sheet:
    """Rows to write."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Mapping[str, Any]]
    schema: Callable[[], Any]
    """Function that returns the Arrow schema."""

    def clean(self) -> Iterator[dict[str, Any]]:
        """Yield the rows without known secrets."""
        return (redact_value(dict(row)) for row in self.rows)


@dataclass
class WrittenFile:
    """Summary of a written file."""

    rows: int = 0
    cut: int = 0
    """Number of texts truncated to the cell size."""


def sheet_of(table: ResultTable) -> Sheet:
    """Return a table of results as a sheet."""
    return Sheet(table.name, table.columns, table, table.arrow_schema)


def write_tables(out: Path, sheets: Sequence[Sheet]) -> WrittenFile:
    """Write tables. Only XLSX supports several tables, one in each sheet.

    Args:
        out: path of the file. The file extension selects the format.
        sheets: tables to write.

    Raises:
        UsageError: the format is unknown, its package is not installed, or it cannot contain this many rows.
        EvidenceError: a result cannot be read. No file is written.
        OSError: the file cannot be written.
    """
    kind = format_of(out)
    written = WrittenFile()
    # Remove secrets before the texts are packed into an archive.
    with open_for_replacing(out, clean=False) as file:
        if kind == ".xlsx":
            # On a full disk, the archive must close before its file does.
            with tempfile.TemporaryFile() as archive:
                _write_xlsx(archive, out, sheets, written)
                archive.seek(0)
                shutil.copyfileobj(archive, file)
        else:
            (sheet,) = sheets
            _WRITERS[kind](file, sheet, written)
    return written


def format_of(out: Path) -> str:
    """Return the file extension, which selects the format.

    Raises:
        UsageError: the format is unknown.
    """
    name = out.name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    kind = Path(name).suffix
    packed = name != out.name.lower()
    if kind in (".csv", ".jsonl") or (kind in (".parquet", ".xlsx") and not packed):
        return kind
    raise UsageError(
        f"{out}: found the extension {out.suffix!r}, expected .csv, .jsonl (also with "
        ".gz, .zst), .parquet or .xlsx",
        code=Code.WRONG_OPTION,
    )


def _write_csv(file: BinaryIO, sheet: Sheet, written: WrittenFile) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(map(harmless, sheet.columns))
    for row in sheet.clean():
        writer.writerow([harmless(_cell(row.get(name))) for name in sheet.columns])
        written.rows += 1
    text.detach()


def _cell(value: Any) -> Any:
    """Return a CSV cell. Numbers stay numbers, because a minus sign does not make them formulas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, (str, int)):
        return value
    return _Digits(number_text(value)) if isinstance(value, float) else _text(value)


class _Digits(str):
    """Digits of a number, which are never a formula."""

    __slots__ = ()


def harmless(value: Any) -> Any:
    """Return a cell that spreadsheets do not treat as a formula."""
    if isinstance(value, str) and not isinstance(value, _Digits) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def _text(value: Any) -> str:
    return (
        json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (dict, list)) else str(value)
    )


def _write_lines(file: BinaryIO, sheet: Sheet, written: WrittenFile) -> None:
    for row in sheet.clean():
        file.write(json_line(row) + b"\n")
        written.rows += 1


def _write_parquet(file: BinaryIO, sheet: Sheet, written: WrittenFile) -> None:
    parquet = package("pyarrow.parquet", "Parquet", "parquet")
    arrow = package("pyarrow", "Parquet", "parquet")
    schema = sheet.schema()
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in batched(sheet.clean()):
            writer.write_batch(arrow.RecordBatch.from_pylist(rows, schema=schema))
            written.rows += len(rows)


_WRITERS = {".csv": _write_csv, ".jsonl": _write_lines, ".parquet": _write_parquet}


def _write_xlsx(file: BinaryIO, out: Path, sheets: Sequence[Sheet], written: WrittenFile) -> None:
    options = {
        # Rows are written to a temporary file as they arrive.
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    with package("xlsxwriter", "XLSX", "xlsx").Workbook(file, options) as book:
        head = book.add_format({"bold": True})
        for sheet in sheets:
            page = book.add_worksheet(sheet.name)
            page.freeze_panes(1, 0)
            for column, name in enumerate(sheet.columns):
                page.write_string(0, column, harmless(name), head)
            for number, row in enumerate(sheet.clean(), 1):
                if number >= SHEET_ROWS:
                    raise UsageError(
                        f"{out}: a sheet can have at most {SHEET_ROWS - 1:,} rows, and {sheet.name!r} "
                        "has more; use .csv, .jsonl or .parquet",
                        code=Code.UNUSABLE_OUTPUT,
                    )
                for column, name in enumerate(sheet.columns):
                    _write_cell(page, number, column, row.get(name), written)
                written.rows += 1


def _write_cell(page: Any, row: int, column: int, value: Any, written: WrittenFile) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        page.write_boolean(row, column, value)
    elif isinstance(value, (int, float)) and abs(value) < _EXACT:
        page.write_number(row, column, value)
    else:
        text = harmless(_text(value))
        if len(text) > CELL:
            text = f"{text[: CELL - 1]}…"
            written.cut += 1
        page.write_string(row, column, text)
