"""Table files: equal rows in each format, escaped formulas and no partial files."""

from __future__ import annotations

import csv
import gc
import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.hostile_texts import HOSTILE
from tests.support.results import message, question, result, sample, score, trial, write_result

from aigo_bridge.errors import EvidenceError, UsageError
from aigo_report.tables import files
from aigo_report.tables.files import sheet_of, write_tables
from aigo_report.tables.results import results_at

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""First characters that make a text a formula for a spreadsheet, whatever the code takes for one."""
CELLS = (*HOSTILE, *(f"{sign}1+1" for sign in FORMULA), "-5", " =1", "'=1", "\ufeff=1")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    samples = [
        sample(
            trial(
                text, [message("user", text), message("assistant", text)], scores=[score(text, {text: -1.5})]
            )
        )
        for text in CELLS
    ]
    path = tmp_path / "h.tasklog.json"
    path.write_text(json.dumps(result(samples)))
    return path


def sheet(path: Path, name: str = "sheet1") -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"xl/worksheets/{name}.xml").decode()


def write(source: Path, out: Path, table: Any = "trials") -> list[dict[str, Any]]:
    found = results_at([source]).table(table)
    write_tables(out, [sheet_of(found)])
    return list(found)


def test_csv_cells_never_start_like_a_formula(hostile: Path, tmp_path: Path) -> None:
    rows = write(hostile, tmp_path / "t.csv", "scores")

    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))

    assert len(read) == len(rows) == len(CELLS)
    for cells, row in zip(read, rows, strict=True):
        assert cells["value"] == "-1.5"  # a negative number is not a formula
        texts = [cell for name, cell in cells.items() if name != "value"]
        assert [cell for cell in texts if cell.startswith(FORMULA)] == []
        assert cells["name"] in (row["name"], f"'{row['name']}")


def test_spreadsheet_cells_contain_no_formulas_or_links(hostile: Path, tmp_path: Path) -> None:
    write(hostile, tmp_path / "t.xlsx")

    text = sheet(tmp_path / "t.xlsx")

    assert "<f>" not in text
    assert "<hyperlink" not in text
    cells = re.findall(r"<t[^>]*>([^<]*)</t>", text)
    assert len(cells) > 4 * len(CELLS)
    assert [cell for cell in cells if cell.startswith(FORMULA)] == []
    assert "'=cmd|' /C calc'!A0" in cells
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        assert not any("external" in name.lower() or "vba" in name.lower() for name in archive.namelist())


def test_all_table_formats_contain_the_same_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types

    source = write_result(
        tmp_path / "q.tasklog.json", result([question(number, "a", "a") for number in range(3)])
    )

    for table in ("trials", "scores", "samples"):
        rows = write(source, tmp_path / "t.jsonl", table)
        write(source, tmp_path / "t.parquet", table)
        write(source, tmp_path / "t.csv.gz", table)
        assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()] == rows
        assert pq.read_table(tmp_path / "t.parquet").to_pylist() == rows
        with gzip.open(tmp_path / "t.csv.gz", "rt", newline="") as file:
            assert [row["sample_id"] for row in csv.DictReader(file)] == [row["sample_id"] for row in rows]


def test_jsonl_and_parquet_keep_texts_unchanged(hostile: Path, tmp_path: Path) -> None:
    rows = write(hostile, tmp_path / "t.jsonl")

    read = [json.loads(line) for line in (tmp_path / "t.jsonl").read_bytes().splitlines()]

    assert read == rows
    assert [row["answer"] for row in read] == [
        text.encode("utf-8", "backslashreplace").decode() for text in CELLS
    ]


def test_numbers_keep_all_digits_in_tables(tmp_path: Path) -> None:
    values = {"big": 2**53 + 1, "small": 0.1 + 0.2, "yes": True}
    source = write_result(
        tmp_path / "n.tasklog.json", result([sample(trial(0, [], scores=[score("s", values)]))])
    )

    write(source, tmp_path / "t.csv", "scores")
    write(source, tmp_path / "t.xlsx", "scores")

    with (tmp_path / "t.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [row["text"] for row in read] == ["9007199254740993", "0.30000000000000004", "true"]
    assert [row["value"] for row in read] == ["9007199254740992.0", "0.30000000000000004", "1.0"]
    cells = re.findall(r"<[tv][^>]*>([^<]*)</[tv]>", sheet(tmp_path / "t.xlsx"))
    assert {"9007199254740993", "0.30000000000000004", "0.3"} <= set(cells)


def test_spreadsheet_limits_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "long.tasklog.json"
    source.write_text(json.dumps(result([question(number, "x" * 40_000, "a") for number in range(3)])))
    trials = sheet_of(results_at([source]).trials())

    assert write_tables(tmp_path / "t.xlsx", [trials]).cut == 3
    monkeypatch.setattr(files, "SHEET_ROWS", 3)
    with pytest.raises(UsageError, match="'trials' has more; use"):
        write_tables(tmp_path / "u.xlsx", [trials])
    assert not (tmp_path / "u.xlsx").exists()


def test_spreadsheet_on_a_full_disk_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that is closed after its file would print an exception."""
    source = tmp_path / "a.tasklog.json"
    source.write_text(json.dumps(result([question(1, "x", "a")])))

    with Path("/dev/full").open("wb", 0) as full:
        monkeypatch.setattr(files, "open_for_replacing", lambda *_, **__: full)
        with pytest.raises(OSError, match="No space left"):
            write_tables(tmp_path / "t.xlsx", [sheet_of(results_at([source]).trials())])
    gc.collect()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_damaged_result_leaves_the_existing_table_unchanged(tmp_path: Path, suffix: str) -> None:
    log = json.dumps(result([question(number, "a", "a") for number in range(3)]))
    source = tmp_path / "cut.tasklog.json"
    source.write_text(log[: log.index('"sample_id": 2')])
    out = tmp_path / f"t{suffix}"
    out.write_text("earlier")

    with pytest.raises(EvidenceError, match="cut off"):
        write(source, out)
    assert out.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.tasklog.json", out.name]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_known_secrets_are_not_written_to_tables(tmp_path: Path, suffix: str) -> None:
    from aigo_bridge.redaction.secrets import KNOWN

    source = write_result(
        tmp_path / "q.tasklog.json", result([question(0, "my key is hunter2-hunter2", "a")])
    )
    KNOWN.learn(["hunter2-hunter2"])
    out = tmp_path / f"t{suffix}"

    write(source, out)

    if suffix == ".parquet":
        import pyarrow.parquet as pq

        text = str(pq.read_table(out).to_pylist())
    else:
        text = sheet(out) if suffix == ".xlsx" else out.read_text()
    assert "my key is" in text
    assert "hunter2" not in text
