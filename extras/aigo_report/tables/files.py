"""Tables as files: CSV, JSON lines, Parquet and XLSX, without secrets, and in their place at once.

In CSV and XLSX a text that a spreadsheet would take for a formula gets an apostrophe in front: texts are
strangers'.
"""

from __future__ import annotations

import csv
import io
import json
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
from aigo_report.tables.results import Table, batched

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""What begins a cell that spreadsheets may take for a formula."""
SHEET_ROWS = 1_048_576
"""Rows of a sheet, its head included."""
CELL = 32_767
"""Characters of a cell of a sheet."""
_EXACT = 1 << 53
"""From here on a spreadsheet loses digits of whole numbers."""


@dataclass(frozen=True)
class Sheet:
    """Rows to write."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Mapping[str, Any]]
    schema: Callable[[], Any]
    """Their schema, of Arrow."""

    def clean(self) -> Iterator[dict[str, Any]]:
        """The rows without what the process knows to be secret."""
        return (redact_value(dict(row)) for row in self.rows)


@dataclass
class Written:
    """What was written."""

    rows: int = 0
    cut: int = 0
    """Texts that did not fit in a cell."""


def sheet_of(table: Table) -> Sheet:
    """A table of results."""
    return Sheet(table.name, table.columns, table, table.arrow_schema)


def write_tables(out: Path, sheets: Sequence[Sheet]) -> Written:
    """Write tables; several only to XLSX, each as a sheet.

    Args:
        out: the file; its name says the format.
        sheets: the tables.

    Raises:
        UsageError: there is no such format, its package is not installed, or it cannot hold the rows.
        EvidenceError: a result cannot be read; then nothing is written.
        OSError: the file cannot be written.
    """
    kind = format_of(out)
    written = Written()
    # Texts are cleaned before they become part of an archive.
    with open_for_replacing(out, clean=False) as file:
        if kind == ".xlsx":
            _write_xlsx(file, out, sheets, written)
        else:
            (sheet,) = sheets
            _WRITERS[kind](file, sheet, written)
    return written


def format_of(out: Path) -> str:
    """The suffix that says the format.

    Raises:
        UsageError: there is no such format.
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


def _write_csv(file: BinaryIO, sheet: Sheet, written: Written) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(map(harmless, sheet.columns))
    for row in sheet.clean():
        writer.writerow([harmless(_cell(row.get(name))) for name in sheet.columns])
        written.rows += 1
    text.detach()


def _cell(value: Any) -> Any:
    """A value as text for CSV; numbers stay numbers, so that a minus sign is no formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, (str, int)):
        return value
    return _Digits(number_text(value)) if isinstance(value, float) else _text(value)


class _Digits(str):
    """A number's digits: no formula, whatever it begins with."""

    __slots__ = ()


def harmless(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(value, str) and not isinstance(value, _Digits) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def _text(value: Any) -> str:
    return (
        json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (dict, list)) else str(value)
    )


def _write_lines(file: BinaryIO, sheet: Sheet, written: Written) -> None:
    for row in sheet.clean():
        file.write(json_line(row) + b"\n")
        written.rows += 1


def _write_parquet(file: BinaryIO, sheet: Sheet, written: Written) -> None:
    parquet = package("pyarrow.parquet", "Parquet", "parquet")
    arrow = package("pyarrow", "Parquet", "parquet")
    schema = sheet.schema()
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in batched(sheet.clean()):
            writer.write_batch(arrow.RecordBatch.from_pylist(rows, schema=schema))
            written.rows += len(rows)


_WRITERS = {".csv": _write_csv, ".jsonl": _write_lines, ".parquet": _write_parquet}


def _write_xlsx(file: BinaryIO, out: Path, sheets: Sequence[Sheet], written: Written) -> None:
    options = {
        # Rows go to a temporary file as they come.
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


def _write_cell(page: Any, row: int, column: int, value: Any, written: Written) -> None:
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
