"""Lake import: each log once, with the same rows as in a result."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.lakes import contents, imported, make_log, rows

from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportOptions
from aigo_bridge.redaction.secrets import redact_value
from aigo_inspect.importing.importing import import_logs
from aigo_report.tables.results import results_at
from aigo_report.tables.schema import SCHEMAS, TABLE_NAMES
from aigo_report.tables.sql import answered
from aigo_scale.lake import importing
from aigo_scale.lake.commits import PartitionSelection, load_state
from aigo_scale.lake.compacting import compact
from aigo_scale.lake.reading import LakeReader, LakeTables
from aigo_scale.lake.tables import TABLES, open_lake, part_name
from aigo_scale.lake.verifying import problems_of


def test_lake_import_equals_an_import_into_a_folder(logs: Path, tmp_path: Path) -> None:
    tally, reports = imported(tmp_path / "lake", logs)
    assert (tally.imported, tally.worst, len(reports)) == (4, 0, 4)
    import_logs([logs], tmp_path / "out", jobs=1)
    (tmp_path / "taken").mkdir()
    taken = LakeReader(tmp_path / "lake").write_logs(tmp_path / "taken")
    there = sorted(path.read_bytes() for path in (tmp_path / "out").glob("*.tasklog.json"))
    assert sorted(path.read_bytes() for path in taken) == there
    results = results_at([tmp_path / "out"])
    for table in TABLE_NAMES:
        expected = [{**row, "result": ""} for row in results.table(table)]
        found = [
            {name: value for name, value in row.items() if name not in ("run_id", "log")} | {"result": ""}
            for row in rows(tmp_path / "lake", table)
        ]
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), table
    assert len(rows(tmp_path / "lake", "scores")) == 9


def test_repeated_import_adds_a_log_once(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (logs / "copy.eval").write_bytes((logs / "a.eval").read_bytes())
    first, reports = imported(lake, logs)
    assert (first.imported, first.known) == (4, 1)
    assert sum(report.status == "there already" for report in reports) == 1
    tally, _ = imported(lake, logs)
    assert (tally.imported, tally.known) == (0, 5)
    assert len(rows(lake, "results")) == 4


def test_more_complete_log_of_a_run_wins_in_any_order(tmp_path: Path) -> None:
    better = make_log(tmp_path / "logs" / "better.eval", run="run", samples=3)
    worse = make_log(tmp_path / "logs" / "worse.eval", run="run", samples=1)
    other = make_log(tmp_path / "logs" / "other.eval", run="other")
    for order in ((better, worse), (worse, better)):
        lake = tmp_path / f"lake-{order[0].name}"
        imported(lake, other)
        for log in order:
            imported(lake, log)
        state = load_state(open_lake(lake))
        assert sorted(result.samples for result in state.results()) == [2, 3]
        assert len(state.superseded) == 1
        assert len(rows(lake, "samples")) == 5
        assert list(problems_of(open_lake(lake))) == []
        assert imported(lake, *order)[0].known == 2


def test_superseded_attempt_is_not_counted(tmp_path: Path) -> None:
    for number, samples in enumerate((3, 2)):
        spec = {"eval_id": f"attempt-{number}", "created": f"2026-01-0{number + 1}T00:00:00+00:00"}
        make_log(tmp_path / "logs" / f"{number}.eval", run="run", samples=samples, **spec)
    lake = tmp_path / "lake"
    assert imported(lake, tmp_path / "logs")[0].imported == 2
    assert [row["superseded_by"] for row in rows(lake, "results")] == [None]
    assert len(rows(lake, "samples")) == 2


def test_concurrent_imports_add_each_log_once(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    monkeypatch.setattr(importing, "COMMIT_LOGS", 1)
    imported(tmp_path / "whole", logs)
    tallies: list[importing.ImportTotals] = []
    threads = [threading.Thread(target=lambda: tallies.append(imported(lake, logs)[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(tally.imported for tally in tallies) == 4
    assert sum(tally.known for tally in tallies) == 4
    assert contents(lake) == contents(tmp_path / "whole")
    assert list(problems_of(open_lake(lake))) == []


def test_invalid_and_damaged_logs_do_not_affect_others(logs: Path, tmp_path: Path) -> None:
    (logs / "notes.json").write_text("{}")
    (logs / "cut.eval").write_bytes((logs / "b.eval").read_bytes()[:200])
    tally, reports = imported(tmp_path / "lake", logs)
    # The readable part of the truncated log is in the lake.
    assert (tally.imported, tally.no_logs, tally.failed, tally.worst) == (5, 1, 0, 3)
    assert [report.log for report in reports if report.exit_code] == [str(logs / "cut.eval")]
    with pytest.raises(UsageError, match="no logs at"):
        imported(tmp_path / "lake", tmp_path / "nothing")


def test_salvaged_logs_are_counted_as_imported(logs: Path, tmp_path: Path) -> None:
    log = logs / "b.eval"
    log.write_bytes(log.read_bytes().replace(b'"epoch"', b'"ep\0ch"', 1))
    tally, reports = imported(tmp_path / "lake", log)
    assert [len(report.damage) for report in reports] == [1]
    assert (tally.imported, tally.failed, tally.worst) == (1, 0, 3)
    assert len(rows(tmp_path / "lake", "samples")) == 2


def test_other_folders_and_old_lakes_are_rejected(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not a lake: found other files"):
        imported(tmp_path / "other", logs)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine.txt"]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "lake.json").write_text('{"aigo_bridge_lake": 1}')
    for use in (lambda: imported(tmp_path / "old", logs), lambda: open_lake(tmp_path / "old")):
        with pytest.raises(UsageError, match=r"a lake of a development version.*import the logs again"):
            use()
    with pytest.raises(UsageError, match="is not a lake: found nothing"):
        open_lake(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"cannot contain a lake: Delta tables do not support '\['"):
        imported(tmp_path / "a[1]", logs)


def test_lake_with_unknown_columns_is_rejected(logs: Path, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    imported(tmp_path / "lake", logs / "a.eval")
    field = DeltaTable(str(tmp_path / "lake" / "results")).schema().fields[0]
    new = type(field)("new", field.type, nullable=True)
    DeltaTable(str(tmp_path / "lake" / "results")).alter.add_columns([new])
    with pytest.raises(UsageError, match="the columns do not match this release"):
        imported(tmp_path / "lake", logs)


def test_lake_of_an_earlier_release_gets_new_columns(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    with monkeypatch.context() as earlier:
        schema = SCHEMAS["results"]
        fewer = tuple(column for column in schema.columns if column.name != "title")
        earlier.setitem(SCHEMAS, "results", replace(schema, columns=fewer))
        earlier.setattr("aigo_scale.lake.writing.redact_value", lambda row: without_title(redact_value(row)))
        imported(lake, logs / "a.eval")
    question = "SELECT count(*) AS n, count(title) AS titles FROM results"
    with answered(question, LakeTables(str(lake), PartitionSelection())) as answer:
        assert list(answer.rows) == [{"n": 1, "titles": 0}]
    imported(lake, logs)
    assert list(problems_of(open_lake(lake))) == []
    compact(open_lake(lake))
    assert list(problems_of(open_lake(lake))) == []
    with answered(question, LakeTables(str(lake), PartitionSelection())) as answer:
        assert list(answer.rows) == [{"n": 4, "titles": 3}]


def without_title(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "title"}


def test_parallel_import_equals_a_sequential_import(logs: Path, tmp_path: Path) -> None:
    assert imported(tmp_path / "two", logs, jobs=2)[0] == imported(tmp_path / "one", logs)[0]
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert imported(tmp_path / "two", logs, jobs=2)[0].known == 4


def test_logs_of_runs_in_progress_are_skipped(tmp_path: Path) -> None:
    log = make_log(tmp_path / "logs" / "a.eval", run="run", status="started")
    tally, _ = imported(tmp_path / "lake", log, finished_only=True)
    assert (tally.imported, tally.unfinished) == (0, 1)
    make_log(log, run="run")
    assert imported(tmp_path / "lake", log, finished_only=True)[0].imported == 1


def test_only_selected_partitions_are_opened(logs: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    imported(lake, logs)
    for result in load_state(open_lake(lake)).results(PartitionSelection(model="m%2Fone")):
        for file in result.files:
            (lake / file.table / file.name).write_bytes(b"no parquet")
    run = PartitionSelection(run="run-c")
    with answered("SELECT count(*) AS n FROM results", LakeTables(str(lake), run)) as answer:
        assert list(answer.rows) == [{"n": 1}]
    asked = "SELECT count(*) AS n FROM samples WHERE model = 'm/two'"
    with answered(asked, LakeTables(str(lake), PartitionSelection())) as answer:
        assert [row["n"] for row in answer.rows] == [2]
    odd = PartitionSelection(model=part_name("odd/=% né"))
    with answered("SELECT model, count(*) AS n FROM trials GROUP BY 1", LakeTables(str(lake), odd)) as answer:
        assert list(answer.rows) == [{"model": "odd/=% né", "n": 2}]


def test_invalid_option_is_rejected_before_the_lake_is_created(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pattern"):
        importing.import_into(str(tmp_path / "lake"), [], ImportOptions(patterns=("(",)), lambda _: None)
    assert not (tmp_path / "lake").exists()


def test_lake_contains_all_tables(tmp_path: Path, logs: Path) -> None:
    imported(tmp_path / "lake", logs)
    assert {path.name for path in (tmp_path / "lake").iterdir()} == {*TABLES, "logs"}
