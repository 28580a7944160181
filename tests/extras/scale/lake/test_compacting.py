"""Lake compaction: equal rows in fewer files, and unused files that are kept for a day."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.support.lakes import contents, imported, make_log, rows

from aigo_scale.lake import compacting
from aigo_scale.lake.commits import load_state
from aigo_scale.lake.compacting import compact
from aigo_scale.lake.reading import LakeReader
from aigo_scale.lake.tables import TABLES, open_lake
from aigo_scale.lake.verifying import problems_of


def test_compaction_keeps_rows_and_reduces_files(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    before = contents(lake)
    done = compact(open_lake(lake))
    assert contents(lake) == before
    # One file for each table with rows and each of three models, and one for `logs`.
    assert (done.results, done.after) == (4, 3 * sum(bool(found) for found in before.values()) + 1)
    assert done.before > done.after
    assert compact(open_lake(lake)).before == done.after
    assert imported(lake, logs)[0].known == 4
    assert contents(lake) == before
    assert list(problems_of(open_lake(lake))) == []


def test_more_complete_log_replaces_rows_of_a_compacted_file(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    compact(open_lake(lake))
    imported(lake, make_log(logs / "a2.eval", run="run-a", samples=5))
    state = load_state(open_lake(lake))
    assert sorted(result.samples for result in state.results()) == [2, 2, 3, 5]
    assert len(rows(lake, "samples")) == 12
    (tmp_path / "taken").mkdir()
    assert len(LakeReader(lake).write_logs(tmp_path / "taken")) == 4
    assert compact(open_lake(lake)).superseded == 1
    assert len(rows(lake, "samples")) == 12
    assert list(problems_of(open_lake(lake))) == []


def test_only_files_unused_for_a_day_are_deleted(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    files = {path for table in TABLES for path in (lake / table).rglob("*.parquet")}
    young, old = (lake / "scores" / f"{name}.parquet" for name in ("young", "old"))
    for path in (young, old):
        path.write_bytes(b"")
    os.utime(old, (time.time() - 25 * 3600,) * 2)
    assert compact(open_lake(lake)).removed == 1
    assert (young.exists(), old.exists()) == (True, False)
    assert all(path.exists() for path in files)
    monkeypatch.setattr(compacting, "KEEP_HOURS", 0)
    compact(open_lake(lake))
    assert not young.exists()
    remaining = {path for table in TABLES for path in (lake / table).rglob("*.parquet")}
    assert remaining.isdisjoint(files - {lake / name for name in current(lake)})
    assert list(problems_of(open_lake(lake))) == []


def current(lake: Path) -> set[str]:
    state = load_state(open_lake(lake))
    from aigo_scale.lake.commits import file_sizes

    return {f"{table}/{name}" for table, delta in state.tables.items() for name in file_sizes(delta)}


def test_missing_and_changed_files_are_reported(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    gone, cut = sorted((lake / "scores").glob("*.parquet"))[:2]
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:50])
    problems = list(problems_of(open_lake(lake)))
    assert len(problems) == 2
    assert {path.name for path in (gone, cut) for text in problems if path.name in text} == {
        gone.name,
        cut.name,
    }


def test_duplicate_and_missing_rows_are_reported(logs: Path, tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    lake = tmp_path / "lake"
    imported(lake, logs)
    scores, events = (DeltaTable(str(lake / name)) for name in ("scores", "evidence"))
    write_deltalake(scores, scores.to_pyarrow_table().slice(0, 1), mode="append")
    events.delete("position = 0")
    problems = list(problems_of(open_lake(lake)))
    assert sum("scores: has" in text for text in problems) == 1
    assert sum("evidence: has" in text and "expected" in text for text in problems) == 4
