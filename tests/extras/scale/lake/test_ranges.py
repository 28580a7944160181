"""Import of a large log by sample ranges equals the import of the whole log."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.lakes import contents, imported, make_log, rows

from aigo_scale.lake import ranges
from aigo_scale.lake.commits import load_state
from aigo_scale.lake.compacting import compact
from aigo_scale.lake.reading import LakeReader
from aigo_scale.lake.tables import open_lake
from aigo_scale.lake.verifying import problems_of

GOLDEN = Path(__file__).parents[3] / "golden" / "inspect"


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the size limit so that small logs are imported by ranges."""
    monkeypatch.setattr(ranges, "LARGE", 1)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 300)


def content(lake: Path, folder: Path) -> tuple[dict[str, list[str]], dict[str, bytes], list[Any]]:
    """Return all rows, result logs and the `logs` table of a lake."""
    tables = contents(lake)
    # The assignment of lines to ranges does not matter.
    tables["evidence"] = sorted(row["line"] for row in rows(lake, "evidence"))
    folder.mkdir()
    logs = {path.name: path.read_bytes() for path in LakeReader(lake).write_logs(folder)}
    state = load_state(open_lake(lake))
    facts = [(entry.status, entry.damage, entry.lost) for _, entry in sorted(state.entries.items())]
    return tables, logs, facts


def files(lake: Path) -> list[str]:
    return sorted(path.name for path in (lake / "samples").glob("*.parquet"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_import_by_ranges_equals_an_import_of_the_whole_log(tmp_path: Path, cut: None, jobs: int) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("0.3.50", "0.3.240", "0.3.285-chunked"):
        shutil.copy(GOLDEN / f"{name}.eval", logs)
    make_log(logs / "a.eval", run="run-a", samples=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "LARGE", 1 << 40)
        whole = imported(tmp_path / "whole", logs)
    by_ranges = imported(tmp_path / "lake", logs, jobs=jobs)
    assert by_ranges[0] == whole[0]
    told = [sorted((str(one.lines), one.exit_code) for one in reports) for _, reports in (whole, by_ranges)]
    assert told[0] == [(text.replace("/lake", "/whole"), code) for text, code in told[1]]
    assert len(files(tmp_path / "lake")) > len(files(tmp_path / "whole")) + 5
    before = content(tmp_path / "whole", tmp_path / "1")
    assert content(tmp_path / "lake", tmp_path / "2") == before
    assert list(problems_of(open_lake(tmp_path / "lake"))) == []
    assert imported(tmp_path / "lake", logs, jobs=jobs)[0].imported == 0
    compact(open_lake(tmp_path / "lake"))
    assert content(tmp_path / "lake", tmp_path / "3") == before
    assert list(problems_of(open_lake(tmp_path / "lake"))) == []


def test_log_with_an_unreadable_part_is_imported_as_a_whole(tmp_path: Path, cut: None) -> None:
    log, lake = make_log(tmp_path / "logs" / "a.eval", run="run-a", samples=6), tmp_path / "lake"
    with zipfile.ZipFile(log) as archive:
        place = archive.getinfo("samples/s4_epoch_1.json").header_offset
    damaged = bytearray(log.read_bytes())
    at = damaged.index(b'"epoch"', place)
    damaged[at : at + 7] = b"\0\0\0\0\0\0\0"
    log.write_bytes(damaged)
    tally, reports = imported(lake, log)
    assert (tally.imported, tally.worst, [len(report.damage) for report in reports]) == (1, 3, [1])
    assert len(rows(lake, "samples")) == 5
    assert list(problems_of(open_lake(lake))) == []


def test_log_changed_during_a_range_import_is_imported_again(
    tmp_path: Path, cut: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, lake = make_log(tmp_path / "logs" / "a.eval", run="run-a", samples=6), tmp_path / "lake"
    real = ranges.import_range
    calls: list[int] = []

    def changing(lake: Any, split: Any, number: int, options: Any) -> Any:
        calls.append(number)
        if len(calls) == 2:
            make_log(log, run="run-b", samples=3)
        return real(lake, split, number, options)

    monkeypatch.setattr("aigo_scale.lake.importing.import_range", changing)
    assert imported(lake, log)[0].imported == 1
    assert len(calls) > 2
    assert [(one.run_id, one.samples) for one in load_state(open_lake(lake)).results()] == [("run-b", 3)]
    assert len(rows(lake, "samples")) == 3


@pytest.mark.parametrize(
    ("total", "jobs", "is_split"),
    [(20 << 20, 2, True), (20 << 20, 1, False), (200 << 20, 2, False), (3 << 20, 2, False)],
)
def test_log_is_split_if_other_processes_would_wait_for_it(total: int, jobs: int, is_split: bool) -> None:
    large, range_bytes = ranges.sizes(total, jobs)
    size = min(total, 20 << 20)
    assert (size >= large) == is_split
    assert not is_split or size > 7 * range_bytes
